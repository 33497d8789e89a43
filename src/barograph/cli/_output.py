"""Where output goes: data on stdout, the rest on stderr; colour and wrapping on a terminal only."""

import json
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from barograph.cli._text import plain, plain_lines

_UNBOUNDED: Final = 10_000
QUOTE: Final = "│ "


def open_console() -> Console:
    """A console on stdout that reads no markup: nothing that others wrote can style or link."""
    stream = sys.stdout
    if isinstance(stream, TextIOWrapper):
        # a terminal of few characters shows the codes of the others
        stream.reconfigure(errors="backslashreplace")
    # what is piped is not wrapped or cut at some width
    width = None if stream.isatty() else _UNBOUNDED
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def say(console: Console, *pieces: str | tuple[str, str], indent: int = 0) -> None:
    """Print one line of pieces, each a text or a text and its style."""
    line = Text(" " * indent)
    for piece in pieces:
        text, style = (piece, "") if isinstance(piece, str) else piece
        line.append(plain(text), style=style)
    console.print(line, soft_wrap=True)


def label(console: Console, name: str, text: str, style: str = "") -> None:
    """Print a line of facts: its name, then the text."""
    say(console, (f"{name:<10}", "dim"), (text, style))


def quote(console: Console, text: str, *, indent: int = 2, style: str = "") -> None:
    """Print text of others behind a bar, so that no line of it can be taken for one of ours."""
    lead = Text(" " * indent + QUOTE, style="dim")
    width = max(console.width - len(lead), 10)
    for line in plain_lines(text):
        for piece in Text(line, style=style).wrap(console, width, overflow="fold"):
            console.print(Text.assemble(lead, piece), soft_wrap=True)


def new_table(*columns: tuple[str, str]) -> Table:
    """A table without lines; columns are names with `left` or `right`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, side in columns:
        justify: Any = side
        table.add_column(name, justify=justify, overflow="fold", no_wrap=side == "right")
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table, without blanks at the ends of its lines where it is piped."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def cell(text: str, style: str = "") -> Text:
    """One cell of a table."""
    return Text(plain(text), style=style)


def print_json(schema: str, fields: dict[str, Any]) -> None:
    """Print one document; ASCII only, so that no terminal finds anything to obey in it."""
    document = {"schema": schema, **msgspec.to_builtins(fields)}
    text = json.dumps(document, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f")
    click.echo(text)


def write_bytes(pieces: Iterable[bytes]) -> None:
    """Write bytes as they are; on a terminal, with what it could obey shown as codes."""
    if sys.stdout.isatty():
        changed = False
        for piece in pieces:
            text = piece.decode("utf-8", "backslashreplace")
            shown = plain(text, keep="\n\t")
            changed = changed or shown != text
            click.echo(shown, nl=False)
        click.echo()
        if changed:
            click.echo("Shown for a terminal; redirect it to get the exact bytes.", err=True)
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
