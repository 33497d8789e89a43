"""A request as the model saw it: its exact bytes, segment by segment, with where each came from.

The bytes are the truth here. The log adds what they do not say: which event a message comes from,
and why a marker stands where it stands.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.reading import LoggedCall, LoggedSession, Source, damage_named
from barograph.core.canonical import parse_json
from barograph.core.errors import LogCorrupt, UnknownCall
from barograph.core.model import Body
from barograph.core.readback import Request, read_requests
from barograph.core.sent import array_items, object_items, place_of
from barograph.store.protocol import Store

Level: TypeAlias = Literal["tools", "system", "messages", "body"]

_MARKER: Final = "cache_control"
_LINE_CHARS: Final = 120


class BlockView(Struct, frozen=True, kw_only=True):
    """One block as it left.

    Attributes:
        kind: its native type; `tool` for a tool definition.
        label: the tool's name and the call's id, where it has them.
        text: what a reader sees of it.
        raw: its JSON as sent, without a marker.
        ttl: lifetime of the marker on it; None where it has none.
        slot: why the marker was planned there; None where it was not ours.
    """

    kind: str
    label: str
    text: str
    raw: str
    ttl: str | None = None
    slot: str | None = None


class SegmentView(Struct, frozen=True, kw_only=True):
    """One segment as it left.

    Attributes:
        level: which part of the request; `body` for one that could not be taken apart.
        name: `tools`, `system`, `message 4`, `tool result 4.1`: numbered as in the request.
        role: who speaks on the wire; empty outside of the messages.
        message: index of the wire message; None outside of the messages.
        chars: characters of its text.
        blocks: in wire order.
        source: the event it comes from; None where the log does not tell.
        since_call: the first call that showed it.
    """

    level: Level
    name: str
    role: str = ""
    message: int | None = None
    chars: int
    blocks: tuple[BlockView, ...]
    source: Source | None = None
    since_call: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for segments that mean the same bytes, markers aside."""
        return (self.level, self.role, *(block.raw for block in self.blocks))


def read_request(store: Store, session: LoggedSession, call: LoggedCall) -> Request:
    """The request of a call's last attempt, bytes included.

    Raises:
        UnknownCall: the call never left.
        LogError: the log is damaged.
        StoreError: the store cannot be read.
    """
    number = call.plan.call
    if call.record_seq is None:
        raise never_left(session, call)
    with damage_named(f"Call {number}", session=session.session, call=number):
        for request in read_requests(session.codec, store.read(session.session), call=number):
            if request.seq == call.record_seq:
                return request
    raise LogCorrupt(
        f"The record of call {number} of session {session.session!r} is gone.",
        next_step="It was deleted or changed while it was read; try again.",
        session=session.session,
        call=number,
    )


def never_left(session: LoggedSession, call: LoggedCall) -> UnknownCall:
    """The error for a call that has no request."""
    number = call.plan.call
    return UnknownCall(
        f"Call {number} of session {session.session!r} was planned and never left.",
        next_step="There is no request to show; choose another call.",
        session=session.session,
        call=number,
    )


def view_request(session: LoggedSession, request: Request) -> tuple[SegmentView, ...]:
    """Take a request apart into segments, in wire order.

    Raises:
        LogCorrupt: it is not of the log's wire format.
    """
    call = request.record.call
    with damage_named(f"Call {call}", session=session.session, call=call):
        body = session.codec.split_body(request.exact) if request.record.order else None
        if body is not None:
            return tuple(_View(session, request).segments(body))
    text = request.exact.decode("utf-8", "replace")
    block = BlockView(kind="body", label="", text=text, raw=text)
    return (SegmentView(level="body", name="body", chars=len(text), blocks=(block,)),)


class _View:
    """What the log knows of one request, at hand for each segment."""

    def __init__(self, session: LoggedSession, request: Request) -> None:
        self._codec = session.codec
        self._request = request
        self._sources = session.sources
        self._shown = session.showings(request.record.path)
        self._slots = _slots(request)

    def segments(self, body: Body) -> Iterator[SegmentView]:
        """Tools, system, messages, in wire order."""
        if body.tools is not None:
            yield from self._header("tools", body.tools)
        if body.system is not None:
            yield from self._header("system", body.system)
        for number, piece in enumerate(body.messages):
            yield from self._message(number, piece.decode())

    def _header(self, level: Literal["tools", "system"], piece: bytes) -> Iterator[SegmentView]:
        blocks = self._blocks(piece, level, 0)
        source = self._header_source(level)
        if blocks:
            yield self._segment(level, level, blocks, source)

    def _message(self, number: int, piece: str) -> Iterator[SegmentView]:
        fields = object_items(piece)
        role = parse_json(fields.get("role", '""'))
        blocks = self._blocks(fields.get("content", "[]").encode(), "messages", number)
        groups = self._entries_of(number, len(blocks))
        for entry, start, stop in groups:
            found = self._request.surface.entries[entry] if entry is not None else None
            kind = "tool result" if found is not None and found.role == "tool" else "message"
            place = f"{number}.{start}" if len(groups) > 1 else str(number)
            source = self._sources.get(found.seq) if found is not None else None
            segment = self._segment("messages", f"{kind} {place}", blocks[start:stop], source)
            yield replace(segment, role=str(role), message=number)

    def _entries_of(self, number: int, blocks: int) -> list[tuple[int | None, int, int]]:
        """Entries that a wire message is made of, with the blocks of each.

        Where the message has more or fewer blocks than we derive, somebody else wrote it, and
        nothing is said of where it comes from.
        """
        surface = self._request.surface
        first = place_of(surface, number, 0)
        entries = [
            segment.entry
            for segment in surface.segments.span(first, first + blocks)
            if segment.message == number
        ]
        if len(entries) != blocks or place_of(surface, number + 1, 0) != first + blocks:
            return [(None, 0, blocks)]
        found: list[tuple[int | None, int, int]] = []
        start = 0
        for entry, run in groupby(entries):
            stop = start + len(list(run))
            found.append((entry, start, stop))
            start = stop
        return found

    def _blocks(self, piece: bytes, level: str, message: int) -> tuple[BlockView, ...]:
        if not piece.startswith(b"["):
            text = parse_json(piece.decode())
            raw = piece.decode()
            shown = text if isinstance(text, str) else raw
            return (BlockView(kind="text", label="", text=shown, raw=raw),)
        marked = array_items(piece.decode())
        raws = array_items(self._codec.unmarked_tools(piece))
        return tuple(
            read_block(sent, raw, self._slots.get((level, message, index)))
            for index, (sent, raw) in enumerate(zip(marked, raws, strict=True))
        )

    def _segment(
        self, level: Level, name: str, blocks: tuple[BlockView, ...], source: Source | None
    ) -> SegmentView:
        since = None
        if source is not None:
            index = bisect_right(self._shown, (source.seq, 0))
            since = self._shown[index][1] if index < len(self._shown) else None
        return SegmentView(
            level=level,
            name=name,
            chars=sum(len(block.text) for block in blocks),
            blocks=blocks,
            source=source,
            since_call=since,
        )

    def _header_source(self, level: str) -> Source | None:
        """The event that last changed tools or system before this request."""
        spans = self._spans()
        found = [
            source
            for source in self._sources.values()
            if source.event == "header_set"
            and source.seq <= spans.get(source.path, 0)
            and level in source.origin.split()
        ]
        return max(found, key=lambda source: source.seq, default=None)

    def _spans(self) -> dict[str, int]:
        """The path of the request, and those that it was forked from, each up to which event."""
        path = self._request.record.path
        spans = {path: self._request.surface.header_seq}
        forks = {one.path: one for one in self._sources.values() if one.event == "forked"}
        while path in forks:
            fork = forks[path]
            path = fork.origin
            spans[path] = fork.seq
        return spans


def read_block(marked: str, raw: str, slot: str | None) -> BlockView:
    """One block: `marked` as it left, `raw` without its marker."""
    value = parse_json(marked)
    if not isinstance(value, dict):
        return BlockView(kind="opaque", label="", text=marked, raw=raw)
    marker = value.pop(_MARKER, None)
    kind, label, text = _describe(value, raw)
    ttl = None
    if isinstance(marker, dict):
        ttl = str(marker.get("ttl", "5m"))
    return BlockView(
        kind=kind, label=label, text=text, raw=raw, ttl=ttl, slot=slot if ttl else None
    )


def _describe(value: dict[str, Any], raw: str) -> tuple[str, str, str]:
    """Kind, label and readable text of a block, whose JSON is `raw`."""
    kind, name = str(value.get("type", "")), str(value.get("name", ""))
    found = kind or ("tool" if name else "opaque"), name, _readable(value, raw)
    match value:
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            found = kind, "", text
        case {"type": "tool_use", "input": given}:
            spelled = object_items(raw).get("input", "")
            found = kind, f"{name} {value.get('id', '')}".strip(), _readable(given, spelled)
        case {"type": "tool_result", "tool_use_id": call}:
            label = f"{call} error" if value.get("is_error") else str(call)
            found = kind, label, _text_in(value.get("content", ""))
    return found


def _text_in(content: object) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    return "\n".join(
        _describe(item, json.dumps(item, ensure_ascii=False))[2]
        if isinstance(item, dict)
        else str(item)
        for item in items
    )


def _readable(value: object, spelled: str) -> str:
    """JSON as it is spelled where that fits a line, else one item a line."""
    if len(spelled) <= _LINE_CHARS:
        return spelled
    return json.dumps(value, indent=2, ensure_ascii=False)


def _slots(request: Request) -> dict[tuple[str, int, int], str]:
    """Why each planned marker stands where it stands, by level, wire message and block."""
    segments = request.surface.segments
    slots: dict[tuple[str, int, int], str] = {}
    for mark in request.plan.breakpoints:
        if mark.level != "messages":
            slots[mark.level, 0, mark.block] = mark.slot
        elif mark.block < len(segments):
            segment = segments[mark.block]
            slots["messages", segment.message, segment.block] = mark.slot
    return slots
