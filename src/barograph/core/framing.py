"""Put the frame of a turn into the log: after the user's message, once, and again after a fold.

The adapter has the sources asked when a turn is about to begin (`opens_turn`) and hands over what
they offer with the call. Here it is logged if the turn does begin, with what is new of it only. A
call that goes on with a turn, after a tool, an interrupt or an error, has none.
"""

from msgspec import Struct

from barograph.core.events import FrameComposed, MessageSeen, TurnBegan
from barograph.core.frames import Frames, Offer, plan_again, plan_sections
from barograph.core.inputs import CallWanted
from barograph.core.intake import take_in
from barograph.core.model import Codec
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.core.state import State
from barograph.core.work import Work


class Opening(Struct, frozen=True):
    """How a turn would begin: what the user says, and the session with it."""

    text: str
    state: State


def opens_turn(codec: Codec, state: State, wanted: CallWanted, policy: Policy) -> Opening | None:
    """The turn that the call which is wanted begins; None where it begins none.

    Nothing is logged.
    """
    if not wanted.messages or wanted.messages[-1].role != "user":
        return None
    work = Work(codec, state)
    take_in(work, wanted, policy)
    if not _begins(work):
        return None
    entry = work.state.surface(wanted.path).entries[-1]
    text = "\n".join(part.text for part in entry.parts if isinstance(part, Text))
    return Opening(text, work.state)


def compose(work: Work, given: CallWanted) -> None:
    """Log the frame of a turn that has just begun, if one is offered.

    In a turn that goes on, what a fold hid is shown again where that was undone since.
    """
    offer, path = given.frame, work.state.path(given.path)
    if not _begins(work):
        rearm(work, given)
        return
    if offer is None:
        return
    frame = _frame(path.frames, offer, at=given.at, path=given.path, turn=path.turn)
    # a path that no source has ever had anything for has no frames
    if frame.sections or frame.missed or path.frames.composed:
        work.log(frame)


def supposed(codec: Codec, state: State, *, text: str, at: float, path: str) -> State:
    """The session as if a turn of that path began with these words; nothing is logged."""
    work = Work(codec, state)
    work.log(TurnBegan(at=at, path=path, turn=state.path(path).turn + 1))
    parts = (Text(text),) if text else ()
    work.log(MessageSeen(at=at, path=path, role="user", origin="caller", parts=parts))
    return work.state


def preview(state: State, offer: Offer, *, at: float, path: str) -> FrameComposed:
    """The frame of a turn that is supposed to have begun; nothing is logged."""
    known = state.path(path)
    return _frame(known.frames, offer, at=at, path=path, turn=known.turn)


def rearm(work: Work, given: CallWanted) -> int:
    """Show again what a fold has just hidden of what is in force; how much that weighs."""
    path = work.state.path(given.path)
    sections, texts = plan_again(path.frames)
    if not texts or path.turn != path.frames.composed:
        return 0
    work.log(
        FrameComposed(at=given.at, path=given.path, turn=path.turn, parts=texts, sections=sections)
    )
    return sum(map(work.codec.weigh, texts))


def _frame(frames: Frames, offer: Offer, *, at: float, path: str, turn: int) -> FrameComposed:
    sections, texts = plan_sections(frames, offer, turn)
    return FrameComposed(
        at=at, path=path, turn=turn, parts=texts, sections=sections, missed=offer.missed
    )


def _begins(work: Work) -> bool:
    """Whether a turn has begun in this step, by the message that is the newest."""
    began = [event.path for event in work.events if isinstance(event, TurnBegan)]
    if not began:
        return False
    entries = work.state.surface(began[-1]).entries
    return bool(len(entries)) and entries[-1].is_request
