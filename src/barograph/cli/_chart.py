"""A chart of calls in characters: what each read, wrote and paid plainly, one over the other.

Read, write and uncached differ in shade as well as in colour, so that neither is needed alone.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from barograph.audit.series import SeriesRow
from barograph.cli._text import count

Piece: TypeAlias = tuple[str, str]
"""A text and its style."""

KINDS: Final = (("█", "green", "read"), ("▓", "yellow", "write"), ("░", "red", "uncached"))
UNPLANNED: Final = ("✕", "bold red", "unplanned break")
PLANNED: Final = ("▼", "cyan", "planned fold")
UNREPORTED: Final = ("?", "bold", "not reported")
_ROWS: Final = 8
_LEAST_COLUMNS: Final = 10


class Bar(NamedTuple):
    """A call, or the mean of several: heights of read, read + write, and all; and its mark."""

    tops: tuple[float, float, float]
    mark: Piece


def draw_chart(rows: Sequence[SeriesRow], width: int, *, height: int = _ROWS) -> list[list[Piece]]:
    """Lines of a chart no wider than `width`; none where no call reported its tokens."""
    peak = max((row.input_total_tokens or 0 for row in rows), default=0)
    if not peak:
        return []
    margin = len(count(peak)) + 2
    room = max(width - margin, _LEAST_COLUMNS)
    size = math.ceil(len(rows) / room)
    columns = list(bars(rows, size))
    top = max(column.tops[2] for column in columns)
    step = top / height
    lines = []
    for level in reversed(range(height)):
        value = count(round(top)) if level == height - 1 else ""
        cells = (_cell(column, level, step) for column in columns)
        lines.append([(f"{value:>{margin - 2}} ┤", "dim"), *_joined(cells)])
    marks = [column.mark for column in columns]
    lines.append([(f"{'0':>{margin - 2}} ┼", "dim"), *_joined(iter(marks))])
    lines.append([(" " * margin, ""), *_legend(marks, size)])
    return lines


def bars(rows: Sequence[SeriesRow], size: int) -> Iterator[Bar]:
    """One bar for every `size` calls."""
    for start in range(0, len(rows), size):
        yield _bar(rows[start : start + size])


def _bar(rows: Sequence[SeriesRow]) -> Bar:
    known = [row for row in rows if row.input_total_tokens is not None]
    sums = [0.0, 0.0, 0.0]
    for row in known:
        read = row.read_tokens or 0
        written = read + (row.write_5m_tokens or 0) + (row.write_1h_tokens or 0)
        for place, tokens in enumerate((read, written, row.input_total_tokens or 0)):
            sums[place] += tokens / len(known)
    return Bar((sums[0], sums[1], sums[2]), _mark(rows, is_known=bool(known)))


def _mark(rows: Sequence[SeriesRow], *, is_known: bool) -> Piece:
    if any(row.is_break and not row.planned for row in rows):
        return UNPLANNED[:2]
    if any(row.is_break for row in rows):
        return PLANNED[:2]
    return ("─", "dim") if is_known else UNREPORTED[:2]


def _cell(bar: Bar, level: int, step: float) -> Piece:
    """What stands at the middle of a cell; whatever is there at all shows at the bottom."""
    middle = (level + 0.5) * step
    if not level:
        middle = min(middle, bar.tops[2] / 2)
    for top, (char, style, _) in zip(bar.tops, KINDS, strict=True):
        if middle < top:
            return char, style
    return " ", ""


def _joined(cells: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbours of one style as one piece."""
    text, last = "", ""
    for char, style in cells:
        if style != last and text:
            yield text, last
            text = ""
        text, last = text + char, style
    if text:
        yield text, last


def _legend(marks: Sequence[Piece], size: int) -> Iterator[Piece]:
    shown = [*KINDS, *(kind for kind in (UNPLANNED, PLANNED, UNREPORTED) if kind[:2] in marks)]
    for char, style, name in shown:
        yield char, style
        yield f" {name}  ", ""
    if size > 1:
        yield f"each column is the mean of {size} calls", "dim"
