"""Where a request departs from the one before it: the first difference inside its cached prefix.

Requests are compared as they left. Message blocks carry a hash chain, so the first differing block
is found by bisection; pieces that a client spelled differently from us are compared on top of
that, as they were sent. Markers are left out: moving one changes no prefix.

Only the part of the earlier request that can have been cached counts. What follows its last marker
is new to the cache every time.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import dump_json, parse_json
from barograph.core.model import Codec
from barograph.core.sent import (
    Sent,
    array_items,
    block_at,
    message_blocks,
    object_items,
    place_of,
    system_blocks,
    text_of,
    text_of_block,
)
from barograph.core.surface import Surface

Where: TypeAlias = Literal["model", "tools", "system", "parameters", "messages"]

_CHARS_BEFORE: Final = 24
_CHARS_AFTER: Final = 56


class Divergence(Struct, frozen=True, kw_only=True):
    """The first place where two requests differ.

    Attributes:
        level: which part of the request.
        label: the tool, the parameter, or who speaks.
        segment: number of the segment in wire order, from 1: tools, system, then each message and
            tool result; None for what is no segment (model, parameters).
        segments: number of segments of the earlier request.
        message: index of the wire message; None outside of the messages.
        block: index of the block within the tools, the system or the message.
        place: index among all message blocks; None outside of the messages.
        offset: characters of the block's text that both sides share.
        before: excerpt of the earlier side around the offset; empty where it has no such block.
        after: the same of the later side.
        before_seq: event that the earlier block comes from.
        after_seq: event that the later block comes from.
    """

    level: Where
    label: str
    segment: int | None = None
    segments: int = 0
    message: int | None = None
    block: int | None = None
    place: int | None = None
    offset: int = 0
    before: str = ""
    after: str = ""
    before_seq: int | None = None
    after_seq: int | None = None


def find_divergence(codec: Codec, before: Sent, after: Sent) -> Divergence | None:
    """The first difference inside what the earlier call can have cached; None where there is none.

    It is looked for in the order in which a prefix is hashed: model, tools, system, then the
    parameters that messages depend on, then the messages. A body that could not be taken apart has
    no pieces to compare.
    """
    if before.is_whole or after.is_whole:
        return None
    found = (
        _in_model(before, after)
        or _in_tools(before, after)
        or _in_system(codec, before, after)
        or _in_parameters(codec, before, after)
        or _in_images(before, after)
        or _in_messages(codec, before, after)
    )
    return found and replace(found, segments=before.all_segments)


def shared_chars(one: str, other: str) -> int:
    """Length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        # what is below `low` is known to be equal
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _in_model(before: Sent, after: Sent) -> Divergence | None:
    one, other = (sent.header.model if sent.header else "" for sent in (before, after))
    return None if one == other else _departure("model", "model", one, other)


def _in_tools(before: Sent, after: Sent) -> Divergence | None:
    one, other = (sent.header.tools if sent.header else "" for sent in (before, after))
    if one == other:
        return None
    left, right = array_items(one), array_items(other)
    block = _first_difference(left, right)
    if block is None:  # nothing but the space between definitions
        return _departure("tools", "tools", one, other, segment=1) if left else None
    earlier, later = _item(left, block), _item(right, block)
    definition = parse_json(later or earlier)
    name = definition.get("name") if isinstance(definition, dict) else None
    return _departure("tools", str(name or "tools"), earlier, later, segment=1, block=block)


def _in_system(codec: Codec, before: Sent, after: Sent) -> Divergence | None:
    if before.header is after.header and before.stored is after.stored:
        return None
    left, right = system_blocks(codec, before), system_blocks(codec, after)
    block = _first_difference(left, right)
    if block is None:
        return None
    earlier, later = (text_of_block(_item(side, block)) for side in (left, right))
    segment = max(before.header_segments, after.header_segments)
    return _departure("system", "system", earlier, later, segment=segment, block=block)


def _in_parameters(codec: Codec, before: Sent, after: Sent) -> Divergence | None:
    """The first parameter that cache entries depend on and that changed."""
    one, other = before.header, after.header
    if one is None or other is None or before.scope == after.scope:
        return None
    left, right = object_items(one.parameters), object_items(other.parameters)
    base = codec.scope_of((), "", one.parameters)
    for key in dict.fromkeys((*left, *right)):
        if left.get(key) == right.get(key):
            continue
        mixed = {**left, key: right.get(key)}
        if codec.scope_of((), "", _object(mixed)) != base:
            return _departure("parameters", key, left.get(key, ""), right.get(key, ""))
    return None


def _in_images(before: Sent, after: Sent) -> Divergence | None:
    """An image more or less, anywhere, costs all cached messages, as a parameter does."""
    one, other = before.surface.images, after.surface.images
    if one == other:
        return None
    return _departure("parameters", "number of images", str(one), str(other))


def _in_messages(codec: Codec, before: Sent, after: Sent) -> Divergence | None:
    limit = before.marked_blocks
    place = _first_new_block(before.surface, after.surface, limit)
    for number in _respelled_messages(before, after):
        if place < limit and before.surface.segments[place].message < number:
            break
        found = _in_respelled(codec, before, after, number, limit)
        if found is not None:
            return found
    one, other = block_at(before.surface, place), block_at(after.surface, place)
    if place >= limit or one is None:
        return None
    found = _departure(
        "messages",
        one.entry.role,
        text_of(one.part),
        text_of(other.part) if other else "",
        segment=before.header_segments + one.segment.entry + 1,
        block=one.segment.block,
    )
    return replace(
        found,
        message=one.segment.message,
        place=place,
        before_seq=one.entry.seq,
        after_seq=other.entry.seq if other else None,
    )


def _first_new_block(before: Surface, after: Surface, limit: int) -> int:
    """Place of the first block whose chain differs, `limit` at most: equal keys, equal prefixes."""
    low, high = 0, min(limit, len(before.segments), len(after.segments))
    while low < high:
        middle = (low + high) // 2
        if before.segments[middle].key == after.segments[middle].key:
            low = middle + 1
        else:
            high = middle
    return low


def _respelled_messages(before: Sent, after: Sent) -> list[int]:
    """Wire messages of which a side left in other bytes than our rendering, unlike the other."""
    if before.stored == after.stored:
        return []
    return sorted(
        int(key)
        for key in before.stored.keys() | after.stored.keys()
        if key.isdecimal() and before.stored.get(key) != after.stored.get(key)
    )


def _in_respelled(
    codec: Codec, before: Sent, after: Sent, number: int, limit: int
) -> Divergence | None:
    left, right = (message_blocks(codec, sent, number) for sent in (before, after))
    block = _first_difference(left, right)
    if block is None:
        return None
    place = place_of(before.surface, number, block)
    one = block_at(before.surface, place)
    if place >= limit or one is None:
        return None
    segment = before.header_segments + one.segment.entry + 1
    found = _departure(
        "messages",
        one.entry.role,
        _item(left, block),
        _item(right, block),
        segment=segment,
        block=block,
    )
    return replace(found, message=number, place=place, before_seq=one.entry.seq)


def _departure(
    level: Where,
    label: str,
    before: str,
    after: str,
    *,
    segment: int | None = None,
    block: int | None = None,
) -> Divergence:
    offset = shared_chars(before, after)
    shown = slice(max(0, offset - _CHARS_BEFORE), offset + _CHARS_AFTER)
    return Divergence(
        level=level,
        label=label,
        segment=segment,
        block=block,
        offset=offset,
        before=before[shown],
        after=after[shown],
    )


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int | None:
    for index in range(max(len(left), len(right))):
        if _item(left, index) != _item(right, index):
            return index
    return None


def _item(items: Sequence[str], index: int) -> str:
    return items[index] if index < len(items) else ""


def _object(fields: dict[str, str | None]) -> str:
    pairs = (f"{dump_json(key).decode()}:{raw}" for key, raw in fields.items() if raw is not None)
    return "{" + ",".join(pairs) + "}"
