"""What a block weighs: the characters it counts as when nothing but its size is known.

A character weighs one, a wide one (Chinese, Japanese, Korean) three: it is about a token, where
other text has three to four characters to a token. Digits have fewer too, but to weigh them more
makes no projection over the recorded sessions better by more than a tenth of a percent
(`bench/projection.py`), so they do not. Each block weighs something beside its text: in the same
sessions about 30 tokens.

A picture weighs by its bytes, not by the characters that spell them: its true count depends on its
pixels and has an upper limit. Signatures weigh nothing; they are no text for the model.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from barograph.core.canonical import parse_json
from barograph.core.parts import Document, Image, Part, Text, Thinking, ToolCall, ToolResult

BLOCK_CHARS: Final = 80
CHARS_PER_TOKEN: Final = 3
"""Of what is known in tokens; the recordings show 2.5 to 4.5."""

_MORE_FOR_A_WIDE_ONE: Final = 2
# From the radicals to the compatibility forms, Hangul, full-width forms, and the planes beyond.
_WIDE: Final = re.compile(
    "[\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)

_IMAGE_TOKENS: Final = (64, 1600)
_BYTES_PER_TOKEN: Final = 500


def weigh(part: Part) -> int:
    """What a part weighs, in characters."""
    return BLOCK_CHARS + _weigh(part)


def weigh_text(text: str) -> int:
    """What a text weighs without the block around it."""
    if text.isascii():
        return len(text)
    return len(text) + _MORE_FOR_A_WIDE_ONE * sum(map(len, _WIDE.findall(text)))


def _weigh(part: Part) -> int:
    match part:
        case Text() | Thinking():
            return weigh_text(part.text)
        case ToolCall():
            return weigh_text(part.name) + weigh_text(part.arguments)
        case ToolResult():
            return sum(map(_weigh, part.content))
        case Image() | Document():
            return _weigh_block(parse_json(part.block))
        case _:
            return weigh_text(part.block)


def _weigh_block(block: object) -> int:
    """A picture or a document, or what stands within one."""
    if not isinstance(block, dict):
        return 0
    if block.get("type") == "text":
        return weigh_text(_string(block.get("text")))
    source = block.get("source")
    return _weigh_source(source, block.get("type") == "image") if isinstance(source, dict) else 0


def _weigh_source(source: Mapping[str, Any], is_image: bool) -> int:
    least, most = _IMAGE_TOKENS
    match source.get("type"):
        case "text":
            return weigh_text(_string(source.get("data")))
        case "content":
            content = source.get("content")
            if isinstance(content, list):
                return sum(map(_weigh_block, content))
            return weigh_text(_string(content))
        case "base64":
            tokens = max(least, len(_string(source.get("data"))) * 3 // 4 // _BYTES_PER_TOKEN)
            return CHARS_PER_TOKEN * (min(tokens, most) if is_image else tokens)
        case _:  # the bytes are elsewhere
            return CHARS_PER_TOKEN * most


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
