"""The writer of a session's log: where the log ends, who may go on with it, and what waits for it.

Events that could not be written wait in order and are written before the next ones, with a
`StoreGap` that says so. Where too many waited or another writer went on meanwhile, they are lost:
the `StoreGap` says how many, and the session starts over from what is in the log.

It holds the lease of its session while a turn is under way. Between turns others may write.

**Out of scope.** What events mean, and so the state that they lead to (`session`).
"""

import logging
from collections.abc import Sequence

from barograph.core.errors import LogCorrupt, SequenceConflict, StoreError
from barograph.core.events import CallFailed, CallPlanned, Event, StoreGap, TurnEnded
from barograph.store.backlog import Backlog
from barograph.store.lease import Lease, new_holder
from barograph.store.protocol import End, Store
from barograph.store.turns import Turns

_log = logging.getLogger("barograph")
_WORTH_A_TRY = (CallPlanned, TurnEnded, CallFailed)
"""With what the store is asked again while it does not answer: each try may take its time-out."""
_NO_LOG = End(0, 0)


class Writer:
    """The end of one log, for one writer. Not safe to use from several threads at once.

    Args:
        store: where the log lives.
        session: id of the session.
        stops: whether a store that does not take events stops what they came from.

    Attributes:
        holder: name of this writer in the lease.
        turns: what it is in the middle of.
        backlog: what waits.
        end: where the log ends, as far as this writer knows.
        failed_appends: how often the store did not take events.
    """

    def __init__(self, store: Store, session: str, *, stops: bool) -> None:
        self.holder = new_holder()
        self.turns = Turns()
        self.backlog = Backlog()
        self.end = _NO_LOG
        self.failed_appends = 0
        self._store = store
        self._session = session
        self._stops = stops
        self._has_just_failed = False
        self._held_until = 0.0

    @property
    def waiting_events(self) -> int:
        """Events that the store has not taken yet, those given up included."""
        return len(self.backlog.events) + self.backlog.lost

    def holds(self, at: float) -> bool:
        """Whether nobody else may write at that time."""
        return self._held_until > at

    @property
    def stored_seq(self) -> int:
        """Seq of the last event of the log."""
        return self.end.seq

    def follow(self, end: End = _NO_LOG) -> None:
        """Go on where this log ends; a new one begins where none is given."""
        self.end = end

    def commit(self, events: Sequence[Event], *, calls: int) -> StoreGap | None:
        """Write events after those that wait, or let them wait too.

        Args:
            events: one step's.
            calls: number of the last call.

        Returns:
            What was written behind them where others had waited: `say_it_is_back` is due.

        Raises:
            SequenceConflict: another writer holds the session, or went on with it, or its log is
                another one.
            StoreError: the store did not take them, and the policy is to stop.
            LogCorrupt: the same, of a log that is damaged.
        """
        at, backlog = events[-1].at, self.backlog
        needed, held = self.turns.needed_seconds, self._held_until
        self._held_until = at + needed if needed else 0.0
        if backlog.lost or (backlog.events and not self._is_worth_a_try(events)):
            self.wait(events, "")
            return None
        late = backlog.events
        gap = backlog.gap(at=at, after=self.stored_seq, calls=calls) if late else None
        try:
            self.append([*late, *events, *([gap] if gap else ())])
        except (StoreError, LogCorrupt) as error:
            self.failed_appends += 1
            if self._stops:
                # the lease was not written either, and what raises here ends the turn of its path
                self._held_until = held
                self.turns.forget(getattr(events[-1], "path", ""))
                raise
            self.wait(events, str(error))
            return None
        except SequenceConflict as error:
            if self.stored_seq or not late or "until" in error.ids:
                raise
            # The session that could not be read when it was opened has a log: what was begun
            # without it does not follow its end. Nobody is in the way, so the turn goes on.
            backlog.give_up()
            self.wait(events, "")
            return None
        return gap

    def append(self, events: Sequence[Event]) -> None:
        """Write events, or nothing.

        Raises:
            SequenceConflict: another writer holds the session, or went on with it, or its log is
                another one.
            StoreError: the store did not take them.
            LogCorrupt: the log is damaged.
        """
        lease = Lease(holder=self.holder, until=self._held_until)
        try:
            self.end = self._store.append(self._session, events, after=self.end, lease=lease)
        except SequenceConflict:
            # The turn is lost to another writer; the next one begins with what that one wrote.
            self._held_until = 0.0
            self.turns.clear()
            raise

    def wait(self, events: Sequence[Event], reason: str) -> None:
        """Let events wait; said once, with the reason."""
        if not self.backlog:
            _log.error(
                "barograph: session %s goes on unlogged, its events wait in memory: %s",
                self._session,
                reason,
            )
        if self.backlog.add(events, reason):
            _log.error(
                "barograph: too many events of session %s wait for its store: they are lost",
                self._session,
            )

    def write_late(self, *, at: float, calls: int) -> StoreGap | None:
        """Write what waits; the gap that tells of it where the store took it.

        Raises:
            SequenceConflict: another writer holds the session.
        """
        backlog = self.backlog
        gap = backlog.gap(at=at, after=self.stored_seq, calls=calls)
        self._held_until = 0.0
        try:
            return gap if self._try([*backlog.events, gap]) else None
        except SequenceConflict as error:
            if "until" in error.ids:  # held: nothing can be done now
                raise
            backlog.give_up()  # they do not follow what is now the end of the log
            return None

    def write_loss(self, opening: Sequence[Event], *, at: float, calls: int) -> StoreGap | None:
        """Say in the log what is not in it; the gap that does where the store took it.

        Args:
            opening: how a log begins, where there is none.
            at: now.
            calls: number of the last call.
        """
        self.end = self._store.end(self._session)
        gap = self.backlog.gap(at=at, after=0, calls=calls)
        self._held_until = 0.0
        return gap if self._try([*(() if self.stored_seq else opening), gap]) else None

    def say_it_is_back(self, gap: StoreGap) -> None:
        """Nothing waits any more; said once, with what is late and lost."""
        self.backlog = Backlog()
        _log.warning(
            "barograph: session %s is logged again: %d events were late, %d are lost",
            self._session,
            gap.late,
            gap.lost,
        )

    def rest(self, path: str, call_id: str = "") -> None:
        """A call of that path, or the tool of that id, ended without a word."""
        self.turns.stop(path, call_id)
        if self.turns.needed_seconds or not self._held_until:
            return
        self._held_until = 0.0
        try:
            self._store.release(self._session, self.holder)
        except StoreError as error:
            _log.warning("barograph: session %s stays held for a while: %s", self._session, error)

    def let_go(self) -> None:
        """No turn goes on here."""
        self.turns.clear()
        self._held_until = 0.0

    def _is_worth_a_try(self, events: Sequence[Event]) -> bool:
        has_just_failed, self._has_just_failed = self._has_just_failed, False
        return not has_just_failed and any(isinstance(event, _WORTH_A_TRY) for event in events)

    def _try(self, events: Sequence[Event]) -> bool:
        try:
            self.append(events)
        except (StoreError, LogCorrupt):
            self.failed_appends += 1
            self._has_just_failed = True
            return False
        return True
