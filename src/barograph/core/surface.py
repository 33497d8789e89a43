"""Fold events into the surface of each agent path, and render it.

**Theory of operation.** The surface of a path is a header (system, tools, parameters) and a
sequence of entries, each the content of one event. `Fold.apply` takes one event and returns the
next fold; it is the only place that says what an event does to a surface. The live engine and a
reader in another process use the same fold, so what was sent is what can be rebuilt.

Entries are kept beside their *segments*: the blocks they render to, each with the hash chain of all
blocks before it. Appending an entry hashes that entry alone.

**Invariants.** The fold is pure: same events, same bytes, in every process (3). Only `Replaced` and
`Compacted` take entries away, and they must cite the whole contiguous run they hide (6); a citation
that does not fit is refused before anything changes. A `StoreGap` that says events are lost empties
every surface: what the model saw meanwhile is not in the log, so nothing may be derived across it.

**Out of scope.** Which events to log (`engine`), where markers go (`breakpoints`).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.breakpoints import Segment
from barograph.core.canonical import digest
from barograph.core.cuts import Pairing
from barograph.core.errors import LogCorrupt, SurfaceError, UnpairedToolCall
from barograph.core.events import (
    Breakpoint,
    Compacted,
    Event,
    Forked,
    FrameComposed,
    HeaderSet,
    KeptWarm,
    MessageSeen,
    Nudged,
    Pruned,
    Replaced,
    StoreGap,
    SummaryAsked,
    Ttl,
)
from barograph.core.model import Codec
from barograph.core.parts import (
    Part,
    Parts,
    Role,
    Text,
    ToolCall,
    ToolResult,
    calls_in,
    count_images,
    results_in,
)
from barograph.core.trail import Trail


class Entry(Struct, frozen=True):
    """One message of a surface.

    Attributes:
        seq: the event it came by.
        role: who speaks.
        parts: what is said.
        folded_by: the fold that put a stub or a summary into its place; 0 for none.
        is_request: whether the caller's user says it, and not a tool, the model, or we.
        hides: seqs of the messages that a summary stands for, those of earlier summaries included.
        is_nudge: whether it is a nudge, which the caller's history does not have.
        is_frame: whether it is the frame of a turn, which that does not have either.
    """

    seq: int
    role: Role
    parts: Parts
    folded_by: int = 0
    is_request: bool = False
    hides: tuple[int, ...] = ()
    is_nudge: bool = False
    is_frame: bool = False


class Surface(Struct, frozen=True):
    """What one agent path shows the model, as far as its log says.

    Attributes:
        header: the header in force, with the seq of its event; None before the first call.
        entries: messages in the order sent.
        segments: their blocks, in wire order.
        messages: number of wire messages (neighbouring user-side entries share one).
        images: number of images in them: one more or less anywhere costs the message cache.
    """

    header: HeaderSet | None = None
    header_seq: int = 0
    entries: Trail[Entry] = Trail()
    segments: Trail[Segment] = Trail()
    messages: int = 0
    images: int = 0

    @property
    def digest(self) -> str:
        """Hash chain over the segments, hex; empty where there are none."""
        last = self.segments.last
        return "" if last is None else last.key.hex()

    def appended(self, codec: Codec, entry: Entry) -> "Surface":
        """This surface with one more entry at its end."""
        before = self.segments.last
        key, chars = (before.key, before.end_chars) if before else (b"", 0)
        joins = before is not None and entry.role != "assistant" and self._ends_with_user
        message = self.messages - 1 if joins else self.messages
        block = before.block + 1 if before is not None and joins else 0
        new = []
        for part in entry.parts:
            wire = codec.block(part)
            key = digest(key, entry.role.encode(), wire.text.encode())
            chars += codec.weigh(part)
            new.append(Segment(key, chars, wire.markable, len(self.entries), message, block))
            block += 1
        return Surface(
            self.header,
            self.header_seq,
            entries=self.entries.appended(entry),
            segments=self.segments.extended(new),
            messages=message + 1,
            images=self.images + count_images(entry.parts),
        )

    def cut(self, keep: int) -> "Surface":
        """The first `keep` entries."""
        if keep == len(self.entries):
            return self
        gone = self.entries.span(keep)
        blocks = sum(len(entry.parts) for entry in gone)
        images = self.images - sum(count_images(entry.parts) for entry in gone)
        segments = self.segments.cut(len(self.segments) - blocks)
        messages = segments[-1].message + 1 if len(segments) else 0
        return replace(
            self,
            entries=self.entries.cut(keep),
            segments=segments,
            messages=messages,
            images=images,
        )

    def replaced(self, codec: Codec, seq: int, event: Replaced) -> "Surface":
        """This surface with a run of entries hidden.

        Raises:
            SurfaceError: the event does not cite a contiguous run of entries.
            UnpairedToolCall: hiding them would part a tool call from its result.
        """
        if not event.shadows and event.role is None:
            return self
        new = None if event.role is None else Entry(seq, event.role, event.parts)
        return self._without(codec, event, new)

    def compacted(self, codec: Codec, seq: int, event: Compacted) -> "Surface":
        """This surface with a summary in the place of a run of entries.

        Raises:
            SurfaceError: the event does not cite a contiguous run of entries.
            UnpairedToolCall: hiding them would part a tool call from its result.
        """
        start = self.find_run(event.shadows)
        hidden = self.entries.span(start, start + len(event.shadows))
        hides = tuple(one for entry in hidden for one in entry.hides or (entry.seq,))
        entry = Entry(seq, "user", event.parts, folded_by=seq, hides=hides)
        return self._without(codec, event, entry)

    def _without(self, codec: Codec, event: Replaced | Compacted, new: Entry | None) -> "Surface":
        """This surface with another entry, or none, in the place of those that an event cites."""
        start = self.find_run(event.shadows)
        after = self.entries.span(start + len(event.shadows))
        if isinstance(event, Compacted):
            after = _stubbed(after, event)
        if new is not None:
            after = [new, *after]
        faults = Pairing().faults([*self.entries.span(0, start), *after]) if after else []
        if faults:
            raise UnpairedToolCall(
                f"Replacing entries {event.shadows} of {event.path} breaks pairing: {faults[0]}.",
                next_step="Cut only where `Pairing.cuts` allows it.",
                path=event.path,
                shadows=event.shadows,
            )
        surface = self.cut(start)
        for entry in after:
            surface = surface.appended(codec, entry)
        return surface

    def pruned(self, codec: Codec, seq: int, event: Pruned) -> "Surface":
        """This surface with stubs in the places of some entries.

        Raises:
            SurfaceError: a stub is for an entry that is not there.
            UnpairedToolCall: a stub would part a tool call from its result.
        """
        stubs = {stub.seq: stub.parts for stub in event.stubs}
        start, left = len(self.entries), len(stubs)
        while start and left:
            start -= 1
            left -= self.entries[start].seq in stubs
        if left or len(stubs) < len(event.stubs):
            raise SurfaceError(
                f"The pass of {event.path} has stubs for entries that are not in its surface.",
                next_step="Take seqs from the surface that is to be pruned.",
                path=event.path,
                entries=tuple(stubs),
            )
        surface = self.cut(start)
        for entry in self.entries.span(start):
            parts = stubs.get(entry.seq)
            if parts is None:
                surface = surface.appended(codec, entry)
                continue
            if _pairs(parts) != _pairs(entry.parts):
                raise UnpairedToolCall(
                    f"The stub of entry {entry.seq} of {event.path} has other calls or results.",
                    next_step="A stub keeps the ids of the calls and results that it stands for.",
                    path=event.path,
                    entry=entry.seq,
                )
            surface = surface.appended(codec, replace(entry, parts=parts, folded_by=seq))
        return surface

    def framed(self, codec: Codec, seq: int, event: FrameComposed) -> "Surface":
        """This surface with the frame of a turn at its end, if it says anything."""
        if not event.parts:
            return self
        return self.appended(codec, Entry(seq, "user", event.parts, is_frame=True))

    def nudged(self, codec: Codec, seq: int, event: Nudged) -> "Surface":
        """This surface with a nudge at its end.

        Raises:
            SurfaceError: the result that it is to stand in is not at the end.
        """
        said = Text(event.text)
        if event.inside is None:
            return self.appended(codec, Entry(seq, "user", (said,), is_nudge=True))
        last = self.entries.last
        result = last.parts[-1] if last is not None and last.parts else None
        if last is None or not isinstance(result, ToolResult) or result.call_id != event.inside:
            raise SurfaceError(
                f"The nudge of {event.path} is to end the result for {event.inside}, which is not "
                "at the end of its surface.",
                next_step="Put a nudge into the newest result, or into a block of its own.",
                path=event.path,
                call=event.inside,
            )
        grown = replace(result, content=(*result.content, said))
        entry = replace(last, parts=(*last.parts[:-1], grown))
        return self.cut(len(self.entries) - 1).appended(codec, entry)

    def find_run(self, shadows: Sequence[int]) -> int:
        """Index of the first entry of the contiguous run that these seqs cite.

        Raises:
            SurfaceError: they are not one whole run, in order.
        """
        seqs = [entry.seq for entry in self.entries]
        if shadows and shadows[0] in seqs:
            start = seqs.index(shadows[0])
            if tuple(seqs[start : start + len(shadows)]) == tuple(shadows):
                return start
        raise SurfaceError(
            f"Events {tuple(shadows)} are not one contiguous run of the surface.",
            next_step="Cite every entry between the first and the last that is to be hidden.",
            shadows=tuple(shadows),
        )

    def chars_before(self, entry: int) -> int:
        """What all message blocks before an entry weigh."""
        first = bisect_left(self.segments, entry, key=lambda segment: segment.entry)
        return self.segments[first - 1].end_chars if first else 0

    @property
    def _ends_with_user(self) -> bool:
        return self.entries[-1].role != "assistant"


_EMPTY: Final = Surface()

_CHANGES: Final[Mapping[type, Callable[[Surface, Codec, int, Any], Surface]]] = {
    Replaced: Surface.replaced,
    Pruned: Surface.pruned,
    Compacted: Surface.compacted,
    Nudged: Surface.nudged,
    FrameComposed: Surface.framed,
}
"""What we do to a surface, by the event that says it."""


class Fold(Struct, frozen=True):
    """All surfaces of a session after some prefix of its log."""

    seq: int = 0
    surfaces: Mapping[str, Surface] = {}
    sources: Trail[tuple[int, Parts]] = Trail()

    def surface(self, path: str) -> Surface:
        """The surface of a path; an empty one before its first message."""
        return self.surfaces.get(path, _EMPTY)

    def without(self, path: str) -> "Fold":
        """This fold without a path that nothing comes back to."""
        left = {name: one for name, one in self.surfaces.items() if name != path}
        return Fold(self.seq, left, self.sources)

    def apply(self, codec: Codec, seq: int, event: Event) -> "Fold":
        """The fold after one more event.

        Raises:
            LogCorrupt: the event does not follow the one before, or names a source that is absent.
        """
        if seq != self.seq + 1:
            raise LogCorrupt(
                f"Event {seq} follows event {self.seq}.",
                next_step="Run `barograph verify`; a log has no gaps unless it was altered.",
                seq=seq,
            )
        match event:
            case MessageSeen():
                is_request = event.role == "user" and event.origin == "caller"
                content = self.content_of(seq, event)
                entry = Entry(seq, event.role, content, is_request=is_request)
                changed = self.surface(event.path).appended(codec, entry)
            case HeaderSet():
                changed = replace(self.surface(event.path), header=event, header_seq=seq)
            case Replaced() | Pruned() | Compacted() | Nudged() | FrameComposed():
                change = _CHANGES[type(event)]
                changed = change(self.surface(event.path), codec, seq, event)
            case SummaryAsked():
                whole = self.surface(event.path)
                asked = whole.cut(event.entries).appended(codec, Entry(seq, "user", event.parts))
                return Fold(seq, {**self.surfaces, event.by: asked}, self.sources)
            case Forked():
                begun = self.surface(event.of)
                return Fold(seq, {**self.surfaces, event.path: begun}, self.sources)
            case KeptWarm():
                same = self.surface(event.path)
                return Fold(seq, {**self.surfaces, event.by: same}, self.sources)
            case StoreGap() if event.lost:
                emptied = {path: _emptied(one) for path, one in self.surfaces.items()}
                return Fold(seq, emptied, self.sources)
            case _:
                parts = getattr(event, "parts", None)
                sources = self.sources.appended((seq, parts)) if parts else self.sources
                return Fold(seq, self.surfaces, sources)
        return Fold(seq, {**self.surfaces, event.path: changed}, self.sources)

    def content_of(self, seq: int, event: MessageSeen) -> Parts:
        """The parts of a seen message, looked up where it names its source."""
        if event.same_as is None:
            return event.parts
        last = self.sources.last
        if last is not None and last[0] == event.same_as:  # nearly always
            return last[1]
        index = bisect_left(self.sources, event.same_as, key=itemgetter(0))
        if index < len(self.sources) and self.sources[index][0] == event.same_as:
            return self.sources[index][1]
        raise LogCorrupt(
            f"Event {seq} takes its content from event {event.same_as}, which has none.",
            next_step="Run `barograph verify` to see what else is damaged.",
            seq=seq,
            same_as=event.same_as,
        )


def _emptied(surface: Surface) -> Surface:
    """The header alone: if that changed too, the next request says so."""
    return Surface(header=surface.header, header_seq=surface.header_seq)


def _stubbed(entries: list[Entry], event: Compacted) -> list[Entry]:
    """The entries after a summary, as it leaves them."""
    stubs = {stub.seq: stub.parts for stub in event.stubs}
    return [
        replace(entry, parts=stubs[entry.seq]) if entry.seq in stubs else entry for entry in entries
    ]


def _pairs(parts: Parts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return calls_in(parts), results_in(parts)


def fold_events(codec: Codec, events: Iterable[tuple[int, Event]]) -> Fold:
    """Fold a log from its first event."""
    fold = Fold()
    for seq, event in events:
        fold = fold.apply(codec, seq, event)
    return fold


def wire_messages(
    codec: Codec, surface: Surface, breakpoints: Sequence[Breakpoint], *, start: int = 0
) -> Iterator[bytes]:
    """Render the wire messages from number `start` on, markers included."""
    marks = marks_by_message(surface, breakpoints)
    first = _first_entry(surface, start)
    group: list[Part] = []
    role: Role = "user"
    number = start
    for entry in surface.entries.span(first):
        if group and (entry.role == "assistant" or role == "assistant"):
            yield _render(codec, role, group, marks.get(number, {}))
            group, number = [], number + 1
        group.extend(entry.parts)
        role = "assistant" if entry.role == "assistant" else "user"
    if group:
        yield _render(codec, role, group, marks.get(number, {}))


def marks_by_message(
    surface: Surface, breakpoints: Sequence[Breakpoint]
) -> dict[int, dict[int, Ttl]]:
    """Message breakpoints as wire message -> block in it -> TTL."""
    marks: dict[int, dict[int, Ttl]] = {}
    for mark in breakpoints:
        if mark.level == "messages":
            segment = surface.segments[mark.block]
            marks.setdefault(segment.message, {})[segment.block] = mark.ttl
    return marks


def marks_on(level: str, breakpoints: Sequence[Breakpoint]) -> dict[int, Ttl]:
    """Breakpoints of one level as block -> TTL."""
    return {mark.block: mark.ttl for mark in breakpoints if mark.level == level}


def tool_of(entries: Trail[Entry], call_id: str) -> str:
    """Name of the tool that the last calls of a surface asked for by that id; empty if unknown."""
    for entry in reversed(entries):
        if entry.role == "assistant":
            calls = (part for part in entry.parts if isinstance(part, ToolCall))
            return next((call.name for call in calls if call.id == call_id), "")
    return ""


def _render(codec: Codec, role: Role, parts: Sequence[Part], marks: Mapping[int, Ttl]) -> bytes:
    return codec.render_message(role, [codec.block(part).text for part in parts], marks)


def _first_entry(surface: Surface, message: int) -> int:
    """Index of the first entry of a wire message, looked for from the end, where changes are."""
    if message <= 0:
        return 0
    index = len(surface.segments)
    while index and surface.segments[index - 1].message >= message:
        index -= 1
    return surface.segments[index].entry if index < len(surface.segments) else len(surface.entries)
