"""Verdicts in words: one headline, then the evidence."""

from collections.abc import Iterator
from typing import Final

from barograph.audit.explain import CallRow
from barograph.cli._text import clip, count, duration, percent, plain, some, usd
from barograph.core.divergence import Divergence
from barograph.core.verdict import Verdict

_STYLES: Final = {"held": "green", "cold_start": "cyan", "planned_fold": "cyan"}
_MISS_STYLE: Final = "yellow"
_CAUSES: Final = {
    "cold_start": "the first call of its agent path",
    "held": "the cache held",
    "model_changed": "the model changed",
    "tools_changed": "the tools changed",
    "system_changed": "the system prompt changed",
    "parameters_changed": "a parameter that cached messages depend on changed",
    "history_changed": "the history changed",
    "planned_fold": "a planned fold",
    "expired": "the entry had expired",
    "below_minimum": "the prompt was too short to be cached",
    "no_breakpoint": "no marker was set",
    "out_of_lookback": "no marker was near enough to see the entry",
    "not_comparable": "not enough was reported to compare",
    "provider_side_suspected": "nothing on our side explains it",
}
_GRADES: Final = {
    "proven": "proven by the bytes we sent",
    "reported": "reported by the provider",
    "inferred": "inferred from the log's clock",
    "unknown": "no evidence",
}


def cause_in_words(cause: str) -> str:
    """A cause, for people."""
    return _CAUSES.get(cause, cause)


def style_of(cause: str | None) -> str:
    """How a verdict is shown; a call without one was not answered."""
    return "red" if cause is None else _STYLES.get(cause, _MISS_STYLE)


def short_verdict(row: CallRow) -> str:
    """The verdict on a call in a few words, for a table."""
    verdict = row.verdict
    if verdict is None:
        return plain(clip(f"{row.outcome}: {row.error}", 60)) if row.error else row.outcome
    if verdict.cause in _STYLES:
        return verdict.cause
    return f"{verdict.cause} ({verdict.evidence})"


def unreported_in_words(calls: int) -> str:
    """How many calls no figure tells of."""
    verb = "counts" if calls == 1 else "count"
    return f"{some(calls, 'call')} reported no usage and {verb} nowhere."


def tokens_in_words(row: CallRow) -> str:
    """What a call used and cost."""
    usage = row.usage
    if usage is None:
        return "not reported"
    cost = usd(row.cost_usd, is_estimate=_is_guess(row))
    return (
        f"{count(usage.input_total_tokens)} in = {count(usage.read_tokens)} read "
        f"+ {count(usage.write_tokens)} written + {count(usage.uncached_tokens)} uncached; "
        f"{count(usage.output_tokens)} out; hit ratio {percent(row.hit_ratio)}; {cost}"
    )


def outcome_in_words(row: CallRow) -> str:
    """How a call went."""
    took = "" if row.latency_seconds is None else f" in {duration(row.latency_seconds)}"
    match row.outcome:
        case "answered":
            return f"answered{took}, stop reason {row.stop_reason or 'not given'}"
        case "failed":
            return f"FAILED: {clip(row.error or '', 300)}"
        case "unanswered":
            return (
                "NO ANSWER: it left, and nothing came back (cancelled, killed, or still under way)"
            )
        case _:
            return "NEVER LEFT: it was planned, and no request was recorded"


def recovery_in_words(row: CallRow) -> str:
    """What came of sending a call once more that was refused as too long."""
    if row.recovery == "succeeded":
        return "refused as too long, and answered when it was sent once more, smaller"
    if row.recovery == "failed":
        return "refused as too long, and once more when it was smaller"
    return "refused as too long; what was to be sent once more has no answer"


def headline(row: CallRow) -> str:
    """The verdict on one call in one or two sentences."""
    verdict = row.verdict
    if verdict is None:
        return outcome_in_words(row)
    read, expected, lost = verdict.read_tokens, verdict.expected_tokens, verdict.lost_tokens
    words = cause_in_words(verdict.cause)
    if verdict.cause == "cold_start":
        more = f"; {count(read)} tokens that others had left were read" if read else ""
        return f"Cold start: {words}{more}."
    if read is None:
        return f"Unknown: the provider reported no usage; {words}."
    if verdict.cause == "held":
        return f"Held: {count(read)} cached tokens were read, all that there was to read."
    if not lost:
        of = f" of {count(expected)}" if expected else ""
        return f"Nothing lost: {count(read)}{of} cached tokens were read; {words}."
    about = "about " if verdict.divergence and verdict.divergence.level == "messages" else ""
    price = usd(verdict.break_usd, is_estimate=_is_guess(row))
    return (
        f"Broke: {words}. {count(read)} of {count(expected or 0)} cached tokens were read; "
        f"{about}{count(lost)} were paid again, {price} more."
    )


def evidence_of(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What the verdict rests on, as labels and texts."""
    yield "cause", f"{verdict.cause} ({_GRADES[verdict.evidence]})"
    if verdict.also:
        yield "also", "; ".join(f"{cause}: {cause_in_words(cause)}" for cause in verdict.also)
    if verdict.compared_with is not None:
        ago = duration(verdict.idle_seconds or 0.0)
        yield "compared", f"with call {verdict.compared_with}, {ago} earlier"
    if verdict.named_by is not None:
        named = verdict.named_by
        yield "log", f"event {named.seq} ({named.event}): {named.cause}"
    elif verdict.divergence is not None:
        yield "log", "no event tells of this change"
    if verdict.divergence is not None:
        yield "where", where_in_words(verdict.divergence)


def where_in_words(divergence: Divergence) -> str:
    """The place of a divergence."""
    place = f"{divergence.level}: {divergence.label}"
    if divergence.level == "messages":
        place = f"message {divergence.message}, block {divergence.block} ({divergence.label})"
    elif divergence.level == divergence.label:
        place = divergence.level
    if divergence.segment is not None:
        place = f"segment {divergence.segment} of {divergence.segments}, {place}"
    return f"{place}, after {some(divergence.offset, 'equal character')}"


def _is_guess(row: CallRow) -> bool:
    return row.priced_as == "unknown"
