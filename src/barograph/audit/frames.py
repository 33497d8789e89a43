"""What entered a turn beside the user's message: its frame, and what held of earlier ones.

A turn may have several frames: the first is composed, each further one says again what a fold had
just hidden. What is in force after the first of them, and came by an earlier turn, is carried.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.reading import codec_of, learn_logged
from barograph.core.errors import UnknownTurn
from barograph.core.events import (
    CallPlanned,
    Compacted,
    Event,
    Forked,
    FrameChange,
    FrameComposed,
    FrameItem,
    FrameMissed,
    FrameSection,
    Pruned,
    Replaced,
    StoreGap,
    TurnBegan,
)
from barograph.core.frames import Frames
from barograph.core.parts import Parts, Text
from barograph.core.state import State

Fate: TypeAlias = Literal["in_force", "superseded", "retired", "folded", "undone", "lost"]


class ToldSection(Struct, frozen=True, kw_only=True):
    """A section of a frame, and what has become of it.

    Attributes:
        source: what it came from.
        change: `new`, `changed`, `removed` or `again`.
        adds: whether it stands beside the ones before it.
        turn: the turn that it came with.
        seq: event of its frame.
        chars: characters of its text.
        items: what it recalls; empty where it is plain text.
        text: what the model saw.
        fate: at the end of the log: `in_force`; `superseded` by what its source said since, and
            still to be seen; `retired` by a pass; `folded` by a compaction; `undone` with messages
            that were taken back; `lost` where the log has a gap.
        fate_seq: the event that did it; None where it is in force.
    """

    source: str
    change: FrameChange
    adds: bool
    turn: int
    seq: int
    chars: int
    items: tuple[FrameItem, ...]
    text: str
    fate: Fate = "in_force"
    fate_seq: int | None = None


class TurnFrame(Struct, frozen=True, kw_only=True):
    """What entered a turn of an agent path.

    Attributes:
        session: id of the session.
        path: agent path.
        turn: number of the turn.
        turns: number of the last turn of the path.
        began_at: seconds since the epoch.
        frames: events of its frames, in order; none where no source had anything to say.
        sections: what they said.
        missed: sources that failed or were late; what they gave before still held.
        carried: what was in force beside it, the oldest first.
    """

    session: str
    path: str
    turn: int
    turns: int
    began_at: float
    frames: tuple[int, ...]
    sections: tuple[ToldSection, ...]
    missed: tuple[FrameMissed, ...]
    carried: tuple[ToldSection, ...]


def read_frame(
    session: str, events: Iterable[tuple[int, Event]], *, path: str, turn: int | None
) -> TurnFrame:
    """What entered a turn, from the events of a whole log.

    Args:
        session: id of the session.
        events: all of them, in order.
        path: agent path.
        turn: number of the turn; None for the last.

    Raises:
        UnknownTurn: the path has no such turn.
        LogError: the log is damaged, or of a newer version.
        SurfaceError: its events do not fit each other.
    """
    logged = list(events)
    began = {e.turn: e for _, e in logged if isinstance(e, TurnBegan) and e.path == path}
    last = max(began, default=0)
    chosen = last if turn is None else turn
    if chosen not in began:
        raise _unknown(session, logged, path, turn, sorted(began))
    composed = [
        (seq, e)
        for seq, e in logged
        if isinstance(e, FrameComposed) and (e.path, e.turn) == (path, chosen)
    ]
    then, now = _frames_at(session, logged, path, chosen)
    own = [section for seq, event in composed for section in _sections(seq, event)]
    logged = _of_path(logged, path)
    return TurnFrame(
        session=session,
        path=path,
        turn=chosen,
        turns=last,
        began_at=began[chosen].at,
        frames=tuple(seq for seq, _ in composed),
        sections=tuple(_with_fate(section, logged, now) for section in own),
        missed=tuple(one for _, event in composed for one in event.missed),
        carried=tuple(_with_fate(section, logged, now) for section in _carried(then, chosen)),
    )


def _unknown(
    session: str,
    logged: Iterable[tuple[int, Event]],
    path: str,
    turn: int | None,
    there: Sequence[int],
) -> UnknownTurn:
    paths = dict.fromkeys(e.path for _, e in logged if isinstance(e, TurnBegan))
    what = "no turn" if turn is None else f"no turn {turn}"
    known = f"it has turns {there[0]} to {there[-1]}" if there else "it has none"
    return UnknownTurn(
        f"Agent path {path!r} of session {session!r} has {what}: {known}.",
        next_step=f"The agent paths that have turns are: {', '.join(paths) or 'none'}.",
        session=session,
        path=path,
        turn=turn,
    )


def _frames_at(
    session: str, logged: Sequence[tuple[int, Event]], path: str, turn: int
) -> tuple[Frames, Frames]:
    """The frames of a path when a turn had its own, and at the end of the log."""
    codec, _ = codec_of(session, logged)
    state, then = State(), None
    for seq, event in logged:
        state = learn_logged(codec, state, seq, event, session)
        if (
            then is None
            and isinstance(event, FrameComposed | CallPlanned)
            and (event.path, event.turn) == (path, turn)
        ):
            then = state.path(path).frames
    now = state.path(path).frames
    return then or now, now


def _of_path(logged: Sequence[tuple[int, Event]], path: str) -> list[tuple[int, Event]]:
    """What may have changed the surface of a path: that of what it was forked from came first."""
    found = []
    for seq, event in reversed(logged):
        if isinstance(event, Forked) and event.path == path:
            path = event.of
        elif isinstance(event, StoreGap) or getattr(event, "path", None) == path:
            found.append((seq, event))
    return found[::-1]


def _sections(seq: int, event: FrameComposed) -> Iterator[ToldSection]:
    for said, text in zip(event.sections, _texts(event.parts), strict=False):
        yield _told(said, text, turn=event.turn, seq=seq)


def _told(said: FrameSection, text: str, *, turn: int, seq: int) -> ToldSection:
    return ToldSection(
        source=said.source,
        change=said.change,
        adds=said.adds,
        turn=turn,
        seq=seq,
        chars=len(text),
        items=said.items,
        text=text,
    )


def _carried(frames: Frames, turn: int) -> Iterator[ToldSection]:
    """What is in force of the frames of other turns."""
    for sent in frames.sent:
        for said, text in sent.sections:
            if sent.turn != turn and said.change != "removed" and _holds(frames, said, sent.seq):
                yield _told(said, text, turn=sent.turn, seq=sent.seq)


def _holds(frames: Frames, said: FrameSection | ToldSection, seq: int) -> bool:
    """Whether a section that can be seen is what its source says."""
    held = frames.holding.get(said.source)
    if said.change == "removed":
        return held is None
    return said.adds or (held is not None and held.seq == seq)


def _with_fate(
    section: ToldSection, logged: Iterable[tuple[int, Event]], now: Frames
) -> ToldSection:
    for seq, event in logged:
        fate = _done_by(event, section) if seq > section.seq else None
        if fate is not None:
            return replace(section, fate=fate, fate_seq=seq)
    if _holds(now, section, section.seq):
        return section
    after = (
        sent.seq
        for sent in now.sent
        if sent.seq > section.seq
        and any(said.source == section.source and not said.adds for said, _ in sent.sections)
    )
    return replace(section, fate="superseded", fate_seq=next(after, None))


def _done_by(event: Event, section: ToldSection) -> Fate | None:
    """What an event does to a section, if it takes it off the surface."""
    match event:
        case Pruned():
            left = next((one.parts for one in event.stubs if one.seq == section.seq), None)
            return "retired" if left is not None and section.text not in _texts(left) else None
        case Compacted() if section.seq in event.shadows:
            return "folded"
        case Replaced() if section.seq in event.shadows:
            return "undone"
        case StoreGap() if event.lost:
            return "lost"
        case _:
            return None


def _texts(parts: Parts) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]
