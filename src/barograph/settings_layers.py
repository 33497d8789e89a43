"""The layers that settings come from, as they were written: files, environment, keywords.

Here nothing is judged: a layer gives keys and values, each with the place it stands at. What they
may be is the business of `barograph.settings`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from barograph.core.errors import SettingsError

PREFIX: Final = "BAROGRAPH_"
PROJECT_FILE: Final = "barograph.toml"
SHARED_FILE: Final = "pyproject.toml"
_SHARED_TABLE: Final = ("tool", "barograph")

_HEAD: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY: Final = re.compile(r"\s*([\w.\"' -]+?)\s*=")


class Origin(Struct, frozen=True, kw_only=True):
    """Where a value comes from.

    Attributes:
        layer: which layer set it.
        place: the file, the variable or the keyword; empty for a default.
        line: line of the file, where it could be found.
    """

    layer: Literal["default", "user", "project", "environment", "code"]
    place: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """As it is shown: `default`, `FILE:LINE`, or the name of a variable or keyword."""
        return f"{self.place}:{self.line}" if self.line else self.place or self.layer


class Given(NamedTuple):
    """A value that a layer gives to a key such as `policy.ttl`, as it was written."""

    key: str
    value: object
    origin: Origin


def user_values(file: Path) -> Iterator[Given]:
    """What the user's file says; nothing where there is none.

    Raises:
        SettingsError: it cannot be read, or is no TOML.
    """
    text = _read(file)
    if text is not None:
        yield from _values(file, text, _parse(file, text), "user", ())


def project_values(folder: Path) -> Iterator[Given]:
    """What the project says: the nearest file with settings, from a folder upwards.

    Raises:
        SettingsError: a file cannot be read or is no TOML, or one folder has two.
    """
    for place in (folder, *folder.parents):
        own, shared = place / PROJECT_FILE, place / SHARED_FILE
        own_text, shared_text = _read(own), _shared(shared)
        if own_text is not None and shared_text is not None:
            raise SettingsError(
                f"Both {own} and [tool.barograph] in {shared} hold settings of this project.",
                next_step="Keep one of them.",
                path=str(own),
            )
        if own_text is not None:
            yield from _values(own, own_text, _parse(own, own_text), "project", ())
            return
        if shared_text is not None:
            table = _parse(shared, shared_text)["tool"]["barograph"]
            yield from _values(shared, shared_text, table, "project", _SHARED_TABLE)
            return


def environment_values(environ: Mapping[str, str], *, but: frozenset[str]) -> Iterator[Given]:
    """What variables of our prefix say, except some; an empty one counts as unset."""
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in but and environ[name]:
            key = name.removeprefix(PREFIX).lower().replace("__", ".")
            yield Given(key, environ[name], Origin(layer="environment", place=name))


def code_values(keywords: Mapping[str, object]) -> Iterator[Given]:
    """What keywords such as `policy__ttl` say."""
    for name, value in keywords.items():
        yield Given(name.replace("__", "."), value, Origin(layer="code", place=name))


def _read(file: Path) -> str | None:
    """The text of a file; None where there is no such file."""
    try:
        return file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} cannot be read ({error}).",
            next_step="Make it a readable file in UTF-8, or remove it.",
            path=str(file),
        ) from error


def _shared(file: Path) -> str | None:
    """The text of a pyproject.toml that has settings of ours; others are not ours to judge."""
    try:
        text = _read(file)
    except SettingsError:
        return None
    if text is None or "barograph" not in text:
        return None
    tool = _parse(file, text).get("tool")
    return text if isinstance(tool, dict) and "barograph" in tool else None


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(
            f"{file} is not TOML: {error}.",
            next_step="Correct it; `barograph config show` reads it again.",
            path=str(file),
        ) from error


def _values(
    file: Path,
    text: str,
    content: object,
    layer: Literal["user", "project"],
    above: tuple[str, ...],
) -> Iterator[Given]:
    """Keys and values of a table of tables, each with its line."""
    tables = content if isinstance(content, dict) else {".".join(above): content}
    for table, values in tables.items():
        items = values.items() if isinstance(values, dict) else [(None, values)]
        for name, value in items:
            key = (table,) if name is None else (table, name)
            line = find_line(text, (*above, *key))
            yield Given(".".join(key), value, Origin(layer=layer, place=str(file), line=line))
        if values == {}:
            # a table without keys may still be one that does not exist
            line = find_line(text, (*above, table))
            yield Given(table, {}, Origin(layer=layer, place=str(file), line=line))


def find_line(text: str, key: Sequence[str]) -> int | None:
    """Number of the line that sets a key of a TOML text, or that opens the table it stands in.

    A parser tells no lines. What looks like a key inside a text of several lines may mislead this
    search, which is why its result is shown and nothing else.
    """
    table: tuple[str, ...] = ()
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        if head := _HEAD.match(line):
            table = _split(head[1])
            opened = opened or (number if table == tuple(key) else None)
        elif found := _KEY.match(line):
            names = (*table, *_split(found[1]))
            if names == tuple(key[: len(names)]):
                return number
    return opened


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
