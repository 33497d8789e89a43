r"""Bound a tool result: head, one marker, tail.

**Invariants.** What comes out is never longer than what went in nor, in text, than the cap. Both
ends survive and the marker says how much is missing and how to read it. Bounding twice is bounding
once. A cut parts no character (see `graphemes`), and no block that is not text.

**Binary.** Encoded bytes inside text cost much and tell a model nothing: a `data:` URL or a long
run of base64 gives way to a note of its kind and size. Images and documents are kept or give way to
such a note, as the policy says.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from barograph.core import texts
from barograph.core.canonical import clean_text
from barograph.core.graphemes import cut_after, cut_before
from barograph.core.parts import Document, Image, Opaque, Part, Parts, Text

LEAST_END_CHARS: Final = 8
"""Ends shorter than this say nothing: below it, only the head is kept, without a marker."""

_BASE64_CHARS: Final = 1_000
_RUN: Final = r"[A-Za-z0-9+/_-]"
_BLOB: Final = re.compile(
    rf"(?<![\w+/-])(?:"
    rf"data:(?P<media>[\w.+-]{{1,60}}/[\w.+-]{{1,80}})(?:;[\w=.-]{{1,60}}){{0,3}};base64,"
    rf"(?:{_RUN}|\\/|%2[BbFf])*+"
    rf"|(?:[A-Za-z0-9+/]{{40,128}}+(?:\r?\n|\\n)){{12,}}+{_RUN}*+"
    rf"|(?:{_RUN}|\\/){{{_BASE64_CHARS},}}+"
    rf")=*+",
    re.ASCII,
)
_SIGNATURES: Final = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
    "UEsDB": "application/zip",
    "H4sI": "application/gzip",
}


def bound_text(text: str, *, cap_chars: int, handle: str) -> str:
    """The text, or its head, a marker and its tail.

    Args:
        text: what a tool answered.
        cap_chars: the most code points to let through, marker included; 0 for no limit.
        handle: what the original is read back by.
    """
    text = clean_text(text)
    span = _middle((text,), cap_chars, handle)
    return text if span is None else "".join(_kept((text,), *span))


def bound_parts(parts: Iterable[Part], *, cap_chars: int, handle: str, keep_images: bool) -> Parts:
    """The content of a tool result, whose texts share one cap: the first head, the last tail.

    Args:
        parts: the content.
        cap_chars: the most code points of text to let through; 0 for no limit, also for binary.
        handle: what the original is read back by.
        keep_images: whether images and documents stay; else a note stands for each.
    """
    bare = [_bare(part, cap_chars, handle, keep_images=keep_images) for part in parts]
    leaves = [part.text for part in bare if isinstance(part, Text)]
    span = _middle(leaves, cap_chars, handle)
    if span is None:
        return tuple(bare)
    kept = iter(_kept(leaves, *span))
    bounded = (Text(next(kept)) if isinstance(part, Text) else part for part in bare)
    return tuple(part for part in bounded if part != Text(""))


Span = tuple[int, int, str]


def _middle(leaves: Iterable[str], cap_chars: int, handle: str) -> Span | None:
    """What to leave out of the texts as if they were one, and the marker to put there."""
    text = "".join(leaves)
    total = len(text)
    if cap_chars <= 0 or total <= cap_chars:
        return None
    room = cap_chars - len(texts.left_out(total, total, cap_chars, handle))
    if room < 2 * LEAST_END_CHARS:
        return cut_before(text, cap_chars) or cap_chars, total, ""
    start = cut_before(text, room - room // 2)
    end = cut_after(text, total - room // 2)
    return start, end, texts.left_out(end - start, total, cap_chars, handle)


def _kept(leaves: Iterable[str], start: int, end: int, marker: str) -> Iterator[str]:
    passed = 0
    for leaf in leaves:
        low, high = start - passed, end - passed
        here = 0 <= low < len(leaf)
        yield leaf[: max(low, 0)] + (marker if here else "") + leaf[max(high, 0) :]
        passed += len(leaf)


def _bare(part: Part, cap_chars: int, handle: str, *, keep_images: bool) -> Part:
    match part:
        case Text():
            text = clean_text(part.text)
            return Text(_without_blobs(text, handle) if cap_chars else text)
        case Image() | Document() if not keep_images:
            what = "an image" if isinstance(part, Image) else "a document"
            return Text(texts.binary_left_out(what, f"{len(part.block):,} characters", handle))
        case Opaque() if 0 < cap_chars < len(part.block):
            what = f"a block of type {part.kind[:40]!r}"
            return Text(texts.binary_left_out(what, f"{len(part.block):,} characters", handle))
        case _:
            return part


def _without_blobs(text: str, handle: str) -> str:
    def note(found: re.Match[str]) -> str:
        blob = found.group()
        if len(blob) < _BASE64_CHARS or not _is_encoded(blob[-400:]):
            return blob
        data = blob.partition("base64,")[2] if found.group("media") else blob
        kinds = (kind for sign, kind in _SIGNATURES.items() if data.startswith(sign))
        media = found.group("media") or next(kinds, "unknown kind")
        size = f"about {len(data) * 3 // 4:,} bytes"
        return texts.binary_left_out(f"base64 of {media}", size, handle)

    return text if len(text) < _BASE64_CHARS else _BLOB.sub(note, text)


def _is_encoded(sample: str) -> bool:
    """Encoded bytes look random; a list of hashes has one case, a repeated letter has nothing."""
    if "\n" in sample:
        return sample.upper() != sample != sample.lower()
    return len(set(sample)) >= 8
