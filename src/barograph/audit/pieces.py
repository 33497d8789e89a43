"""Take a surface apart into weighed pieces, each of one kind: tools, speech, results and so on."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import parse_json
from barograph.core.model import Codec
from barograph.core.parts import (
    Document,
    Image,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    texts_in,
)
from barograph.core.sent import array_items, text_of
from barograph.core.surface import Entry, Surface
from barograph.core.texts import MARK_OPENS

Kind: TypeAlias = Literal[
    "tools",
    "system",
    "user",
    "assistant",
    "thinking",
    "arguments",
    "results",
    "stubs",
    "summaries",
    "images",
    "documents",
    "other",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
FIXED: Final[frozenset[Kind]] = frozenset({"tools", "system"})
"""What no fold can take off."""

_BEGINS_CHARS: Final = 120


class Piece(Struct, frozen=True, kw_only=True):
    """A block of a request; pictures and documents within a tool result are pieces of their own.

    Attributes:
        kind: what it is.
        name: the tool's name, where it belongs to one; of another block, its native type.
        chars: what it weighs, in characters.
        begins: how its text begins; empty for a picture or a document.
        seq: the event that its message came by; None for tools and system.
        message: index of the wire message; None for tools and system.
    """

    kind: Kind
    name: str = ""
    chars: int
    begins: str = ""
    seq: int | None = None
    message: int | None = None


def pieces_of(codec: Codec, surface: Surface) -> list[Piece]:
    """Every piece of a surface, in wire order."""
    return [*_header(codec, surface), *_messages(codec, surface)]


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """A whole number divided by weights: the shares are whole too, and add up to it."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    # who lost most by rounding down gets what is left
    lost = sorted(range(len(weights)), key=lambda index: -(total * weights[index] % whole))
    for index in lost[: total - sum(shares)]:
        shares[index] += 1
    return shares


def _header(codec: Codec, surface: Surface) -> Iterator[Piece]:
    header = surface.header
    if header is None:
        return
    tools = array_items(header.tools)
    # the meter weighs all tools as one text
    whole = codec.weigh(Text(header.tools)) if tools else 0
    for tool, chars in zip(tools, share_out(whole, [*map(len, tools)]), strict=True):
        yield Piece(kind="tools", name=_tool_name(tool), chars=chars, begins=_beginning(tool))
    for part in header.system:
        begins = _beginning(text_of(part))
        yield Piece(kind="system", chars=codec.weigh(part), begins=begins)


def _messages(codec: Codec, surface: Surface) -> Iterator[Piece]:
    names: dict[str, str] = {}
    segments = iter(surface.segments)
    for entry in surface.entries:
        for part in entry.parts:
            if isinstance(part, ToolCall):
                names[part.id] = part.name
            elif isinstance(part, Opaque) and part.kind == "tool_use":
                block = _fields(part)
                names[str(block.get("id"))] = str(block.get("name", ""))
            message = next(segments).message
            for piece in _pieces(codec, entry, part, names):
                yield replace(piece, seq=entry.seq, message=message)


def _pieces(codec: Codec, entry: Entry, part: Part, names: dict[str, str]) -> Iterator[Piece]:
    if entry.hides:
        yield _whole(codec, "summaries", "", part)
        return
    match part:
        case Text():
            yield _whole(codec, "assistant" if entry.role == "assistant" else "user", "", part)
        case Thinking():
            yield _whole(codec, "thinking", "", part)
        case ToolCall():
            kind: Kind = "stubs" if _is_stub(entry, part) else "arguments"
            yield _whole(codec, kind, part.name, part)
        case ToolResult():
            yield from _result(codec, entry, part, names.get(part.call_id, ""))
        case Image():
            yield Piece(kind="images", chars=codec.weigh(part))
        case Document():
            yield Piece(kind="documents", chars=codec.weigh(part))
        case Opaque(kind="redacted_thinking"):
            yield Piece(kind="thinking", chars=codec.weigh(part))
        case Opaque(kind="tool_use"):
            yield _whole(codec, "arguments", str(_fields(part).get("name", "")), part)
        case _:
            yield _whole(codec, "other", part.kind, part)


def _result(codec: Codec, entry: Entry, part: ToolResult, name: str) -> Iterator[Piece]:
    """The text of a result, and what else is in it: together they weigh what the result does."""
    left = part
    for kind, wanted in (("documents", Document), ("images", Image)):
        others = tuple(leaf for leaf in left.content if not isinstance(leaf, wanted))
        if len(others) < len(left.content):
            smaller = replace(left, content=others)
            chars = codec.weigh(left) - codec.weigh(smaller)
            yield Piece(kind=kind, name=name, chars=chars)  # type: ignore[arg-type]
            left = smaller
    yield _whole(codec, "stubs" if _is_stub(entry, left) else "results", name, left)


def _whole(codec: Codec, kind: Kind, name: str, part: Part) -> Piece:
    return Piece(kind=kind, name=name, chars=codec.weigh(part), begins=_beginning(text_of(part)))


def _is_stub(entry: Entry, part: Part) -> bool:
    """Whether a pass put a stub here: it leaves the other parts of an entry alone."""
    if not entry.folded_by:
        return False
    handle = f"#{entry.seq}"
    return any(MARK_OPENS in text and handle in text for text in texts_in((part,)))


def _tool_name(tool: str) -> str:
    block = parse_json(tool)
    found = block.get("name") or block.get("type") if isinstance(block, dict) else None
    return str(found or "")


def _fields(part: Opaque) -> dict[str, Any]:
    block = parse_json(part.block)
    return block if isinstance(block, dict) else {}


def _beginning(text: str) -> str:
    return text[:_BEGINS_CHARS]
