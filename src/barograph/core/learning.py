"""What a session learns of each event of its log.

`learn` is the only place that changes a state, one event at a time: the live engine logs an event
and learns it, and a session that is opened again learns all of its log. So a restart, a crash or a
reader in another process ends in the same state as the process that wrote the log.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from barograph.core.breakpoints import SLOTS, confirm_entries, last_made_to_last
from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Compacted,
    Event,
    Forked,
    FrameComposed,
    HandedBack,
    HeaderSet,
    KeptWarm,
    MessageLeftOut,
    MessageSeen,
    Nudged,
    Pinned,
    Pruned,
    Replaced,
    RequestSent,
    ResponseCame,
    SourceKept,
    StoreGap,
    SummaryAsked,
    ToolBegan,
    ToolEnded,
    ToolsLoaded,
    TurnBegan,
)
from barograph.core.forking import begin_as
from barograph.core.ingest import unit_key
from barograph.core.model import Codec
from barograph.core.notes import Spoken
from barograph.core.parts import Parts, ToolCall
from barograph.core.pressure import Count, Factors, take_report
from barograph.core.prune import candidate_of
from barograph.core.rounds import advance
from barograph.core.state import (
    PathState,
    Resting,
    Seen,
    Source,
    State,
    count_header_chars,
)
from barograph.core.surface import Surface, marks_by_message
from barograph.core.tooling import tool_names
from barograph.core.trail import Trail
from barograph.core.warmth import cost_tokens


def learn(codec: Codec, state: State, seq: int, event: Event, key: bytes | None = None) -> State:
    """The state after one more event.

    Args:
        codec: the wire format.
        state: before it.
        seq: number of the event.
        event: what happened.
        key: what a message is recognised by, where that is at hand; else it is made anew.
    """
    fold = state.fold.apply(codec, seq, event)
    name = getattr(event, "path", None)
    if isinstance(event, StoreGap):
        return _resumed(replace(state, fold=fold), event)
    if name is None:
        return replace(state, fold=fold)
    before, surface = state.path(name), fold.surface(name)
    after = _learn_path(codec, _advanced(before, surface, event), surface, seq, event, key=key)
    if isinstance(event, Forked):
        after = begin_as(before, state.path(event.of))
    factors, tokens = state.factors, _reported(after, event)
    if tokens is not None:
        after, factors = _measured(after, surface, tokens, factors)
    # calls of several paths overlap, and one that is planned again keeps its number
    calls = max(state.calls, event.call) if isinstance(event, CallPlanned) else state.calls
    paths = state.paths if after is before else {**state.paths, name: after}
    over = before.asked.by if before.asked and after.asked is not before.asked else None
    if over is not None:  # nobody comes back to a call that asked for a summary
        paths = {path: one for path, one in paths.items() if path != over}
        fold = fold.without(over)
    if isinstance(event, SummaryAsked):
        paths = {**paths, event.by: _asked(after, event)}
    if isinstance(event, KeptWarm):
        paths = {**paths, event.by: PathState(scope=after.scope, keeps=event)}
    elif after.keeps is not None:
        paths = {**paths, after.keeps.path: _kept_warm(codec, state, after, surface, event)}
    state = replace(state, fold=fold, calls=calls, paths=paths, factors=factors)
    return _refused(state, event) if isinstance(event, AttemptFailed | CallFailed) else state


def _asked(path: PathState, event: SummaryAsked) -> PathState:
    """The path of a call that sums up: it begins as the agent's own calls do, or anew."""
    if event.is_transcript:
        return PathState()
    return PathState(
        ledger=path.ledger,
        lasting=path.lasting,
        meter=path.meter,
        scope=path.scope,
        header_chars=path.header_chars,
    )


def _kept_warm(
    codec: Codec, state: State, by: PathState, surface: Surface, event: Event
) -> PathState:
    """The path that is kept warm, after an event of the path that does so."""
    path = state.path(by.keeps.path if by.keeps else "")
    if isinstance(event, CallFailed):
        return replace(path, warmth=path.warmth.given_up())
    if not isinstance(event, ResponseCame) or by.keeps is None or by.planned is None:
        return path
    usage, warmth = event.usage, path.warmth
    if usage is None or not usage.read_tokens + usage.write_tokens:
        return replace(path, warmth=warmth.given_up())
    if surface.header is not None:
        cost = cost_tokens(usage, codec.facts_of(surface.header.model))
        warmth = warmth.billed(by.keeps.cost_tokens, cost)
    if path.planned is None or path.planned.at > by.planned.at:  # a call of its own went ahead
        return replace(path, warmth=warmth)
    cached = _cached(path, by.planned, surface, event)
    return replace(path, warmth=warmth, ledger=cached.ledger, lasting=cached.lasting)


def _refused(state: State, event: AttemptFailed | CallFailed) -> State:
    """With what a refusal tells of the model, whatever the path that asked it."""
    resting, windows = state.resting, state.windows
    header = state.surface(event.path).header
    model = header.model if header is not None else ""
    if isinstance(event, AttemptFailed):
        model = event.model
        if event.slots:
            resting = {**resting, model: Resting(event.slots, event.until)}
    if event.window_tokens is not None:
        windows = {**windows, model: event.window_tokens}
    return replace(state, resting=resting, windows=windows)


def restore(codec: Codec, events: Iterable[tuple[int, Event]]) -> State:
    """The state of a session that is opened again."""
    state = State()
    for seq, event in events:
        state = learn(codec, state, seq, event)
    return state


def _resumed(state: State, event: StoreGap) -> State:
    """After a gap in which events were lost, every path starts over; numbers go on."""
    if not event.lost:
        return state
    paths = {name: _started_over(path) for name, path in state.paths.items()}
    return replace(state, calls=max(state.calls, event.calls), paths=paths)


def _started_over(path: PathState) -> PathState:
    # What the cache holds and what was learned of the provider is as true as before.
    return PathState(
        ledger=path.ledger,
        lasting=path.lasting,
        pauses=path.pauses,
        turn=path.turn,
        scope=path.scope,
        header_chars=path.header_chars,
        sees_tools=path.sees_tools,
        tools=path.tools,
        loaded=path.loaded,
        kept=path.kept,
        told=path.told,
        counted=path.counted,
        numbers=path.numbers,
        pinned=path.pinned,  # the caller shows the messages once more
        warmth=path.warmth,
    )


def _advanced(path: PathState, surface: Surface, event: Event) -> PathState:
    """The path with rounds and open calls; the same one where the event tells nothing of them."""
    parts = None
    if isinstance(event, MessageSeen):
        parts = event.original or surface.entries[-1].parts
    progress = advance(path.progress, event, parts)
    waiting = path.waiting.after(event, parts or ())
    if progress is path.progress and waiting is path.waiting:
        return path
    return replace(path, progress=progress, waiting=waiting)


def _learn_path(  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of event
    codec: Codec,
    path: PathState,
    surface: Surface,
    seq: int,
    event: Event,
    *,
    key: bytes | None,
) -> PathState:
    match event:
        case TurnBegan():
            return replace(path, turn=event.turn, round=0)
        case MessageSeen() if event.origin == "repair":
            return path
        case MessageSeen():
            parts = surface.entries[-1].parts
            spoken = Spoken(seq, event.role, event.origin, parts)
            replies = path.replies + (event.role == "assistant")
            candidate = candidate_of(codec, surface, replies)
            pending = path.pending if candidate is None else path.pending.with_candidate(candidate)
            kept = path.kept
            if event.role == "assistant" and event.same_as is not None:
                kept = kept.seen(event.same_as, seq)
            elif (
                event.role == "tool" and len(surface.entries) > 1
            ):  # it follows the call, or another result of the round
                kept = kept.seen(surface.entries[-2].seq - 1, seq)
            path = replace(
                path,
                seen=_seen(path, seq, event, parts, key),
                kept=kept,
                spoken=path.spoken.appended(spoken),
                replies=replies,
                pending=pending,
            )
            return _pinned_again(path, surface) if path.pinned else path
        case MessageLeftOut():
            return replace(path, seen=_seen(path, seq, event, event.parts, key))
        case Replaced():
            frames = path.frames.without(event.shadows, by_fold=False)
            kept = path.kept
            if event.cause == "rewound":
                kept = kept.before(min(event.shadows, default=seq))
            return replace(_replaced(path, surface, event), frames=frames, kept=kept)
        case Pruned():
            pending = path.pending.at_round(event.aged_before).after_pass()
            frames = path.frames.pruned(event.stubs)
            return replace(_replaced(path, surface, None), pending=pending, frames=frames)
        case FrameComposed():
            return replace(path, frames=path.frames.with_frame(seq, event, path.replies))
        case Compacted():
            return _compacted(path, surface, seq, event)
        case Pinned():
            return _pinned(path, surface, event)
        case KeptWarm():
            return replace(path, warmth=path.warmth.began(event.cost_tokens))
        case SummaryAsked():
            return replace(path, asked=event, summaries=path.summaries + 1)
        case HeaderSet():
            scope = codec.scope_of(event.system, event.tools, event.parameters)
            chars = count_header_chars(codec, event.system, event.tools)
            path = _offered(path, event)
            return replace(path, scope=scope, header_chars=chars)
        case CallPlanned():
            return _planned(path, event)
        case RequestSent():
            return _sent(path, surface, event)
        case ResponseCame():
            return _answered(path, surface, seq, event)
        case AttemptFailed():
            return replace(path, retried=True)
        case CallFailed():
            return replace(path, phase="idle")
        case Nudged() if event.tools:
            return replace(path, told=_joined(path.told, event.tools))
        case ToolsLoaded():
            loaded, told = _joined(path.loaded, event.names), _joined(path.told, event.names)
            return replace(path, loaded=loaded, told=told)
        case SourceKept():
            return replace(path, kept=path.kept.with_event(seq, event))
        case HandedBack():
            return replace(path, phase="idle", answer=Source(seq, event.parts))
        case ToolBegan():
            return replace(path, running=path.running | {event.call_id}, sees_tools=True)
        case ToolEnded():
            return _ended(path, seq, event)
        case _:
            return path


def _offered(path: PathState, event: HeaderSet) -> PathState:
    """With the names that are new behind those that were offered before."""
    if "tools" not in event.changed:
        return path
    tools = _joined(path.tools, tool_names(event.tools))
    return replace(path, tools=tools, told=path.told or tools)


def _joined(names: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """All names once, in the order in which they came: a set has another in each process."""
    return tuple(dict.fromkeys((*names, *new)))


def _seen(
    path: PathState,
    seq: int,
    event: MessageSeen | MessageLeftOut,
    parts: Parts,
    key: bytes | None,
) -> Trail[Seen]:
    if key is None:
        known_by = getattr(event, "known_by", None)
        key = bytes.fromhex(known_by) if known_by else unit_key(event.role, parts)
    return path.seen.appended(Seen(key, seq, event.native_id))


def _pinned(path: PathState, surface: Surface, event: Pinned) -> PathState:
    key = next((one.key for one in path.seen if one.seq == event.message), b"")
    others = {seq: known for seq, known in path.pinned.items() if seq != event.message}
    pinned = {**others, event.message: key} if event.holds else others
    entry = next((i for i, one in enumerate(surface.entries) if one.seq == event.message), -1)
    pending = path.pending.with_pin(entry, pinned=event.holds)
    return replace(path, pinned=pinned, pending=pending)


def _pinned_again(path: PathState, surface: Surface) -> PathState:
    """The pin of a message that is shown once more, since it was taken back, holds the new one."""
    last = path.seen[-1]
    same = {seq for seq, key in path.pinned.items() if key == last.key}
    # What is still there keeps its own pin: the new one may be taken back again.
    same = same.difference(one.seq for one in path.seen) if same else same
    if not same:
        return path
    before = min(same)
    others = {seq: key for seq, key in path.pinned.items() if seq != before}
    pending = path.pending.with_pin(len(surface.entries) - 1, pinned=True)
    return replace(path, pinned={**others, last.seq: last.key}, pending=pending)


def _replaced(path: PathState, surface: Surface, event: Replaced | None) -> PathState:
    if event is None or event.recognised is None:
        return replace(path, settled=0, insured=min(path.insured, len(surface.segments)))
    return replace(
        path,
        seen=path.seen.cut(event.recognised),
        pending=path.pending.cut(len(surface.entries)),
        settled=min(path.settled, max(0, surface.messages - 1)),
        insured=min(path.insured, len(surface.segments)),
    )


def _compacted(path: PathState, surface: Surface, seq: int, event: Compacted) -> PathState:
    start = surface.find_run((seq,))
    pending = path.pending.compacted(start, len(event.shadows))
    frames = path.frames.without(event.shadows, by_fold=True)
    return replace(_replaced(path, surface, None), pending=pending, frames=frames, asked=None)


def _planned(path: PathState, event: CallPlanned) -> PathState:
    before = path.planned
    is_again = before is not None and before.call == event.call
    pauses = path.pauses if before is None else path.pauses.after(event.at - before.at)
    return replace(
        path,
        phase="planned",
        pauses=path.pauses if is_again else pauses,
        planned=event,
        asked=None,
        round=event.round,
        attempt=path.attempt if is_again else 0,
        retried=path.retried and is_again,
        answer=None,
        insured=event.insured,
        pending=path.pending if is_again else path.pending.rented(event),
        warmth=path.warmth.called(),
    )


def _sent(path: PathState, surface: Surface, event: RequestSent) -> PathState:
    stored = dict(path.stored)
    for deviation in event.deviations:
        if deviation.text is None:
            stored.pop(deviation.where, None)
        else:
            stored[deviation.where] = deviation.text
    beyond = [key for key in stored if key.isdecimal() and int(key) >= event.messages]
    for key in beyond:
        del stored[key]
    breakpoints = path.planned.breakpoints if path.planned else ()
    return replace(
        path,
        phase="sent",
        sent=event,
        attempt=event.attempt,
        stored=stored,
        # the last user message may still grow
        settled=max(0, surface.messages - 1),
        marks=marks_by_message(surface, breakpoints),
    )


def _ended(path: PathState, seq: int, event: ToolEnded) -> PathState:
    outcome = Source(seq, event.parts, event.error, event.server)
    return replace(
        path,
        outcomes={**path.outcomes, event.call_id: outcome},
        running=path.running - {event.call_id},
    )


def _answered(path: PathState, surface: Surface, seq: int, event: ResponseCame) -> PathState:
    counted, numbers = _numbered(path, event.parts)
    path = replace(
        path,
        phase="idle",
        answer=Source(seq, event.parts),
        provider_id=event.provider_id,
        outcomes={},
        running=frozenset(),
        counted=counted,
        numbers=numbers,
    )
    return _cached(path, path.planned, surface, event)


def _cached(
    path: PathState, plan: CallPlanned | None, surface: Surface, event: ResponseCame
) -> PathState:
    """With the cache entries that a response to this plan confirms, or does not deny."""
    usage, cached = event.usage, None
    if plan is None:
        return path
    segments = surface.segments
    if usage is not None:
        cached = usage.read_tokens + usage.write_tokens
        if not cached:
            return path
    entries = confirm_entries(
        plan.breakpoints,
        segments,
        path.scope,
        images=surface.images,
        at=plan.at,
        cached_tokens=cached,
        anchor_tokens=plan.expected_read_tokens,
        known=(*filter(None, (path.lasting,)), *path.ledger.span(max(0, len(path.ledger) - SLOTS))),
    )
    pauses, goal = path.pauses, _goal_of(plan)
    if usage is not None and goal is not None:
        pauses = pauses.judged(goal, usage.read_tokens)
    return replace(
        path,
        pauses=pauses,
        ledger=path.ledger.extended(entries),
        lasting=last_made_to_last(path.lasting, entries, segments, path.scope),
    )


def _goal_of(plan: CallPlanned) -> int | None:
    """What a call was to read of a long entry; None where it was to read of none."""
    is_long = any(mark.slot == "anchor" and mark.ttl == "1h" for mark in plan.breakpoints)
    return plan.expected_read_tokens if is_long else None


def _reported(path: PathState, event: Event) -> int | None:
    """What the provider says of the length of a request.

    A refusal that names no more than was projected may have counted up to the limit only.
    """
    plan = path.planned
    if plan is None:
        return None
    if isinstance(event, ResponseCame):
        return event.usage.input_total_tokens if event.usage is not None else None
    tokens = event.input_tokens if isinstance(event, AttemptFailed | CallFailed) else None
    return tokens if tokens is not None and tokens > plan.projected_tokens else None


def _measured(
    path: PathState, surface: Surface, tokens: int, factors: Factors
) -> tuple[PathState, Factors]:
    segments = surface.segments
    last = segments.last
    report = Count(
        tokens=tokens,
        chars=path.header_chars + (last.end_chars if last else 0),
        model=surface.header.model if surface.header else "",
        position=len(segments),
        key=last.key if last else b"",
    )
    meter, factors = take_report(path.meter, factors, report, path.header_chars, segments)
    return replace(path, meter=meter), factors


def _numbered(path: PathState, parts: Parts) -> tuple[dict[str, int], dict[str, int]]:
    """Number the calls of a response, tool by tool: a subagent is known by this number.

    Returns:
        How often each tool was called, and the number of each call of the response.
    """
    counted, numbers = dict(path.counted), dict[str, int]()
    for part in parts:
        if isinstance(part, ToolCall):
            counted[part.name] = numbers[part.id] = counted.get(part.name, 0) + 1
    return counted, numbers
