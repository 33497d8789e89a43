"""Read folders of skills in the AgentSkills format: `FOLDER/NAME/SKILL.md`.

A file begins with YAML between two lines of three hyphens, `name` and `description` at least; what
follows is what the skill says. What is not asked for in that YAML is never made into a value, and
nothing in a skill is run, followed or fetched.

A skill that cannot be read is left out, with its reason as a warning of the logger `barograph`,
once; the others stay. A skill may be a link to a folder elsewhere; within it no link is followed,
and what is hidden is not there.
"""

import logging
import os
import re
import stat
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from barograph.core.errors import BarographError, UsageError
from barograph.frame.files import read_text

_log = logging.getLogger("barograph")

_FILE: Final = "SKILL.md"
_MOST_BYTES: Final = 1_000_000
_MOST_FILES: Final = 1_000
_DEEPEST: Final = 8
_MOST_YAML_CHARS: Final = 16_000
_REASON_CHARS: Final = 300

_FRONT: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARS: Final = 64
_FALSE: Final = frozenset({"", "false", "no", "off", "n", "~", "null"})

_Stamp: TypeAlias = tuple[int, int, int]


class Skill(Struct, frozen=True, kw_only=True):
    """A skill.

    Attributes:
        name: by which it is loaded.
        description: what it is about, and when to use it.
        text: what it says.
        folder: where it is.
        is_for_user: whether only a user may ask for it, as `disable-model-invocation` says.
    """

    name: str
    description: str
    text: str
    folder: Path
    is_for_user: bool = False


class SkillFolders:
    """Folders of skills, read again where a file has changed. Safe to use from several threads.

    Args:
        folders: of two skills with one name, the one of the earlier folder counts.

    Raises:
        UsageError: one of them is no folder, or the library that reads YAML is not installed.
    """

    def __init__(self, folders: Sequence[str | Path]) -> None:
        if find_spec("yaml") is None:
            raise UsageError(
                "Skills cannot be read without yaml.",
                next_step="pip install 'barograph[langchain]'",
            )
        self._folders: Final = tuple(Path(one).absolute() for one in folders)
        for folder in self._folders:
            if not folder.is_dir():
                raise UsageError(
                    f"There is no folder {folder}.",
                    next_step="Give folders whose folders have a SKILL.md each.",
                    path=str(folder),
                )
        self._known: dict[Path, tuple[_Stamp, Skill | str]] = {}
        self._said: set[tuple[Path, str]] = set()

    def read(self) -> dict[str, Skill]:
        """The skills as they are now, by their names, in the order of the alphabet."""
        found: dict[str, Skill] = {}
        for path in (path for folder in self._folders for path in self._below(folder)):
            skill = self._read_one(path)
            if skill is None:
                continue
            first = found.setdefault(skill.name, skill)
            if first is not skill:
                self._say(path, f"{first.folder} has the name {skill.name} too, and comes first")
        return dict(sorted(found.items()))

    def _below(self, folder: Path) -> list[Path]:
        try:
            below = sorted(folder.iterdir())
        except OSError as error:
            self._say(folder, _said_of(error))
            return []
        return [one / _FILE for one in below if not one.name.startswith(".")]

    def _read_one(self, path: Path) -> Skill | None:
        try:
            is_at = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None  # a folder of something else
        except OSError as error:
            self._say(path, _said_of(error))
            return None
        stamp = (is_at.st_mtime_ns, is_at.st_size, is_at.st_ino)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, _read(path, is_at.st_mode))
        _, skill = known
        if isinstance(skill, Skill):
            return skill
        self._say(path, skill)
        return None

    def _say(self, path: Path, reason: str) -> None:
        if (path, reason) not in self._said:
            self._said.add((path, reason))
            _log.warning("barograph: %s is left out of the skills: %s", path, reason)


def files_of(skill: Skill) -> dict[str, Path]:
    """The other files of a skill by their names, at most a thousand."""
    found: dict[str, Path] = {}
    for path in _walk(skill.folder):
        name = path.relative_to(skill.folder).as_posix()
        if name != _FILE:
            found[name] = path
        if len(found) == _MOST_FILES:
            break
    return found


def read_file(path: Path) -> str:
    """The text of a file of a skill.

    Raises:
        UsageError: it cannot be read, has more than 1 MB, or holds no text.
    """
    return read_text(path, most_bytes=_MOST_BYTES)


def _walk(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        here = Path(where)
        is_deepest = len(here.relative_to(folder).parts) >= _DEEPEST
        folders[:] = [] if is_deepest else sorted(one for one in folders if one[0] != ".")
        for name in sorted(one for one in files if one[0] != "."):
            path = here / name
            if path.is_file() and not path.is_symlink():
                yield path


def _read(path: Path, mode: int) -> Skill | str:
    """A skill, or why it is none."""
    if not stat.S_ISREG(mode):
        return "it is a link, or no file"
    try:
        return _parsed(path, read_text(path, most_bytes=_MOST_BYTES))
    except BarographError as error:
        return _said_of(error)
    except Exception as error:  # noqa: BLE001 - a hostile file may make a parser raise anything
        return f"its front matter cannot be read: {_said_of(error)}"


def _parsed(path: Path, text: str) -> Skill | str:
    front = _FRONT.match(text)
    if front is None:
        return "it does not begin with front matter between two lines of ---"
    if len(front[1]) > _MOST_YAML_CHARS:
        return f"its front matter has more than {_MOST_YAML_CHARS:,} characters"
    fields = _fields_of(front[1])
    name, description = fields.get("name", ""), fields.get("description", "").strip()
    if not name or not description:
        return f"its front matter has no {'description' if name else 'name'}"
    if len(name) > _NAME_CHARS or not _NAME.fullmatch(name):
        return (
            f"the name {name[:_NAME_CHARS]!r} is not of at most {_NAME_CHARS} small letters, "
            "digits and single hyphens between them"
        )
    return Skill(
        name=name,
        description=description,
        text=text[front.end() :].strip(),
        folder=path.parent,
        is_for_user=fields.get("disable-model-invocation", "").casefold() not in _FALSE,
    )


def _fields_of(front: str) -> dict[str, str]:
    """The fields of front matter that are plain texts, as they are spelled."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    # Nodes only: making values of them would merge and copy what aliases name, without an end.
    node = yaml.compose(front, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise ValueError("it has no fields")  # noqa: TRY004 - of the file, not of a type
    return {
        key.value: value.value
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
    }


def _said_of(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_CHARS]
