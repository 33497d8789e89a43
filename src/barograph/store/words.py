"""What a full-text index knows of a text: its words, folded, in their order.

Words are cut here and not by SQLite, so that both sides of a search are cut alike and a query can
hold any text. A word is a run of letters and digits, without case and Latin accents: a path or an
identifier is several words in a row, and is found as such (`src/foo/bar_baz.py`, `ERR-4711`). In
scripts that put no space between words each character is a word, so any part of a sentence is
found; pieces of three characters would miss the many words that have two.
"""

import re
import unicodedata
from typing import Final

MOST_TERMS: Final = 32
"""As many words of a query count; a longer one names its matter in its first words."""

_MOST_PIECES: Final = 64
LEAST_PREFIX_CHARS: Final = 2

# Thai, Lao, Myanmar, Khmer, kana, Han and Hangul.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# A run without an end (a hash, encoded bytes) is cut, and is found by its beginning all the same.
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]{{1,64}}")
_ACCENT: Final = re.compile("[\u0300-\u036f]")


def words_in(text: str) -> list[str]:
    """The words of a text, folded, in their order."""
    return _WORD.findall(_folded(text))


def terms_of(query: str, least_prefix_chars: int = LEAST_PREFIX_CHARS) -> list[str]:
    """What a query asks for, as quoted terms of FTS5: one for each of its words, none twice.

    Nothing of the query is an operator: terms hold letters and digits alone. The last piece of a
    term may be the beginning of a longer word, if it has so many characters.
    """
    terms: dict[str, None] = {}
    for asked in query[: 100 * MOST_TERMS].split():
        if pieces := words_in(asked)[:_MOST_PIECES]:
            begins = "*" if len(pieces[-1]) >= least_prefix_chars else ""
            terms[f'"{" ".join(pieces)}"{begins}'] = None
    return list(terms)[:MOST_TERMS]


def snippet_of(text: str, query: str, most_chars: int) -> str:
    """A piece of a text around the first word of a query that it holds, on one line.

    It has at most so many characters, and an ellipsis where the text goes on.
    """
    line = " ".join(text.split())
    start = max(0, min(_place(line, query) - most_chars // 4, len(line) - most_chars + 1))
    room = most_chars - (start > 0)
    is_cut = len(line) - start > room
    shown = line[start : start + room - is_cut]
    return f"{'…' if start else ''}{shown}{'…' if is_cut else ''}"


def _place(text: str, query: str) -> int:
    lowered = text.lower()
    asked = query[: 100 * MOST_TERMS].split()
    for wanted in (*(word.lower() for word in asked), *(w for one in asked for w in words_in(one))):
        place = lowered.find(wanted)
        if place >= 0:
            return place
    return 0


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENT.sub("", apart))
