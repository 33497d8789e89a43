"""A session as one page of HTML that needs nothing else: no script, no font, no request.

Everything that a model, a tool or a caller wrote is hostile text. It enters the page through one
function, which masks its secrets, shows what no eye would see as codes, and escapes the rest. The
page also forbids itself every script and every request.
"""

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barograph.audit.report import CallReport
from barograph.audit.segments import BlockView, SegmentView
from barograph.audit.series import Figures, Series, SeriesRow
from barograph.cli._chart import KINDS, bars
from barograph.cli._grid import Column
from barograph.cli._text import count, percent, plain, some, usd
from barograph.cli._words import headline, outcome_in_words, tokens_in_words, where_in_words
from barograph.cli.series import series_columns
from barograph.core.masking import Rule, mask_text

_BLOCK_CHARS: Final = 20_000
_BARS: Final = 400
_HEIGHT: Final = 160

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --dim: #5b6470; --line: #d7dce2;
  --read: #2f7d4f; --write: #b7791f; --uncached: #b3403a; --bad: #a1261f; --good: #2a6b45; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --paper: #14171a; --dim: #98a2ad;
  --line: #333a42; --read: #55b27c; --write: #e0b35a; --uncached: #e07a72; --bad: #ff9c94;
  --good: #7fd0a0; } }
body { margin: 2rem auto; max-width: 78rem; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child, td.text { text-align: left; }
.scroll { overflow-x: auto; }
pre { margin: .3rem 0 .8rem; padding: .5rem .8rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; border-left: 3px solid var(--line); unicode-bidi: isolate; }
summary { cursor: pointer; } a { color: inherit; } .dim { color: var(--dim); }
.bad { color: var(--bad); } .good { color: var(--good); }
.read { fill: var(--read); } .write { fill: var(--write); } .uncached { fill: var(--uncached); }
section { border-top: 1px solid var(--line); margin-top: 1rem; }
"""


class Page:
    """Writes the page, piece by piece.

    Args:
        rules: which secrets are masked.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def pieces(self, series: Series, calls: Iterable[CallReport]) -> Iterator[bytes]:
        """The whole page."""
        for piece in self._pieces(series, calls):
            yield piece.encode("utf-8", "backslashreplace")

    def text(self, text: str) -> str:
        """Text of others, harmless: the one way into the page."""
        return html.escape(plain(mask_text(text, self.rules), keep="\n\t"))

    def _pieces(self, series: Series, calls: Iterable[CallReport]) -> Iterator[str]:
        title = self.text(f"Session {series.session}")
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        yield (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>{title}</h1>\n"
        )
        yield from self._summary(series)
        yield from self._series(series)
        yield "<h2>Calls</h2>\n"
        for call in calls:
            yield from self._call(call)
        yield "</main>\n</body>\n</html>\n"

    def _summary(self, series: Series) -> Iterator[str]:
        total = series.total
        cost, uncached = (
            usd(amount, is_estimate=series.is_guess)
            for amount in (total.cost_usd, total.cost_uncached_usd)
        )
        yield (
            f"<p>{some(total.calls, 'call')}, hit ratio {percent(total.hit_ratio)}, "
            f"{cost}; {uncached} without a cache. "
            f"{some(total.unplanned_breaks, 'unplanned break')}, "
            f"{count(total.lost_tokens)} tokens paid again.</p>\n"
        )
        if total.unreported:
            yield f"<p>{some(total.unreported, 'call')} without reported usage: in no figure.</p>\n"
        if self.rules:
            kinds = ", ".join(rule.name for rule in self.rules)
            yield f'<p class="dim">Secrets are masked: {kinds}.</p>\n'
        heads = ("peak input", "last input", "sum of inputs", "read", "hit", "cost", "lost", "path")
        yield _table(heads, [self._path(series, one) for one in (*series.paths, total)])

    def _path(self, series: Series, figures: Figures) -> list[str]:
        path = "all" if figures.path is None else self.text(figures.path)
        sizes = (
            figures.peak_input_tokens,
            figures.last_input_tokens,
            figures.sum_input_tokens,
            figures.read_tokens,
        )
        return [
            *map(_tokens, sizes),
            percent(figures.hit_ratio),
            usd(figures.cost_usd, is_estimate=series.is_guess),
            count(figures.lost_tokens),
            path,
        ]

    def _series(self, series: Series) -> Iterator[str]:
        yield "<h2>Series</h2>\n"
        first = series.paths[0].path if series.paths else None
        yield _svg([row for row in series.calls if row.path == first])
        columns = series_columns(series.calls)[1:]
        heads = ("call", "path", *(column.name for column in columns))
        yield _table(heads, [self._row(row, columns) for row in series.calls])

    def _row(self, row: SeriesRow, columns: Sequence[Column[SeriesRow]]) -> list[str]:
        link = f'<a href="#call-{row.call}">{row.call}</a>'
        return [link, *(self.text(text) for text in (row.path, *(c.text(row) for c in columns)))]

    def _call(self, call: CallReport) -> Iterator[str]:
        row, verdict = call.row, call.row.verdict
        place = self.text(f"{row.path}, turn {row.turn}, round {row.round}")
        yield f'<section id="call-{row.call}">\n<h3>Call {row.call} · {place}</h3>\n'
        style = ""
        if verdict is None or verdict.lost_tokens:
            style = ' class="bad"'
        elif verdict.cause == "held":
            style = ' class="good"'
        yield f"<p{style}>{self.text(headline(row))}</p>\n"
        if verdict is not None:
            yield f'<p class="dim">{self.text(outcome_in_words(row))}: {tokens_in_words(row)}</p>\n'
        if verdict is not None and verdict.lost_tokens:
            yield f"<p>{self.text(verdict.advice)}</p>\n"
        if verdict is not None and verdict.divergence is not None:
            where = self.text(where_in_words(verdict.divergence))
            yield f'<p class="dim">Where: {where}</p>\n'
        if call.diff:
            yield f"<pre>{self.text(chr(10).join(call.diff))}</pre>\n"
        if call.segments or call.since is not None:
            yield from self._segments(call)
        yield "</section>\n"

    def _segments(self, call: CallReport) -> Iterator[str]:
        chars = sum(segment.chars for segment in call.segments)
        new = f"{some(len(call.segments), 'new segment')}, {some(chars, 'character')}"
        if call.since is not None:
            there = f'<a href="#call-{call.since}">call {call.since}</a>'
            new += f"; {some(call.repeated, 'block')} of messages as in {there}"
        yield f"<details>\n<summary>{new}</summary>\n"
        for segment in call.segments:
            yield from self._segment(segment)
        yield "</details>\n"

    def _segment(self, segment: SegmentView) -> Iterator[str]:
        facts = [segment.name, *([segment.role] if segment.role else [])]
        facts.append(some(segment.chars, "character"))
        if segment.source is not None:
            facts.append(f"from the {segment.source.origin}, event {segment.source.seq}")
        yield f"<details>\n<summary>{self.text(' · '.join(facts))}</summary>\n"
        for block in segment.blocks:
            yield self._block(block)
        yield "</details>\n"

    def _block(self, block: BlockView) -> str:
        title = f"{block.kind} {block.label}".strip()
        if block.ttl:
            title += f" · cache marker, {block.ttl}" + (f", {block.slot}" if block.slot else "")
        # masked before it is cut: half a secret is not recognised
        shown = mask_text(block.text, self.rules)
        rest = len(shown) - _BLOCK_CHARS
        more = f'<p class="dim">… {some(rest, "more character")}</p>\n' if rest > 0 else ""
        text = self.text(shown[:_BLOCK_CHARS])
        return f'<p class="dim">{self.text(title)}</p>\n<pre>{text}</pre>\n{more}'


def _tokens(tokens: int | None) -> str:
    return "?" if tokens is None else count(tokens)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table>\n<tr>{head}</tr>\n{body}</table></div>\n'


def _svg(rows: Sequence[SeriesRow]) -> str:
    """The chart of one agent path: read, write and uncached, one over the other."""
    drawn = list(bars(rows, max(1, math.ceil(len(rows) / _BARS))))
    top = max((bar.tops[2] for bar in drawn), default=0.0)
    if not top:
        return ""
    parts = []
    for place, bar in enumerate(drawn):
        floor = 0.0
        for height, (_, _, kind) in zip(bar.tops, KINDS, strict=True):
            if height > floor:
                size, y = (height - floor) / top * _HEIGHT, _HEIGHT * (1 - height / top)
                parts.append(
                    f'<rect class="{kind}" x="{place * 3}" y="{y:.1f}" width="2.4" '
                    f'height="{size:.1f}"/>'
                )
            floor = max(floor, height)
    label = f"Input tokens of each call, up to {count(round(top))}: read, written, uncached"
    width = max(3 * len(drawn), 60)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {_HEIGHT}" '
        f'width="100%" height="{_HEIGHT}" preserveAspectRatio="none">{"".join(parts)}</svg>\n'
        f'<p class="dim">{label}, from the bottom.</p>\n'
    )
