"""The simulator's own counting rule: integers that depend on nothing but the block's text.

It is no tokeniser. A model's real count differs, and differs between model generations; what a
test or a bill needs is a count that is the same on every machine and that no client can know
beforehand. Integer arithmetic keeps it exact.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

_IMAGE_TOKENS_LEAST: Final = 64
_IMAGE_TOKENS_MOST: Final = 1600
_TEXT_FIELDS: Final = {"text": "text", "thinking": "thinking", "redacted_thinking": "data"}


class TokenRule(Struct, frozen=True, kw_only=True):
    """How many tokens a block has.

    Attributes:
        tokens_per_1000_chars: tokens of a thousand characters of text, rounded up per block.
        block_overhead_tokens: tokens that every block costs beside its text.
        bytes_per_image_token: encoded bytes of an inline image, or of an inline binary document,
            that make one token; an image stays between 64 and 1600 tokens, and one that is given
            by URL or by file id has 1600.
    """

    tokens_per_1000_chars: int = 370
    block_overhead_tokens: int = 4
    bytes_per_image_token: int = 500

    def tokens_of(self, size: "Size") -> int:
        """Tokens of one block of that size."""
        text_tokens = -(-size.chars * self.tokens_per_1000_chars // 1000)
        media_tokens = sum(self._media_tokens(media) for media in size.media)
        return self.block_overhead_tokens + text_tokens + media_tokens

    def _media_tokens(self, media: "Media") -> int:
        if media.encoded_bytes < 0:
            return _IMAGE_TOKENS_MOST
        tokens = -(-media.encoded_bytes // self.bytes_per_image_token)
        return max(_IMAGE_TOKENS_LEAST, min(tokens, _IMAGE_TOKENS_MOST) if media.image else tokens)


class Media(NamedTuple):
    """One image or binary document; `encoded_bytes` is -1 where the bytes are elsewhere."""

    image: bool
    encoded_bytes: int


class Size(NamedTuple):
    """What is counted of a block: its characters and its media."""

    chars: int
    media: tuple[Media, ...] = ()

    @property
    def images(self) -> int:
        """How many images the block holds."""
        return sum(media.image for media in self.media)


def size_of_tool(tool: Mapping[str, Any]) -> Size:
    """Size of a tool definition: its compact JSON without its marker."""
    return Size(_json_chars({key: tool[key] for key in tool if key != "cache_control"}))


def size_of_block(block: Mapping[str, Any]) -> Size:
    """Size of a system or message block, sub-blocks included."""
    kind = block.get("type")
    if kind in _TEXT_FIELDS:
        return Size(_chars(block.get(_TEXT_FIELDS[kind])))
    if kind in ("tool_use", "server_tool_use"):
        return Size(_chars(block.get("name")) + _json_chars(block.get("input")))
    if kind == "tool_result":
        return _size_of_content(block.get("content"))
    if kind in ("image", "document"):
        return _size_of_source(block, image=kind == "image")
    return Size(_json_chars({key: block[key] for key in block if key != "cache_control"}))


def _size_of_content(content: object) -> Size:
    if not isinstance(content, list):
        return Size(_chars(content))
    sizes = [size_of_block(part) for part in content if isinstance(part, dict)]
    return _sum(sizes)


def _size_of_source(block: Mapping[str, Any], *, image: bool) -> Size:
    source = block.get("source")
    if not isinstance(source, dict):
        return Size(0)
    kind = source.get("type")
    if kind == "base64":
        return Size(0, (Media(image, _chars(source.get("data")) * 3 // 4),))
    if kind == "text":
        return Size(_chars(source.get("data")))
    if kind == "content":
        return _size_of_content(source.get("content"))
    return Size(0, (Media(image, -1),))


def _sum(sizes: Sequence[Size]) -> Size:
    media = tuple(item for size in sizes for item in size.media)
    return Size(sum(size.chars for size in sizes), media)


def _chars(text: object) -> int:
    return len(text) if isinstance(text, str) else 0


def _json_chars(value: object) -> int:
    return len(msgspec.json.encode(value).decode())
