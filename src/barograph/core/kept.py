"""What the sources of the frame keep in the log: a plan, a goal, which skill was used last."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from barograph.core.events import SourceKept


class _Note(NamedTuple):
    seq: int
    source: str
    key: str
    text: str


class Kept(Struct, frozen=True):
    """What is kept for an agent path. Superseded notes stay: history that is taken back has some.

    Attributes:
        notes: as they were logged, oldest first.
    """

    notes: tuple[_Note, ...] = ()

    def of(self, source: str) -> Mapping[str, str]:
        """What a source keeps now, by key; what was kept last stands last."""
        texts = dict[str, str]()
        for note in self.notes:
            if note.source == source:
                texts.pop(note.key, None)
                if note.text:
                    texts[note.key] = note.text
        return texts

    def with_event(self, seq: int, event: SourceKept) -> "Kept":
        """With what an event adds or takes away."""
        return Kept((*self.notes, _Note(seq, event.source, event.key, event.text)))

    def seen(self, since: int, seq: int) -> "Kept":
        """With all that was kept since an event dated by a message, with which it is taken back.

        A tool runs before the history has its call and its result.

        Args:
            since: number of that event.
            seq: number of the event that the message came by.
        """
        if not self.notes or self.notes[-1].seq <= since:
            return self
        return Kept(
            tuple(note._replace(seq=seq) if note.seq > since else note for note in self.notes)
        )

    def before(self, seq: int) -> "Kept":
        """As it was before an event of that number: what followed was taken back."""
        return Kept(tuple(note for note in self.notes if note.seq < seq))
