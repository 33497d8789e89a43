"""A session as people would tell it: who said what, in the order in which it was logged.

It is read from what was appended, once each, and not from requests: what a compaction hid from the
model still stands where it was said, and the compaction itself is one marker. What a response or a
tool result holds is not told again where the agent sends it on.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from barograph.core.events import (
    ArchiveMissed,
    AttemptFailed,
    CallFailed,
    Compacted,
    ConfigChanged,
    Event,
    Forked,
    FrameComposed,
    HandedBack,
    HeaderSet,
    KeptWarm,
    MessageLeftOut,
    MessageSeen,
    Nudged,
    Pruned,
    Replaced,
    ResponseCame,
    SessionOpened,
    StoreGap,
    ToolEnded,
    TurnBegan,
)
from barograph.core.parts import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from barograph.core.warming import KEEP_WARM


class Piece(Struct, frozen=True, kw_only=True):
    """A part of what was said.

    Attributes:
        title: what it is, where it is not plain text.
        text: its text; empty where it has none.
    """

    title: str = ""
    text: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    """One thing that was said, or that happened.

    Attributes:
        seq: its event.
        at: seconds since the epoch.
        who: `user`, `assistant`, `tool`; empty for what nobody said.
        path: agent path; empty for what concerns the whole session.
        what: more about it, or what happened.
        pieces: what was said.
    """

    seq: int
    at: float
    who: str = ""
    path: str = ""
    what: str = ""
    pieces: tuple[Piece, ...] = ()


def transcript_of(events: Iterable[tuple[int, Event]]) -> Iterator[Entry]:
    """The entries of a log, one for each event that tells something."""
    models: dict[str, str] = {}
    for seq, event in events:
        entry = _said(seq, event) or _happened(seq, event, models)
        if entry is not None:
            yield entry


def _said(seq: int, event: Event) -> Entry | None:
    """What somebody said."""
    match event:
        case MessageSeen(same_as=None):
            who: str = event.role
            what = "a repair: no result had come" if event.origin == "repair" else ""
        case ResponseCame() if not event.path.endswith(KEEP_WARM):
            who, what = "assistant", f"call {event.call}"
        case ToolEnded():
            who, what = "tool", event.name
            if event.is_error:
                what += f", {event.error or 'an error'}"
        case HandedBack():
            who, what = "assistant", f"said in its place, the turn was handed back: {event.cause}"
        case _:
            return None
    pieces = _pieces(event.parts)
    return Entry(seq=seq, at=event.at, who=who, path=event.path, what=what, pieces=pieces)


def _happened(seq: int, event: Event, models: dict[str, str]) -> Entry | None:
    """What changed or failed."""
    path = ""
    pieces: tuple[Piece, ...] = ()
    match event:
        case SessionOpened():
            what = f"session {event.session} begins, logged by {event.made_by}"
        case Forked() | TurnBegan():
            path, what = event.path, _began(event)
        case HeaderSet():
            path, what = event.path, _header(event, models.get(event.path))
            models[event.path] = event.model
        case Replaced():
            path, what, pieces = event.path, _replaced(event), _pieces(event.parts)
        case Compacted() | Pruned() | KeptWarm() | ArchiveMissed() | Nudged() | FrameComposed():
            path, (what, pieces) = event.path, _governed(event)
        case MessageLeftOut():
            path, pieces = event.path, _pieces(event.parts)
            what = f"not sent, a message of the {event.role}: {event.reason}"
        case CallFailed() | AttemptFailed():
            path = event.path
            name = "call" if isinstance(event, CallFailed) else f"attempt {event.attempt} of call"
            what = f"{name} {event.call} failed: {event.error}: {event.message}"
        case ConfigChanged():
            what = f"setting {event.knob}: {event.before} became {event.after}"
        case StoreGap():
            what = f"the store could not be written ({event.reason}): "
            what += f"{event.late} events late, {event.lost} lost"
        case _:
            return None
    return Entry(seq=seq, at=event.at, path=path, what=what, pieces=pieces)


def _governed(
    event: Compacted | Pruned | KeptWarm | ArchiveMissed | Nudged | FrameComposed,
) -> tuple[str, tuple[Piece, ...]]:
    """What we did to a surface or for its cache, and what the model reads of it."""
    match event:
        case KeptWarm():
            return f"kept warm: the request of call {event.call} is sent once more", ()
        case Compacted():
            what = f"compacted ({event.cause}): {len(event.shadows)} entries gave way to a summary:"
            return what, _pieces(event.parts)
        case Pruned():
            return f"pruned ({event.cause}): {len(event.stubs)} entries gave way to stubs", ()
        case Nudged():
            return f"nudged ({' and '.join(event.causes)}):", (Piece(text=event.text),)
        case FrameComposed():
            return _framed(event), _pieces(event.parts)
        case ArchiveMissed():
            return f"what a summary hides could not be archived: {event.reason}", ()


def _began(event: Forked | TurnBegan) -> str:
    """A turn that began, or a path."""
    if isinstance(event, Forked):
        return f"begins with the history of {event.of}"
    return f"turn {event.turn}"


def _framed(event: FrameComposed) -> str:
    """What came with a turn, and which sources failed."""
    said = [f"{one.source} ({one.change})" for one in event.sections]
    missed = [f"{one.source} failed: {one.reason}" for one in event.missed]
    colon = ":" if said else ""
    return "; ".join([f"frame of turn {event.turn}: {', '.join(said) or 'as before'}", *missed]) + (
        colon
    )


def _header(event: HeaderSet, model: str | None) -> str:
    """What is sent before the messages: all of it at first, then what changed."""
    if model is None:
        chars = sum(len(part.text) for part in event.system if isinstance(part, Text))
        return f"model {event.model}, a system prompt of {chars} characters"
    changed = [f"model {event.model}" if name == "model" else name for name in event.changed]
    return f"changed: {', '.join(changed)}"


def _replaced(event: Replaced) -> str:
    first, last = min(event.shadows, default=0), max(event.shadows, default=0)
    many = len(event.shadows)
    span = f"event {first}" if many == 1 else f"{many} entries, events {first} to {last}"
    return f"{event.cause}: out of the model's sight from here on: {span}" + (
        "; in their place:" if event.parts else ""
    )


def _pieces(parts: Iterable[Part]) -> tuple[Piece, ...]:
    return tuple(piece for part in parts for piece in _pieces_of(part))


def _pieces_of(part: Part) -> Iterator[Piece]:
    match part:
        case Text():
            yield Piece(text=part.text)
        case Thinking():
            yield Piece(title="thinking", text=part.text)
        case ToolCall():
            yield Piece(title=f"calls {part.name}", text=part.arguments)
        case ToolResult():
            if part.is_error:
                yield Piece(title="an error")
            yield from _pieces(part.content)
        case _:
            kind = part.kind if isinstance(part, Opaque) else type(part).__name__.lower()
            yield Piece(title=f"{kind}, {len(part.block)} characters of JSON")
