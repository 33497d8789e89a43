"""Bring a surface up to what the caller now shows.

What is new enters, what may not be sent is left out with a reason, and a history that departs from
the log is cut back to where they agree, by an event that says so. `core.ingest` decides what
becomes of each message; this room turns the decisions into events.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from barograph.core.bounds import bound_parts
from barograph.core.cuts import last_calls
from barograph.core.errors import SurfaceError
from barograph.core.events import (
    Event,
    Forked,
    MessageLeftOut,
    MessageSeen,
    Origin,
    Replaced,
    TurnBegan,
)
from barograph.core.forking import forked_from
from barograph.core.ingest import Ruling, Unit, matching, rule, unit_key, units_of
from barograph.core.inputs import CallWanted
from barograph.core.model import Codec
from barograph.core.parts import Leaf, Parts, Role, Text, ToolResult, results_in
from barograph.core.policy import Policy
from barograph.core.state import PathState, State
from barograph.core.surface import Entry, tool_of
from barograph.core.texts import NOT_STARTED, OUTCOME_UNKNOWN, failed
from barograph.core.work import Work

_ORIGINS: Final[Mapping[Role, Origin]] = {"assistant": "model", "tool": "tool", "user": "caller"}


def take_in(work: Work, given: CallWanted, policy: Policy) -> None:
    """Bring the surface up to what the caller now shows, long results bounded by the policy."""
    units = units_of(work.codec, given.messages)
    of = forked_from(work.state, given.path, units)
    if of is not None:
        work.log(Forked(at=given.at, path=given.path, of=of))
    seen = work.state.path(given.path).seen
    if given.known > len(seen):
        raise SurfaceError(
            f"{given.known} units are vouched for on {given.path}, and {len(seen)} are known.",
            next_step="Pass the whole history with `known` 0 to a session that was opened anew.",
            path=given.path,
            known=given.known,
        )
    matched = given.known + matching((unit.key for unit in seen.span(given.known)), units)
    if matched < len(seen):
        matched = _outside_folds(work.state, given.path, matched)
    new = units[matched - given.known :]
    if matched < len(seen) or _answers_repair(work.state, given, new):
        work.log(_departure(work.state, given, matched, new))
    rulings = list(rule(new, *last_calls(work.state.surface(given.path).entries)))
    if any(ruling.verdict == "enter" and ruling.role == "user" for ruling in rulings):
        path = work.state.path(given.path)
        work.log(TurnBegan(at=given.at, path=given.path, turn=path.turn + 1))
    entering = [ruling for ruling in rulings if ruling.verdict in ("enter", "repair")]
    last_changed = _last_changed(rulings, {unit.key for unit in seen.span(matched)})
    for ruling in rulings:
        is_last = bool(entering) and ruling is entering[-1]
        path = work.state.path(given.path)
        event = _admit(work.codec, path, given, ruling, is_last=is_last)
        if isinstance(event, MessageSeen) and event.origin == "tool":
            event = _bounded(work, event, ruling, policy)
        work.log(event, ruling.key or None)
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


def _outside_folds(state: State, path: str, matched: int) -> int:
    """How many units can stay where so many are recognised.

    A summary tells of all that it hides. Where some of that is gone, the summary goes too, and what
    it hid is taken in once more.
    """
    seen = state.path(path).seen
    last_kept = seen[matched - 1].seq if matched else 0
    gone = [entry.hides for entry in state.surface(path).entries if entry.hides]
    told_of = {seq for hides in gone if max(hides) > last_kept for seq in hides}
    return next((i for i, unit in enumerate(seen.span(0, matched)) if unit.seq in told_of), matched)


def _answers_repair(state: State, given: CallWanted, new: list[Unit]) -> bool:
    """Whether a result arrives for a call that a repair at the very end has closed."""
    repairs = _entries_after(state, given.path, len(state.path(given.path).seen))
    late = {call for unit in new if unit.role == "tool" for call in results_in(unit.parts)}
    return any(not late.isdisjoint(results_in(entry.parts)) for entry in repairs)


def _entries_after(state: State, path: str, matched: int) -> list[Entry]:
    """Entries that follow the last of so many units of the caller's history.

    A nudge or a frame stays with what it came after: it was sent so.
    """
    seen, entries = state.path(path).seen, state.surface(path).entries
    last_kept = seen[matched - 1].seq if matched else 0
    start = len(entries)
    # a summary stands where the messages stood that it hides, and not where it was logged
    while start and max(entries[start - 1].hides, default=entries[start - 1].seq) > last_kept:
        start -= 1
    while matched and start < len(entries) and (entries[start].is_nudge or entries[start].is_frame):
        start += 1
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
    if ruling.verdict == "repair":
        same_as, parts = _repair_of(codec, path, ruling)
    else:
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


def _bounded(work: Work, event: MessageSeen, ruling: Ruling, policy: Policy) -> MessageSeen:
    """The event with both ends of a result that is too long; what is left out stays in the log."""
    (result,) = ruling.parts
    if not isinstance(result, ToolResult):
        return event
    outcome = work.state.path(event.path).outcomes.get(result.call_id)
    entries = work.state.surface(event.path).entries
    cap = policy.result_chars(
        tool_of(entries, result.call_id) if policy.tool_result_chars else "",
        server=outcome.server if outcome is not None else "",
    )
    if not cap:
        return event
    handle = f"#{work.state.fold.seq + 1}"
    content = bound_parts(
        result.content, cap_chars=cap, handle=handle, keep_images=policy.keep_images
    )
    if content == result.content:
        return event
    whole: Parts = () if event.same_as is not None else event.parts
    return replace(
        event,
        parts=(replace(result, content=cast("tuple[Leaf, ...]", content)),),
        same_as=None,
        original=whole,
        original_in=event.same_as,
        known_by=ruling.key.hex(),
    )


def _repair_of(codec: Codec, path: PathState, ruling: Ruling) -> tuple[int | None, Parts]:
    """What closes a call that nobody answered, by what the log knows of it.

    A result that was logged and then lost by the framework comes back as it was. Where tool bodies
    are not logged at all, nothing is claimed.
    """
    (call,) = results_in(ruling.parts)
    outcome = path.outcomes.get(call)
    sendable = codec.sendable(outcome.parts) if outcome is not None else ()
    if outcome is not None and len(sendable) == 1 and results_in(sendable) == (call,):
        return (outcome.seq, ()) if sendable == outcome.parts else (None, sendable)
    text = None
    if outcome is not None:
        text = failed(outcome.error) if outcome.error else None
    elif call in path.running:
        text = OUTCOME_UNKNOWN
    elif path.sees_tools and call in path.numbers:
        text = NOT_STARTED
    parts = (ToolResult(call, (Text(text),), is_error=True),) if text else ruling.parts
    return None, parts


def _source_of(
    codec: Codec, path: PathState, ruling: Ruling, *, is_last: bool
) -> tuple[int | None, Parts]:
    """Where the log already holds this content, and what else must be stored of it.

    A response is preferred to the framework's copy of it: it has the arguments as generated.
    """
    is_prefill = is_last and ruling.role == "assistant"
    if ruling.role == "assistant" and path.answer is not None:
        if path.answer.parts == ruling.parts and not is_prefill:
            return path.answer.seq, ()
        received = codec.sendable(path.answer.parts, prefill=is_prefill)
        if received == ruling.parts or unit_key("assistant", received) == ruling.key:
            is_whole = received == path.answer.parts
            return (path.answer.seq, ()) if is_whole else (None, received)
    if ruling.role == "tool":
        outcome = path.outcomes.get(results_in(ruling.parts)[0])
        if outcome is not None and outcome.parts == ruling.parts:
            return outcome.seq, ()
    return None, codec.sendable(ruling.parts, prefill=True) if is_prefill else ruling.parts
