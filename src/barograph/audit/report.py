"""What is told of each call of a session: what was new in its request, and where it broke.

A request repeats nearly all of the one before, so a report that shows each of them whole grows with
the square of the session. Here a call shows what the call before it on the same agent path did not
send: the whole of the first request, then what was added or changed.
"""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.explain import CallRow, row_of
from barograph.audit.reading import LoggedCall, LoggedSession, damage_named
from barograph.audit.segments import BlockView, Level, SegmentView, read_block
from barograph.core.divergence import Divergence, shared_chars
from barograph.core.masking import Rule, mask_text
from barograph.core.model import Codec
from barograph.core.sent import Sent, array_items, message_blocks, place_of, system_blocks

_DIFF_LINES: Final = 24
_WINDOW_BEFORE: Final = 200
_WINDOW_AFTER: Final = 4000


class CallReport(Struct, frozen=True, kw_only=True):
    """One call, told.

    Attributes:
        row: its figures and its verdict.
        repeated: message blocks at the beginning that the call before sent, too.
        since: that call; None for the first of a path.
        segments: what was new, in wire order.
        diff: the first lines of the difference that broke the cache.
    """

    row: CallRow
    repeated: int = 0
    since: int | None = None
    segments: tuple[SegmentView, ...] = ()
    diff: tuple[str, ...] = ()


def report_calls(session: LoggedSession, rules: Sequence[Rule] = ()) -> Iterator[CallReport]:
    """Every call of a session, in order.

    Args:
        session: the session, read.
        rules: secrets to mask in the diffs, which show parts of texts: of half a secret, nobody
            can tell what it is. Segments stay as they were sent.

    Raises:
        LogCorrupt: a request cannot be read back.
    """
    last: dict[str, Sent] = {}
    for call in session.calls:
        path, sent = call.plan.path, call.sent
        with damage_named(f"Call {call.plan.call}", call=call.plan.call):
            row = row_of(session.codec, call)
            if sent is None:
                yield CallReport(row=row)
                continue
            before = last.get(path)
            repeated = 0 if before is None else _shared_blocks(before, sent)
            yield CallReport(
                row=row,
                repeated=repeated,
                since=None if before is None else before.plan.call,
                segments=tuple(_new_segments(session, before, sent, repeated)),
                diff=tuple(_diff(session.codec, call, row, rules)),
            )
            last[path] = sent


def _shared_blocks(before: Sent, after: Sent) -> int:
    """Number of blocks at the beginning that both sent: each carries the hash of all up to it."""
    one, other = before.surface.segments, after.surface.segments
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high) // 2
        if one[middle].key == other[middle].key:
            low = middle + 1
        else:
            high = middle
    spelled = before.stored.items() ^ after.stored.items()
    numbers = [int(where) for where, _ in spelled if where.isdecimal()]
    return min([low, *(place_of(after.surface, number, 0) for number in numbers)])


def _new_segments(
    session: LoggedSession, before: Sent | None, sent: Sent, repeated: int
) -> Iterator[SegmentView]:
    if sent.is_whole:
        text = sent.stored["body"].encode("latin-1").decode("utf-8", "replace")
        yield _segment("body", "body", (BlockView(kind="body", label="", text=text, raw=text),))
        return
    codec, marks = session.codec, _marks(sent)
    for level in ("tools", "system"):
        raws = _header_blocks(codec, sent, level)
        if raws and (before is None or raws != _header_blocks(codec, before, level)):
            yield _segment(level, level, _views(raws, marks, (level, 0)))
    segments, entries = sent.surface.segments, sent.surface.entries
    first = segments[repeated].message if repeated < len(segments) else sent.surface.messages
    for number in range(first, sent.surface.messages):
        entry = entries[segments[place_of(sent.surface, number, 0)].entry]
        views = _views(message_blocks(codec, sent, number), marks, ("messages", number))
        yield replace(
            _segment("messages", f"message {number}", views),
            role=entry.role,
            message=number,
            source=session.sources.get(entry.seq),
        )


def _header_blocks(codec: Codec, sent: Sent, level: str) -> list[str]:
    if level == "system":
        return system_blocks(codec, sent)
    stored = sent.stored.get("tools")
    if stored is not None:
        return array_items(codec.unmarked_tools(stored.encode()))
    return array_items(sent.header.tools) if sent.header else []


def _marks(sent: Sent) -> dict[tuple[str, int, int], tuple[str, str]]:
    """Lifetime and slot of each marker, by level, wire message and block."""
    found: dict[tuple[str, int, int], tuple[str, str]] = {}
    for mark in sent.plan.breakpoints:
        place: tuple[str, int, int] = (mark.level, 0, mark.block)
        if mark.level == "messages" and mark.block < len(sent.surface.segments):
            segment = sent.surface.segments[mark.block]
            place = ("messages", segment.message, segment.block)
        found[place] = (mark.ttl, mark.slot)
    return found


def _views(
    raws: Sequence[str],
    marks: dict[tuple[str, int, int], tuple[str, str]],
    place: tuple[str, int],
) -> tuple[BlockView, ...]:
    views = []
    for index, raw in enumerate(raws):
        ttl, slot = marks.get((*place, index), (None, None))
        views.append(replace(read_block(raw, raw, None), ttl=ttl, slot=slot))
    return tuple(views)


def _segment(level: Level, name: str, blocks: tuple[BlockView, ...]) -> SegmentView:
    chars = sum(len(block.text) for block in blocks)
    return SegmentView(level=level, name=name, chars=chars, blocks=blocks)


def _diff(codec: Codec, call: LoggedCall, row: CallRow, rules: Sequence[Rule]) -> Iterator[str]:
    """First lines of the difference that the verdict names.

    Whole texts are masked and then cut: of half a secret, no rule could tell what it is.
    """
    divergence = row.verdict.divergence if row.verdict else None
    if divergence is None or call.before is None or call.sent is None:
        return
    raws = [_raw_at(codec, sent, divergence) for sent in (call.before, call.sent)]
    texts = [read_block(raw, raw, None).text if raw else "" for raw in raws]
    # what reads the same may be spelled otherwise
    left, right = (mask_text(side, rules) for side in (texts if texts[0] != texts[1] else raws))
    at = shared_chars(left, right)
    start = left.rfind("\n", 0, max(0, at - _WINDOW_BEFORE)) + 1
    window = slice(start, at + _WINDOW_AFTER)
    lines = unified_diff(left[window].split("\n"), right[window].split("\n"), lineterm="", n=2)
    for number, line in enumerate(lines):
        if 3 <= number < _DIFF_LINES + 3:  # after the two heads and the numbers of the first piece
            yield line


def _raw_at(codec: Codec, sent: Sent, divergence: Divergence) -> str:
    """What a request has at the place of a divergence; nothing where it has no such block."""
    block = divergence.block
    if block is None:
        return sent.header.parameters if sent.header else ""
    if divergence.level in ("tools", "system"):
        raws = _header_blocks(codec, sent, divergence.level)
    elif divergence.message is None or divergence.message >= sent.surface.messages:
        return ""
    else:
        raws = message_blocks(codec, sent, divergence.message)
    return raws[block] if block < len(raws) else ""
