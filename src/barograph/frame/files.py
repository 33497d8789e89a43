"""Read files as the text of documents: plain text, Markdown, HTML and PDF.

HTML becomes Markdown, so that its headings part it; of a PDF there is the text of each page. What a
file holds is material: nothing in it is run, followed or fetched.
"""

import logging
import os
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Final

from barograph.core.canonical import clean_text
from barograph.core.errors import UsageError

MOST_BYTES: Final = 50_000_000
"""The largest file that is read."""

_SHOWN_CHARS: Final = 200
_NOT_SAID: Final = ("head", "script", "style", "noscript", "template")
_BYTE_ORDERS: Final = (b"\xff\xfe", b"\xfe\xff")


def list_files(given: str) -> tuple[list[Path], int]:
    """The files to read where a file or a folder is given, and how many others the folder has.

    A folder is read with all below it, in the order of the names, but for what is hidden or linked.
    Of a folder, only files whose names say that they hold text are taken.

    Raises:
        UsageError: an address, or nothing that is there and can be looked at.
    """
    if not given:  # as a path, it would be the folder that one stands in
        what = "The name of a file or folder is empty."
        raise UsageError(what, next_step="See whether a variable was not set.", path=given)
    shown = given[:_SHOWN_CHARS]
    if "://" in given:
        what, next_step = f"{shown} is an address.", "Nothing is fetched: save it as a file first."
        raise UsageError(what, next_step=next_step, path=shown)
    path = Path(given)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:  # too long for a name, or behind a folder that may not be entered
        what = f"{shown} cannot be looked at: {error.strerror}."
        next_step = "Look at how it is written, and who may read it."
        raise UsageError(what, next_step=next_step, path=shown) from error
    if is_file:
        return [path], 0
    if not is_folder:
        what, next_step = f"There is no file or folder {given}.", "Look at how it is written."
        raise UsageError(what, next_step=next_step, path=given)
    every = _below(path)
    taken = [one for one in every if one.suffix.lower() in _READERS]
    return taken, len(every) - len(taken)


def read_document(path: Path) -> str:
    """The text of a file; its lines end with a line feed.

    Raises:
        UsageError: it cannot be read, is too large, holds no text, or needs a library that is not
            installed.
    """
    data = _bytes_of(path, MOST_BYTES)
    try:
        text = _READERS.get(path.suffix.lower(), _plain)(data)
    except ImportError as error:
        raise UsageError(
            f"{path} cannot be read without {error.name}.",
            next_step="pip install 'barograph[knowledge]'",
            path=str(path),
        ) from error
    except Exception as error:  # a hostile file may make a parser raise anything
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error
    if not text.strip():
        raise _unreadable(path, "it holds no text, and pictures of text are not read")
    return clean_text(text).replace("\r\n", "\n")


def read_text(path: Path, *, most_bytes: int) -> str:
    """The text of a file as it stands, whatever its name says; its lines end with a line feed.

    Raises:
        UsageError: it cannot be read, is larger than that, or holds no text in UTF-8 or UTF-16.
    """
    data = _bytes_of(path, most_bytes)
    try:
        return clean_text(_plain(data)).replace("\r\n", "\n")
    except ValueError as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _below(folder: Path) -> list[Path]:
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(where, name) for name in files if not name.startswith("."))
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)


def _bytes_of(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            # What a file says of its size may be wrong: it grows, or is none of a disk.
            data = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    if len(data) > most_bytes:
        raise _unreadable(path, f"it has more than {most_bytes // 1_000_000} MB")
    return data


def _plain(data: bytes) -> str:
    text = data.decode("utf-16" if data.startswith(_BYTE_ORDERS) else "utf-8-sig")
    if "\0" in text:
        raise ValueError("it holds a NUL, which no text does")
    return text


def _html(data: bytes) -> str:
    from bs4 import BeautifulSoup  # noqa: PLC0415 - an extra
    from markdownify import MarkdownConverter  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it thinks of the file is nothing to the user
        soup = BeautifulSoup(data, "html.parser")
    for tag in soup(_NOT_SAID):
        tag.decompose()
    return str(MarkdownConverter(heading_style="ATX").convert_soup(soup)).strip() + "\n"


def _pdf(data: bytes) -> str:
    from pypdf import PdfReader  # noqa: PLC0415 - an extra

    # It logs what it finds wrong in a file, and without a handler that lands on stderr.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    reader = PdfReader(BytesIO(data))
    return "\n\n".join(page.extract_text().strip() for page in reader.pages) + "\n"


def _unreadable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} cannot be read: {why}.",
        next_step="Give its text as a file in UTF-8, or leave it out.",
        path=str(path),
    )


_READERS: Final[dict[str, Callable[[bytes], str]]] = {
    **dict.fromkeys((".adoc", ".markdown", ".md", ".org", ".rst", ".text", ".txt"), _plain),
    **dict.fromkeys((".htm", ".html", ".xhtml"), _html),
    ".pdf": _pdf,
}
