"""The meter: how full the window is, and how full the next request will make it.

**Theory of operation.** The provider's own count of an earlier request is the anchor; what was
added or taken off since is estimated from what it weighs in characters (`Codec.weigh`: text by its
characters, pictures by their size), by the factor that the model's own reports have shown. Before
the first report the estimate stands alone.

The factor is fitted to growth: tokens that a request had more than the one before, over characters.
Tools, system and what a provider adds on its own cancel out in it. A model's factor belongs to the
session, so that its agents share it and a switch of models keeps the other's.

A count stays true for whatever begins with that request, and is found again by the hash chain at
its end. So a fold or a rewind makes no count void: where the last request is no prefix any more,
either it is corrected by the signed difference, or the deepest count that is one takes its place,
whichever leaves less to be estimated. At a near-total fold that is the count of the fixed part,
which the first report gave.

**Invariants.** One report that is far off moves nothing: it is doubted until the next one agrees.
All is derived from the log, in O(new) for a call.

**Out of scope.** What is done about pressure (`relief`); what a part weighs (the codec).
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from barograph.core.breakpoints import Segment
from barograph.core.trail import Trail

START_TOKENS_PER_CHAR: Final = 0.25
"""The usual four characters a token."""

_LEAST_RATIO, _MOST_RATIO = 0.05, 2.0
_FAR_OFF: Final = 4.0
_FIRST_CHARS: Final = 20_000
"""What the first report of a model says, by its whole, weighs as much as so much growth."""

_HALF_CHARS: Final = 400_000
"""After so much growth, what was learned before counts half."""


class Gauge(Struct, frozen=True, kw_only=True):
    """A request measured before it leaves.

    Attributes:
        projected_tokens: its whole prompt.
        fixed_tokens: of it, tools and system, which no fold can take off.
        window_tokens: what the model takes.
        reserve_tokens: room that is kept for its answer.
        tokens_per_char: the ratio used.
    """

    projected_tokens: int
    fixed_tokens: int
    window_tokens: int
    reserve_tokens: int
    tokens_per_char: float

    @property
    def usable_tokens(self) -> int:
        """The window less the reserve; at least 1, so that a ratio can be given."""
        return max(1, self.window_tokens - self.reserve_tokens)

    @property
    def fits(self) -> bool:
        """Whether the prompt is no longer than that."""
        return self.projected_tokens <= self.usable_tokens

    @property
    def pressure(self) -> float:
        """Projected prompt / usable."""
        return self.projected_tokens / self.usable_tokens


class Count(Struct, frozen=True, kw_only=True):
    """The provider's count of a request, or what follows from one.

    Attributes:
        tokens: all its input.
        chars: what it weighs, tools and system included.
        model: who counted.
        position: number of its message blocks.
        key: hash chain over them; empty for none.
    """

    tokens: int
    chars: int
    model: str
    position: int
    key: bytes


class Factor(Struct, frozen=True, kw_only=True):
    """Tokens of a character, fitted to the growth of requests; older growth counts less."""

    tokens: float = 0.0
    chars: float = 0.0

    @property
    def tokens_per_char(self) -> float:
        """The ratio."""
        return self.tokens / self.chars

    def learned(self, tokens: float, chars: float) -> "Factor":
        """With one more growth."""
        kept = 0.5 ** (chars / _HALF_CHARS)
        return Factor(tokens=self.tokens * kept + tokens, chars=self.chars * kept + chars)


Factors = Mapping[str, Factor]
"""By model."""


class Meter(Struct, frozen=True, kw_only=True):
    """What the reports of one agent path say.

    Attributes:
        counts: in the order they came; the first is that of the fixed part, which no report gives
            alone.
        doubted: the last report, where it was too far off to be believed.
    """

    counts: Trail[Count] = Trail()
    doubted: Count | None = None

    @property
    def last(self) -> Count | None:
        """The last count."""
        return self.counts.last

    @property
    def fixed(self) -> Count | None:
        """That of the fixed part."""
        return self.counts[0] if len(self.counts) else None

    def anchor(self, chars: int, segments: Trail[Segment]) -> Count | None:
        """The count that leaves least to be estimated of a request that weighs so much."""
        last = self.last
        if last is None or is_prefix(last, segments):
            return last
        deepest = next(count for count in reversed(self.counts) if is_prefix(count, segments))
        return min(last, deepest, key=lambda count: abs(chars - count.chars))


def is_prefix(count: Count, segments: Trail[Segment]) -> bool:
    """Whether a request begins with the one that was counted."""
    if not count.position:
        return True
    return count.position <= len(segments) and segments[count.position - 1].key == count.key


def ratio_of(factors: Factors, model: str, start: float = START_TOKENS_PER_CHAR) -> float:
    """Tokens of a character for a model; `start` before its first report."""
    return factors[model].tokens_per_char if model in factors else start


def project_tokens(
    chars: int, anchor: Count | None, factors: Factors, model: str, start: float
) -> int:
    """Tokens of a request that weighs so much: the anchor, and a signed estimate of the rest."""
    ratio = ratio_of(factors, model, start)
    if anchor is None:
        return round(chars * ratio)
    tokens: float = anchor.tokens
    if anchor.model != model and anchor.model in factors and model in factors:
        tokens *= ratio / factors[anchor.model].tokens_per_char
    return max(0, round(tokens + (chars - anchor.chars) * ratio))


def take_report(
    meter: Meter, factors: Factors, report: Count, header_chars: int, segments: Trail[Segment]
) -> tuple[Meter, Factors]:
    """What the meter of a path and the factors of its session learn from a report."""
    if report.tokens <= 0 or report.chars <= 0:
        return meter, factors
    model, last = report.model, meter.last
    if last is not None:
        anchor = meter.anchor(report.chars, segments)
        expected = project_tokens(report.chars, anchor, factors, model, START_TOKENS_PER_CHAR)
        if not _is_credible(report, expected, meter.doubted):
            return Meter(counts=meter.counts, doubted=report), factors
    factors = {**factors, **_learned(factors, report, last, segments)}
    counts = meter.counts
    if last is None:
        counts = Trail((_fixed_part(report, header_chars, ratio_of(factors, model)),))
    return Meter(counts=counts.appended(report)), factors


def _learned(
    factors: Factors, report: Count, last: Count | None, segments: Trail[Segment]
) -> dict[str, Factor]:
    factor = factors.get(report.model)
    if last is not None and last.model == report.model and is_prefix(last, segments):
        tokens: float = report.tokens - last.tokens
        chars = report.chars - last.chars
    elif factor is None:
        chars = min(_FIRST_CHARS, report.chars)
        tokens = report.tokens / report.chars * chars
    else:
        return {}
    if not _is_ratio(tokens, chars):
        return {}
    before = factor or Factor()
    return {report.model: before.learned(tokens, chars)}


def _fixed_part(first: Count, header_chars: int, ratio: float) -> Count:
    """The count of tools and system: what the first report leaves when its messages are off."""
    messages = round((first.chars - header_chars) * ratio)
    tokens = max(round(header_chars * _LEAST_RATIO), first.tokens - messages)
    return Count(tokens=tokens, chars=header_chars, model=first.model, position=0, key=b"")


def _is_credible(report: Count, expected: int, doubted: Count | None) -> bool:
    alone = report.chars * START_TOKENS_PER_CHAR
    near = [expected, alone] if doubted is None else [expected, alone, doubted.tokens]
    return any(1 / _FAR_OFF <= (report.tokens + 1) / (one + 1) <= _FAR_OFF for one in near)


def _is_ratio(tokens: float, chars: float) -> bool:
    return chars > 0 and _LEAST_RATIO <= tokens / chars <= _MOST_RATIO
