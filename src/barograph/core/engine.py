"""The machine: `step(state, input) -> (state, effects)`.

**Theory of operation.** An adapter tells the engine what happens (a call is wanted, a body left, a
response came, a tool returned) and carries out what the engine answers: commit these events, send
this surface. The engine has no clock, no store and no client, so LangChain, a raw SDK, sync, async
and a test drive the same one, and a whole session replays in a unit test without a model.

Each input becomes events; each event is learned by `core.learning.learn`, and nothing else changes
the state. An `Append` must be durable before the adapter does what follows it: the first one before
the request is built, the second one before its bytes leave.

A call of a path goes through the phases of `TRANSITIONS`. An input that no row allows is a defect
of the adapter and refused; nothing changes then.

**Invariants.** What the model will see is in the log before it leaves (1); a history that departs
from the log is logged as such (4); every request is paired (5).

A call may need another before it: where history is to be summed up (`core.compaction`), the engine
answers with the call that asks for the summary, and with the call that was wanted when that one is
over, however it ended.

Instead of a call there may be none: a turn that has run too long is handed back (`steering`).

**Out of scope.** How full the window is and what is done about it (`relief`, `compaction`); what is
done about a call that was refused (`recovery`). An answer that ends at the window (stop reason
`model_context_window_exceeded`) is an answer like others: what there is of it stays, and the next
request is measured by its usage.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.asking import question
from barograph.core.breakpoints import CacheView, plan_breakpoints
from barograph.core.compaction import (
    TRIES,
    Plan,
    Told,
    carry_out,
    plan_asked,
    plan_compaction,
    plan_question,
    read_summary,
)
from barograph.core.errors import SurfaceError
from barograph.core.events import (
    Breakpoint,
    CallPlanned,
    Compacted,
    Event,
    Level,
    ResponseCame,
    SessionOpened,
    SourceKept,
    SummaryAsked,
    ToolBegan,
    ToolEnded,
    ToolsLoaded,
    TurnEnded,
)
from barograph.core.framing import compose
from barograph.core.identity import stable_blocks
from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    CompactWanted,
    Header,
    Input,
    KeepWanted,
    PinWanted,
    PruneWanted,
    Refused,
    SessionStarted,
    ToolReturned,
    ToolStarted,
    ToolsWanted,
    WarmWanted,
)
from barograph.core.intake import take_in
from barograph.core.lifetimes import Outlook
from barograph.core.model import Codec, Scope
from barograph.core.outgoing import asks_for_tools, record_body
from barograph.core.parts import calls_in
from barograph.core.pins import pin
from barograph.core.policy import Policy
from barograph.core.pressure import Gauge
from barograph.core.recovery import Again, failed, recover, resting_slots
from barograph.core.relief import measure, oldest_kept, pending_of, prune, relieve
from barograph.core.state import NO_SCOPE, PathState, State, count_header_chars
from barograph.core.steering import HandBack, steer
from barograph.core.surface import Entry, Surface
from barograph.core.trail import Trail
from barograph.core.warming import Repeat, repeat
from barograph.core.work import Work


class Append(Struct, frozen=True):
    """Commit these events, in one transaction, before anything else happens."""

    events: tuple[Event, ...]


class Send(Struct, frozen=True):
    """Send this surface as planned; `seen` units of the caller's history are known."""

    plan: CallPlanned
    surface: Surface
    seen: int

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where the markers go."""
        return self.plan.breakpoints


class Archive(Struct, frozen=True):
    """Make a searchable copy of these messages of a path before the fold that hides them."""

    at: float
    path: str
    seqs: tuple[int, ...]


Effect: TypeAlias = Archive | Append | Send | HandBack | Repeat

TRANSITIONS: Final[Mapping[tuple[str, type], str]] = {
    ("idle", CallWanted): "planned",  # or idle, where the turn is handed back
    ("planned", CallWanted): "planned",  # the earlier call was abandoned before it left
    ("sent", CallWanted): "planned",  # the earlier call was cancelled in flight
    ("planned", BodyLeft): "sent",
    ("sent", BodyLeft): "sent",  # a retry is an attempt of the same call
    ("planned", Answered): "idle",
    ("sent", Answered): "idle",
    ("planned", Refused): "idle",
    ("sent", Refused): "idle",  # or planned once more, if doing without something may help
}


class Engine:
    """The rules of a session under one policy and one wire format."""

    def __init__(self, codec: Codec, policy: Policy) -> None:
        self.codec = codec
        self.policy = policy
        self._round_rules = policy.round_rules

    def step(self, state: State, given: Input) -> tuple[State, tuple[Effect, ...]]:
        """Take one input.

        Raises:
            SurfaceError: the input does not fit the phase of its path; nothing changed.
            UsageError: a pin that cannot be; nothing changed.
        """
        _check_phase(state, given)
        work = Work(self.codec, state)
        send: tuple[Send | HandBack | Repeat, ...] = ()
        match given:
            case SessionStarted():
                work.log(_opened(given, self.policy, self.codec))
            case CallWanted():
                take_in(work, given, self.policy)
                compose(work, given)
                stop = steer(work, given, self.policy, self._round_rules)
                send = (stop or self._relieved(work, given),)
            case CompactWanted() | PruneWanted():
                self._fold(work, given)
            case PinWanted():
                pin(work, given)
            case WarmWanted():
                send = repeat(work, given, self.policy)
            case BodyLeft():
                record_body(work, given)
            case Answered():
                is_summary = work.state.asked_by(given.path) is not None
                is_aside = is_summary or work.state.path(given.path).keeps is not None
                _answer(work, given, ends_turn=not is_aside)
                send = self._after_summary(work, given)
            case Refused():
                send = self._after_refusal(work, given)
            case ToolStarted() | ToolReturned() | ToolsWanted() | KeepWanted():
                _take_tool(work, given)
        append = (Append(tuple(work.events)),) if work.events else ()
        return work.state, (*_archives(state, work.state, work.events), *append, *send)

    def _policy(self, wanted: CallWanted) -> Policy:
        return self.policy.of(wanted.header.model)

    def _relieved(self, work: Work, given: CallWanted) -> Send:
        """Relieve the window by a pass, then by a summary if one can be had; then plan the call."""
        policy = self._policy(given)
        gauge = relieve(work, given, policy)
        plan = plan_compaction(work, given.path, policy, gauge)
        if plan is None or not given.folds:
            return self._plan(work, given, gauge)
        if given.summarises and self.policy.summary == "model":
            asking = plan_question(work, given, plan)
            if asking is not None:
                return self._ask(work, given, asking, ())
        return self._plan(work, given, carry_out(work, given, plan, Told()))

    def _fold(self, work: Work, asked: CompactWanted | PruneWanted) -> None:
        """Fold now; a compaction is computed from the log alone. Nothing where nothing can go."""
        given = asked.wanted
        policy = self._policy(given)
        if isinstance(asked, PruneWanted):
            prune(work, given, policy)
            return
        gauge = measure(work, given, policy)
        plan = plan_compaction(work, given.path, policy, gauge, "manual")
        if plan is not None:
            carry_out(work, given, plan, Told())

    def _ask(self, work: Work, given: CallWanted, plan: Plan, failures: tuple[str, ...]) -> Send:
        """Plan the call that asks for a summary of what is to be hidden."""
        asked, wanted = question(work, given, plan, failures, self._policy(given))
        work.log(asked)
        send = self._plan(work, wanted, measure(work, wanted, self._policy(wanted)))
        return replace(send, seen=len(work.state.path(given.path).seen))

    def _after_refusal(self, work: Work, given: Refused) -> tuple[Send, ...]:
        """After a call that failed: the same call once more, or its end."""
        policy = self.policy if given.wanted is None else self._policy(given.wanted)
        again = recover(work, given, policy)
        if again is not None:
            return (self._plan_again(work, again),)
        work.log(failed(work, given))
        return self._after_summary(work, given)

    def _after_summary(self, work: Work, given: Answered | Refused) -> tuple[Send, ...]:
        """After a call that asked for a summary: ask again, or compact and plan what was wanted."""
        asked = work.state.asked_by(given.path)
        if asked is None or given.wanted is None:
            return ()
        wanted = replace(given.wanted, at=given.at)
        gauge = measure(work, wanted, self._policy(wanted))
        if not wanted.folds:
            return (self._plan(work, wanted, gauge),)
        plan = plan_asked(asked, gauge)
        told = read_summary(given, asked, work.state.fold.seq, most_chars=2 * plan.narrative_chars)
        if not told.narrative and len(told.failures) < TRIES:
            return (self._ask(work, wanted, plan, told.failures),)
        return (self._plan(work, wanted, carry_out(work, wanted, plan, told)),)

    def _plan_again(self, work: Work, again: Again) -> Send:
        gauge = measure(work, again.wanted, self._policy(again.wanted))
        before = work.state.path(again.wanted.path).planned
        return self._plan(work, again.wanted, gauge, again=before, max_tokens=again.max_tokens)

    def _plan(
        self,
        work: Work,
        given: CallWanted,
        gauge: Gauge,
        *,
        again: CallPlanned | None = None,
        max_tokens: int | None = None,
    ) -> Send:
        """Number the call and place its breakpoints; a call planned again keeps its number."""
        path, surface = work.state.path(given.path), work.state.surface(given.path)
        policy = self._policy(given)
        insured = min(work.rewritten or path.insured, len(surface.segments))
        if not path.round and not work.rewritten:
            insured = len(surface.segments)  # a turn begins where this request ends
        reserved = given.reserved + resting_slots(work.state, given, self.policy)
        plan = plan_breakpoints(self._cache_view(work, given, gauge, insured, reserved))
        anchor = plan.anchor
        is_readable = anchor is not None and anchor.is_readable(given.at, surface.images)
        aged_before = again.aged_before if again else oldest_kept(path, policy)
        asks = self.policy.diagnostics
        is_diagnosed = asks == "on" or (asks == "auto" and given.diagnosable)
        planned = CallPlanned(
            at=given.at,
            path=given.path,
            call=again.call if again else work.state.calls + 1,
            turn=path.turn,
            round=again.round if again else path.round + 1,
            entries=len(surface.entries),
            digest=surface.digest,
            breakpoints=plan.breakpoints,
            expected_read_tokens=anchor.tokens if anchor and is_readable else None,
            insured=insured,
            foreign_breakpoints=given.foreign,
            diagnosed=is_diagnosed,
            compared_with=path.provider_id if is_diagnosed else None,
            projected_tokens=gauge.projected_tokens,
            stale_tokens=round(
                pending_of(path, policy, aged_before).stale_chars * gauge.tokens_per_char
            ),
            aged_before=aged_before,
            max_tokens=max_tokens,
            reserved=reserved,
        )
        work.log(planned)
        return Send(planned, surface, len(path.seen))

    def _cache_view(
        self,
        work: Work,
        given: CallWanted,
        gauge: Gauge,
        insured: int,
        reserved: int,
    ) -> CacheView:
        path, surface, header = (
            work.state.path(given.path),
            work.state.surface(given.path),
            given.header,
        )
        level, block = end_of_header(header, self.policy.identity)
        return CacheView(
            header_level=level,
            header_block=block,
            header_chars=count_header_chars(self.codec, header.system, header.tools),
            segments=surface.segments,
            scope=_expected_scope(self.codec, path, surface, header),
            images=surface.images,
            ledger=path.ledger,
            at=given.at,
            facts=self.codec.facts_of(header.model),
            ttl=self.policy.entry_ttl,
            outlook=self._outlook(path),
            lasting=path.lasting,
            end_ttl=given.reserved_ttl,
            tokens_per_char=gauge.tokens_per_char,
            insured=insured,
            reserved=reserved,
        )

    def _outlook(self, path: PathState) -> Outlook:
        if self.policy.lifetime != "auto":
            return Outlook()
        return path.pauses.outlook(self.policy.pause_ratio)


def _check_phase(state: State, given: Input) -> None:
    asides = SessionStarted | CompactWanted | PruneWanted | PinWanted | WarmWanted | KeepWanted
    if isinstance(given, asides | ToolStarted | ToolReturned | ToolsWanted):
        return
    phase = state.path(given.path).phase
    if (phase, type(given)) not in TRANSITIONS:
        raise SurfaceError(
            f"{type(given).__name__} came for {given.path} while its call is {phase}.",
            next_step="An adapter must want a call before it reports on it; this is its defect.",
            path=given.path,
            phase=phase,
        )


def _archives(before: State, after: State, events: Sequence[Event]) -> Iterator[Archive]:
    """What is to be archived before these events are committed: all messages that they will hide.

    That is when a summary is asked for, and so before anybody looks at them, else when they go.
    """
    for event in events:
        if not isinstance(event, SummaryAsked | Compacted):
            continue
        if isinstance(event, SummaryAsked):
            hidden = _asked_about(after.surface(event.path).entries, event)
        else:
            known = before.surface(event.path).entries
            hidden = [entry for entry in known if entry.seq in set(event.shadows)]
            asked = before.path(event.path).asked
            done = {entry.seq for entry in _asked_about(known, asked)} if asked else set()
            if hidden and done.issuperset(entry.seq for entry in hidden):
                continue
        seqs = tuple(entry.seq for entry in hidden if not entry.hides)
        yield Archive(event.at, event.path, seqs)


def _asked_about(known: Trail[Entry], asked: SummaryAsked) -> list[Entry]:
    spans = zip(asked.starts, asked.stops, strict=True)
    return [entry for start, stop in spans for entry in known.span(start, stop)]


def _answer(work: Work, given: Answered, *, ends_turn: bool) -> None:
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
            diagnosis=given.diagnosis,
            latency_seconds=given.at - began,
        )
    )
    if ends_turn and not calls_in(given.parts):
        work.log(TurnEnded(at=given.at, path=given.path, turn=path.turn, rounds=path.round))


def _opened(given: SessionStarted, policy: Policy, codec: Codec) -> Event:
    return SessionOpened(
        at=given.at,
        session=given.session,
        made_by=given.made_by,
        policy=policy.name,
        renderer=codec.renderer,
        mode=given.mode,
    )


def _ran(given: ToolStarted | ToolReturned) -> Event:
    if isinstance(given, ToolReturned):
        return _ended(given)
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
        server=given.server,
    )


def _take_tool(work: Work, given: ToolStarted | ToolReturned | ToolsWanted | KeepWanted) -> None:
    if isinstance(given, ToolsWanted):
        _load(work, given)
    elif isinstance(given, KeepWanted):
        _keep(work, given)
    else:
        work.log(_ran(given))


def _load(work: Work, given: ToolsWanted) -> None:
    loaded = work.state.path(given.path).loaded
    new = tuple(name for name in dict.fromkeys(given.names) if name not in loaded)
    if new:
        work.log(ToolsLoaded(at=given.at, path=given.path, names=new))


def _keep(work: Work, given: KeepWanted) -> None:
    for key, text in given.texts.items():
        work.log(SourceKept(at=given.at, path=given.path, source=given.source, key=key, text=text))


def end_of_header(header: Header, identity: str | None = None) -> tuple[Level | None, int]:
    """Where tools + system end: the last system block, else the last tool."""
    blocks = stable_blocks(header.system, identity)
    if blocks:
        return "system", blocks - 1
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
    if header.system == before.system and asks_for_tools(before, header.tools):
        return path.scope
    return codec.scope_of(header.system, header.tools, before.parameters)
