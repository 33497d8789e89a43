"""`barograph series`: a session call by call."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.series import Figures, Series, SeriesRow
    from barograph.cli._grid import Column


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph series latest", "a chart and a row for each call"),
        ("barograph series latest --path main", "one agent path alone"),
        ("barograph series latest --csv > calls.csv", "for a spreadsheet"),
        ("barograph series latest --json | jq '.total.cost_usd'", "for a program"),
    ),
)
@click.argument("session")
@click.option("--path", "agent_path", metavar="AGENT", help="Only the calls of this agent path.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one line for each call.")
@reads_store
def command(
    session: str,
    agent_path: str | None,
    store_path: Path | None,
    *,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print every call of SESSION: tokens, cost, time, and why the cache held or broke.

    The sum of the inputs is what was paid for; the last is where the context stands; the peak is
    the largest that left at once. What subagents cost is billed to the session and shown apart.
    `window` is the input over what the model takes. A `?` stands for what was not reported, a `~`
    for a model whose prices and window are not known.
    """
    from barograph.audit.series import series_csv
    from barograph.audit.series_reader import read_series
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.cli._text import plain
    from barograph.store import resolve_session

    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other.")
    with open_to_read(store_path) as store:
        series = read_series(store, resolve_session(store, session))
    if agent_path is not None:
        series = series.of_path(agent_path)
    if as_csv:
        click.echo(plain(series_csv(series.calls), keep="\n"), nl=False)
    elif as_json:
        out.print_json("barograph.series/1", series_fields(series))
    else:
        _print(out.open_console(), series)


def series_fields(series: "Series") -> dict[str, object]:
    """A series as the fields of a document."""
    return {name: getattr(series, name) for name in series.__struct_fields__}


def _print(console: "Console", series: "Series") -> None:
    from barograph.cli import _output as out
    from barograph.cli._grid import say_left_out

    _print_head(console, series)
    left_out: list[str] = []
    by_path: dict[str | None, list[SeriesRow]] = {}
    for row in series.calls:
        by_path.setdefault(row.path, []).append(row)
    for index, figures in enumerate(series.paths):
        rows = by_path[figures.path]
        console.print()
        if len(series.paths) > 1:
            out.say(console, (f"{figures.path}", "bold"), f" · {_sizes(figures)}")
        if index == 0 and console.is_terminal:
            _print_chart(console, rows)
        left_out += _print_rows(console, rows)
    say_left_out(left_out)


def _print_head(console: "Console", series: "Series") -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import count, percent, some, usd
    from barograph.cli._words import unreported_in_words

    total, guess = series.total, series.is_guess
    if not total.calls:
        out.say(console, f"Session {series.session} has no calls yet.")
        return
    title = (f"{some(total.calls, 'call')} of session {series.session}", "bold")
    if total.sum_input_tokens is None:
        out.say(console, title, ": no usage was reported.")
        return
    cost = usd(total.cost_usd, is_estimate=guess)
    ratio = f": hit ratio {percent(total.hit_ratio)}, {cost}"
    out.say(console, title, ratio, _saved(total, is_guess=guess))
    if total.unreported:
        out.say(console, unreported_in_words(total.unreported))
    out.say(console, f"Input {_sizes(total)}.")
    if total.recoveries_attempted:
        out.say(console, _recoveries(total))
    planned = total.breaks - total.unplanned_breaks
    if total.unplanned_breaks:
        paid = usd(total.break_usd, is_estimate=guess)
        lost = f"{count(total.lost_tokens)} tokens paid again, {paid} more."
        out.say(console, (f"{some(total.unplanned_breaks, 'unplanned break')}: {lost}", "yellow"))
    if planned:
        out.say(console, f"{some(planned, 'planned break')}: folds of ours.")


def _recoveries(total: "Figures") -> str:
    """What came of calls that were refused as too long."""
    from barograph.cli._text import count, some

    tried, failed = total.recoveries_attempted, total.recoveries_failed
    left = tried - total.recoveries_succeeded - failed
    ended = f"{count(total.recoveries_succeeded)} succeeded, {count(failed)} failed"
    open_ones = f", {count(left)} without an end" if left else ""
    return f"{some(tried, 'recovery', 'recoveries')} from overflow: {ended}{open_ones}."


def _sizes(figures: "Figures") -> str:
    from barograph.cli._text import count

    if figures.sum_input_tokens is None:
        return "not reported"
    peak, last = figures.peak_input_tokens, figures.last_input_tokens
    of_one = ""
    if peak is not None and last is not None:
        of_one = (
            f"peak {count(peak)} (call {figures.peak_call}), "
            f"last {count(last)} (call {figures.last_call}), "
        )
    return f"{of_one}sum {count(figures.sum_input_tokens)} tokens"


def _saved(total: "Figures", *, is_guess: bool) -> str:
    from barograph.cli._text import usd

    if total.saved_usd is None:
        return ""
    without = usd(total.cost_uncached_usd, is_estimate=is_guess)
    difference = usd(abs(total.saved_usd), is_estimate=is_guess)
    return (
        f"; {without} without a cache: {difference} {'saved' if total.saved_usd >= 0 else 'more'}"
    )


def _print_chart(console: "Console", rows: Sequence["SeriesRow"]) -> None:
    from barograph.cli import _output as out
    from barograph.cli._chart import draw_chart

    lines = draw_chart(rows, console.width)
    for line in lines:
        out.say(console, *line)
    if lines:
        console.print()


def _print_rows(console: "Console", rows: Sequence["SeriesRow"]) -> list[str]:
    from barograph.cli._grid import print_grid
    from barograph.cli._words import style_of

    return print_grid(console, series_columns(rows), rows, lambda row: style_of(row.cause))


def _pressure(row: "SeriesRow") -> str:
    """Of the window, how much was filled; an unknown model has an assumed window."""
    if row.pressure is None:
        return "?"
    about = "~" if row.priced_as == "unknown" else ""
    return f"{about}{row.pressure * 100:.1f} %"


def series_columns(rows: Sequence["SeriesRow"]) -> "list[Column[SeriesRow]]":
    """What a table of these calls shows, the call first; the rest as there is room for."""
    from barograph.cli._grid import Column
    from barograph.cli._text import count, duration, moment, percent, usd

    def tokens(value: int | None) -> str:
        return "?" if value is None else count(value)

    def seconds(value: float | None) -> str:
        return "" if value is None else duration(value)

    def price(row: "SeriesRow", value: float | None) -> str:
        return usd(value, is_estimate=row.priced_as == "unknown")

    # most sessions write entries of one lifetime only
    needs_hours = 13 if any(row.write_1h_tokens for row in rows) else 1
    needs_minutes = 13 if needs_hours == 1 or any(row.write_5m_tokens for row in rows) else 1
    return [
        Column("call", lambda row: str(row.call)),
        Column("turn", lambda row: f"{row.turn}.{row.round}", 7),
        Column("time (UTC)", lambda row: moment(row.at).removesuffix(" UTC"), 3),
        Column("gap", lambda row: seconds(row.gap_seconds), 5),
        Column("input", lambda row: tokens(row.input_total_tokens), 9),
        Column("read", lambda row: tokens(row.read_tokens), 13),
        Column("write 5m", lambda row: tokens(row.write_5m_tokens), needs_minutes),
        Column("write 1h", lambda row: tokens(row.write_1h_tokens), needs_hours),
        Column("uncached", lambda row: tokens(row.uncached_tokens), 12),
        Column("output", lambda row: tokens(row.output_tokens), 11),
        Column("hit", lambda row: percent(row.hit_ratio), 6),
        Column("window", _pressure, 12),
        Column("expected", lambda row: tokens(row.expected_tokens), 4),
        Column("lost", lambda row: count(row.lost_tokens) if row.lost_tokens else "", 8),
        Column("cost", lambda row: price(row, row.cost_usd), 11),
        Column("no cache", lambda row: price(row, row.cost_uncached_usd), 2),
        Column("latency", lambda row: seconds(row.latency_seconds), 10),
        Column("tries", lambda row: str(row.attempts), 1),
        Column("evidence", lambda row: row.evidence or "", 3, is_left=True),
        Column("cache", lambda row: row.cause or row.outcome, is_left=True),
    ]
