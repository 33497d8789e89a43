"""`barograph prune`: put stubs in the places of old results, now."""

from pathlib import Path

import click

from barograph.cli._folding import fold, folds_by_hand
from barograph.cli._help import BarographCommand


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph prune latest --dry-run", "what would go, and when that is paid back"),
        ("barograph prune latest", "do it; the next call shows the stubs"),
        ("barograph unfold latest '#12'", "what a stub stands for, by handle"),
    ),
)
@folds_by_hand
def command(
    session: str, path: str, store_path: Path | None, *, dry_run: bool, as_json: bool
) -> None:
    """Put stubs in the places of the old results of SESSION, whatever that costs.

    All goes that is older than the newest rounds, save errors, pins and what the policy keeps.
    Where anything is in the way, it is refused and nothing changes.
    """
    from barograph.cli import _output as out
    from barograph.cli._text import count
    from barograph.store.folding import prune_session

    name, done = fold(prune_session, session, path, store_path, dry_run=dry_run)
    if as_json:
        out.print_json("barograph.prune/1", {"session": name, "dry_run": dry_run, "pass": done})
        return
    if done is None:
        click.echo(f"Nothing in {path} of session {name} has aged.", err=True)
        return
    verb = "would give" if dry_run else "gave"
    paid = f", which {done.break_even_calls:g} calls pay back" if done.break_even_calls else ""
    click.echo(
        f"{count(done.entries)} entries {verb} way to stubs: the next request has "
        f"~{count(done.tokens_after)} tokens instead of ~{count(done.tokens_before)}, and writes "
        f"~{count(done.rewritten_tokens)} of them to the cache once more{paid}.",
        err=True,
    )
    for handle in done.handles:
        click.echo(handle)
