"""`barograph diff`: what changed between two requests."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barograph.cli._errors import FOUND
from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.differences import BlockChange, Difference, Mark, SegmentChange
    from barograph.audit.explain import CallRow

_LINES: Final = 40
_LINE_CHARS: Final = 200
_ADDED_CHARS: Final = 300


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph diff latest 54", "what changed from the call before it to call 54"),
        ("barograph diff latest 12 54", "from call 12 to call 54"),
        ("barograph diff latest 54 --exit-code", "1 if call 54 does not begin with the one before"),
    ),
)
@click.argument("session")
@click.argument("call", type=click.IntRange(min=1))
@click.argument("other", type=click.IntRange(min=1), required=False)
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 1 if the later request does not begin with the whole earlier one.",
)
@click.option("--full", is_flag=True, help="Do not shorten long texts.")
@reads_store
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    call: int,
    other: int | None,
    store_path: Path | None,
    *,
    exit_code: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Show what changed in the request, segment by segment.

    With one number: from the call before it, on the same agent path, to CALL. With two: from CALL
    to OTHER. Moved markers are listed apart: they change nothing that a cache depends on.
    """
    from barograph.audit.differences import call_before, diff_calls
    from barograph.audit.explain import row_of
    from barograph.audit.reading import read_session
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    with open_to_read(store_path) as store:
        logged = read_session(store, resolve_session(store, session))
        later = logged.call(call if other is None else other)
        earlier = call_before(logged, later) if other is None else call
        found = diff_calls(store, logged, earlier, later.plan.call)
    row = row_of(logged.codec, later)
    is_compared = row.verdict is not None and row.verdict.compared_with == earlier
    if as_json:
        verdict = row.verdict if is_compared else None
        fields = {"session": logged.session, "verdict": verdict, "difference": found}
        out.print_json("barograph.diff/1", fields)
    else:
        console = out.open_console()
        _print_head(console, logged.session, found, row if is_compared else None)
        for change in found.changes:
            _print_change(console, change, full=full)
        _print_marks(console, found.marks_before, found.marks_after)
    if exit_code and not found.is_continuation:
        ctx.exit(FOUND)


def _print_head(
    console: "Console", session: str, found: "Difference", row: "CallRow | None"
) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import clip
    from barograph.cli._words import headline, style_of

    paths = found.paths[1] if len(set(found.paths)) == 1 else " → ".join(found.paths)
    out.say(
        console,
        (f"Call {found.before} → {found.after}", "bold"),
        f" of session {session} · {paths}",
    )
    if found.is_continuation:
        out.say(console, ("The later request begins with the whole earlier one.", "green"))
    else:
        out.say(console, ("The later request does not begin with the earlier one.", "yellow"))
    if row is not None:
        out.say(console, (headline(row), style_of(row.cause)))
    console.print()
    for change in found.parameters:
        before, after = (clip(text, 100) or "(absent)" for text in (change.before, change.after))
        out.say(
            console,
            ("~ ", "yellow"),
            (f"parameter {change.key}", "bold"),
            ": ",
            (before, "red"),
            " → ",
            (after, "green"),
        )


def _print_change(console: "Console", change: "SegmentChange", *, full: bool) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import some

    size = some(change.chars, "character")
    if change.kind == "same":
        names = change.name if change.count == 1 else f"{change.name} … {change.last}"
        line = f"= {names} · {some(change.count, 'segment')} unchanged, {size}"
        out.say(console, (line, "dim"))
        return
    sign, style = {"changed": ("~", "yellow"), "added": ("+", "green"), "removed": ("-", "red")}[
        change.kind
    ]
    out.say(console, (f"{sign} ", style), (change.name, "bold"), f" · {change.kind}, {size}")
    for block in change.blocks:
        _print_block(console, block, full=full)
    view = change.after or change.before
    if change.kind == "changed" or view is None:
        return
    for shown in view.blocks:
        title = f"{shown.kind} {shown.label}".strip()
        text = shown.text if full else shown.text[:_ADDED_CHARS]
        if title != "text":
            out.say(console, (title, "cyan"), indent=4)
        out.quote(console, text, indent=4, style=style)
        if len(text) < len(shown.text):
            rest = f"… {some(len(shown.text) - len(text), 'more character')}; --full shows all"
            out.say(console, (rest, "dim"), indent=4)


def _print_block(console: "Console", block: "BlockChange", *, full: bool) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import count, some

    out.say(console, (block.label, "cyan"), indent=4)
    is_long = any(len(line) > _LINE_CHARS for line in block.lines)
    if is_long and not full:
        # the lines would hide the change: show the place where the texts part
        out.quote(console, f"- …{block.before}…", indent=4, style="red")
        out.quote(console, f"+ …{block.after}…", indent=4, style="green")
        place = f"from character {count(block.offset)} of its text; --full shows whole lines"
        out.say(console, (place, "dim"), indent=4)
        return
    lines = block.lines if full else block.lines[:_LINES]
    for line in lines:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.quote(console, line, indent=4, style=style)
    if len(lines) < len(block.lines):
        rest = f"… {some(len(block.lines) - len(lines), 'more line')}; --full shows all"
        out.say(console, (rest, "dim"), indent=4)


def _print_marks(console: "Console", before: Sequence["Mark"], after: Sequence["Mark"]) -> None:
    from barograph.cli import _output as out

    places = [{(mark.segment, mark.block): mark for mark in marks} for marks in (before, after)]
    console.print()
    for sign, style, words, marks in (
        ("=", "dim", "kept", [m for key, m in places[1].items() if key in places[0]]),
        ("+", "green", "added", [m for key, m in places[1].items() if key not in places[0]]),
        ("-", "red", "removed", [m for key, m in places[0].items() if key not in places[1]]),
    ):
        if marks:
            shown = ", ".join(
                f"{m.segment} ({m.ttl}{f', {m.slot}' if m.slot else ''})" for m in marks
            )
            out.say(console, (f"{sign} ", style), f"markers {words}: {shown}")
