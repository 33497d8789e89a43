"""Take a session out of the store: its events, its requests, without the secrets in them.

What leaves the store leaves the machine sooner or later, so secrets are masked unless they are
asked for; the log itself is never changed. A masked request is not the request that left: its hash
differs from the recorded one.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import msgspec

from barograph.audit.reading import codec_of, damage_named
from barograph.core.errors import BarographError, LogCorrupt, UsageError
from barograph.core.masking import Rule, mask_text, mask_values
from barograph.core.readback import read_requests
from barograph.store.protocol import Store

EXPORT_SCHEMA: Final = "barograph.export/1"


def export_jsonl(store: Store, session: str, rules: Sequence[Rule]) -> Iterator[bytes]:
    """The events with their bodies, one JSON object a line, after one that tells what this is.

    Raises:
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    yield _json(_head(session, rules)) + b"\n"
    for event in _events(store, session, rules):
        yield _json(event) + b"\n"


def export_requests(
    store: Store, session: str, rules: Sequence[Rule]
) -> Iterator[tuple[str, bytes]]:
    """Every request body with a file name: `0054.request.json`; a retry is `0054.2.request.json`.

    Without rules they are the exact bytes that left.

    Raises:
        LogCorrupt: the bytes of a request are not those whose hash was recorded.
        StoreError: the store cannot be read.
    """
    codec, _ = codec_of(session, store.read(session))
    with damage_named(f"Session {session!r}", session=session):
        for request in read_requests(codec, store.read(session)):
            record = request.record
            if not request.is_exact:
                raise LogCorrupt(
                    f"The bytes of call {record.call} do not have the hash recorded for them.",
                    next_step="Run `barograph verify` to see what is damaged.",
                    session=session,
                    call=record.call,
                )
            attempt = f".{record.attempt}" if record.attempt > 1 else ""
            name = f"{record.call:04}{attempt}.request.json"
            yield name, mask_bytes(request.exact, rules)


def mask_bytes(data: bytes, rules: Sequence[Rule]) -> bytes:
    """Bytes with the secrets in their text masked, whatever else they hold."""
    if not rules:
        return data
    return mask_text(data.decode("utf-8", "surrogateescape"), rules).encode(
        "utf-8", "surrogateescape"
    )


def write_file(path: Path, pieces: Iterable[bytes], *, force: bool) -> None:
    """Write a file at once: whole or not at all, readable by its owner alone.

    A link stays a link: what it leads to is written.

    Raises:
        BarographError: it exists, and `force` is not set.
        UsageError: it cannot be written, or is no file.
    """
    refuse_to_overwrite(path, force=force)
    path = path.resolve()
    with _writing(path), _temporary(path.parent) as (file, name):
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
        if force:
            name.replace(path)
        else:
            _publish(name, path)


def write_folder(path: Path, files: Iterable[tuple[str, bytes]], *, force: bool) -> int:
    """Write a folder of files; return their number. A new folder is there whole or not at all.

    With `force` the files go into a folder that holds others, in place of those of the same names.

    Raises:
        BarographError: the folder holds something, and `force` is not set.
        UsageError: it cannot be written, or is no folder.
    """
    if os.path.lexists(path) and not path.is_dir():
        raise UsageError(
            f"{path} is not a folder.",
            next_step="Name a new folder, or one that is there.",
            path=str(path),
        )
    with _writing(path):
        if path.is_dir() and (force or not any(path.iterdir())):
            return _write_into(path, files)
        refuse_to_overwrite(path, force=False)
        folder = Path(tempfile.mkdtemp(prefix=".barograph-", dir=path.parent))
        try:
            count = _write_into(folder, files)
            folder.rename(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return count


def _write_into(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    count = 0
    for name, data in files:
        write_file(folder / name, [data], force=True)
        count += 1
    return count


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Refuse a path at which something stands; whatever is no file, even with `force`.

    Raises:
        BarographError: something does, and `force` is not set.
        UsageError: it is a folder or a device, which no file may take the place of.
    """
    if force and path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is not a file.",
            next_step="Name a file, or leave --out away to write to stdout.",
            path=str(path),
        )
    if not force and os.path.lexists(path):
        raise BarographError(
            f"{path} exists.",
            next_step="Choose another path, or write over it with --force.",
            path=str(path),
        )


def _head(session: str, rules: Sequence[Rule]) -> dict[str, Any]:
    return {
        "schema": EXPORT_SCHEMA,
        "session": mask_text(session, rules),
        "masked": [rule.name for rule in rules],
    }


def _events(store: Store, session: str, rules: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    for seq, event in store.read(session):
        yield {"seq": seq, **mask_values(_spelled_out(event), rules)}


def _spelled_out(value: object) -> Any:
    """A value as JSON has it, with every field: who reads an export need not know the defaults."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = {name: _spelled_out(getattr(value, name)) for name in value.__struct_fields__}
        return fields if tag is None else {"type": tag, **fields}
    return [_spelled_out(one) for one in value] if isinstance(value, tuple) else value


def _json(value: object) -> bytes:
    """One line of ASCII: no terminal finds anything to obey in it."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f").encode()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror or error}).",
            next_step="Name a path in a folder that exists and can be written to.",
            path=str(path),
        ) from error


@contextmanager
def _temporary(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file beside the one to be, which is gone afterwards unless it took its place."""
    number, name = tempfile.mkstemp(prefix=".barograph-", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            yield cast("BinaryIO", file), Path(name)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _publish(name: Path, path: Path) -> None:
    """Give a finished file its name, unless somebody else took it in the meantime."""
    try:
        path.hardlink_to(name)
    except FileExistsError:
        refuse_to_overwrite(path, force=False)
    except OSError:  # a file system without links
        name.replace(path)
