"""`barograph folds`: what was taken out of sight, and whether that has paid."""

from pathlib import Path

import click

from barograph.cli._help import BarographCommand, reads_store


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph folds latest", "every fold, its price and its return"),
        ("barograph folds latest --json | jq -r '.folds[].handles[]'", "what unfold takes"),
    ),
)
@click.argument("session")
@reads_store
def command(session: str, store_path: Path | None, *, as_json: bool) -> None:
    """List the folds of SESSION: why each ran, what it took off, and whether it has paid.

    A fold makes what follows its first change be written to the cache once more. A pass that prunes
    has paid when so many calls were made since that the tokens it saved are worth that. One that
    compacts makes room, whatever it costs.
    """
    from barograph.audit.folds import list_folds
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.cli._text import count
    from barograph.store import resolve_session

    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        found = list_folds(store, name)
    if as_json:
        out.print_json("barograph.folds/1", {"session": name, "folds": found})
        return
    if not found:
        click.echo(f"Nothing was folded in session {name}.", err=True)
        return
    table = out.new_table(
        ("call", "right"),
        ("path", "left"),
        ("kind", "left"),
        ("why", "left"),
        ("entries", "right"),
        ("before", "right"),
        ("after", "right"),
        ("rewritten", "right"),
        ("pays after", "right"),
        ("calls since", "right"),
    )
    for fold in found:
        pays = "free" if fold.break_even_calls is None else f"{fold.break_even_calls:.1f}"
        pays = "for room" if fold.kind == "compact" else pays
        table.add_row(
            "" if fold.call is None else str(fold.call),
            out.cell(fold.path),
            fold.kind,
            fold.cause,
            count(fold.entries),
            f"~{count(fold.tokens_before)}",
            f"~{count(fold.tokens_after)}",
            f"~{count(fold.rewritten_tokens)}",
            pays,
            out.cell(count(fold.calls_since), "green" if fold.has_paid else "yellow"),
        )
    out.print_table(out.open_console(), table)
