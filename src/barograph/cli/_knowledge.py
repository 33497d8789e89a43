"""What the commands about documents do and print."""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from barograph.cli import _output as out
from barograph.cli._text import count, moment, plain, some
from barograph.core.canonical import clean_text
from barograph.core.errors import UnknownDocument, UsageError
from barograph.core.trust import Item, Trust
from barograph.frame.files import list_files, read_document
from barograph.store.documents import Documents, Entry
from barograph.store.knowledge import Added, NewDocument
from barograph.store.repair import Repair


class TakenIn(Struct, frozen=True, kw_only=True):
    """A file that was taken in."""

    origin: str
    document: Added


class Failed(Struct, frozen=True, kw_only=True):
    """A file that was not, and why."""

    origin: str
    what: str
    next_step: str


class Taken(Struct, frozen=True, kw_only=True):
    """What became of the files; `others` were of kinds that are not read."""

    documents: list[TakenIn]
    failed: list[Failed]
    others: int


def list_given(paths: Sequence[str], *, is_one: bool) -> tuple[list[Path], int]:
    """The files of all these paths, each once, and how many others there are.

    Raises:
        UsageError: a path that cannot be read, or several files where one is wanted.
    """
    listed = [list_files(one) for one in paths]
    files = list(dict.fromkeys(file for found, _ in listed for file in found))
    if is_one and len(files) != 1:
        what = f"--supersedes is for one file, and there are {len(files)}."
        raise UsageError(what, next_step="Add the one that takes its place by itself.")
    return files, sum(others for _, others in listed)


def take_text(documents: Documents, text: str, said: NewDocument, *, at: float) -> TakenIn:
    """Add a text that stands alone.

    Raises:
        UsageError: it cannot be added.
        StoreError: the store cannot be written.
    """
    new = replace(_with_whole_id(documents, said), text=clean_text(text))
    return TakenIn(origin=new.origin, document=documents.add(new, at=at))


def take_in(
    documents: Documents, files: Sequence[Path], said: NewDocument, *, at: float
) -> tuple[list[TakenIn], list[Failed]]:
    """Add files as documents, and keep going where one of several cannot be.

    Raises:
        UsageError: the only file cannot be added.
        StoreError: the store cannot be written.
    """
    said = _with_whole_id(documents, said)
    done, failed = [], []
    for file in files:
        origin = file.as_posix()
        try:
            new = replace(said, text=read_document(file), origin=origin)
            done.append(TakenIn(origin=origin, document=documents.add(new, at=at)))
        except UsageError as error:
            if len(files) == 1:
                raise
            failed.append(Failed(origin=origin, what=error.what, next_step=error.next_step))
    return done, failed


def _with_whole_id(documents: Documents, said: NewDocument) -> NewDocument:
    """With the whole id of the document that it supersedes, if any."""
    if not said.supersedes:
        return said
    return replace(said, supersedes=documents.find(said.supersedes).id)


def print_taken(taken: Taken, trust: Trust | None) -> None:
    """Say what became of each file."""
    console = out.open_console()
    for one in taken.documents:
        added = one.document
        told = f"{added.outcome:<9}  {added.id}  {added.trust:<8}  {one.origin}"
        out.say(console, told.rstrip())
        if trust is not None and added.trust != trust:
            what = f"{one.origin or 'The text'} stays {added.trust}, as it was called before"
            click.echo(plain(f"{what}: trust never rises."), err=True)
    for lost in taken.failed:
        click.secho(plain(f"Left out: {lost.what} {lost.next_step}"), fg="red", err=True)
    if taken.others:
        click.echo(f"{some(taken.others, 'file')} of other kinds left alone.", err=True)
    if not (taken.documents or taken.failed):
        click.echo("Nothing to take in.", err=True)


def choose(documents: Documents, wanted: Sequence[str], origins: Sequence[str]) -> list[Entry]:
    """The documents of these ids, or beginnings of one, and all of these origins.

    Raises:
        UnknownDocument: one of them is not there, or is not the only one.
    """
    chosen = {one.id: one for one in map(documents.find, wanted)}
    every = documents.entries(with_superseded=True)
    for origin in origins:
        found = {one.id: one for one in every if one.origin == origin}
        if not found:
            raise UnknownDocument(
                f"No document was taken from {origin!r}.",
                next_step="`barograph knowledge list --all` shows where each is from.",
                origin=origin,
            )
        chosen |= found
    return list(chosen.values())


def print_items(items: Sequence[Item]) -> None:
    """Print passages with where they are from."""
    console = out.open_console()
    for item in items:
        told = (item.id, item.origin, item.domain, item.date, item.trust)
        out.say(console, ("■ " + " · ".join(filter(None, told)), "bold"))
        out.quote(console, item.text)
        out.say(console)


def print_entries(entries: Sequence[Entry], *, shows_all: bool) -> None:
    """Print what is known of documents; with `shows_all`, what took the place of each too."""
    names = ("id", "namespace", "domain", "trust", "date", "passages", "added", "origin")
    columns = [(name, "right" if name == "passages" else "left") for name in names]
    table = out.new_table(*columns, *([("superseded by", "left")] if shows_all else []))
    for one in entries:
        told = [one.id, one.namespace, one.domain, one.trust, one.date, count(one.passages)]
        told += [moment(one.added_at), one.origin, *([one.superseded_by] if shows_all else [])]
        table.add_row(*map(out.cell, told))
    out.print_table(out.open_console(), table)


def print_repair(made: Repair) -> None:
    """Say what is kept, what was made anew, and what is lost."""
    console = out.open_console()
    logs = f"{some(made.sessions, 'session')}, {some(made.events, 'event')}, left as they are"
    out.label(console, "logs", logs)
    out.label(console, "documents", f"{count(made.kept)} whole, {count(len(made.lost))} lost")
    for one in made.lost:
        told = (one.id, one.namespace, one.origin or "(no origin)")
        out.say(console, ("lost  " + "  ".join(told), "red"), indent=2)
    if not made.done:
        click.echo(
            "Nothing was changed. These documents have lost a part of their text and cannot be "
            "made whole; --yes removes them, and makes the index anew. Add them again then.",
            err=True,
        )
        return
    again = f"{some(made.archives, 'archive')} read again from their logs"
    out.label(console, "archives", f"{again}, {some(made.restored, 'record')} restored")
    for log in made.unread:
        click.secho(plain(f"Not to its end: {log.what}"), fg="red", err=True)
    click.echo("The search index was made anew.", err=True)
