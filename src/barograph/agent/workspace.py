"""One folder that tools may work in, and nothing beyond it.

Every path a model names goes through `Workspace.locate`, which resolves symlinks before it
compares: neither `..` nor a link leads out. All texts are independent of where the folder lies,
and every listing is sorted, so the same files give the same bytes on every machine.
"""

import os
from collections.abc import Iterator
from pathlib import Path


class Refused(Exception):
    """What the model asked for cannot be done; the text is written for the model."""


class Workspace:
    """A folder, seen through paths that are relative to it and written with `/`.

    Args:
        root: the folder. It must exist.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)

    def locate(self, path: str) -> Path:
        """The real path behind a relative one.

        Raises:
            Refused: the path is absolute, malformed, or leads out of the workspace.
        """
        try:
            real = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # too long, a ring of links, a NUL
            raise Refused(f"not a usable path: {path!r}") from error
        if Path(path).is_absolute() or not real.is_relative_to(self.root):
            raise Refused(f"outside the workspace: {path!r}. Use a path relative to its root.")
        return real

    def name(self, real: Path) -> str:
        """The relative name of a path that `locate` gave."""
        return real.relative_to(self.root).as_posix()

    def files(self, folder: str = ".") -> Iterator[str]:
        """Names of all files below a folder, sorted; hidden ones and bytecode are left out.

        Raises:
            Refused: there is no such folder.
        """
        top = self.locate(folder)
        if not top.is_dir():
            raise Refused(f"no such folder: {folder!r}")
        names: list[str] = []
        for parent, folders, files in os.walk(top, followlinks=False):
            folders[:] = [each for each in folders if not _is_noise(each)]
            for each in files:
                path = Path(parent, each)
                if not _is_noise(each) and self._holds(path):
                    names.append(self.name(path))
        yield from sorted(names)

    def _holds(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root) and path.is_file()
        except (OSError, RuntimeError):  # a ring of links, or no right to look
            return False

    def read(self, path: str) -> str:
        """The text of a file, with its line ends as they are.

        Raises:
            Refused: there is no such file, or it holds no UTF-8 text.
        """
        real = self.locate(path)
        if not real.is_file():
            raise Refused(f"no such file: {path!r}. list_files shows what there is.")
        try:
            return real.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(f"not a text file: {path!r}") from error
        except OSError as error:
            raise Refused(f"cannot read {path!r}: {error.strerror}") from error

    def write(self, path: str, text: str) -> None:
        """Write a file whole, with the folders it needs.

        Raises:
            Refused: the file system does not allow it.
        """
        real = self.locate(path)
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            real.write_bytes(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise Refused(f"not UTF-8 text, nothing written to {path!r}") from error
        except OSError as error:
            raise Refused(f"cannot write {path!r}: {error.strerror}") from error


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"
