"""`barograph knowledge`: documents that an agent may recall passages of."""

from pathlib import Path
from typing import Any

import click
import msgspec

from barograph.cli._help import BarographCommand, ExamplesFirst, reads_store

_TRUSTS = click.Choice(("operator", "derived", "external"))
_NAMESPACES = click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Of this namespace alone; may be given more than once.",
)


class _Group(ExamplesFirst, click.Group):
    """A command that has others below it."""


@click.group(
    cls=_Group,
    examples=(
        ("barograph knowledge add docs/ --trust operator", "take a folder in"),
        ('barograph knowledge search "rotate keys"', "what an agent would recall"),
        ("barograph knowledge list", "what is there"),
        ("barograph knowledge forget 3f9a1c", "remove one, to the byte"),
        ("barograph knowledge repair", "make a damaged search index anew"),
    ),
)
def command() -> None:
    """Keep documents that an agent may recall passages of."""


@command.command(
    "add",
    cls=BarographCommand,
    examples=(
        ("barograph knowledge add docs/ --trust operator", "all below a folder, as your own word"),
        ("barograph knowledge add paper.pdf --domain law --date 2026-01-31", "a file of others"),
        ("barograph knowledge add v2.md --supersedes 3f9a1c", "in the place of another document"),
        (
            'barograph knowledge add --text "The office is in Oslo." --domain hot --trust operator',
            "a fact of yours, for hot memory",
        ),
    ),
)
@click.argument("paths", metavar="[FILE]...", nargs=-1)
@click.option("--text", metavar="TEXT", help="A text itself, instead of files.")
@click.option(
    "--namespace", default="default", show_default=True, metavar="NAME", help="What it belongs to."
)
@click.option("--domain", default="", metavar="NAME", help="The field that it belongs to.")
@click.option(
    "--trust",
    type=_TRUSTS,
    help="Whose word it is. A new text is external unless this says more; of a known one, trust "
    "can only be lowered.",
)
@click.option("--date", default="", metavar="DATE", help="Of the text, as 2026-01-31.")
@click.option("--supersedes", default="", metavar="ID", help="The document whose place it takes.")
@reads_store
def add(
    paths: tuple[str, ...],
    store_path: Path | None,
    *,
    text: str | None,
    namespace: str,
    domain: str,
    trust: Any,
    date: str,
    supersedes: str,
    as_json: bool,
) -> None:
    """Take files in, or all text, Markdown, HTML and PDF below a folder; or a text as it is given.

    The path as it is given names where a text is from: another text of the same path is a new
    version, and takes the place of the one before. Nothing is fetched from a network. Exit code 1:
    some files could not be taken in.
    """
    import time

    from barograph.cli import _output as out
    from barograph.cli._errors import FOUND
    from barograph.cli._knowledge import Taken, list_given, print_taken, take_in, take_text
    from barograph.cli._store import open_to_write
    from barograph.core.errors import UsageError
    from barograph.store.knowledge import NewDocument

    if bool(paths) == (text is not None):
        what, next_step = "Either files are taken in, or a text.", "Give a FILE, or --text."
        raise UsageError(what, next_step=next_step)
    said = NewDocument(
        text="", namespace=namespace, domain=domain, trust=trust, date=date, supersedes=supersedes
    )
    files, others = list_given(paths, is_one=bool(supersedes and paths))
    with open_to_write(store_path) as store:
        kept, at = store.index.documents, time.time()
        documents, failed = take_in(kept, files, said, at=at)
        if text is not None:
            documents.append(take_text(kept, text, said, at=at))
    taken = Taken(documents=documents, failed=failed, others=others)
    if as_json:
        out.print_json("barograph.knowledge.add/1", msgspec.structs.asdict(taken))
    else:
        print_taken(taken, trust)
    if failed:
        click.get_current_context().exit(FOUND)


@command.command(
    "search",
    cls=BarographCommand,
    examples=(
        ('barograph knowledge search "rotate keys"', "the passages that fit best"),
        ('barograph knowledge search "rotate keys" --floor operator', "your own word alone"),
    ),
)
@click.argument("query")
@_NAMESPACES
@click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="NAME",
    help="Of this domain alone; may be given more than once.",
)
@click.option(
    "--floor", type=_TRUSTS, default="external", show_default=True, help="The least trust."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=8,
    show_default=True,
    help="The most passages.",
)
@reads_store
def search(
    query: str,
    store_path: Path | None,
    *,
    namespaces: tuple[str, ...],
    domains: tuple[str, ...],
    floor: Any,
    limit: int,
    as_json: bool,
) -> None:
    """Show the passages that fit QUERY best, as an agent would recall them."""
    from barograph.cli import _output as out
    from barograph.cli._knowledge import print_items
    from barograph.cli._store import open_to_read
    from barograph.core.recall import Scope

    scope = Scope(floor=floor, namespaces=namespaces or None, domains=domains or None)
    with open_to_read(store_path) as store:
        items = store.index.passages.match(query, scope, limit)
    if as_json:
        out.print_json("barograph.knowledge.search/1", {"query": query, "items": items})
        return
    if not items:
        click.echo("No passage has any of these words.", err=True)
    print_items(items)


@command.command(
    "list",
    cls=BarographCommand,
    examples=(
        ("barograph knowledge list", "what is there, the oldest first"),
        ("barograph knowledge list --all", "earlier versions too"),
    ),
)
@_NAMESPACES
@click.option("--all", "shows_all", is_flag=True, help="Show superseded documents too.")
@reads_store
def list_(
    namespaces: tuple[str, ...], store_path: Path | None, *, shows_all: bool, as_json: bool
) -> None:
    """List the documents, the oldest first."""
    from barograph.cli import _output as out
    from barograph.cli._knowledge import print_entries
    from barograph.cli._store import open_to_read

    with open_to_read(store_path) as store:
        entries = store.index.documents.entries(with_superseded=shows_all)
    if namespaces:
        entries = [one for one in entries if one.namespace in namespaces]
    if as_json:
        out.print_json("barograph.knowledge.list/1", {"documents": entries})
    elif entries:
        print_entries(entries, shows_all=shows_all)
    else:
        click.echo("No documents.", err=True)


@command.command(
    "forget",
    cls=BarographCommand,
    examples=(
        ("barograph knowledge forget 3f9a1c", "one document, by id or the beginning of one"),
        ("barograph knowledge forget --origin docs/keys.md", "all versions of a file"),
    ),
)
@click.argument("documents", metavar="[ID]...", nargs=-1)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="PATH",
    help="Every version of what was taken from here; may be given more than once.",
)
@reads_store
def forget(
    documents: tuple[str, ...], origins: tuple[str, ...], store_path: Path | None, *, as_json: bool
) -> None:
    """Remove documents, and overwrite their bytes in the file.

    What they took the place of is not found again. Nothing is removed where one is not known.
    """
    from barograph.cli import _output as out
    from barograph.cli._knowledge import choose
    from barograph.cli._store import open_to_read
    from barograph.cli._text import some
    from barograph.core.errors import UsageError

    if not (documents or origins):
        what, next_step = "Nothing to forget is named.", "Give an id, or --origin."
        raise UsageError(what, next_step=next_step)
    with open_to_read(store_path) as store:
        chosen = choose(store.index.documents, documents, origins)
        store.index.documents.forget([one.id for one in chosen])
    if as_json:
        out.print_json("barograph.knowledge.forget/1", {"documents": chosen})
        return
    console = out.open_console()
    for one in chosen:
        out.say(console, f"forgotten  {one.id}  {one.origin}")
    click.echo(f"{some(len(chosen), 'document')} forgotten.", err=True)


@command.command(
    "repair",
    cls=BarographCommand,
    examples=(
        ("barograph knowledge repair", "make the search index anew, if nothing is lost by it"),
        ("barograph knowledge repair --yes", "remove documents that have lost text"),
    ),
)
@click.option("--yes", is_flag=True, help="Remove documents that have lost a part of their text.")
@reads_store
def repair(store_path: Path | None, *, yes: bool, as_json: bool) -> None:
    """Make a damaged search index anew; logs are not touched.

    Words are listed again from the texts beside them, and archives are read again from their logs.
    A document is nowhere else: one that has lost text is named, and removed with --yes alone. Exit
    code 1: nothing was changed for that reason, or a log cannot be read to its end.
    """
    from barograph.cli import _output as out
    from barograph.cli._errors import FOUND
    from barograph.cli._knowledge import print_repair
    from barograph.cli._store import open_to_read
    from barograph.store.repair import repair_index

    with open_to_read(store_path) as store:
        made = repair_index(store, drops=yes)
    if as_json:
        out.print_json("barograph.knowledge.repair/1", msgspec.structs.asdict(made))
    else:
        print_repair(made)
    if made.unread or not made.done:
        click.get_current_context().exit(FOUND)
