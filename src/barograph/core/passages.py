"""Cut a text into passages: pieces that are found, judged and shown each by itself.

Passages stand side by side: joined in their order they are the text, to the character. The same
text is cut alike everywhere. A heading stays with what follows it, a paragraph or a block of code
stays whole as far as the limit allows, and no cut parts a character.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from barograph.core.graphemes import cut_before

MOST_CHARS: Final = 1500
"""The longest passage: a few paragraphs, so that several fit into the budget of a turn."""

LEAST_CHARS: Final = 300
"""What stands before a heading is a passage of its own when it is at least this long."""

_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_FENCE: Final = re.compile(r" {0,3}(?:```|~~~)")
# From the best place to the worst: the end of a line, of a sentence, of a word.
_ENDS: Final = ("\n", ". ", "! ", "? ", "。", " ")


def cut_passages(text: str, most_chars: int = MOST_CHARS) -> tuple[str, ...]:
    """The passages of a text, in their order; none of an empty text.

    Args:
        text: anything.
        most_chars: the longest passage, at least 1.
    """
    cuts, start = [0], 0
    end = 0
    for begin, end, is_heading in _blocks(text):
        if begin > start and (
            end - start > most_chars or (is_heading and begin - start >= LEAST_CHARS)
        ):
            cuts.append(begin)
            start = begin
        while end - start > most_chars:
            start = _place(text, start, most_chars)
            cuts.append(start)
    cuts.append(end)
    return tuple(text[one:other] for one, other in pairwise(cuts) if other > one)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Begin and end of each paragraph or block of code, and whether it begins with a heading.

    A heading and what follows it are one block.
    """
    begin, at = 0, 0
    begins_with_heading = in_code = is_apart = is_open = False
    for line in text.splitlines(keepends=True):
        is_fence = _FENCE.match(line) is not None
        is_heading = not in_code and _HEADING.match(line) is not None
        if not line.strip():
            is_apart = is_apart or not (in_code or is_open)
        elif is_heading or is_apart:
            if at > begin:
                yield begin, at, begins_with_heading
                begin = at
            begins_with_heading, is_apart, is_open = is_heading, False, is_heading
        else:
            is_open = False
        in_code ^= is_fence
        at += len(line)
    if at > begin:
        yield begin, at, begins_with_heading


def _place(text: str, start: int, most_chars: int) -> int:
    """Where a passage ends that begins at `start` and must be cut."""
    limit = start + most_chars
    for end in _ENDS:
        found = text.rfind(end, start + most_chars // 2, limit)
        if found >= 0:
            return found + len(end)
    found = cut_before(text, limit)
    return found if found > start else limit
