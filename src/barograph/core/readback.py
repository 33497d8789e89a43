"""Read requests back from a log: as they left, and as the events alone say they should be.

The two are counted apart and never one for the other. *Exact* bytes come from the record, which
refers to our rendering or holds the pieces that differed; their hash is in the record. The
*derived* body comes from the fold without any stored piece.
"""

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct

from barograph.core.canonical import hash_body
from barograph.core.errors import LogCorrupt
from barograph.core.events import CallPlanned, Event, RequestSent
from barograph.core.learning import learn
from barograph.core.model import Body, Codec
from barograph.core.record import diagnostics_of
from barograph.core.state import PathState, State
from barograph.core.surface import Surface, marks_on, wire_messages


class Request(Struct, frozen=True, kw_only=True):
    """One attempt of a call, read back.

    Attributes:
        seq: seq of its record.
        record: the record.
        plan: the call it belongs to.
        surface: the surface at that moment.
        exact: the bytes that left, as the record gives them back.
        derived: the body as derived from the events.
    """

    seq: int
    record: RequestSent
    plan: CallPlanned
    surface: Surface
    exact: bytes
    derived: bytes

    @property
    def is_exact(self) -> bool:
        """Whether the bytes are those whose hash was recorded before they left."""
        return hash_body(self.exact) == self.record.body_hash


def read_requests(
    codec: Codec, events: Iterable[tuple[int, Event]], *, call: int | None = None
) -> Iterator[Request]:
    """Every request of a log in the order sent, or only those of one call.

    Raises:
        LogCorrupt: the log does not fold.
    """
    state = State()
    for seq, event in events:
        state = learn(codec, state, seq, event)
        if isinstance(event, RequestSent) and call in (None, event.call):
            yield _request(codec, state, seq, event)


def read_last(codec: Codec, state: State, path: str) -> Request | None:
    """The last request of a path, from the state alone; None where none left since it began.

    It is right as long as its surface is the one that was sent.
    """
    record, plan = state.path(path).sent, state.path(path).planned
    if record is None or plan is None or record.call != plan.call:
        return None
    return _request(codec, state, state.fold.seq, record)


def _request(codec: Codec, state: State, seq: int, record: RequestSent) -> Request:
    path, surface = state.path(record.path), state.surface(record.path)
    plan = path.planned
    if plan is None or (record.order and surface.header is None):
        raise LogCorrupt(
            f"The request record {seq} of {record.path} has no plan or no header before it.",
            next_step="Run `barograph verify` to see what else is damaged.",
            seq=seq,
            path=record.path,
        )
    derived = derive_body(codec, surface, plan, record.order)
    return Request(
        seq=seq,
        record=record,
        plan=plan,
        surface=surface,
        exact=_exact_body(codec, path, record, derived),
        derived=codec.join_body(derived),
    )


def derive_body(codec: Codec, surface: Surface, plan: CallPlanned, order: tuple[str, ...]) -> Body:
    """The request that the events stand for, in pieces.

    `order` is empty for a body that could not be taken apart; its keys then come in our order.
    """
    header, marks = surface.header, plan.breakpoints
    system = tools = None
    parameters = "{}"
    if header is not None:
        system = codec.render_system(header.system, marks_on("system", marks))
        tools = codec.render_tools(header.tools, marks_on("tools", marks))
        parameters = header.parameters
    diagnostics = diagnostics_of(codec, plan)
    apart = {"system": system, "tools": tools, "diagnostics": diagnostics}
    keys = order or (*json.loads(parameters), *apart, "messages")
    return Body(
        order=tuple(key for key in keys if apart.get(key, b"") is not None),
        messages=tuple(wire_messages(codec, surface, marks)),
        system=system,
        tools=tools,
        diagnostics=diagnostics,
        parameters=parameters.encode(),
    )


def _exact_body(codec: Codec, path: PathState, record: RequestSent, derived: Body) -> bytes:
    stored = path.stored
    if not record.order:
        return stored.get("body", "").encode("latin-1")
    messages = tuple(
        stored[str(number)].encode() if str(number) in stored else derived.messages[number]
        for number in range(record.messages)
        if str(number) in stored or number < len(derived.messages)
    )
    return codec.join_body(
        Body(
            order=record.order,
            messages=messages,
            system=stored["system"].encode() if "system" in stored else derived.system,
            tools=stored["tools"].encode() if "tools" in stored else derived.tools,
            diagnostics=(
                stored["diagnostics"].encode() if "diagnostics" in stored else derived.diagnostics
            ),
            parameters=derived.parameters,
        )
    )
