"""`barograph export`: a session as a file to keep or to show."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from barograph.core.masking import Rule
    from barograph.store import Store

_FORMATS = ("transcript", "html", "jsonl", "requests")


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph export latest", "who said what, as text"),
        ("barograph export latest --format html --out session.html", "one page, every call told"),
        ("barograph export latest --format jsonl | jq .type", "every event, with its content"),
        ("barograph export latest --format requests --out bodies --raw", "the exact bytes sent"),
    ),
)
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="transcript",
    show_default=True,
    help="Who said what, as text; a page; the events as lines of JSON; the request bodies.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write, by default stdout. `requests` needs a folder.",
)
@click.option("--force", is_flag=True, help="Write over what is there.")
@click.option("--raw", is_flag=True, help="Keep secrets as they are.")
@click.option("--mask-emails", is_flag=True, help="Mask e-mail addresses, too.")
@reads_store
def command(
    session: str,
    form: str,
    out: Path | None,
    store_path: Path | None,
    *,
    force: bool,
    raw: bool,
    mask_emails: bool,
    as_json: bool,
) -> None:
    """Write SESSION out of the store, without the secrets in it.

    Keys, tokens, passwords of a known form and private keys are masked by default; the kind and a
    rough length stay. The store is never changed, and a file that exists is never written over.
    With --json, say what was written as one JSON document.
    """
    from barograph.audit.export import (
        export_requests,
        refuse_to_overwrite,
        write_file,
        write_folder,
    )
    from barograph.cli import _output as output
    from barograph.cli._store import open_to_read
    from barograph.cli._text import plain, some
    from barograph.store import resolve_session

    if raw and mask_emails:
        raise click.UsageError("--raw and --mask-emails exclude each other.")
    if out is None and (form == "requests" or as_json):
        raise click.UsageError("Name the place to write to with --out.")
    rules = _rules(raw=raw, mask_emails=mask_emails)
    files = 1
    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        if out is None:
            output.write_bytes(_pieces(store, name, form, rules))
        elif form == "requests":
            files = write_folder(out, export_requests(store, name, rules), force=force)
        else:
            refuse_to_overwrite(out, force=force)
            write_file(out, _pieces(store, name, form, rules), force=force)
    if as_json:
        masked = [rule.name for rule in rules]
        fields = {"session": name, "format": form, "out": str(out), "files": files}
        output.print_json("barograph.exported/1", {**fields, "masked": masked})
    elif out is not None:
        click.echo(plain(f"Wrote {some(files, 'file')} to {out}."), err=True)
    if raw:
        click.secho("Secrets in it, if any, are NOT masked.", fg="yellow", err=True)


def _rules(*, raw: bool, mask_emails: bool) -> "Sequence[Rule]":
    from barograph.core.masking import ALWAYS, RULES

    if raw:
        return ()
    return RULES if mask_emails else ALWAYS


def _pieces(store: "Store", session: str, form: str, rules: "Sequence[Rule]") -> Iterator[bytes]:
    from barograph.audit.export import export_jsonl

    match form:
        case "jsonl":
            return export_jsonl(store, session, rules)
        case "html":
            return _page(store, session, rules)
        case _:
            return _transcript(store, session, rules)


def _transcript(store: "Store", session: str, rules: "Sequence[Rule]") -> Iterator[bytes]:
    from barograph.audit.transcript import transcript_of
    from barograph.cli._transcript import transcript_lines

    return transcript_lines(transcript_of(store.read(session)), rules)


def _page(store: "Store", session: str, rules: "Sequence[Rule]") -> Iterator[bytes]:
    from barograph.audit.reading import read_session
    from barograph.audit.report import report_calls
    from barograph.audit.series_reader import read_series
    from barograph.cli._page import Page

    logged = read_session(store, session)
    return Page(rules).pieces(read_series(store, session), report_calls(logged, rules))
