"""A table of many rows, quickly: plain columns, the least needed of them left out where narrow."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

Row = TypeVar("Row")


class Column(NamedTuple, Generic[Row]):
    """A column: its name, the text of a cell, and how much it is needed.

    Attributes:
        name: its head.
        text: the text of a row's cell.
        need: columns of the lowest need are left out first; those of 0 never. On a terminal a
            column without a single cell is not shown at all.
        is_left: whether it is set to the left.
    """

    name: str
    text: Callable[[Row], str]
    need: int = 0
    is_left: bool = False


def print_grid(
    console: "Console",
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    style_of: Callable[[Row], str],
) -> list[str]:
    """Print rows, their last column in the colour of the row; return the columns left out."""
    cells = {column.name: [column.text(row) for row in rows] for column in columns}
    kept, left_out = _fit(console, columns, cells)
    widths = [max(_width(text) for text in (c.name, *cells[c.name])) for c in kept]
    has_style = console.is_terminal and not console.no_color
    heads = [_set(c.name, width, c) for c, width in zip(kept, widths, strict=True)]
    lines = ["  ".join(heads).rstrip()]
    if has_style:
        lines[0] = click.style(lines[0], bold=True)
    for index, row in enumerate(rows):
        texts = [
            _set(cells[c.name][index], width, c) for c, width in zip(kept, widths, strict=True)
        ]
        texts[-1] = texts[-1].rstrip()
        if has_style and texts[-1]:
            texts[-1] = click.style(texts[-1], fg=style_of(row))
        lines.append("  ".join(texts).rstrip())
    click.echo("\n".join(lines))
    return left_out


def _fit(
    console: "Console", columns: Sequence[Column[Row]], cells: dict[str, list[str]]
) -> tuple[list[Column[Row]], list[str]]:
    """The columns that the console has room for, and the names of the others."""
    if not console.is_terminal:
        return list(columns), []
    told = [column for column in columns if any(cells[column.name])]
    kept = list(told)
    widths = {c.name: 2 + max(map(_width, (c.name, *cells[c.name]))) for c in columns}
    while sum(widths[c.name] for c in kept) - 2 > console.width:
        least = min((c for c in kept if c.need), key=lambda c: c.need, default=None)
        if least is None:
            break
        kept.remove(least)
    return kept, [c.name for c in told if c not in kept]


def _set(text: str, width: int, column: Column[Row]) -> str:
    blanks = " " * (width - _width(text))
    return text + blanks if column.is_left else blanks + text


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
