"""`barograph sessions`: what was recorded."""

from pathlib import Path

import click

from barograph.cli._help import BarographCommand, reads_store


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph sessions", "the most recent first"),
        ("barograph sessions --json | jq -r '.sessions[].session'", "ids alone"),
    ),
)
@reads_store
def command(store_path: Path | None, *, as_json: bool) -> None:
    """List the recorded sessions, the most recent first."""
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read, store_path_of
    from barograph.cli._text import count, duration, moment

    path = store_path_of(store_path)
    if store_path is None and not path.exists():
        found = []  # nothing was ever recorded here, which is no error
    else:
        with open_to_read(store_path) as store:
            found = store.sessions()
    if as_json:
        out.print_json("barograph.sessions/1", {"store": str(path), "sessions": found})
        return
    if not found:
        click.echo(f"No sessions yet in {path}.", err=True)
        return
    table = out.new_table(
        ("session", "left"),
        ("calls", "right"),
        ("events", "right"),
        ("began", "left"),
        ("lasted", "right"),
    )
    for info in found:
        table.add_row(
            out.cell(info.session),
            count(info.calls),
            count(info.events),
            moment(info.opened_at),
            duration(info.last_at - info.opened_at),
        )
    out.print_table(out.open_console(), table)
