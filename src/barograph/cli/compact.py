"""`barograph compact`: hide old history behind a summary, now."""

from pathlib import Path

import click

from barograph.cli._folding import fold, folds_by_hand
from barograph.cli._help import BarographCommand


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph compact latest --dry-run", "what would go, and what that costs"),
        ("barograph compact latest", "do it; the next call shows the summary"),
        ("barograph unfold latest '#12'", "what it hid, by handle"),
    ),
)
@folds_by_hand
def command(
    session: str, path: str, store_path: Path | None, *, dry_run: bool, as_json: bool
) -> None:
    """Put a summary in the place of the old history of SESSION.

    The current request and the newest round stay. The summary is computed from the log; what it
    hides stays there, is searched by the agent's tools, and is read back with `unfold`. Where
    anything is in the way, it is refused and nothing changes.
    """
    from barograph.cli import _output as out
    from barograph.cli._text import count
    from barograph.store.folding import compact_session

    name, done = fold(compact_session, session, path, store_path, dry_run=dry_run)
    if as_json:
        document = {"session": name, "dry_run": dry_run, "compaction": done}
        out.print_json("barograph.compact/1", document)
        return
    if done is None:
        click.echo(f"Nothing in {path} of session {name} is worth a summary.", err=True)
        return
    verb = "would give" if dry_run else "gave"
    click.echo(
        f"{count(done.entries)} entries {verb} way to a summary: the next request has "
        f"~{count(done.tokens_after)} tokens instead of ~{count(done.tokens_before)}, and writes "
        f"~{count(done.rewritten_tokens)} of them to the cache once more.",
        err=True,
    )
    for text in done.texts:
        out.write_bytes([text.encode("utf-8", "replace"), b"\n"])
