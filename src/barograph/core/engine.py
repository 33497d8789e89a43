"""The machine: `step(state, input) -> (state, effects)`.

**Theory of operation.** An adapter tells the engine what happens (a call is wanted, a body left, a
response came, a tool returned) and carries out what the engine answers: commit these events, send
this surface. The engine has no clock, no store and no client, so LangChain, a raw SDK, sync, async
and a test drive the same one, and a whole session replays in a unit test without a model.

Each input becomes events; each event is learned by `core.state.learn`, and nothing else changes the
state. An `Append` must be durable before the adapter does what follows it: the first one before the
request is built, the second one before its bytes leave.

A call of a path goes through the phases of `TRANSITIONS`. An input that no row allows is a defect
of the adapter and refused; nothing changes then.

**Invariants.** What the model will see is in the log before it leaves (1); a history that departs
from the log is logged as such (4); every request is paired (5).

**Out of scope.** Relief: the engine asks nobody yet whether the window is full.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from barograph.core.breakpoints import CacheView, plan_breakpoints
from barograph.core.canonical import canonical_json, clean_text, hash_body
from barograph.core.cuts import last_calls
from barograph.core.errors import SurfaceError
from barograph.core.events import (
    Breakpoint,
    CallFailed,
    CallPlanned,
    Deviation,
    Event,
    HeaderSet,
    Level,
    MessageLeftOut,
    MessageSeen,
    Origin,
    Replaced,
    RequestSent,
    ResponseCame,
    SessionOpened,
    ToolBegan,
    ToolEnded,
    TurnBegan,
    TurnEnded,
)
from barograph.core.ingest import Ruling, Unit, matching, rule, unit_key, units_of
from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Header,
    Input,
    Refused,
    SessionStarted,
    ToolReturned,
    ToolStarted,
)
from barograph.core.model import Body, Codec, Scope
from barograph.core.parts import Parts, Role, calls_in, results_in
from barograph.core.policy import Policy
from barograph.core.record import Comparison, Departing, compare_body
from barograph.core.state import NO_SCOPE, PathState, State, count_header_chars, learn
from barograph.core.surface import Entry, Surface


class Append(Struct, frozen=True):
    """Commit these events, in one transaction, before anything else happens."""

    events: tuple[Event, ...]


class Send(Struct, frozen=True):
    """Send this surface with these breakpoints; `seen` units of the caller's history are known."""

    call: int
    surface: Surface
    breakpoints: tuple[Breakpoint, ...]
    seen: int


Effect: TypeAlias = Append | Send

TRANSITIONS: Final[Mapping[tuple[str, type], str]] = {
    ("idle", CallWanted): "planned",
    ("planned", CallWanted): "planned",  # the earlier call was abandoned before it left
    ("sent", CallWanted): "planned",  # the earlier call was cancelled in flight
    ("planned", BodyLeft): "sent",
    ("sent", BodyLeft): "sent",  # a retry is an attempt of the same call
    ("planned", Answered): "idle",
    ("sent", Answered): "idle",
    ("planned", Refused): "idle",
    ("sent", Refused): "idle",
}


_ORIGINS: Final[Mapping[Role, Origin]] = {"assistant": "model", "tool": "tool", "user": "caller"}


class Engine:
    """The rules of a session under one policy and one wire format."""

    def __init__(self, codec: Codec, policy: Policy) -> None:
        self.codec = codec
        self.policy = policy

    def step(self, state: State, given: Input) -> tuple[State, tuple[Effect, ...]]:
        """Take one input.

        Raises:
            SurfaceError: the input does not fit the phase of its path; nothing changed.
        """
        _check_phase(state, given)
        work = _Work(self.codec, state)
        match given:
            case SessionStarted():
                work.log(_opened(given, self.policy, self.codec))
            case CallWanted():
                _take_in(work, given)
                self._plan(work, given)
            case BodyLeft():
                _record(work, given)
            case Answered():
                _answer(work, given)
            case Refused():
                work.log(_failed(work.state.path(given.path), given))
            case ToolStarted():
                work.log(_began(given))
            case ToolReturned():
                work.log(_ended(given))
        return work.state, work.effects()

    def _plan(self, work: "_Work", given: CallWanted) -> None:
        """Number the call and place its breakpoints."""
        path, surface = work.state.path(given.path), work.state.surface(given.path)
        insured = work.rewritten or path.insured
        if not path.round and not work.rewritten:
            insured = len(surface.segments)  # a turn begins where this request ends
        plan = plan_breakpoints(self._cache_view(path, surface, given, insured))
        is_live = plan.anchor is not None and plan.anchor.is_live(given.at)
        segments = surface.segments
        work.log(
            CallPlanned(
                at=given.at,
                path=given.path,
                call=work.state.calls + 1,
                turn=path.turn,
                round=path.round + 1,
                entries=len(surface.entries),
                digest=segments[-1].key.hex() if len(segments) else "",
                breakpoints=plan.breakpoints,
                expected_read_tokens=plan.anchor.tokens if plan.anchor and is_live else None,
                insured=insured,
                foreign_breakpoints=given.foreign,
            )
        )
        work.send = Send(work.state.calls, surface, plan.breakpoints, len(path.seen))

    def _cache_view(
        self, path: PathState, surface: Surface, given: CallWanted, insured: int
    ) -> CacheView:
        header = given.header
        level, block = _end_of_header(header)
        return CacheView(
            header_level=level,
            header_block=block,
            header_chars=count_header_chars(self.codec, header.system, header.tools),
            segments=surface.segments,
            scope=_expected_scope(self.codec, path, surface, header),
            ledger=path.ledger,
            at=given.at,
            facts=self.codec.facts_of(header.model),
            ttl=self.policy.entry_ttl,
            tokens_per_char=path.tokens_per_char or self.policy.start_tokens_per_char,
            insured=insured,
            reserved=given.reserved,
        )


class _Work:
    """One step under way: events logged so far, and the state that has learned them.

    `rewritten` is the number of message blocks up to where a rewrite by the caller ended.
    """

    def __init__(self, codec: Codec, state: State) -> None:
        self.codec = codec
        self.state = state
        self.events: list[Event] = []
        self.send: Send | None = None
        self.rewritten = 0

    def log(self, event: Event) -> None:
        event = _well_formed(event)
        self.state = learn(self.codec, self.state, self.state.fold.seq + 1, event)
        self.events.append(event)

    def effects(self) -> tuple[Effect, ...]:
        append = (Append(tuple(self.events)),) if self.events else ()
        return append if self.send is None else (*append, self.send)


def _well_formed(event: Event) -> Event:
    """The event in text that UTF-8 can carry; file names from Python may hold lone surrogates."""
    try:
        msgspec.json.encode(event)
    except UnicodeEncodeError:
        return msgspec.convert(_cleaned(msgspec.to_builtins(event)), type(event))
    return event


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value


def _check_phase(state: State, given: Input) -> None:
    if isinstance(given, SessionStarted | ToolStarted | ToolReturned):
        return
    phase = state.path(given.path).phase
    if (phase, type(given)) not in TRANSITIONS:
        raise SurfaceError(
            f"{type(given).__name__} came for {given.path} while its call is {phase}.",
            next_step="An adapter must want a call before it reports on it; this is its defect.",
            path=given.path,
            phase=phase,
        )


def _take_in(work: _Work, given: CallWanted) -> None:
    """Bring the surface up to what the caller now shows."""
    units = units_of(work.codec, given.messages)
    seen = work.state.path(given.path).seen
    if given.known > len(seen):
        raise SurfaceError(
            f"{given.known} units are vouched for on {given.path}, and {len(seen)} are known.",
            next_step="Pass the whole history with `known` 0 to a session that was opened anew.",
            path=given.path,
            known=given.known,
        )
    matched = given.known + matching((unit.key for unit in seen.span(given.known)), units)
    new = units[matched - given.known :]
    if matched < len(seen) or _answers_repair(work.state, given, new):
        work.log(_departure(work.state, given, matched, new))
    rulings = list(rule(new, *last_calls(work.state.surface(given.path).entries.span())))
    if any(ruling.verdict == "enter" and ruling.role == "user" for ruling in rulings):
        path = work.state.path(given.path)
        work.log(TurnBegan(at=given.at, path=given.path, turn=path.turn + 1))
    entering = [ruling for ruling in rulings if ruling.verdict in ("enter", "repair")]
    last_changed = _last_changed(rulings, {unit.key for unit in seen.span(matched)})
    for ruling in rulings:
        is_last = bool(entering) and ruling is entering[-1]
        path = work.state.path(given.path)
        work.log(_admit(work.codec, path, given, ruling, is_last=is_last))
        if ruling is last_changed:
            work.rewritten = len(work.state.surface(given.path).segments)


def _last_changed(rulings: Sequence[Ruling], gone: set[bytes]) -> Ruling | None:
    """Where a rewrite ends: the last new ruling that is followed by one of those known before."""
    last = None
    changed = None
    for ruling in rulings:
        if ruling.key in gone:
            last = changed
        else:
            changed = ruling
    return last


def _departure(state: State, given: CallWanted, matched: int, new: list[Unit]) -> Event:
    """The caller's history is not what we know: hide the part that is gone."""
    seen = state.path(given.path).seen
    cause = "rewound"
    if matched == len(seen):
        cause = "answered"
    elif new and seen[matched].native_id and seen[matched].native_id == new[0].native_id:
        cause = "edited"
    return Replaced(
        at=given.at,
        path=given.path,
        shadows=tuple(entry.seq for entry in _entries_after(state, given.path, matched)),
        cause=cause,
        planned=False,
        recognised=matched,
    )


def _answers_repair(state: State, given: CallWanted, new: list[Unit]) -> bool:
    """Whether a result arrives for a call that a repair at the very end has closed."""
    repairs = _entries_after(state, given.path, len(state.path(given.path).seen))
    late = {call for unit in new if unit.role == "tool" for call in results_in(unit.parts)}
    return any(not late.isdisjoint(results_in(entry.parts)) for entry in repairs)


def _entries_after(state: State, path: str, matched: int) -> list[Entry]:
    """Entries that follow the last of so many units of the caller's history."""
    seen, entries = state.path(path).seen, state.surface(path).entries
    last_kept = seen[matched - 1].seq if matched else 0
    start = len(entries)
    while start and entries[start - 1].seq > last_kept:
        start -= 1
    return entries.span(start)


def _admit(
    codec: Codec, path: PathState, given: CallWanted, ruling: Ruling, *, is_last: bool
) -> Event:
    """The event by which a unit enters the surface, or is left out of it."""
    if ruling.verdict != "enter" and ruling.verdict != "repair":  # noqa: PLR1714 - narrows the type
        return MessageLeftOut(
            at=given.at,
            path=given.path,
            role=ruling.role,
            reason=ruling.verdict,
            native_id=ruling.native_id,
            parts=ruling.parts,
        )
    same_as, parts = _source_of(codec, path, ruling, is_last=is_last)
    return MessageSeen(
        at=given.at,
        path=given.path,
        role=ruling.role,
        origin="repair" if ruling.verdict == "repair" else _ORIGINS[ruling.role],
        native_id=ruling.native_id,
        parts=parts,
        same_as=same_as,
    )


def _source_of(
    codec: Codec, path: PathState, ruling: Ruling, *, is_last: bool
) -> tuple[int | None, Parts]:
    """Where the log already holds this content, and what else must be stored of it.

    A response is preferred to the framework's copy of it: it has the arguments as generated.
    """
    is_prefill = is_last and ruling.role == "assistant"
    if ruling.role == "assistant" and path.answer is not None:
        received = codec.sendable(path.answer.parts, prefill=is_prefill)
        if unit_key("assistant", received) == ruling.key:
            is_whole = received == path.answer.parts
            return (path.answer.seq, ()) if is_whole else (None, received)
    if ruling.role == "tool":
        outcome = path.outcomes.get(results_in(ruling.parts)[0])
        if outcome is not None and outcome.parts == ruling.parts:
            return outcome.seq, ()
    return None, codec.sendable(ruling.parts, prefill=True) if is_prefill else ruling.parts


def _record(work: _Work, given: BodyLeft) -> None:
    """Log the header if it changed, and the request record."""
    codec, name = work.codec, given.path
    body = codec.split_body(given.body)
    if body is not None:
        header = _header_event(codec, work.state.surface(name), given, body)
        if header is not None:
            work.log(header)
    path, surface = work.state.path(name), work.state.surface(name)
    plan = path.planned
    if plan is None:
        raise SurfaceError(
            f"A body left for {name}, which never planned a call.",
            next_step="An adapter must want a call before it reports on it; this is its defect.",
            path=name,
        )
    if body is None:
        whole = Deviation(where="body", text=given.body.decode("latin-1"))
        found = Comparison((whole,), ("body",))
    else:
        departing = Departing(
            path=path,
            surface=surface,
            breakpoints=plan.breakpoints,
            body=body,
            before=given.before,
        )
        found = compare_body(codec, departing)
    work.log(
        RequestSent(
            at=given.at,
            path=name,
            call=plan.call,
            attempt=path.attempt + 1,
            header=surface.header_seq,
            renderer=codec.renderer,
            order=body.order if body else (),
            messages=len(body.messages) if body else 0,
            deviations=found.deviations,
            mismatches=found.mismatches,
            body_hash=hash_body(given.body),
            body_bytes=len(given.body),
            observed=given.observed,
        )
    )


def _header_event(codec: Codec, surface: Surface, given: BodyLeft, body: Body) -> HeaderSet | None:
    """The header that is in force from this request on, if it differs from the one before.

    System and tools are ours to derive: the ones that were wanted. Where other tools left (a
    client adds some for structured output) they are adopted as sent, and said to be.
    """
    wanted, before = given.header, surface.header
    tools = codec.unmarked_tools(body.tools) if body.tools else ""
    is_ours = _same_json(tools, wanted.tools)
    parameters = body.parameters.decode()
    fields: dict[str, object] = {
        "model": wanted.model,
        "system": wanted.system,
        "tools": tools,
        "parameters": parameters,
    }
    changed = tuple(
        key for key, value in fields.items() if before is None or getattr(before, key) != value
    )
    if not changed:
        return None
    return HeaderSet(
        at=given.at,
        path=given.path,
        model=wanted.model,
        system=wanted.system,
        tools=tools,
        parameters=parameters,
        changed=changed,
        adopted=() if is_ours else ("tools",),
    )


def _answer(work: _Work, given: Answered) -> None:
    path = work.state.path(given.path)
    plan = path.planned
    call, began = (plan.call, plan.at) if plan else (0, given.at)
    work.log(
        ResponseCame(
            at=given.at,
            path=given.path,
            call=call,
            parts=given.parts,
            stop_reason=given.stop_reason,
            usage=given.usage,
            provider_id=given.provider_id,
            request_id=given.request_id,
            latency_seconds=given.at - began,
        )
    )
    if not calls_in(given.parts):
        work.log(TurnEnded(at=given.at, path=given.path, turn=path.turn, rounds=path.round))


def _opened(given: SessionStarted, policy: Policy, codec: Codec) -> Event:
    return SessionOpened(
        at=given.at,
        session=given.session,
        made_by=given.made_by,
        policy=policy.name,
        renderer=codec.renderer,
    )


def _failed(path: PathState, given: Refused) -> Event:
    return CallFailed(
        at=given.at,
        path=given.path,
        call=path.planned.call if path.planned else 0,
        error=given.error,
        status=given.status,
        message=given.message,
    )


def _began(given: ToolStarted) -> Event:
    return ToolBegan(
        at=given.at,
        path=given.path,
        call_id=given.call_id,
        name=given.name,
        arguments=given.arguments,
    )


def _ended(given: ToolReturned) -> Event:
    return ToolEnded(
        at=given.at,
        path=given.path,
        call_id=given.call_id,
        name=given.name,
        parts=given.parts,
        is_error=given.is_error,
        error=given.error,
    )


def _end_of_header(header: Header) -> tuple[Level | None, int]:
    """Where tools + system end: the last system block, else the last tool."""
    if header.system:
        return "system", len(header.system) - 1
    definitions = json.loads(header.tools) if header.tools else []
    return ("tools", len(definitions) - 1) if definitions else (None, 0)


def _expected_scope(codec: Codec, path: PathState, surface: Surface, header: Header) -> Scope:
    """What entries depend on if the parameters stay as they were.

    Before the first request nothing is known of them, and nothing is cached either. A scope that
    proves wrong costs nothing: the anchor misses, and a marker is free.
    """
    before = surface.header
    if before is None or header.model != before.model:
        return NO_SCOPE
    if header.system == before.system and _same_json(header.tools, before.tools):
        return path.scope
    return codec.scope_of(header.system, header.tools, before.parameters)


def _same_json(one: str, other: str) -> bool:
    if one == other:
        return True
    if not one or not other:
        return (one or "[]") == (other or "[]")
    return canonical_json(json.loads(one)) == canonical_json(json.loads(other))
