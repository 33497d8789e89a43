"""Typed parts: what a message is made of, whatever framework or provider it came from.

A part keeps what was received. Text that we understand is typed; everything else is carried as the
raw JSON of its native block, so that nothing is lost between a provider's new feature and ours.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from barograph.core.canonical import parse_json

Role: TypeAlias = Literal["user", "assistant", "tool"]


class Text(Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str


class Thinking(Struct, frozen=True, tag="thinking"):
    """A model's reasoning, replayed as received; its signature binds it to what came before."""

    text: str
    signature: str | None = None


class ToolCall(Struct, frozen=True, tag="tool_call"):
    """A request to run a tool. `arguments` is the JSON text as the provider sent it."""

    id: str
    name: str
    arguments: str


class Image(Struct, frozen=True, tag="image"):
    """A picture, as the raw JSON of its native block."""

    block: str


class Document(Struct, frozen=True, tag="document"):
    """A document, as the raw JSON of its native block."""

    block: str


class Opaque(Struct, frozen=True, tag="opaque"):
    """Any other block, untouched: its native type and raw JSON."""

    kind: str
    block: str


Leaf: TypeAlias = Text | Image | Document | Opaque


class ToolResult(Struct, frozen=True, tag="tool_result"):
    """What a tool answered to the call of that id."""

    call_id: str
    content: tuple[Leaf, ...]
    is_error: bool = False


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Image | Document | Opaque
Parts: TypeAlias = tuple[Part, ...]

_encoder = msgspec.json.Encoder()


def encode_parts(parts: Iterable[Part]) -> bytes:
    """The one stored form of parts: UTF-8 JSON with a fixed field order."""
    return _encoder.encode(tuple(parts))


def calls_in(parts: Iterable[Part]) -> tuple[str, ...]:
    """Ids of the tool calls in these parts, in their order."""
    return tuple([call for part in parts if (call := _called_by(part)) is not None])


def _called_by(part: Part) -> str | None:
    if isinstance(part, ToolCall):
        return part.id
    if isinstance(part, Opaque) and part.kind == "tool_use":
        # a call with more to it than we understand, such as who else asked for it
        block = parse_json(part.block)
        return str(block["id"]) if isinstance(block, dict) and "id" in block else None
    return None


def results_in(parts: Iterable[Part]) -> tuple[str, ...]:
    """Ids of the calls that these parts answer, in their order."""
    return tuple([part.call_id for part in parts if isinstance(part, ToolResult)])


def texts_in(parts: Iterable[Part]) -> Iterator[str]:
    """Every readable text in these parts, tool results included."""
    for part in parts:
        if isinstance(part, ToolResult):
            yield from texts_in(part.content)
        elif isinstance(part, Text | Thinking):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.arguments


def count_images(parts: Iterable[Part]) -> int:
    """Images in these parts, tool results included."""
    count = 0
    for part in parts:
        if isinstance(part, ToolResult):
            count += count_images(part.content)
        elif isinstance(part, Image):
            count += 1
    return count
