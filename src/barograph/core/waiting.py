"""Tool calls that wait for their answer, and those that got it late.

A call that somebody must decide on is closed by a repair until its result comes, which may be many
rounds later. Meanwhile it stays where the model sees it, and when the result comes, it stays until
the model has answered: no fold may hide what nobody has read.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import Event, MessageSeen, ResponseCame
from barograph.core.parts import Parts, results_in

_MOST: Final = 8
"""So many are kept at most, the newest: a call of a tool that was killed waits for ever."""


class Waiting(Struct, frozen=True, kw_only=True):
    """The calls of a path that no fold hides, by their ids.

    Attributes:
        unanswered: closed by a repair, since nothing is known of their results.
        late: answered after such a repair, and not yet shown to the model.
    """

    unanswered: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    @property
    def kept(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.unanswered + self.late)

    def after(self, event: Event, parts: Parts) -> "Waiting":
        """After one more event of the path, whose content that is."""
        if isinstance(event, ResponseCame):
            return replace(self, late=()) if self.late else self
        if not isinstance(event, MessageSeen) or event.role != "tool":
            return self
        calls = results_in(parts)
        if event.origin == "repair" and event.same_as is None:
            unanswered = (*(one for one in self.unanswered if one not in calls), *calls)
            return replace(self, unanswered=unanswered[-_MOST:])
        late = tuple(call for call in calls if call in self.unanswered)
        if not late:
            return self
        left = tuple(one for one in self.unanswered if one not in late)
        return Waiting(unanswered=left, late=self.late + late)
