"""`barograph verify`: prove that the log is whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._errors import FOUND
from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.verify import Verification
    from barograph.store import Store


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph verify", "every session"),
        ("barograph verify latest", "the last one"),
        ("barograph verify --json", "for a program; exit code 1 if anything was found"),
    ),
)
@click.argument("session", required=False)
@reads_store
@click.pass_context
def command(
    ctx: click.Context, session: str | None, store_path: Path | None, *, as_json: bool
) -> None:
    """Prove every event, body and request of SESSION, or of all sessions.

    A request is exact when its bytes come back with the hash that was recorded before they left,
    and derived when the events alone give the same JSON, without any stored body.
    """
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read

    with open_to_read(store_path) as store:
        results = list(_verify(store, session))
        aside = _files_aside(store) if session is None else []
    for path in aside:
        click.echo(f"A damaged store was set aside: {path}. Verify it too, or move it.", err=True)
    if as_json:
        out.print_json("barograph.verify/1", {"sessions": results})
    else:
        console = out.open_console()
        for result in results:
            _print(console, result)
        if not results:
            click.echo("There are no sessions to verify.", err=True)
    if aside or not all(result.is_sound for result in results):
        ctx.exit(FOUND)


def _files_aside(store: "Store") -> list[Path]:
    from barograph.store import SqliteStore
    from barograph.store.database import files_aside

    return files_aside(store.path) if isinstance(store, SqliteStore) else []


def _verify(store: "Store", session: str | None) -> Iterator["Verification"]:
    from rich.console import Console
    from rich.progress import track

    from barograph.audit.verify import verify_session, verify_store
    from barograph.store import resolve_session

    if session is not None:
        yield verify_session(store, resolve_session(store, session))
        return
    errors = Console(stderr=True)
    yield from track(
        verify_store(store),
        description="Verifying",
        total=len(store.sessions()),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def _print(console: "Console", result: "Verification") -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import count, some

    mark = ("✓ ", "green") if result.is_sound else ("✗ ", "bold red")
    out.say(
        console,
        mark,
        (result.session, "bold"),
        f": {some(result.events, 'event')}, {some(result.calls, 'call')}, "
        f"{some(result.requests, 'request')} ({count(result.observed)} seen on the wire)",
    )
    of = count(result.requests)
    out.say(
        console,
        f"{count(result.exact)} of {of} exact, {count(result.derived)} of {of} derived"
        + (f", {count(result.unchecked)} unchecked behind damage" if result.unchecked else ""),
        indent=2,
    )
    for finding in (*result.findings, *result.notes):
        style = "yellow" if finding in result.notes else "red"
        ids = [f"event {finding.seq}"] if finding.seq is not None else []
        ids += [f"call {finding.call}"] if finding.call is not None else []
        place = f" ({', '.join(ids)})" if ids else ""
        out.say(console, (f"{finding.code}{place}", style), f": {finding.what}", indent=4)
        if finding.next_step:
            out.say(console, finding.next_step, indent=6)
