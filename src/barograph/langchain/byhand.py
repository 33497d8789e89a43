"""What whoever runs an agent does by hand, between its turns or in a tool: pin, compact, prune."""

from collections.abc import Callable

from barograph.core.pins import Pin
from barograph.langchain.places import Places
from barograph.store.folding import FoldByHand, compact_session, prune_session
from barograph.store.pinning import pin_message


class ByHand:
    """The part of the middleware that is called by people."""

    _places: Places
    _clock: Callable[[], float]

    def pin(self, handle: str, *, session: str | None = None, holds: bool = True) -> list[Pin]:
        """Keep a message whatever is folded around it, or let it go; all pins of the session then.

        Args:
            handle: `#` and the number of the event that brought the message.
            session: id of the session; by default the one that runs now, as in a tool.
            holds: False to let it go.

        Raises:
            UsageError: no such message, or with it too much would be pinned, or the session is not
                known.
            StoreError: the store cannot be read or written, and the policy is to stop.
        """
        opened = self._places.session_of(session)
        return pin_message(opened, handle, at=self._clock(), holds=holds)

    def compact(
        self, *, session: str | None = None, path: str = "main", dry_run: bool = False
    ) -> FoldByHand | None:
        """Put a summary in the place of the old history of an agent; None where none is worth it.

        It is computed from the log, without a model.

        Args:
            session: id of the session; by default the one that runs now.
            path: agent path.
            dry_run: change nothing, and tell what would be done.

        Raises:
            ArchiveRefused: it cannot be done now, and nothing changed; `reason` says why.
            UsageError: the session is not known.
        """
        meant = self._places.session_of(session)
        return compact_session(meant, path, at=self._clock(), dry_run=dry_run)

    def prune(
        self, *, session: str | None = None, path: str = "main", dry_run: bool = False
    ) -> FoldByHand | None:
        """Put stubs in the places of all old results of an agent, whatever it costs.

        Args:
            session: id of the session; by default the one that runs now.
            path: agent path.
            dry_run: change nothing, and tell what would be done.

        Returns:
            What was done; None where nothing has aged.

        Raises:
            ArchiveRefused: it cannot be done now, and nothing changed; `reason` says why.
            UsageError: the session is not known.
        """
        meant = self._places.session_of(session)
        return prune_session(meant, path, at=self._clock(), dry_run=dry_run)
