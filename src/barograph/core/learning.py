"""What a session learns of each event of its log.

`learn` is the only place that changes a state, one event at a time: the live engine logs an event
and learns it, and a session that is opened again learns all of its log. So a restart, a crash or a
reader in another process ends in the same state as the process that wrote the log.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from barograph.core.costs import cost_tokens
from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Event,
    Forked,
    KeptWarm,
    ResponseCame,
    StoreGap,
    SummaryAsked,
)
from barograph.core.forking import begin_as
from barograph.core.model import Codec
from barograph.core.paths import advanced, learn_path
from barograph.core.reports import measured, reported, with_entries
from barograph.core.rounds import charge
from barograph.core.spending import Spent, cost_of, paths_above
from barograph.core.state import (
    PathState,
    Resting,
    State,
)
from barograph.core.surface import Surface


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
    after = learn_path(codec, advanced(before, surface, event), surface, seq, event, key=key)
    if isinstance(event, Forked):
        after = begin_as(before, state.path(event.of))
    factors, tokens = state.factors, reported(after, event)
    if tokens is not None:
        after, factors = measured(after, surface, tokens, factors)
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
    if isinstance(event, ResponseCame) and surface.header is not None:
        cost = cost_of(event, after.planned, codec.facts_of(surface.header.model))
        paths = {**paths, **_charged(paths, name, cost)}
    state = replace(state, fold=fold, calls=calls, paths=paths, factors=factors)
    return _refused(state, event) if isinstance(event, AttemptFailed | CallFailed) else state


def _charged(paths: Mapping[str, PathState], name: str, cost: Spent) -> dict[str, PathState]:
    """The path of a call and those above it, with what it cost."""
    paying = (one for one in (name, *paths_above(name)) if one in paths)
    return {one: replace(paths[one], progress=charge(paths[one].progress, cost)) for one in paying}


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
    cached = with_entries(path, by.planned, surface, event)
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
