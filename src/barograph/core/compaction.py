"""Compaction: old history gives way to a summary, when stubs alone do not relieve the window.

**Theory of operation.** What is hidden is the oldest content that may be cut: first what lies
before the current request, then what lies between it and the newest round. Only as much goes as
brings the request down to the target, so that the next compaction is far away.

In its place stands one entry with two parts. The *digest* is computed from the log: exact, free,
always there. The *narrative* is written by a model, in a call that shows it just what is about to
be hidden, as the agent's own calls left it in the cache, and a directive. An answer without the
envelope that the directive asks for (an error, a refusal, a tool call) is no summary; after two
failures the digest stands alone and says so.

A summary is never summed up again: the digest is always made from the log, with what earlier
compactions hid.

**Invariants.** The current request and the newest round stay (9), and so does a call that waits for
its answer; what is pinned is quoted word for word. A compaction takes off tokens by
the measure that triggered it, or does not run (8). The messages stay in their events (6).

**Out of scope.** What a digest says (`digest`); stubs (`prune`); the order of relief (`relief`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.digest import NARRATIVE_RATIO, pinned_room_chars, write_digest
from barograph.core.events import CompactCause, Compacted, Stub, SummaryAsked
from barograph.core.framing import rearm
from barograph.core.inputs import Answered, CallWanted, Refused
from barograph.core.model import Codec
from barograph.core.notes import Note, notes_of
from barograph.core.parts import Parts, Text, calls_in
from barograph.core.policy import Policy
from barograph.core.pressure import Gauge
from barograph.core.prune import drop_thinking
from barograph.core.spans import LEAST_CHARS, Span, chars_of, find_spans, part_spans
from barograph.core.state import PathState
from barograph.core.surface import Entry, Surface
from barograph.core.texts import NARRATIVE_CLOSES, NARRATIVE_OPENS
from barograph.core.work import Work

TRIES: Final = 2
"""How often a model is asked for a summary before the digest stands alone."""

_HEADING_CHARS: Final = 100
"""Room for what stands above a narrative."""

_LEAST_NARRATIVE_CHARS: Final = 200
"""Where there is room for less, a model is not asked."""

_DIGEST_SHARE: Final = 4
"""A summary takes at most one in so many of the characters that it stands for."""


class Plan(Struct, frozen=True, kw_only=True):
    """A compaction that is due.

    Attributes:
        cause: why.
        spans: what it hides, in surface order: before the current request, and after it.
        told: how many of them a model is asked about; 0 where none is asked.
        budget_chars: how long the summaries may be, together.
        gauge: the request without it.
    """

    cause: CompactCause
    spans: tuple[Span, ...]
    told: int = 0
    budget_chars: int
    gauge: Gauge

    @property
    def narrative_chars(self) -> int:
        """How long a narrative may be: its share of the last summary, less a heading."""
        share = int(NARRATIVE_RATIO * (self.budget_chars // len(self.spans)))
        return max(0, share - _HEADING_CHARS)


class Told(Struct, frozen=True, kw_only=True):
    """What came of asking for a summary: the narrative and the event that has it, or failures."""

    narrative: str = ""
    seq: int | None = None
    failures: tuple[str, ...] = ()


def plan_compaction(
    work: Work, path: str, policy: Policy, gauge: Gauge, cause: CompactCause | None = None
) -> Plan | None:
    """What is to be hidden now; None where nothing must, or nothing can.

    Args:
        work: the step under way.
        path: the agent path whose request was measured.
        policy: from which pressure on, and down to which.
        gauge: the request, after pruning.
        cause: why it is due whatever the pressure; None to go by the pressure.
    """
    if cause is None:
        cause = _cause(policy, gauge)
    if cause is None:
        return None
    surface = work.state.surface(path)
    allowed_tokens = policy.summary_ratio * gauge.usable_tokens
    goal_tokens = policy.compact_to_ratio * gauge.usable_tokens
    if cause == "manual":
        goal_tokens = allowed_tokens
    excess_tokens = gauge.projected_tokens - goal_tokens + allowed_tokens
    spans = find_spans(
        surface,
        excess_chars=excess_tokens / gauge.tokens_per_char,
        kept_calls=work.state.path(path).waiting.kept,
    )
    hidden = sum(chars_of(surface, span) for span in spans)
    hidden -= _quoted_chars(work, path, spans) + _shown_again_chars(work, path, spans)
    left_tokens = gauge.projected_tokens - hidden * gauge.tokens_per_char
    room_tokens = min(allowed_tokens, 0.9 * (gauge.usable_tokens - left_tokens))
    budget = max(0, min(hidden // _DIGEST_SHARE, int(room_tokens / gauge.tokens_per_char)))
    freed_tokens = (hidden - budget) * gauge.tokens_per_char
    is_enough = cause != "pressure" or freed_tokens >= policy.relief_ratio * gauge.usable_tokens
    if not spans or hidden < LEAST_CHARS or not is_enough:
        return None
    return Plan(cause=cause, spans=spans, budget_chars=budget, gauge=gauge)


def _quoted_chars(work: Work, path: str, spans: Sequence[Span]) -> int:
    """What of these spans stays, since it is pinned and its digest will quote it."""
    state, entries = work.state.path(path), work.state.surface(path).entries
    if not state.pinned:
        return 0
    runs = (entries.span(span.start, span.stop) for span in spans)
    return sum(pinned_room_chars(_notes_of(state, run)) for run in runs)


def _shown_again_chars(work: Work, path: str, spans: Sequence[Span]) -> int:
    """What of these spans comes back behind them: sections of frames that are in force."""
    holding, entries = work.state.path(path).frames.holding, work.state.surface(path).entries
    if not holding:
        return 0
    seqs = {one.seq for span in spans for one in entries.span(span.start, span.stop)}
    return sum(work.codec.weigh(Text(one.text)) for one in holding.values() if one.seq in seqs)


def plan_question(work: Work, given: CallWanted, plan: Plan) -> Plan | None:
    """The same compaction with a summary by a model; None where one cannot be had.

    A model is told of what one request can show. Of the rest there is what the log has. A
    summariser of its own is told of all of it, in fewer words.
    """
    spans, told = plan.spans, len(plan.spans)
    if given.summariser is None:
        spans, told = part_spans(work.state.surface(given.path), plan.spans, plan.gauge)
    asking = replace(plan, spans=spans, told=told)
    return asking if told and asking.narrative_chars >= _LEAST_NARRATIVE_CHARS else None


def plan_asked(asked: SummaryAsked, gauge: Gauge) -> Plan:
    """The compaction that a summary was asked for, whatever was learned of the window since."""
    spans = tuple(map(Span, asked.starts, asked.stops))
    return Plan(
        cause=asked.cause,
        spans=spans,
        told=len(spans) if asked.is_transcript else sum(s.stop <= asked.entries for s in spans),
        budget_chars=asked.budget_chars,
        gauge=gauge,
    )


def carry_out(work: Work, given: CallWanted, plan: Plan, told: Told) -> Gauge:
    """Log the compaction; the gauge after it."""
    surface = work.state.surface(given.path)
    runs = [surface.entries.span(span.start, span.stop) for span in plan.spans]
    gauge = plan.gauge
    teller = runs[plan.told - 1] if plan.told else runs[-1]
    for run in runs:
        is_told = run is teller
        narrative = told.narrative if is_told else ""
        budget = plan.budget_chars // len(runs)
        event = _compacted(
            work, given, plan, run, write_summary(work, given.path, run, narrative, budget)
        )
        if is_told:
            event = replace(event, narrated_by=told.seq, failures=told.failures)
        gauge = replace(gauge, projected_tokens=event.tokens_after)
        plan = replace(plan, gauge=gauge)
        work.log(event)
    if plan.cause == "manual":  # the next turn has its frame composed anew
        return gauge
    shown = round(rearm(work, given) * gauge.tokens_per_char)
    return replace(gauge, projected_tokens=gauge.projected_tokens + shown)


def read_summary(
    given: Answered | Refused, asked: SummaryAsked, seq: int, *, most_chars: int
) -> Told:
    """What came of asking; `seq` is the event that has the answer."""
    if isinstance(given, Refused):
        return Told(failures=(*asked.failures, given.error))
    try:
        narrative = narrative_in(given.parts, given.stop_reason, most_chars=most_chars)
    except ValueError as error:
        return Told(failures=(*asked.failures, str(error)))
    return Told(narrative=narrative, seq=seq, failures=asked.failures)


def narrative_in(parts: Parts, stop_reason: str | None, *, most_chars: int) -> str:
    """The summary that a model wrote.

    Raises:
        ValueError: it wrote none; the message says what it did instead.
    """
    if calls_in(parts):
        raise ValueError("the model called a tool")
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if not text.strip():
        raise ValueError(f"the answer is empty (stop reason {stop_reason})")
    _, opens, rest = text.partition(NARRATIVE_OPENS)
    narrative, closes, _ = rest.rpartition(NARRATIVE_CLOSES)
    if not opens or not closes:
        raise ValueError(f"the answer holds no whole summary (stop reason {stop_reason})")
    narrative = narrative.strip()
    if not narrative:
        raise ValueError("the summary is empty")
    if len(narrative) > most_chars:
        raise ValueError(f"the summary has {len(narrative)} characters, {most_chars} are allowed")
    return narrative


def write_summary(
    work: Work, path: str, run: Sequence[Entry], narrative: str, budget_chars: int
) -> Parts:
    """What stands in the place of a run of entries, made from all that it hides.

    Pinned text comes on top of the budget.
    """
    notes = _notes_of(work.state.path(path), run)
    budget_chars += pinned_room_chars(notes)
    return (Text(write_digest(notes, budget_chars=budget_chars, narrative=narrative)),)


def _notes_of(path: PathState, run: Sequence[Entry]) -> list[Note]:
    """Notes of all messages that a run stands for."""
    hidden = {one for entry in run for one in entry.hides or (entry.seq,)}
    spoken = [one for one in path.spoken if one.seq in hidden]
    return [note for one in spoken for note in notes_of(one, pinned=one.seq in path.pinned)]


def _cause(policy: Policy, gauge: Gauge) -> CompactCause | None:
    if not policy.compacts:
        return None
    if gauge.projected_tokens > gauge.usable_tokens:
        return "forced"
    return "pressure" if gauge.pressure >= policy.hard_ratio else None


def _compacted(
    work: Work, given: CallWanted, plan: Plan, run: Sequence[Entry], parts: Parts
) -> Compacted:
    surface, gauge = work.state.surface(given.path), plan.gauge
    start = surface.find_run([entry.seq for entry in run])
    hidden = chars_of(surface, Span(start, start + len(run)))
    added = sum(map(work.codec.weigh, parts))
    stubs: tuple[Stub, ...] = ()
    if work.codec.facts_of(given.header.model).binds_thinking:
        stubs = drop_thinking(surface, start + len(run))
    dropped = _thinking_chars(work.codec, surface, stubs)
    after = surface.segments[-1].end_chars - surface.chars_before(start) - hidden - dropped
    ratio = gauge.tokens_per_char
    return Compacted(
        at=given.at,
        path=given.path,
        cause=plan.cause,
        shadows=tuple(entry.seq for entry in run),
        parts=parts,
        narrated_by=None,
        failures=(),
        tokens_before=gauge.projected_tokens,
        tokens_after=max(0, gauge.projected_tokens + round((added - hidden - dropped) * ratio)),
        rewritten_tokens=round((after + added) * ratio),
        stubs=stubs,
    )


def _thinking_chars(codec: Codec, surface: Surface, stubs: Sequence[Stub]) -> int:
    """What these stubs take off."""
    kept = {stub.seq: stub.parts for stub in stubs}
    entries = (entry for entry in surface.entries if entry.seq in kept)
    return sum(
        sum(map(codec.weigh, entry.parts)) - sum(map(codec.weigh, kept[entry.seq]))
        for entry in entries
    )
