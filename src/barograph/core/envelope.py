"""Text of others in an envelope that it cannot end.

What a tool, a document or another session says reaches the model between tags of ours that say
where it comes from. A text that spells such a tag would end its envelope and go on in our voice, so
each spelling of one is broken by a backslash behind its bracket. A spelling counts whatever its
case, its spaces and invisible characters, and with characters that only look like those of the tag
(Unicode Technical Standard 39 calls the idea a skeleton).
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

TAGS: Final = ("context", "item", "record", "request", "history_digest")
"""Every tag that ends an envelope of ours. A name that begins with one counts as one."""

_REACH: Final = 4_096
"""As far behind a bracket a tag's name is looked for; invisible characters may stand between."""

_LONGEST: Final = max(map(len, TAGS))

_OPENS: Final = re.compile("[<\uff1c\ufe64\u2039\u276e\u27e8\u3008\u2329\u02c2\u1438\u227a\u276c]")
_SLASHES: Final = frozenset("/\\\u2044\u2215\u2571\u29f8\uff0f\uff3c\u29f5\ufe68")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cn", "Me", "Mn"})
# Letters of other scripts that look like those in our tags and that NFKC leaves as they are.
_LOOK_ALIKES: Final = {
    "a": "\u0430\u03b1\u0251",
    "c": "\u0441\u03f2",
    "d": "\u0501\u0257",
    "e": "\u0435\u03b5\u04bd",
    "g": "\u0261\u0581",
    "i": "\u0456\u03b9\u0131\u0269\u04cf",
    "m": "\u043c",
    "n": "\u0578\u043f\u057c",
    "o": "\u043e\u03bf\u0585",
    "q": "\u051b\u0566",
    "r": "\u0433\u027e",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d\u028b",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "h": "\u04bb\u0570",
}
_LOOKS_LIKE: Final = str.maketrans(
    {alike: letter for letter, alikes in _LOOK_ALIKES.items() for alike in alikes}
)


def escape_tags(text: str) -> str:
    """The text with every spelling of a tag of ours broken; the rest as it is."""
    pieces, done = [], 0
    for found in _OPENS.finditer(text):
        stop = found.end()
        if spells_tag(text, stop):
            pieces += [text[done:stop], "\\"]
            done = stop
    return "".join([*pieces, text[done:]]) if pieces else text


def spells_tag(text: str, start: int = 0) -> bool:
    """Whether what begins there, behind a bracket, reads as the name of a tag of ours or its end.

    A backslash right there breaks a tag.
    """
    if text.startswith("\\", start):
        return False
    name = ""
    for char in islice(_seen(text, start), _LONGEST):
        name += char
        if not any(tag.startswith(name) for tag in TAGS):
            return False
        if name in TAGS:
            return True
    return False


def _seen(text: str, start: int) -> Iterator[str]:
    """The characters from there on as a hasty reader sees them: visible ones, in plain letters."""
    for index in range(start, min(len(text), start + _REACH)):
        plain = unicodedata.normalize("NFKD", text[index]).casefold().translate(_LOOKS_LIKE)
        for char in plain:
            unseen = char.isspace() or unicodedata.category(char) in _INVISIBLE
            if not unseen and char not in _SLASHES:
                yield char
