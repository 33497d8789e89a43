"""`barograph unfold`: what a stub stands for."""

from pathlib import Path

import click

from barograph.cli._help import BarographCommand, reads_store


@click.command(
    cls=BarographCommand,
    examples=(
        ('barograph unfold latest "#12"', "the original that a stub names #12"),
        (
            "barograph unfold latest 12 | less",
            "without the sign, which a shell takes for a comment",
        ),
    ),
)
@click.argument("session")
@click.argument("handle")
@reads_store
def command(session: str, handle: str, store_path: Path | None, *, as_json: bool) -> None:
    """Print the original that a stub of SESSION stands for.

    HANDLE is what the stub names: # and a number.
    """
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session
    from barograph.store.originals import read_original

    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        text = read_original(store, name, handle)
    if as_json:
        out.print_json("barograph.unfold/1", {"session": name, "handle": handle, "text": text})
    else:
        out.write_bytes([text.encode("utf-8", "replace"), b"\n"])
