"""Where a text may be cut without parting what is seen as one character.

This is the part of Unicode's rules for grapheme clusters that the standard library can decide:
combining marks, joined and modified emoji, flags, tag sequences, Hangul syllables, Indic conjuncts,
line ends. It looks at most `REACH_CHARS` away; a longer cluster, as nobody writes, is cut as asked.
"""

import unicodedata
from typing import Final

REACH_CHARS: Final = 64

_JOINER: Final = "\u200d"
_VIRAMA: Final = 9
_FLAGS: Final = range(0x1F1E6, 0x1F200)
_EXTENDS: Final = (
    range(0x200C, 0x200E),  # joiners
    range(0xFE00, 0xFE10),  # variation selectors
    range(0x1F3FB, 0x1F400),  # skin tones
    range(0xE0020, 0xE0080),  # tags
    range(0xE0100, 0xE01F0),  # more variation selectors
    range(0x1160, 0x1200),  # second and third letters of a Hangul syllable
)


def cut_before(text: str, at: int) -> int:
    """The nearest place at or before `at` that parts no character."""
    return next((i for i in range(at, max(at - REACH_CHARS, -1), -1) if _may_cut(text, i)), at)


def cut_after(text: str, at: int) -> int:
    """The nearest place at or after `at` that parts no character."""
    last = min(at + REACH_CHARS, len(text) + 1)
    return next((i for i in range(at, last) if _may_cut(text, i)), at)


def _may_cut(text: str, at: int) -> bool:
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r":
        return after != "\n"
    if after < "\u0300":
        return before != _JOINER
    code = ord(after)
    if code in _FLAGS:
        return _flags_before(text, at) % 2 == 0
    return not (
        before == _JOINER
        or unicodedata.combining(before) == _VIRAMA
        or unicodedata.category(after).startswith("M")
        or any(code in extending for extending in _EXTENDS)
    )


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < at and count < REACH_CHARS and ord(text[at - count - 1]) in _FLAGS:
        count += 1
    return count
