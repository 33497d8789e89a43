"""`barograph export`: a session as a file to keep or to show."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from barograph.core.masking import Rule
    from barograph.store import Store

_FORMATS = ("html", "jsonl", "csv", "requests")


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph export latest --out session.html", "one page to read and to send"),
        ("barograph export latest --format jsonl | jq .type", "every event, with its content"),
        ("barograph export latest --format csv --out calls.csv", "a row for each call"),
        ("barograph export latest --format requests --out bodies --raw", "the exact bytes sent"),
    ),
)
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="html",
    show_default=True,
    help="A page; the events as lines of JSON; the series; the request bodies.",
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
            for piece in _grouped(_pieces(store, name, form, rules)):
                output.write_bytes(piece)
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
        how = "secrets masked" if rules else "with the secrets in it, if any"
        click.echo(plain(f"Wrote {some(files, 'file')} to {out}: {how}."), err=True)


def _rules(*, raw: bool, mask_emails: bool) -> "Sequence[Rule]":
    from barograph.core.masking import ALWAYS, RULES

    if raw:
        return ()
    return RULES if mask_emails else ALWAYS


def _pieces(store: "Store", session: str, form: str, rules: "Sequence[Rule]") -> Iterator[bytes]:
    from barograph.audit.export import export_jsonl, mask_bytes
    from barograph.audit.series import series_csv
    from barograph.audit.series_reader import read_series

    match form:
        case "jsonl":
            return export_jsonl(store, session, rules)
        case "csv":
            text = series_csv(read_series(store, session).calls)
            return iter([mask_bytes(text.encode(), rules)])
        case _:
            return _page(store, session, rules)


def _page(store: "Store", session: str, rules: "Sequence[Rule]") -> Iterator[bytes]:
    from barograph.audit.reading import read_session
    from barograph.audit.report import report_calls
    from barograph.audit.series_reader import read_series
    from barograph.cli._page import Page

    logged = read_session(store, session)
    return Page(rules).pieces(read_series(store, session), report_calls(logged, rules))


def _grouped(pieces: Iterator[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    held, length = [], 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    yield b"".join(held)
