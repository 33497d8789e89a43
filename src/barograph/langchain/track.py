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
from langchain_core.tools import BaseTool
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
from barograph.core.surface import Entry, marks_on
from barograph.core.tooling import OWN, tool_names
from barograph.core.toolsearch import ToolCard
from barograph.langchain.header import (
    ALWAYS_OFFERED,
    MAIN_ONLY,
    Tools,
    are_same,
    definitions_in,
    mark_last_tool,
    name_of,
    read_tools,
)
from barograph.langchain.messages import (
    check_marker,
    read_message,
    read_system,
    write_message,
    write_system,
)
from barograph.langchain.prefixwatch import PrefixWatch
from barograph.langchain.sieve import Sieved, sieve
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
        self._tool_order = tool_order
        self._given: list[BaseMessage] = []
        self._contents: list[Any] = []
        self._seen = 0
        self._lines: list[BaseMessage] = []
        self._marked: dict[int, tuple[Entry, dict[int, Ttl], BaseMessage]] = {}
        self._system: tuple[str, Parts] | None = None
        self._shown_system: tuple[Parts, dict[int, Ttl], SystemMessage | None] | None = None
        self._tools: Tools | None = None
        self._sieved: Sieved | None = None
        self._read: tuple[Any, Header, int] | None = None
        self._deferred: Sequence[ToolCard] | None = None
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
            self._given, self._contents, self._seen, self._lines = [], [], 0, []
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
            self._lines = []
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
        self._lines = []
        return self._written(prepared.asked, prepared.wanted, send)

    def _written(self, request: Any, wanted: CallWanted, send: Send) -> Prepared:
        if send.plan.path != self.path and self.summariser is not None:
            asked = request.override(
                model=_quiet(self.summariser),
                model_settings={},
                messages=self._marked_lines(send),
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
            messages=self._marked_lines(send),
            system_message=self._marked_system(wanted.header.system, marks_on("system", marks)),
            tools=self._bound_tools(marks_on("tools", marks)),
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
            tools = self._read_tools(request.tools)
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

    @property
    def deferred(self) -> Sequence[ToolCard] | None:
        """Tools that a search may find; None before the first call here."""
        return self._deferred

    def _read_tools(self, asked: Sequence[Any]) -> Tools:
        if self._sieved is None or not are_same(asked, self._sieved.given):
            self._sieved = sieve(asked, self.session, self.path)
        given, kept_back = self._split(self._sieved.kept)
        useless = self._useless(given)
        if useless:
            given = [tool for tool in given if name_of(tool) not in useless]
        absent = kept_back.union(useless, map(name_of, self._sieved.dropped))
        first = [name for name in self._tool_order if name not in absent]
        if self._tools is None or not are_same(given, self._tools.given):
            surfaces = self.session.state.fold.surfaces
            own = self.session.state.surface(self.path)
            sent = definitions_in(one.header for one in (own, *surfaces.values()))
            self._tools = read_tools(given, first, sent, self._known_tools(given))
        return self._tools

    def _split(self, given: Sequence[Any]) -> tuple[Sequence[Any], frozenset[str]]:
        """The tools that are offered, and the names of those that are to be found first."""
        base = self.session.engine.policy.base_tools
        if base is None:
            return given, frozenset()
        always = OWN.union(base)
        found = self.session.state.path(self.path).loaded
        # what the provider runs itself is no tool of LangChain, and is always offered
        later = [
            tool
            for tool in given
            if isinstance(tool, BaseTool)
            and tool.name not in always
            and not (tool.metadata or {}).get(ALWAYS_OFFERED)
        ]
        self._deferred = [ToolCard(tool.name, tool.description) for tool in later]
        kept_back = frozenset(tool.name for tool in later).difference(found)
        return [tool for tool in given if name_of(tool) not in kept_back], kept_back

    def _useless(self, given: Sequence[Any]) -> frozenset[str]:
        """Names of tools that would refuse here, and are not offered: those of the main agent only.

        A child that has the very tools of its parent has these too, as it would else begin with
        other bytes. And what an agent was offered once stays.
        """
        only = frozenset(tool.name for tool in given if _is_main_only(tool))
        if not only or "/" not in self.path:
            return frozenset()
        own = self.session.state.path(self.path).tools
        return frozenset() if not own and self._has_tools_above(given) else only.difference(own)

    def _known_tools(self, given: Sequence[Any]) -> tuple[str, ...]:
        """Names in the order in which this path was offered them.

        A child that has the very tools of its parent begins with the parent's bytes.
        """
        own = self.session.state.path(self.path).tools
        return own or (self._tools_above() if self._has_tools_above(given) else ())

    def _has_tools_above(self, given: Sequence[Any]) -> bool:
        """Whether these are the very tools of the agent above."""
        return set(self._tools_above()) == set(map(name_of, given))

    def _tools_above(self) -> tuple[str, ...]:
        """Names of the tools of the agent above, in their order; of a fork, those it began with."""
        surface = self.session.state.surface
        above = surface(self.path).header or surface(self.path.rpartition("/")[0]).header
        return () if above is None else tool_names(above.tools)

    def _marked_system(self, parts: Parts, marks: dict[int, Ttl]) -> SystemMessage | None:
        """The canonical system message, kept as long as neither it nor its markers change."""
        before = self._shown_system
        if before is None or before[0] is not parts or before[1] != marks:
            before = self._shown_system = (parts, marks, write_system(parts, marks))
        return before[2]

    def _bound_tools(self, marks: dict[int, Ttl]) -> list[Any]:
        """What the client is given: it drops by itself what the header leaves out."""
        tools, sieved = self._tools, self._sieved
        if tools is None or sieved is None:
            return []
        shown = mark_last_tool(tools, next(iter(marks.values()))) if marks else tools.ordered
        return [*sieved.dropped, *shown]

    def _lines_of(self, send: Send) -> list[BaseMessage]:
        """The canonical messages of a surface: a new list, of messages that are kept."""
        if send.plan.path != self.path:  # shown once, to sum it up
            return [write_message(entry, {}) for entry in send.surface.entries]
        entries = send.surface.entries.span(len(self._lines))
        self._lines.extend(write_message(entry, {}) for entry in entries)
        return list(self._lines)

    def _marked_lines(self, send: Send) -> list[BaseMessage]:
        """The canonical messages, with copies where a marker stands.

        The canonical ones are ours alone: the framework's objects are never touched. Those that
        carry a marker are kept for one call: a marker often stays where it was.
        """
        lines = self._lines_of(send)
        marks: dict[int, dict[int, Ttl]] = {}
        surface = send.surface
        for mark in send.breakpoints:
            if mark.level == "messages":
                part, entry = mark.block, surface.segments[mark.block].entry
                while part and surface.segments[part - 1].entry == entry:
                    part -= 1
                marks.setdefault(entry, {})[mark.block - part] = mark.ttl
        marked = {}
        for entry, on_parts in marks.items():
            said = surface.entries[entry]
            before = self._marked.get(entry)
            if before is None or before[0] is not said or before[1] != on_parts:
                before = (said, on_parts, write_message(said, on_parts))
            marked[entry] = before
            lines[entry] = before[2]
        self._marked = marked
        return lines


def _is_main_only(tool: Any) -> bool:
    return isinstance(tool, BaseTool) and bool((tool.metadata or {}).get(MAIN_ONLY))


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
