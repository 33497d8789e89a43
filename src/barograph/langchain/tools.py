"""Tools that a governed agent has: to read back what a pass took out of its sight."""

from typing import Annotated, Final

from langchain_core.tools import BaseTool, tool

from barograph.core.errors import BarographError
from barograph.core.texts import NOTHING_FOUND, excerpt_head
from barograph.langchain.places import PARENT
from barograph.store.originals import excerpt_of, lines_with

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


READ_ORIGINAL: Final[BaseTool] = _read_original
