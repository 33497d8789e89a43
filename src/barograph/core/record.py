"""Compare the body that left with the derived surface, and write down only what differs.

The client builds the body (it would double the largest cost of a call to build it twice), so what
left must be looked at, not assumed. Each wire message is compared with our rendering of it. Equal
bytes are a reference; other bytes are stored as they are; another *meaning* (as canonical JSON,
markers included) is a mismatch: a defect of ours, or somebody else who edits the request.

Only pieces that can have changed since the last call are rendered: those the client sent
differently, those whose markers moved, and those beyond the settled part. A call costs O(new).
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from barograph.core.canonical import Json, canonical_json, parse_json
from barograph.core.events import CallPlanned, Deviation, Ttl
from barograph.core.model import Body, Codec
from barograph.core.parts import Part
from barograph.core.state import PathState
from barograph.core.surface import Surface, marks_by_message, marks_on


class Departing(Struct, frozen=True, kw_only=True):
    """A body at the door, and what it should be.

    Attributes:
        path: state of the agent path, before this request.
        surface: the derived surface, its header included.
        plan: the call as planned.
        body: the body that left, taken apart.
        before: message pieces of the previous body of this path; empty where not at hand.
    """

    path: PathState
    surface: Surface
    plan: CallPlanned
    body: Body
    before: Sequence[bytes]


class Comparison(Struct, frozen=True):
    """What a request record must hold: changes of the stored pieces, and where meaning differs."""

    deviations: tuple[Deviation, ...]
    mismatches: tuple[str, ...]


def compare_body(codec: Codec, departing: Departing) -> Comparison:
    """Compare a body with the surface it should be."""
    deviations: list[Deviation] = []
    mismatches: list[str] = []
    stored = departing.path.stored
    for where, sent, derived in _touched(codec, departing):
        if sent == derived:
            if where in stored:
                deviations.append(Deviation(where=where, text=None))
            continue
        text = (sent or b"").decode()
        if stored.get(where) != text:
            deviations.append(Deviation(where=where, text=text))
        if not _same_meaning(sent, derived):
            mismatches.append(where)
    sent_messages, messages = len(departing.body.messages), departing.surface.messages
    if sent_messages < messages:
        mismatches.append(f"messages after {sent_messages}")
    return Comparison(tuple(deviations), tuple(mismatches))


def render_wire_message(
    codec: Codec, surface: Surface, marks: Mapping[int, Ttl], number: int
) -> bytes:
    """One wire message of a surface."""
    segments = surface.segments
    start = bisect_left(segments, number, key=lambda segment: segment.message)
    stop = bisect_left(segments, number + 1, lo=start, key=lambda segment: segment.message)
    entries = surface.entries.span(segments[start].entry, segments[stop - 1].entry + 1)
    parts: list[Part] = [part for entry in entries for part in entry.parts]
    return codec.render_message(entries[0].role, [codec.block(p).text for p in parts], marks)


def diagnostics_of(codec: Codec, plan: CallPlanned) -> bytes | None:
    """The field by which a call asks for a comparison; None where it does not."""
    return codec.render_diagnostics(plan.compared_with) if plan.diagnosed else None


def _touched(
    codec: Codec, departing: Departing
) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Pieces that can have changed: where, as sent, as derived."""
    surface, body = departing.surface, departing.body
    breakpoints = departing.plan.breakpoints
    if surface.header is not None:
        system, tools = surface.header.system, surface.header.tools
        yield "system", body.system, codec.render_system(system, marks_on("system", breakpoints))
        yield "tools", body.tools, codec.render_tools(tools, marks_on("tools", breakpoints))
    yield "diagnostics", body.diagnostics, diagnostics_of(codec, departing.plan)
    marks, before = marks_by_message(surface, breakpoints), departing.before
    settled = min(departing.path.settled, len(before))
    for number, sent in enumerate(body.messages):
        now = marks.get(number, {})
        is_settled = number < settled and now == departing.path.marks.get(number, {})
        if is_settled and sent == before[number]:
            continue
        derived = None
        if number < surface.messages:
            derived = render_wire_message(codec, surface, now, number)
        yield str(number), sent, derived


def _same_meaning(sent: bytes | None, derived: bytes | None) -> bool:
    if sent is None or derived is None:
        return sent is derived
    one, other = parse_json(sent.decode()), parse_json(derived.decode())
    if one is None or other is None:
        return False
    return canonical_json(cast("Json", one)) == canonical_json(cast("Json", other))
