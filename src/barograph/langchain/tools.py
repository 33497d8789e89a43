"""Tools that a governed agent has: to read back what a pass took out of its sight.

They look into the session that their call belongs to, and into no other. What they find is text of
others: it comes in envelopes that say where it is from. An error is an answer, never an exception.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from langchain_core.tools import BaseTool, tool

from barograph.core import texts
from barograph.core.errors import BarographError
from barograph.core.texts import NOTHING_FOUND, excerpt_head
from barograph.langchain.places import PARENT
from barograph.store.history import read_history, search_history
from barograph.store.originals import MOST_CHARS, excerpt_of, lines_with
from barograph.store.search import Document, Hit

_LENGTH_CHARS: Final = 8_000


@tool("read_original")
def _read_original(
    id: Annotated[str, "The id that the shortened text names, such as #12."],  # noqa: A002
    start: Annotated[int, "Where to begin, in characters."] = 0,
    length: Annotated[int, "How many characters to read, at most 20000."] = _LENGTH_CHARS,
    grep: Annotated[str, "Show only the lines that hold this text, with their numbers."] = "",
) -> str:
    """Read the whole of a text that was shortened, or the lines of it that hold a word."""
    parent = PARENT.get()
    if parent is None:
        return NOTHING_FOUND
    try:
        text = parent.session.original(id)
    except BarographError as error:
        return str(error)
    if grep:
        return "\n".join(lines_with(text, grep)) or NOTHING_FOUND
    piece = excerpt_of(text, start, length)
    return excerpt_head(piece.start_chars, len(piece.text), piece.total_chars) + piece.text


@tool("history_search")
def _history_search(
    query: Annotated[str, "Words, names, paths or ids; beginnings of words will do."],
    limit: Annotated[int, "How many records to show, at most 20."] = 8,
) -> str:
    """Search everything said and returned in this session, also what is no longer shown."""
    parent = PARENT.get()
    if parent is None:
        return NOTHING_FOUND
    try:
        hits = search_history(parent.session.store, parent.session.id, query, limit)
    except BarographError as error:
        return texts.not_recalled(str(error))
    return _shown(hits, [_quoted(hit, hit.snippet) for hit in hits])


@tool("history_read")
def _history_read(
    id: Annotated[str, "The id of a record, such as #12."],  # noqa: A002
    around: Annotated[int, "How many records before and after to show too, at most 10."] = 0,
    start: Annotated[int, "Where to begin in the record, in characters."] = 0,
) -> str:
    """Read a record of this session's history, and what was said around it."""
    parent = PARENT.get()
    if parent is None:
        return NOTHING_FOUND
    try:
        found = read_history(parent.session.store, parent.session.id, id, around)
    except BarographError as error:
        return texts.not_recalled(str(error))
    # The record that was asked for has half of the room, its neighbours share the rest.
    wanted = id.strip().removeprefix("#").lstrip("0")
    share = MOST_CHARS // 2 // max(1, len(found) - 1)
    return _shown(
        found,
        [
            _piece(one, start, MOST_CHARS // 2) if one.key == wanted else _piece(one, 0, share)
            for one in found
        ],
    )


def _piece(record: Document, start: int, most_chars: int) -> str:
    piece = excerpt_of(record.text, start, most_chars)
    total = None if len(piece.text) == piece.total_chars else piece.total_chars
    return _quoted(record, piece.text, piece.start_chars, total)


def _quoted(one: Document | Hit, text: str, start: int = 0, total: int | None = None) -> str:
    said_by = one.kind if one.source == "main" else f"{one.kind}, {one.source}"
    return texts.quoted(
        text,
        handle=f"#{one.key}",
        said_by=said_by,
        moment=_moment(one.at),
        start=start,
        total=total,
    )


def _shown(found: Sequence[Document | Hit], records: Sequence[str]) -> str:
    return "\n".join((texts.quoted_head(len(found)), *records)) if found else NOTHING_FOUND


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "unknown"


RECALL: Final[tuple[BaseTool, ...]] = (_read_original, _history_search, _history_read)
"""What every agent has whose history may be folded."""
