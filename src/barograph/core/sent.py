"""A call as it left, block by block, whatever spelled it.

Most of a request left in the bytes of our rendering; what a client spelled otherwise is kept as it
was sent. Here both are one: the blocks of a request, without their markers.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from barograph.core.breakpoints import Segment
from barograph.core.canonical import parse_json
from barograph.core.events import CallPlanned, HeaderSet, Usage
from barograph.core.model import Codec, Scope
from barograph.core.parts import Part, Text, Thinking, ToolCall, ToolResult, texts_in
from barograph.core.surface import Entry, Surface

_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_array = msgspec.json.Decoder(list[msgspec.Raw])


class Sent(Struct, frozen=True, kw_only=True):
    """One call of an agent path as it left, and what its answer reported.

    Attributes:
        plan: the call.
        surface: the surface it showed, its header included.
        scope: what its cache entries depend on besides their blocks.
        stored: pieces that left in other bytes than our rendering, by where they stand.
        usage: tokens the provider reported; None where it reported none.
    """

    plan: CallPlanned
    surface: Surface
    scope: Scope
    stored: Mapping[str, str] = {}
    usage: Usage | None = None

    @property
    def header(self) -> HeaderSet | None:
        """The header it left with."""
        return self.surface.header

    @property
    def is_whole(self) -> bool:
        """Whether its body could not be taken apart, so that no piece of it can be compared."""
        return "body" in self.stored

    @property
    def cached_tokens(self) -> int | None:
        """Length of the prefix that it left in the cache; None where no usage was reported."""
        return None if self.usage is None else self.usage.read_tokens + self.usage.write_tokens

    @property
    def marked_blocks(self) -> int:
        """Number of message blocks up to and including the last one that carries a marker."""
        marks = [mark.block for mark in self.plan.breakpoints if mark.level == "messages"]
        return min(1 + max(marks, default=-1), len(self.surface.segments))

    @property
    def header_segments(self) -> int:
        """Number of segments before the messages: tools and system, where it has them."""
        return 0 if self.header is None else bool(self.header.tools) + bool(self.header.system)

    @property
    def all_segments(self) -> int:
        """Number of segments: tools, system, and each message or tool result."""
        return self.header_segments + len(self.surface.entries)


class Block(NamedTuple):
    """One message block: where it stands, the entry it belongs to, what it is."""

    segment: Segment
    entry: Entry
    part: Part


def block_at(surface: Surface, index: int) -> Block | None:
    """A block by its place among all message blocks."""
    if index >= len(surface.segments):
        return None
    segment = surface.segments[index]
    first = index
    while first and surface.segments[first - 1].entry == segment.entry:
        first -= 1
    entry = surface.entries[segment.entry]
    return Block(segment, entry, entry.parts[index - first])


def place_of(surface: Surface, message: int, block: int) -> int:
    """Place among all message blocks of the first one at or after that one."""
    return bisect_left(
        surface.segments, (message, block), key=lambda segment: (segment.message, segment.block)
    )


def message_blocks(codec: Codec, sent: Sent, number: int) -> list[str]:
    """Blocks of one wire message as they left, without markers."""
    text = sent.stored.get(str(number))
    if text is None:
        return [codec.block(block.part).text for block in _rendered(sent.surface, number)]
    content = bytes(_raw_object.decode(text).get("content", b"[]"))
    if content.startswith(b'"'):
        return [codec.block(Text(msgspec.json.decode(content, type=str))).text]
    return array_items(codec.unmarked_tools(content))


def system_blocks(codec: Codec, sent: Sent) -> list[str]:
    """Blocks of the system field as they left, without markers."""
    text = sent.stored.get("system")
    if text is None:
        return [codec.block(part).text for part in sent.header.system] if sent.header else []
    if text.startswith('"'):
        return [codec.block(Text(msgspec.json.decode(text, type=str))).text]
    return array_items(codec.unmarked_tools(text.encode())) if text.startswith("[") else [text]


def array_items(array: str) -> list[str]:
    """Items of a JSON array, each as it is spelled; none of an empty text."""
    return [bytes(raw).decode() for raw in _raw_array.decode(array)] if array else []


def object_items(text: str) -> dict[str, str]:
    """Fields of a JSON object, each value as it is spelled, in their order."""
    return {key: bytes(raw).decode() for key, raw in _raw_object.decode(text).items()}


def text_of(part: Part) -> str:
    """What a reader sees of a part."""
    match part:
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return f"{part.name}({part.arguments})"
        case ToolResult():
            return "\n".join(texts_in(part.content)) or "".join(map(text_of, part.content))
        case _:
            return part.block


def text_of_block(block: str) -> str:
    """What a reader sees of a block of text as sent; of any other block, its JSON."""
    value = parse_json(block)
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else block


def _rendered(surface: Surface, number: int) -> Iterator[Block]:
    index = place_of(surface, number, 0)
    while (block := block_at(surface, index)) is not None and block.segment.message == number:
        yield block
        index += 1
