"""The file format of a recorded session: one JSON object per line, one line per model call.

A line says what changed since the same agent's previous call: an optional `replace_from` (the
length to which the history, previous response included, was cut) and `append` (the messages that
followed). Plain and gzipped files are told apart by their first bytes, not by their name.
"""

import gzip
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct, field

from barograph.core.errors import UsageError

SUFFIXES: Final = (".jsonl", ".jsonl.gz")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_EXPECTED: Final = (
    "Expected one JSON object per line, a model call each, with `call`, `agent`, `append` and "
    "`response`."
)

WireBlock = dict[str, Any]
WireMessage = dict[str, Any]


class RecordedUsage(Struct, frozen=True, kw_only=True):
    """Token counts as recorded, in Anthropic's names; None where the recorder had no number.

    Attributes:
        input_tokens: plain input, without cache reads and writes.
        output_tokens: output; streaming harnesses record too low a number.
        cache_read_input_tokens: input read from the cache.
        cache_creation_input_tokens: input written to the cache.
        cache_creation: the written tokens by TTL, in the provider's own keys.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: dict[str, int] | None = None


class LineMessage(Struct, frozen=True, kw_only=True):
    """A message as it stands in the file."""

    role: Literal["user", "assistant"]
    content: str | list[WireBlock]


class Line(Struct, frozen=True, kw_only=True):
    """One line of a recorded session, before anything is normalised."""

    call: int
    agent: str
    append: list[LineMessage]
    response: list[WireBlock] | None
    replace_from: Annotated[int, Meta(ge=0)] | None = None
    t: datetime | None = None
    model: str | None = None
    system: str | None = None
    stop_reason: str | None = None
    usage: RecordedUsage | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    parent_tool_use_id: str | None = None


_DECODER: Final = msgspec.json.Decoder(Line)


def not_a_recording(path: Path, problem: str, *, line: int) -> UsageError:
    """The error for a file that is not a recorded session, naming the line that shows it."""
    return UsageError(
        f"{path}, line {line}: not a recorded session: {problem}.",
        next_step=_EXPECTED,
        path=str(path),
        line=line,
    )


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """The recorded sessions that files and folders name, sorted, each once.

    A file may have any name; of a folder only the `.jsonl` and `.jsonl.gz` files directly inside
    count. The first line of each is decoded, so a wrong file is refused before long work starts.

    Raises:
        UsageError: a path does not exist, a folder holds no recording, a file is not one.
    """
    found = sorted({file.resolve(): file for path in paths for file in _files_of(path)}.values())
    for file in found:
        with closing(read_lines(file)) as lines:
            next(lines)
    return found


def _files_of(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(
            f"{path} does not exist.",
            next_step="Name a recorded session (.jsonl or .jsonl.gz) or a folder that holds some.",
            path=str(path),
        )
    files = [file for file in path.iterdir() if file.name.endswith(SUFFIXES) and file.is_file()]
    if not files:
        raise UsageError(
            f"{path} holds no recorded session.",
            next_step="Name a folder with .jsonl or .jsonl.gz files directly inside.",
            path=str(path),
        )
    return files


def read_lines(path: Path) -> Generator[tuple[int, Line], None, None]:
    """The lines of a recorded session with their numbers from 1; blank lines are passed over.

    Raises:
        UsageError: the file cannot be read, holds no line, or a line is not a call.
    """
    empty = True
    for number, raw in _raw_lines(path):
        if raw.isspace():
            continue
        empty = False
        try:
            yield number, _DECODER.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise not_a_recording(path, str(error), line=number) from error
    if empty:
        raise not_a_recording(path, "the file is empty", line=1)


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with path.open("rb") as file:
            zipped = file.peek(2).startswith(_GZIP_MAGIC)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if zipped else file
            for number, raw in enumerate(stream, 1):
                yield number, raw
    except (OSError, EOFError, zlib.error) as error:
        raise not_a_recording(path, f"it cannot be read ({error})", line=number + 1) from error


class Fit(Struct, frozen=True, kw_only=True):
    """How recorded tokens depend on recorded characters in one file: a straight line.

    Attributes:
        base_tokens: what every request held beside the recorded characters (tools, system).
        tokens_per_char: tokens of a recorded character.
    """

    base_tokens: int
    tokens_per_char: float


class _Entry(Struct, frozen=True, kw_only=True):
    file: str
    fit_recorded_tokens_vs_chars: Fit | None = None


class _Index(Struct, frozen=True, kw_only=True):
    trajectories: list[_Entry]


def read_fit(path: Path) -> Fit | None:
    """What an `index.json` beside the file says of it; None without one that names the file.

    An unrelated `index.json` is passed over: it is a common name, and the fit is a refinement.
    """
    try:
        index = msgspec.json.decode((path.parent / "index.json").read_bytes(), type=_Index)
    except (OSError, msgspec.MsgspecError):
        return None
    fits = {
        name_of(Path(entry.file)): entry.fit_recorded_tokens_vs_chars
        for entry in index.trajectories
    }
    return fits.get(name_of(path))


def name_of(path: Path) -> str:
    """The file name without `.jsonl` and `.gz`."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")
