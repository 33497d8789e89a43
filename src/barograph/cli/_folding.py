"""Folds by hand: what the commands for them share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import reads_store

if TYPE_CHECKING:
    from barograph.store.folding import FoldByHand

    Fold = Callable[..., FoldByHand | None]


def folds_by_hand(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command what a fold by hand takes: `session`, `path`, `dry_run`, and a store."""
    path = click.option("--path", default="main", show_default=True, help="The agent path.")
    dry_run = click.option(
        "--dry-run", is_flag=True, help="Change nothing; show what would be done."
    )
    return click.argument("session")(path(dry_run(reads_store(function))))


def fold(
    how: "Fold", session: str, path: str, store_path: Path | None, *, dry_run: bool
) -> "tuple[str, FoldByHand | None]":
    """Fold an agent path of a stored session; its id, and what was done."""
    import time

    from msgspec.structs import replace

    from barograph.audit.reading import codec_of
    from barograph.cli._store import open_to_read
    from barograph.core.engine import Engine
    from barograph.settings import current_settings
    from barograph.store import resolve_session
    from barograph.store.session import Session

    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        # a log that is damaged is to be looked at, and not set aside by this
        policy = replace(current_settings().policy, on_store_error="stop")
        engine, at = Engine(codec_of(name, store.read(name))[0], policy), time.time()
        opened = Session.open(store, name, engine, at=at, made_by="")
        return name, how(opened, path, at=at, dry_run=dry_run)
