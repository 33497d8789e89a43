"""Pinned messages: what somebody wants kept, whatever is folded around it.

A pin holds a message of a path. No pass makes a stub of it, and a compaction that hides it quotes
it word for word in its digest, which is always made from the log: so the words stay the same,
however often history is folded. What a tool said is quoted as what a tool said.

All pinned text of a path together has a limit, and what would exceed it is refused: a pin that is
given is kept. A message that the caller shows once more, after a rewind, keeps its pin.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from barograph.core.errors import PinRefused, UnknownHandle
from barograph.core.events import Pinned
from barograph.core.inputs import PinWanted
from barograph.core.notes import notes_of
from barograph.core.state import State
from barograph.core.work import Work

MOST_CHARS: Final = 1_000
"""Of a path's pinned text, in all.

With a dozen rules of the user, that is 0.46 % of all that a session of ten compactions sends in a
window of 200 000 tokens (bench/digest.py). To keep what must be kept may cost 0.5 %.
"""


class Pin(Struct, frozen=True, kw_only=True):
    """A pinned message: its path, its handle, and what is kept of it."""

    path: str
    handle: str
    text: str


def list_pins(state: State) -> list[Pin]:
    """All pins of a session, in the order of the messages."""
    pins = [
        Pin(path=name, handle=f"#{seq}", text=text)
        for name in state.paths
        for seq, text in pinned_texts(state, name).items()
    ]
    return sorted(pins, key=lambda pin: int(pin.handle[1:]))


def pinned_texts(state: State, path: str) -> Mapping[int, str]:
    """What is pinned of a path, by the event that each message came by."""
    keys = state.path(path).pinned
    if not keys:
        return {}
    return {seq: text for seq, text in _texts(state, path).items() if seq in keys}


def pin(work: Work, given: PinWanted) -> None:
    """Log that a message is pinned, or let go; nothing where that changes nothing.

    Raises:
        UnknownHandle: no path shows the model a message of that number.
        PinRefused: it says nothing, or with it too much would be pinned.
    """
    # A message that the caller took back keeps its pin, and can be let go. A fork has it too.
    holding = [name for name, one in work.state.paths.items() if given.message in one.pinned]
    if not given.holds and holding:
        for name in holding:
            work.log(Pinned(at=given.at, path=name, message=given.message, holds=False))
        return
    path = _path_of(work.state, given.message)
    if not given.holds or path in holding:
        return
    _check_room(work.state, path, given.message)
    work.log(Pinned(at=given.at, path=path, message=given.message))


def _path_of(state: State, message: int) -> str:
    for name, path in state.paths.items():
        if any(one.seq == message for one in path.seen):
            return name
    raise UnknownHandle(
        f"No agent path has a message #{message} in its history.",
        next_step="Give the number of an event that brought a message, as `barograph show` names.",
        handle=f"#{message}",
    )


def _check_room(state: State, path: str, message: int) -> None:
    text = _texts(state, path).get(message, "")
    if not text.strip():
        raise PinRefused(
            f"#{message} says nothing that could be kept.",
            next_step="Pin a message with text: of the user, of the model, or a tool's result.",
            path=path,
            seq=message,
        )
    used = sum(map(len, pinned_texts(state, path).values()))
    if used + len(text) > MOST_CHARS:
        raise PinRefused(
            f"#{message} has {len(text)} characters, and of the {MOST_CHARS} that may be pinned in "
            f"{path}, {used} are.",
            next_step="Let another pin go, or none: the message stays in the log, where the model "
            "finds it with history_search and reads it with read_original.",
            path=path,
            seq=message,
        )


def _texts(state: State, path: str) -> dict[int, str]:
    """What each message of a path says, as a digest would quote it."""
    spoken = state.path(path).spoken
    notes = (note for one in spoken for note in notes_of(one, pinned=True))
    texts: dict[int, str] = {}
    for note in notes:
        if note.kind in ("said", "nod", "answer", "result") and note.text:
            texts[note.seq] = f"{texts[note.seq]}\n{note.text}" if note.seq in texts else note.text
    return texts
