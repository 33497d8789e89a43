"""The volatile context of a turn: which sections are in force, and what is new to say.

**Theory of operation.** Sources offer their sections once a turn. A section that replaces (working
state, hot memory, an index) is sent when it changed, and taken back when it is gone; one that adds
(recalled passages) is sent as far as its items are not to be seen already. What is in force follows
from the frames that a surface still shows, in their order, so a rewind brings back what held before
and a fold that hides a frame arms its sections again.

A frame that others have superseded is carried like any old text, since to take it off would cost
the cache of all that follows. A pass that changes the surface anyway retires it with the rest.

**Invariants.** A frame is known by the event it came by, never by its words: no text of a user, a
tool or a document can be taken for one. What items say stays between tags that it cannot close, and
their trust is logged as it was given (11).

**Out of scope.** Who offers what (`barograph.frame`); when a frame is composed (`framing`).
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import digest
from barograph.core.events import (
    FrameChange,
    FrameComposed,
    FrameItem,
    FrameMissed,
    FrameSection,
    Stub,
)
from barograph.core.parts import Part, Parts, Text
from barograph.core.texts import frame_retired, section, section_removed
from barograph.core.trust import Item


class Offered(Struct, frozen=True, kw_only=True):
    """What a source offers for a turn: plain text of whoever runs the agent, or recalled items.

    One that offers nothing takes back what it gave before. `adds` is for items that stand beside
    the ones before them.
    """

    source: str
    text: str = ""
    items: tuple[Item, ...] = ()
    adds: bool = False


class Offer(Struct, frozen=True, kw_only=True):
    """What all sources offer for a turn, in their order, and those that failed."""

    sections: tuple[Offered, ...] = ()
    missed: tuple[FrameMissed, ...] = ()


class Holding(Struct, frozen=True):
    """A section in force: the frame it stands in, and what it says."""

    seq: int
    section: FrameSection
    text: str


class Sent(Struct, frozen=True):
    """A frame that the surface shows: its event, its turn, how old it is, and its sections.

    `replies` counts the messages of the model before it.
    """

    seq: int
    turn: int
    replies: int
    sections: tuple[tuple[FrameSection, str], ...]


_ItemKey: TypeAlias = tuple[str, str, str]


class Frames(Struct, frozen=True, kw_only=True):
    """The frames of an agent path.

    Attributes:
        sent: those that the surface shows, oldest first.
        holding: by source, the section in force.
        shown: source, id and digest of each item to be seen.
        hidden: by source, the section that was in force until a fold hid it; none once there is
            another frame, which says again what still holds.
        composed: number of the last turn that had its frame composed; 0 for none.
        lent: sources of what a path that was forked began with; one that is not asked there says
            nothing new.
    """

    sent: tuple[Sent, ...] = ()
    holding: Mapping[str, Holding] = {}
    shown: AbstractSet[_ItemKey] = frozenset()
    hidden: Mapping[str, Holding] = {}
    composed: int = 0
    lent: frozenset[str] = frozenset()

    def passed_on(self) -> "Frames":
        """The same for a path that is forked: not all of their sources may be asked there."""
        return replace(self, lent=self.lent.union(self.holding, self.hidden))

    def with_frame(self, seq: int, event: FrameComposed, replies: int) -> "Frames":
        """With one more frame at the end."""
        texts = [part.text for part in event.parts if isinstance(part, Text)]
        sections = tuple(zip(event.sections, texts, strict=False))
        sent = (*self.sent, Sent(seq, event.turn, replies, sections)) if sections else self.sent
        return replace(_in_force(sent), composed=event.turn, lent=self.lent)

    def without(self, seqs: Collection[int], *, by_fold: bool) -> "Frames":
        """With the frames of these events off the surface: by a fold, or with what was undone.

        What a fold had hidden is hidden once more where the frame that said it again is undone.
        """
        if not any(one.seq in seqs for one in self.sent):
            return self
        left = _in_force(one for one in self.sent if one.seq not in seqs)
        gone = {
            name: one
            for name, one in self.holding.items()
            if one.seq in seqs and name not in left.holding
            if by_fold or one.section.change == "again"
        }
        hidden = {**self.hidden, **gone}
        return replace(left, hidden=hidden, composed=self.composed, lent=self.lent)

    def pruned(self, stubs: Iterable[Stub]) -> "Frames":
        """With as much of each frame as a pass left of it."""
        kept = {stub.seq: {_text_of(part) for part in stub.parts} for stub in stubs}
        if not any(one.seq in kept for one in self.sent):
            return self
        sent = [
            replace(one, sections=tuple(pair for pair in one.sections if pair[1] in kept[one.seq]))
            if one.seq in kept
            else one
            for one in self.sent
        ]
        left = _in_force(one for one in sent if one.sections)
        return replace(left, hidden=self.hidden, composed=self.composed, lent=self.lent)

    def retired(self, *, turn: int, aged_before: int) -> dict[int, Parts]:
        """What a pass leaves of each frame of which something is superseded or has aged.

        Args:
            turn: the turn under way: its own frame stays.
            aged_before: number of the reply of the path before which recalled items have aged.
        """
        left: dict[int, Parts] = {}
        told: set[str] = set()  # sources that an older frame, which may stay, tells of
        for sent in self.sent:
            if sent.turn >= turn:
                continue
            is_aged = sent.replies < aged_before
            kept = [
                text
                for one, text in sent.sections
                if (
                    not is_aged or (one.change == "removed" and one.source in told)
                    if one.adds or one.change == "removed"
                    else self._holds(one.source, sent.seq)
                )
            ]
            told |= {one.source for one, _ in sent.sections if one.change != "removed"}
            if len(kept) < len(sent.sections):
                said = kept or [frame_retired(sent.turn, f"#{sent.seq}")]
                left[sent.seq] = tuple(map(Text, said))
        return left

    def _holds(self, source: str, seq: int) -> bool:
        """Whether what that source said in that frame is in force."""
        return source in self.holding and self.holding[source].seq == seq


def plan_sections(
    frames: Frames, offer: Offer, turn: int
) -> tuple[tuple[FrameSection, ...], tuple[Text, ...]]:
    """What is new to say for a turn, and how it is said."""
    planned = [_plan(frames, one, turn) for one in offer.sections]
    heard = {one.source for one in offer.sections}
    # one that failed, or is asked elsewhere only, said nothing new: what it gave before holds, and
    # is to be seen again
    quiet = {one.source for one in offer.missed} | (frames.lent - heard)
    planned += [_taken_back(name, turn) for name in frames.holding if name not in heard | quiet]
    planned += [_again(one) for name, one in frames.hidden.items() if name in quiet]
    said = [one for one in planned if one is not None]
    return tuple(one for one, _ in said), tuple(Text(text) for _, text in said)


def plan_again(frames: Frames) -> tuple[tuple[FrameSection, ...], tuple[Text, ...]]:
    """The sections that a fold has just hidden, word for word."""
    said = [_again(one) for one in frames.hidden.values()]
    return tuple(one for one, _ in said), tuple(Text(text) for _, text in said)


_Planned: TypeAlias = tuple[FrameSection, str]


def _again(one: Holding) -> _Planned:
    return replace(one.section, change="again"), one.text


def _plan(frames: Frames, offered: Offered, turn: int) -> _Planned | None:
    source, known = offered.source, frames.holding.get(offered.source)
    if offered.adds:
        new = {_key(source, item): item for item in offered.items}
        items = tuple(item for key, item in new.items() if key not in frames.shown)
        return _said(offered, items, "new", turn) if items else None
    if not offered.text and not offered.items:
        return _taken_back(source, turn) if known else None
    change: FrameChange = "changed"
    if known is None:
        was = frames.hidden.get(source)
        change = "again" if was and was.section.digest == _digest_of(offered) else "new"
    elif known.section.digest == _digest_of(offered):
        return None
    return _said(offered, offered.items, change, turn)


def _said(offered: Offered, items: tuple[Item, ...], change: FrameChange, turn: int) -> _Planned:
    planned = FrameSection(
        source=offered.source,
        change=change,
        adds=offered.adds,
        digest=_digest_of(offered),
        items=tuple(map(_logged, items)),
    )
    text = section(
        offered.source,
        turn=turn,
        text=offered.text,
        items=items,
        is_change=change == "changed",
    )
    return planned, text


def _logged(item: Item) -> FrameItem:
    return FrameItem(
        id=item.id,
        digest=_digest_of_item(item),
        trust=item.trust,
        origin=item.origin,
        domain=item.domain,
        date=item.date,
    )


def _taken_back(source: str, turn: int) -> _Planned:
    return FrameSection(source=source, change="removed"), section_removed(source, turn=turn)


def _key(source: str, item: Item) -> _ItemKey:
    return source, item.id, _digest_of_item(item)


def _digest_of(offered: Offered) -> str:
    items = (piece for item in offered.items for piece in (item.id, _digest_of_item(item)))
    return digest(offered.text.encode(), *(piece.encode() for piece in items)).hex()


def _digest_of_item(item: Item) -> str:
    said = (item.text, item.origin, item.domain, item.date, item.trust)
    return digest(*(piece.encode() for piece in said)).hex()


def _in_force(sent: Iterable[Sent]) -> Frames:
    """What is in force where these frames are to be seen, in their order."""
    frames = tuple(sent)
    holding: dict[str, Holding] = {}
    shown: set[_ItemKey] = set()
    for one in frames:
        for said, text in one.sections:
            if said.change == "removed":
                holding.pop(said.source, None)
            elif not said.adds:
                holding[said.source] = Holding(one.seq, said, text)
            shown |= {(said.source, item.id, item.digest) for item in said.items}
    return Frames(sent=frames, holding=holding, shown=shown)


def _text_of(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""
