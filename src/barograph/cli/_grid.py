"""A table of many rows, quickly: plain columns, the least needed of them left out where narrow."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import click

from barograph.cli._text import clip

if TYPE_CHECKING:
    from rich.console import Console

Row = TypeVar("Row")
_GAP: Final = "  "
_LEAST_OF_LAST: Final = 24


class Column(NamedTuple, Generic[Row]):
    """A column: its name, the text of a cell, and how much it is needed.

    Attributes:
        name: its head.
        text: the text of a row's cell.
        need: columns of the highest need find room first; those of 0 and the last are always
            there. On a terminal a column without a single cell is not shown at all.
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
    """Print rows, their last column in the colour of the row; return the columns left out.

    On a terminal the last column is cut to the room that the others leave.
    """
    cells = {column.name: [column.text(row) for row in rows] for column in columns}
    widths = {c.name: max(map(_width, (c.name, *cells[c.name]))) for c in columns}
    kept, room = (list(columns), None)
    if console.is_terminal:
        kept, room = _fit(columns, cells, widths, console.width)
    *others, last = kept
    has_style = console.is_terminal and not console.no_color
    lines = [_line([*(_set(c.name, widths[c.name], c) for c in others), last.name])]
    if has_style:
        lines[0] = click.style(lines[0], bold=True)
    for index, row in enumerate(rows):
        text = cells[last.name][index]
        shown = text if room is None else clip(text, room)
        if has_style and shown:
            shown = click.style(shown, fg=style_of(row))
        texts = (_set(cells[c.name][index], widths[c.name], c) for c in others)
        lines.append(_line([*texts, shown]))
    click.echo("\n".join(lines))
    return [column.name for column in columns if column not in kept and any(cells[column.name])]


def say_left_out(names: Iterable[str]) -> None:
    """Say on stderr which columns a terminal had no room for."""
    if shown := ", ".join(dict.fromkeys(names)):
        click.echo(f"Left out for want of room: {shown}. What is piped has all.", err=True)


def _fit(
    columns: Sequence[Column[Row]],
    cells: dict[str, list[str]],
    widths: dict[str, int],
    width: int,
) -> tuple[list[Column[Row]], int]:
    """The columns that a terminal has room for, and how much of it is left to the last."""
    *others, last = columns
    told = [column for column in others if any(cells[column.name])]
    kept = {column.name for column in told if not column.need}
    room = width - sum(widths[name] + len(_GAP) for name in kept)
    for column in sorted(told, key=lambda column: column.need, reverse=True):
        needed = widths[column.name] + len(_GAP)
        if column.need and room - needed >= min(widths[last.name], _LEAST_OF_LAST):
            kept.add(column.name)
            room -= needed
    return [*(c for c in told if c.name in kept), last], max(room, _LEAST_OF_LAST)


def _line(texts: Sequence[str]) -> str:
    return _GAP.join(texts).rstrip()


def _set(text: str, width: int, column: Column[Row]) -> str:
    blanks = " " * (width - _width(text))
    return text + blanks if column.is_left else blanks + text


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
