"""Which runs of a surface a compaction hides.

First what lies before the current request, then what lies between it and the newest round. A run
ends where calls have their results, so that hiding it parts none from another, and before a call
that still waits for its answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from barograph.core.cuts import Pairing
from barograph.core.parts import calls_in
from barograph.core.pressure import Gauge
from barograph.core.surface import Entry, Surface

LEAST_CHARS: Final = 2_000
"""A shorter run is not worth a summary."""

_DIRECTIVE_TOKENS: Final = 500
"""More than the question itself takes, in any tokenizer."""


class Span(Struct, frozen=True):
    """Entries from `start` up to, and without, `stop`."""

    start: int
    stop: int


def find_spans(
    surface: Surface, *, excess_chars: float, kept_calls: AbstractSet[str] = frozenset()
) -> tuple[Span, ...]:
    """The oldest runs that may be hidden, together so many characters long if they can be.

    Calls of these ids stay, with their results.
    """
    entries = surface.entries.span()
    cuts = Pairing().cuts(entries)
    first, last = _request(entries)
    newest = _newest_round(entries, last)
    spans: list[Span] = []
    stays = [i for i, one in enumerate(entries) if not kept_calls.isdisjoint(calls_in(one.parts))]
    for start, stop in _between(stays, cuts, ((0, first), (last + 1, newest))):
        span = _oldest(surface, [cut for cut in cuts if start <= cut <= stop], excess_chars)
        if span is not None:
            spans.append(span)
            excess_chars -= chars_of(surface, span)
        if excess_chars <= 0:
            break
    return tuple(spans)


def _between(
    stays: Sequence[int], cuts: Sequence[int], parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """These parts of a history without the entries that stay and the results that follow them."""
    for start, stop in parts:
        begin = start
        for index in stays:
            if start <= index < stop:
                yield begin, index
                begin = next((cut for cut in cuts if cut > index), stop)
        yield begin, stop


def part_spans(
    surface: Surface, spans: tuple[Span, ...], gauge: Gauge
) -> tuple[tuple[Span, ...], int]:
    """The spans, one of them parted where a request that shows what they hide would not fit.

    Returns:
        The spans, and how many of them the longest request that fits can show.
    """
    excess_tokens = gauge.projected_tokens + _DIRECTIVE_TOKENS - gauge.usable_tokens
    end = surface.segments[-1].end_chars - excess_tokens / gauge.tokens_per_char
    shown: list[Span] = []
    for index, span in enumerate(spans):
        if _end_of(surface, span) <= end:
            shown.append(span)
            continue
        cuts = [k for k in Pairing().cuts(surface.entries.span()) if span.start < k < span.stop]
        first = [Span(span.start, k) for k in cuts]
        first = [one for one in first if _end_of(surface, one) <= end]
        if not first or not _is_worth_it(surface, first[-1]):
            return spans, index
        rest = Span(first[-1].stop, span.stop)
        return (*shown, first[-1], rest, *spans[index + 1 :]), index + 1
    return spans, len(spans)


def _oldest(surface: Surface, cuts: Sequence[int], excess_chars: float) -> Span | None:
    """The shortest run from the first cut on that holds so many characters, else the longest."""
    if not cuts:
        return None
    start = cuts[0]
    stops = [cut for cut in cuts[1:] if _is_worth_it(surface, Span(start, cut))]
    long_enough = (cut for cut in stops if chars_of(surface, Span(start, cut)) >= excess_chars)
    stop = next(long_enough, stops[-1] if stops else None)
    return None if stop is None else Span(start, stop)


def _is_worth_it(surface: Surface, span: Span) -> bool:
    """Whether a run holds enough that is not a summary already."""
    return chars_of(surface, span) >= LEAST_CHARS and any(
        not entry.hides for entry in surface.entries.span(span.start, span.stop)
    )


def chars_of(surface: Surface, span: Span) -> int:
    """What its entries weigh."""
    return _end_of(surface, span) - surface.chars_before(span.start)


def _end_of(surface: Surface, span: Span) -> int:
    """Where a span ends, in characters."""
    if span.stop < len(surface.entries):
        return surface.chars_before(span.stop)
    return surface.segments[-1].end_chars if len(surface.segments) else 0


def _request(entries: Sequence[Entry]) -> tuple[int, int]:
    """First and last entry of the current request and its frame; 0 and -1 where there is none."""
    last = len(entries) - 1
    while last >= 0 and not entries[last].is_request:
        last -= 1
    first = max(last, 0)
    while first and (entries[first - 1].is_request or entries[first - 1].is_frame):
        first -= 1
    while 0 <= last < len(entries) - 1 and entries[last + 1].is_frame:
        last += 1
    return first, last


def _newest_round(entries: Sequence[Entry], after: int) -> int:
    """Index of the model's last answer in this turn; the end where it has not answered yet."""
    for index in range(len(entries) - 1, after, -1):
        if entries[index].role == "assistant":
            return index
    return len(entries)
