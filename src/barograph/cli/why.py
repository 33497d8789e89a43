"""`barograph why`: why the cache held or did not."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.explain import CallRow


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph why latest", "every call of the last session, and the worst break"),
        ("barograph why latest 54", "one call: verdict, evidence, what to do"),
        ("barograph why 3f2a 54 --json", "the same for a program"),
    ),
)
@click.argument("session")
@click.argument("call", type=click.IntRange(min=1), required=False)
@reads_store
def command(session: str, call: int | None, store_path: Path | None, *, as_json: bool) -> None:
    """Say why the cache held or broke on CALL, or list every call of SESSION."""
    from barograph.audit.explain import row_of, rows_of, total
    from barograph.audit.reading import read_session
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    with open_to_read(store_path) as store:
        logged = read_session(store, resolve_session(store, session))
    name = logged.session
    if call is None:
        rows = rows_of(logged)
        totals = total(rows)
    else:
        rows = [row_of(logged.codec, logged.call(call))]
        totals = None
    if as_json:
        out.print_json("barograph.why/1", {"session": name, "calls": rows, "totals": totals})
        return
    console = out.open_console()
    if call is None:
        _print_session(console, name, rows)
    else:
        _print_call(console, name, rows[0])


def _print_session(console: "Console", name: str, rows: list["CallRow"]) -> None:
    from barograph.audit.explain import total
    from barograph.cli import _output as out
    from barograph.cli._text import count, percent, some, usd
    from barograph.cli._words import unreported_in_words

    totals = total(rows)
    out.say(
        console,
        (f"{some(totals.calls, 'call')} of session {name}", "bold"),
        f": hit ratio {percent(totals.hit_ratio)}, {usd(totals.cost_usd)}",
    )
    if totals.unreported:
        out.say(console, unreported_in_words(totals.unreported))
    if totals.unplanned_breaks:
        breaks, price = some(totals.unplanned_breaks, "unplanned break"), usd(totals.break_usd)
        paid = f"{breaks}: {count(totals.lost_tokens)} tokens paid again, {price} more."
        out.say(console, (paid, "yellow"))
        _print_worst(console, name, rows)
    console.print()
    _print_table(console, rows)


def _print_worst(console: "Console", name: str, rows: list["CallRow"]) -> None:
    from barograph.cli import _output as out
    from barograph.cli._words import cause_in_words

    broken = [row for row in rows if row.verdict and not row.verdict.planned]
    worst = max(broken, key=lambda row: (row.verdict and row.verdict.break_usd) or 0.0)
    if worst.verdict is not None:
        out.say(
            console,
            f"The worst is call {worst.call}: {cause_in_words(worst.verdict.cause)}. "
            f"See `barograph why {name} {worst.call}`.",
        )


def _print_table(console: "Console", rows: list["CallRow"]) -> None:
    from barograph.cli._grid import Column, print_grid, say_left_out
    from barograph.cli._text import count, percent, plain, usd
    from barograph.cli._words import short_verdict, style_of

    def tokens(name: str) -> "Callable[[CallRow], str]":
        return lambda row: "?" if row.usage is None else count(getattr(row.usage, name))

    def lost(row: "CallRow") -> str:
        tokens = row.verdict.lost_tokens if row.verdict else None
        return count(tokens) if tokens else ""

    has_paths = len({row.path for row in rows}) > 1
    paths: list[Column[CallRow]] = [Column("path", lambda row: plain(row.path), 6, is_left=True)]
    columns: list[Column[CallRow]] = [
        Column("call", lambda row: str(row.call)),
        *(paths if has_paths else []),
        Column("turn", lambda row: f"{row.turn}.{row.round}", 2),
        Column("read", tokens("read_tokens"), 7),
        Column("write", tokens("write_tokens"), 5),
        Column("uncached", tokens("uncached_tokens"), 4),
        Column("out", tokens("output_tokens"), 1),
        Column("hit", lambda row: percent(row.hit_ratio), 3),
        Column("cost", lambda row: usd(row.cost_usd, is_estimate=row.priced_as == "unknown"), 8),
        Column("lost", lost, 9),
        Column("cache", short_verdict, is_left=True),
    ]
    say_left_out(print_grid(console, columns, rows, lambda row: style_of(row.cause)))


def _print_call(console: "Console", name: str, row: "CallRow") -> None:
    from barograph.cli import _output as out
    from barograph.cli._words import (
        evidence_of,
        headline,
        outcome_in_words,
        style_of,
        tokens_in_words,
    )

    verdict = row.verdict
    out.say(console, (f"Call {row.call} of session {name}", "bold"), " · ", row.path)
    out.say(console, (headline(row), f"bold {style_of(row.cause)}"))
    console.print()
    if verdict is not None:
        for label, text in evidence_of(verdict):
            out.label(console, label, text)
        if verdict.divergence is not None:
            for side, excerpt, style in (
                ("before", verdict.divergence.before, "red"),
                ("now", verdict.divergence.after, "green"),
            ):
                shown = f"…{excerpt}…" if excerpt else "(nothing there)"
                out.label(console, side, shown, style if excerpt else "dim")
    out.label(console, "tokens", tokens_in_words(row))
    out.label(console, "call", outcome_in_words(row))
    if row.provider_reason:
        out.label(
            console, "provider", f"finds {row.provider_reason}, compared with the call before"
        )
    if row.request_id:
        out.label(console, "request", row.request_id)
    if verdict is not None:
        console.print()
        out.label(console, "Do", verdict.advice, "bold")
