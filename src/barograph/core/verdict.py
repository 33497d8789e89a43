"""Why the cache held or did not: one verdict for each call, with the grade of its evidence.

**Theory of operation.** A call is compared with the call before it on the same agent path. What
that one left in the cache is what this one could have read, had nothing changed; if it read that
much under the same header, the cache *held*. Else the cause is looked for in the order of
certainty: our own bytes (a difference inside the cached prefix, a missing marker, an entry out of
every marker's reach), then the clock, then nothing is left but the provider.

**Invariants.** A partial read is never called held. Tokens that were not reported are unknown, not
zero. No remedy is offered for a cause that is less than inferred.

**Out of scope.** Entries that other paths or sessions left: where they help, more is read than was
expected, and the verdict is only better for it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from barograph.core.advice import advise
from barograph.core.costs import usd_of
from barograph.core.divergence import Divergence, find_divergence
from barograph.core.events import Compacted, HeaderSet, Pruned, Replaced
from barograph.core.lifetimes import TTL_SECONDS
from barograph.core.model import Codec, ModelFacts
from barograph.core.parts import ToolCall, ToolResult
from barograph.core.sent import Sent, block_at
from barograph.core.state import count_header_chars

Cause: TypeAlias = Literal[
    "cold_start",
    "held",
    "model_changed",
    "tools_changed",
    "system_changed",
    "parameters_changed",
    "history_changed",
    "planned_fold",
    "expired",
    "below_minimum",
    "no_breakpoint",
    "out_of_lookback",
    "not_comparable",
    "provider_side_suspected",
]
Evidence: TypeAlias = Literal["proven", "reported", "inferred", "unknown"]
Rewrite: TypeAlias = Replaced | Pruned | Compacted
Change: TypeAlias = tuple[int, Rewrite | HeaderSet]
"""An event that changed what a path shows, with its seq."""

_BY_LEVEL: Final[dict[str, Cause]] = {
    "model": "model_changed",
    "tools": "tools_changed",
    "system": "system_changed",
    "parameters": "parameters_changed",
    "messages": "history_changed",
}


class NamedBy(Struct, frozen=True, kw_only=True):
    """The logged event that changed the prefix: its seq, its type, and the cause it states."""

    seq: int
    event: str
    cause: str


class Verdict(Struct, frozen=True, kw_only=True):
    """Why the cache held or did not for one call.

    Attributes:
        cause: from the one taxonomy of misses.
        evidence: `proven` by our bytes, `reported` by the provider, `inferred` from the clock,
            `unknown`.
        also: what else was in the way, each enough to lose the rest.
        planned: whether a fold of ours caused it.
        compared_with: number of the earlier call; None where there is none.
        divergence: the first difference inside the cached prefix.
        named_by: the logged event that made the difference.
        expected_tokens: what would have been read had nothing changed; None where unknown.
        read_tokens: what was read; None where the provider reported nothing.
        lost_tokens: what had to be paid again although it had been cached. After a change of the
            history it is estimated from the text that is still there.
        break_usd: lost tokens times (write price minus read price).
        idle_seconds: between the starts of the two calls, on the log's clock.
        advice: what to do, in one sentence.
    """

    cause: Cause
    evidence: Evidence
    also: tuple[Cause, ...] = ()
    planned: bool = False
    compared_with: int | None = None
    divergence: Divergence | None = None
    named_by: NamedBy | None = None
    expected_tokens: int | None = None
    read_tokens: int | None = None
    lost_tokens: int | None = None
    break_usd: float | None = None
    idle_seconds: float | None = None
    advice: str = ""


class _Found(Struct, frozen=True, kw_only=True):
    cause: Cause
    evidence: Evidence
    also: tuple[Cause, ...] = ()
    divergence: Divergence | None = None
    named_by: NamedBy | None = None
    planned: bool = False


def judge(
    codec: Codec, before: Sent | None, after: Sent, changes: Sequence[Change] = ()
) -> Verdict:
    """The verdict on a call.

    Args:
        codec: the wire format of the log.
        before: the last call of the same path that was answered; None for the first.
        after: the call to explain.
        changes: events of this path between the two that changed header or history.
    """
    facts = codec.facts_of(after.header.model if after.header else "")
    expected, read = _expected_tokens(before, after), _read_tokens(after)
    found = _find_cause(codec, before, after, changes, facts)
    lost = None
    if before is not None and expected is not None and read is not None:
        lost = 0 if found.cause == "held" else _lost_tokens(codec, before, after, found, expected)
    idle = None if before is None else after.plan.at - before.plan.at
    return Verdict(
        cause=found.cause,
        evidence=found.evidence,
        also=found.also,
        planned=found.planned,
        compared_with=None if before is None else before.plan.call,
        divergence=found.divergence,
        named_by=found.named_by,
        expected_tokens=expected,
        read_tokens=read,
        lost_tokens=lost,
        break_usd=None if lost is None else lost * _extra_usd(after, facts),
        idle_seconds=idle,
        advice=advise(
            found.cause,
            is_actionable=found.evidence != "unknown",
            label=found.divergence.label if found.divergence else "",
            named=found.named_by.cause if found.named_by else "",
            idle_seconds=idle or 0.0,
            ttl=_ttl(before) if before else "5m",
            minimum_tokens=facts.minimum_tokens,
        ),
    )


def _expected_tokens(before: Sent | None, after: Sent) -> int | None:
    """What the call before left in the cache, or an older entry that fits and is longer."""
    known = (None if before is None else before.cached_tokens, after.plan.expected_read_tokens)
    return max((tokens for tokens in known if tokens is not None), default=None)


def _read_tokens(sent: Sent) -> int | None:
    return None if sent.usage is None else sent.usage.read_tokens


def _find_cause(
    codec: Codec,
    before: Sent | None,
    after: Sent,
    changes: Sequence[Change],
    facts: ModelFacts,
) -> _Found:
    if before is None:
        return _Found(cause="cold_start", evidence="proven")
    expected, read = _expected_tokens(before, after), _read_tokens(after)
    is_expired = after.plan.at - before.plan.at > TTL_SECONDS[_ttl(before)]
    if read is not None and expected is not None and read >= expected and read > 0:
        switched = _switched(codec, before, after, changes)
        if switched is not None:
            return _diverged(before, switched, changes, is_expired=is_expired)
        return _Found(cause="held", evidence="reported")
    if expected == 0:
        return _nothing_cached(before, facts)
    divergence = find_divergence(codec, before, after)
    if divergence is not None:
        return _diverged(before, divergence, changes, is_expired=is_expired)
    return _by_markers(before, after, facts, is_expired=is_expired) or _by_elimination(
        is_expired=is_expired, is_known=expected is not None and read is not None
    )


def _switched(
    codec: Codec, before: Sent, after: Sent, changes: Sequence[Change]
) -> Divergence | None:
    """The difference before the messages, if there is one: then all that was read is older.

    Under a longer header that may be as much as the call before left under its own.
    """
    if not any(isinstance(event, HeaderSet) for _, event in changes):
        return None
    divergence = find_divergence(codec, before, after)
    return None if divergence is None or divergence.level == "messages" else divergence


def _by_markers(before: Sent, after: Sent, facts: ModelFacts, *, is_expired: bool) -> _Found | None:
    """What the places of the markers alone explain."""
    also: tuple[Cause, ...] = ("expired",) if is_expired else ()
    if before.is_whole or after.is_whole:
        return _Found(cause="not_comparable", evidence="unknown", also=also)
    if not after.plan.breakpoints:
        total = after.usage.input_total_tokens if after.usage else facts.minimum_tokens
        if total < facts.minimum_tokens:
            return _Found(cause="below_minimum", evidence="reported", also=also)
        return _Found(cause="no_breakpoint", evidence="proven", also=also)
    if not _is_in_reach(before, after, facts):
        return _Found(cause="out_of_lookback", evidence="proven", also=also)
    return None


def _by_elimination(*, is_expired: bool, is_known: bool) -> _Found:
    """Same bytes, markers in reach: the clock, or the provider, if we know of a loss at all."""
    if is_expired:
        return _Found(cause="expired", evidence="inferred")
    if not is_known:
        return _Found(cause="not_comparable", evidence="unknown")
    return _Found(cause="provider_side_suspected", evidence="unknown")


def _diverged(
    before: Sent, divergence: Divergence, changes: Sequence[Change], *, is_expired: bool
) -> _Found:
    change = _naming(before, divergence, changes)
    planned = change is not None and _is_planned(change[1])
    cause: Cause = "planned_fold" if planned else _BY_LEVEL[divergence.level]
    also: tuple[Cause, ...] = ("expired",) if is_expired else ()
    evidence: Evidence = "proven"
    if planned and is_expired:
        # the cache was cold before we folded: the fold cost nothing
        cause, evidence, also = "expired", "inferred", ("planned_fold",)
    return _Found(
        cause=cause,
        evidence=evidence,
        also=also,
        divergence=divergence,
        named_by=change and _named(*change),
        planned=planned,
    )


def _naming(before: Sent, divergence: Divergence, changes: Sequence[Change]) -> Change | None:
    """The logged event that made the difference."""
    if divergence.level != "messages":
        for seq, event in changes:
            if isinstance(event, HeaderSet) and divergence.level in event.changed:
                return seq, event
        return None
    rewrites = [(seq, event) for seq, event in changes if not isinstance(event, HeaderSet)]
    for seq, event in rewrites:
        if divergence.before_seq in _touched(event) or divergence.after_seq == seq:
            return seq, event
    # an entry that is still there was not taken away: then no event tells of it
    seqs = {entry.seq for entry in before.surface.entries}
    return next((one for one in rewrites if not seqs.isdisjoint(_touched(one[1]))), None)


def _touched(event: Rewrite) -> tuple[int, ...]:
    """Entries that are no longer what they were."""
    if isinstance(event, Pruned):
        return tuple(stub.seq for stub in event.stubs)
    return event.shadows


def _is_planned(event: Rewrite | HeaderSet) -> bool:
    """Whether a fold of ours made the change."""
    return isinstance(event, Pruned | Compacted) or (isinstance(event, Replaced) and event.planned)


def _named(seq: int, event: Rewrite | HeaderSet) -> NamedBy:
    if not isinstance(event, HeaderSet):
        return NamedBy(seq=seq, event=str(event.__struct_config__.tag), cause=event.cause)
    return NamedBy(seq=seq, event="header_set", cause=", ".join(event.changed) + " changed")


def _nothing_cached(before: Sent, facts: ModelFacts) -> _Found:
    """The call before left nothing: too short, unmarked, or not taken by the provider."""
    total = before.usage.input_total_tokens if before.usage else 0
    if total < facts.minimum_tokens:
        return _Found(cause="below_minimum", evidence="reported")
    if not before.plan.breakpoints:
        return _Found(cause="no_breakpoint", evidence="proven")
    return _Found(cause="provider_side_suspected", evidence="unknown")


def _is_in_reach(before: Sent, after: Sent, facts: ModelFacts) -> bool:
    """Whether a marker sees the last entry of the call before; a run of calls is one position."""
    goal = before.marked_blocks
    marks = [mark.block + 1 if mark.level == "messages" else 0 for mark in after.plan.breakpoints]
    nearest = min((mark for mark in marks if mark >= goal), default=None)
    if nearest is None:
        return False
    positions, kind = int(goal == 0), None
    for place in range(nearest - 1, max(goal - 1, 0) - 1, -1):
        block = block_at(after.surface, place)
        kind_after, kind = kind, type(block.part) if block else None
        positions += not (kind is kind_after and kind in {ToolCall, ToolResult})
    return positions <= facts.lookback_positions


def _lost_tokens(codec: Codec, before: Sent, after: Sent, found: _Found, expected: int) -> int:
    usage, divergence = after.usage, found.divergence
    if usage is None:
        return 0
    there = float(min(expected, usage.input_total_tokens))
    if divergence is not None and divergence.place is not None:
        share = _still_there(codec, before, after, divergence.place)
        there = min(there, expected * share)
    return max(0, round(there) - usage.read_tokens)


def _still_there(codec: Codec, before: Sent, after: Sent, place: int) -> float:
    """Share of the cached prefix that the later request still holds, before or after the change."""
    header, segments = before.header, before.surface.segments
    if header is None:
        return 1.0
    header_chars = count_header_chars(codec, header.system, header.tools)
    limit = before.marked_blocks
    entries = before.surface.entries
    first = segments[place].entry
    left = Counter((entry.role, entry.parts) for entry in after.surface.entries.span(first))
    kept = {
        index
        for index in range(first, segments[limit - 1].entry + 1)
        if left[entries[index].role, entries[index].parts] > 0
    }
    start = segments[place - 1].end_chars if place else 0
    chars, end = header_chars + start, start
    for segment in segments.span(place, limit):
        chars += segment.end_chars - end if segment.entry in kept else 0
        end = segment.end_chars
    total = header_chars + segments[limit - 1].end_chars
    return chars / total if total else 1.0


def _ttl(sent: Sent) -> Literal["5m", "1h"]:
    """Lifetime of the last entry of a call."""
    return sent.plan.breakpoints[-1].ttl if sent.plan.breakpoints else "5m"


def _extra_usd(after: Sent, facts: ModelFacts) -> float:
    """What a lost token costs more than a read one: written again, or plain where unmarked."""
    ratio = 1.0
    if after.plan.breakpoints:
        ratio = facts.write_1h_ratio if _ttl(after) == "1h" else facts.write_5m_ratio
    whole = facts.price_ratio(after.usage.input_total_tokens if after.usage else 0)
    return usd_of(whole * (ratio - facts.read_ratio), facts)
