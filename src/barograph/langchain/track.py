"""One agent path as LangChain shows it: turn its requests into ours, and remember what was sent."""

from collections.abc import Sequence
from functools import lru_cache
from inspect import signature
from operator import attrgetter
from threading import RLock
from typing import Any, Final
from urllib.parse import urlsplit

from anthropic.resources.messages import Messages
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import dump_json
from barograph.core.engine import Send
from barograph.core.events import HeaderSet, Ttl
from barograph.core.frames import Offer
from barograph.core.identity import identified
from barograph.core.inputs import CallWanted, Header, Summariser
from barograph.core.parts import Parts
from barograph.core.readback import derive_body
from barograph.core.sharing import cold_prefix
from barograph.core.steering import HandBack
from barograph.core.surface import marks_on
from barograph.langchain.lines import Lines
from barograph.langchain.messages import (
    check_marker,
    read_message,
    read_system,
    write_system,
)
from barograph.langchain.offering import Offering
from barograph.langchain.prefixwatch import PrefixWatch
from barograph.store.session import Session

_PROVIDER: Final = "api.anthropic.com"
_KNOWS_DIAGNOSTICS: Final = "diagnostics" in signature(Messages.create).parameters


_content_of: Final = attrgetter("content")
"""Asked of many messages at once, where a loop of our own would take twice as long."""

_WATCHED_MESSAGES: Final = 100
"""As many of the newest are asked for their content at every call; all are when a turn begins."""


class Reading(Struct, frozen=True):
    """A request as the agent made it, read: what is wanted, and the settings it leaves to others.

    `known` of its messages are those of the call before.
    """

    asked: Any
    wanted: CallWanted
    settings: dict[str, Any]
    known: int


class Prepared(Struct, frozen=True):
    """A request as it will be sent, what was wanted, and what the engine said of it.

    `asked` is the request as the agent made it: what a summary needs otherwise ends with it.
    """

    asked: Any
    request: Any
    wanted: CallWanted
    send: Send

    @property
    def header(self) -> Header:
        """What precedes the messages."""
        teller = self.wanted.summariser
        if self.is_summary and teller is not None:
            return Header(model=teller.model)
        return self.wanted.header

    @property
    def path(self) -> str:
        """Agent path of the call: that of the track, or of a call that sums its history up."""
        return self.send.plan.path

    @property
    def is_summary(self) -> bool:
        """Whether the call is not the agent's own, but sums its history up."""
        return self.path != self.wanted.path


class Track:
    """The framework's side of an agent path: its message objects and their canonical copies.

    `is_vetted` says that its callers were looked at for second owners, `is_mismatch_told` that a
    request which was not the surface was spoken of, `is_fixed_told` that tools and system fill the
    window by themselves was, `is_taken` that a call of it is under way here. `keeping` is held
    while a tool of a source of the frame runs.
    """

    def __init__(
        self, session: Session, path: str, tool_order: Sequence[str], summariser: Any = None
    ) -> None:
        self.session = session
        self.path = path
        self.summariser = summariser
        self.is_vetted = False
        self.is_mismatch_told = False
        self.is_fixed_told = False
        self.is_taken = False
        self.keeping = RLock()
        self.offering = Offering(session, path, tool_order)
        self._lines = Lines(path)
        self._given: list[BaseMessage] = []
        self._contents: list[Any] = []
        self._seen = 0
        self._system: tuple[str, Parts] | None = None
        self._shown_system: tuple[Parts, dict[int, Ttl], SystemMessage | None] | None = None
        self._read: tuple[Any, Header, int] | None = None
        self._renewals = session.renewals
        self._prefix = PrefixWatch(session.id, path, quotes=session.mode != "private")

    def continues(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether this history begins as the one before did, whatever the ids of its messages."""
        if not self._given:
            return True
        return bool(messages) and _says_the_same(messages[0], self._given[0])

    def extends(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether this history is the whole one before, and more; nothing extends an empty one."""
        given = self._given
        return 0 < len(given) <= len(messages) and all(map(_says_the_same, messages, given))

    def cold_prefix(self, request: Any, *, at: float) -> bytes | None:
        """A key of the tools + system that this request would be the first to write, if it would.

        Raises:
            UsageError: something in the request cannot be sent as it is.
        """
        header, _ = self._read_header(request)
        wanted = CallWanted(
            at=at,
            path=self.path,
            header=header,
            messages=(),
            reserved=int(_own_marker(request.model) is not None),
        )
        engine = self.session.engine
        return cold_prefix(self.session.state, engine.codec, engine.policy, wanted)

    def read(self, request: Any, *, at: float, summarises: bool = True) -> Reading:
        """Read a request; nothing is logged yet.

        With `summarises`, a call that asks for a summary may come first.

        Raises:
            UsageError: something in the request cannot be sent as it is.
        """
        messages: list[BaseMessage] = request.messages
        header, markers = self._read_header(request)
        if self._renewals != self.session.renewals:
            # Another writer went on with this session: what we showed is not where its log ends.
            self._renewals = self.session.renewals
            self._given, self._contents, self._seen = [], [], 0
            self._lines.forget()
        is_known = self._is_known(messages)
        known = len(self._given) if is_known else 0
        arrivals = [read_message(message) for message in messages[known:]]
        settings = dict(request.model_settings)
        # whoever asks for it gets it from us, with the id that the log has
        wishes = settings.pop("diagnostics", (request.model.model_kwargs or {}).get("diagnostics"))
        markers += check_marker({"cache_control": settings.pop("cache_control", None)}, "the call")
        own = _own_marker(request.model)
        wanted = CallWanted(
            at=at,
            path=self.path,
            header=header,
            messages=tuple(arrival.incoming for arrival in arrivals),
            known=self._seen if is_known else 0,
            reserved=int(own is not None),
            reserved_ttl=own,
            foreign=markers + sum(arrival.markers for arrival in arrivals),
            reserve_tokens=settings.get("max_tokens") or request.model.max_tokens or 0,
            window_tokens=(request.model.profile or {}).get("max_input_tokens"),
            diagnosable=wishes is not None or _compares(request.model),
            summarises=summarises,
            summariser=_summariser_of(self.summariser),
        )
        return Reading(request, wanted, settings, known)

    def prepare(self, reading: Reading, offer: Offer | None = None) -> Prepared | HandBack:
        """Log what is new and build the request to send, or say that there is none.

        Args:
            reading: the request, read right before.
            offer: what the sources of the frame offer, where they were asked.
        """
        request, known = reading.asked, reading.known
        wanted = reading.wanted if offer is None else replace(reading.wanted, frame=offer)
        messages: list[BaseMessage] = request.messages
        send, was_rewritten = self.session.want(wanted)
        self._prefix.look(wanted.header)
        new = messages[known:]
        self._given[known:], self._contents[known:] = new, map(_content_of, new)
        self._seen = send.seen
        if was_rewritten:
            self._lines.forget()
        if isinstance(send, HandBack):
            return send
        wanted = replace(wanted, messages=(), frame=None)
        if reading.settings != request.model_settings:
            request = request.override(model_settings=reading.settings)
        return self._written(request, wanted, send)

    def _is_known(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether this history begins with the last one, as it was then.

        A message that was taken out, put in or exchanged is seen at every call. But what we hold
        are the caller's own objects, equal to themselves whatever they say: one that got another
        content in its place is seen at the next call if it is among the newest
        `_WATCHED_MESSAGES`, and else when the next turn begins. To ask all of them in each round
        would cost more than all else that grows with a history.
        """
        known = len(self._given)
        begins = messages[:known]
        if begins != self._given:
            return False
        asked = max(0, known - _WATCHED_MESSAGES) if _goes_on(messages[known:]) else 0
        return list(map(_content_of, begins[asked:])) == self._contents[asked:]

    def prepare_again(self, prepared: Prepared, send: Send) -> Prepared:
        """The same call in another form, for one more attempt or after a summary."""
        self._lines.forget()
        return self._written(prepared.asked, prepared.wanted, send)

    def _written(self, request: Any, wanted: CallWanted, send: Send) -> Prepared:
        if send.plan.path != self.path and self.summariser is not None:
            asked = request.override(
                model=_quiet(self.summariser),
                model_settings={},
                messages=self._lines.marked(send),
                system_message=None,
                tools=[],
                tool_choice=None,
                response_format=None,
            )
            return Prepared(request, asked, wanted, send)
        marks, settings = send.breakpoints, dict(request.model_settings)
        if send.plan.diagnosed:
            settings["diagnostics"] = {"previous_message_id": send.plan.compared_with}
        if send.plan.max_tokens is not None:
            settings["max_tokens"] = send.plan.max_tokens
        asked = request if send.plan.path == self.path else _free_to_tell(request)
        overridden = asked.override(
            model_settings=settings,
            messages=self._lines.marked(send),
            system_message=self._marked_system(wanted.header.system, marks_on("system", marks)),
            tools=self.offering.bound(marks_on("tools", marks)),
        )
        return Prepared(request, overridden, wanted, send)

    def record_built(self, prepared: Prepared, *, at: float) -> None:
        """Record the body we would build, for a client whose bytes nobody shows us."""
        path = self.session.state.path(prepared.path)
        if path.planned is None:
            return
        codec, header = self.session.engine.codec, prepared.header
        parameters = dump_json({"model": header.model}).decode()
        assumed = HeaderSet(
            at=at,
            path=prepared.path,
            model=header.model,
            system=header.system,
            tools=header.tools,
            parameters=parameters,
            changed=(),
        )
        surface = replace(prepared.send.surface, header=assumed)
        order = ("messages", "model", "system", "tools", "diagnostics")
        body = derive_body(codec, surface, path.planned, order)
        self.session.leave(
            at=at, path=prepared.path, header=header, body=codec.join_body(body), observed=False
        )

    def _read_header(self, request: Any) -> tuple[Header, int]:
        """What precedes the messages, and the markers taken off it; read once for each request."""
        if self._read is None or self._read[0] is not request:
            system, markers = self._read_system(request.system_message)
            tools = self.offering.read(request.tools)
            header = Header(
                model=request.model.model,
                system=system,
                tools=tools.definitions if tools.ordered else "",
            )
            self._read = (request, header, markers + tools.markers)
        return self._read[1:]

    def _read_system(self, message: SystemMessage | None) -> tuple[Parts, int]:
        """What is sent of the system message, and the markers taken off it."""
        content = message.content if message is not None else ""
        if self._system is not None and isinstance(content, str) and content == self._system[0]:
            return self._system[1], 0  # a string has no markers
        read, markers = read_system(message)
        engine = self.session.engine
        parts = identified(engine.codec.sendable(read), engine.policy.identity)
        self._system = (content, parts) if isinstance(content, str) else None
        return parts, markers

    def _marked_system(self, parts: Parts, marks: dict[int, Ttl]) -> SystemMessage | None:
        """The canonical system message, kept as long as neither it nor its markers change."""
        before = self._shown_system
        if before is None or before[0] is not parts or before[1] != marks:
            before = self._shown_system = (parts, marks, write_system(parts, marks))
        return before[2]


def _free_to_tell(request: Any) -> Any:
    """The request with its answer as plain text, and out of the agent's stream.

    A summary is neither for the user, nor a tool call, nor of the form that the agent's answers
    must have. That form may take the cache with it, but a forced call tells nothing at all.
    """
    return request.override(model=_quiet(request.model), response_format=None, tool_choice=None)


def _quiet(model: Any) -> Any:
    """The model, out of the agent's stream."""
    return model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})


def _summariser_of(model: Any) -> Summariser | None:
    """What the engine must know of a model that sums up."""
    if model is None:
        return None
    return Summariser(
        model=model.model,
        window_tokens=(model.profile or {}).get("max_input_tokens"),
        reserve_tokens=model.max_tokens or 0,
    )


def _own_marker(model: Any) -> Ttl | None:
    """Lifetime of the marker that the client itself sets at the end; None where it sets none."""
    marker = (model.model_kwargs or {}).get("cache_control")
    if not isinstance(marker, dict):
        return None
    return "1h" if marker.get("ttl") == "1h" else "5m"


def _compares(model: Any) -> bool:
    """Whether its requests go to the provider itself, by a client that knows the field."""
    return _KNOWS_DIAGNOSTICS and _host_of(model.anthropic_api_url or "") == _PROVIDER


@lru_cache(maxsize=64)
def _host_of(url: str) -> str | None:
    return urlsplit(url).hostname


def _goes_on(new: Sequence[BaseMessage]) -> bool:
    """Whether these new messages go on with a turn: answers and results, the last one a result."""
    kinds = [message.type for message in new]
    return kinds[-1:] == ["tool"] and {"ai", "tool"}.issuperset(kinds)


def _says_the_same(one: BaseMessage, other: BaseMessage) -> bool:
    return one is other or (one.type == other.type and one.content == other.content)
