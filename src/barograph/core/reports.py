"""What a provider tells in passing: what its cache holds, and how long a request was."""

from msgspec.structs import replace

from barograph.core.breakpoints import SLOTS, confirm_entries, last_made_to_last
from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Event,
    ResponseCame,
)
from barograph.core.pressure import Count, Factors, take_report
from barograph.core.state import (
    PathState,
)
from barograph.core.surface import Surface


def with_entries(
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


def reported(path: PathState, event: Event) -> int | None:
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


def measured(
    path: PathState, surface: Surface, tokens: int, factors: Factors
) -> tuple[PathState, Factors]:
    """The path and the factors of all models after a request of so many tokens was reported."""
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
