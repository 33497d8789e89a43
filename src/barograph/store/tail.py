"""The end of a log and the state there, whatever becomes of the store and of other writers.

A `Tail` has its `Writer` write what the engine decides, and holds the state that this leads to. Its
state is that of its log, or of it and of what waits for it: a tail whose events are lost starts
over from what is in the log, one whose log makes no sense has it set aside and begins another.

Between turns others may write; it then reads what they wrote before it goes on (`catch_up`).
"""

import logging
from collections.abc import Sequence

from barograph.core.engine import Append, Effect, Engine
from barograph.core.errors import LogCorrupt, SequenceConflict, StoreError, SurfaceError
from barograph.core.events import Event, Mode, StoreGap
from barograph.core.inputs import SessionStarted
from barograph.core.learning import learn, restore
from barograph.core.state import State
from barograph.store.protocol import End, Store
from barograph.store.writer import Writer

_log = logging.getLogger("barograph")
_DAMAGE = (LogCorrupt, SurfaceError, LookupError, TypeError, ValueError)
"""What reading and folding a log raises whose events make no sense, alone or together."""


class Tail:
    """The end of one log. Not safe to use from several threads at once.

    Args:
        store: where the log lives.
        session: id of the session, exactly as the store has it.
        engine: the rules it follows.
        made_by: names the writer and its version, for a log that begins.
        mode: the kind of run that it is, for a log that begins.

    Attributes:
        state: after the last event.
        writer: what writes them, and what waits.
        renewals: how often this object started over from a log that it had not written itself.
        pieces: by path, the fragments of its last body, as long as the log is the same.
    """

    def __init__(
        self, store: Store, session: str, engine: Engine, *, made_by: str, mode: Mode
    ) -> None:
        self.state = State()
        self.writer = Writer(store, session, stops=engine.policy.on_store_error == "stop")
        self.renewals = 0
        self.pieces: dict[str, tuple[bytes, ...]] = {}
        self._store, self._session, self._engine = store, session, engine
        self._made_by, self._mode = made_by, mode

    def open(self, at: float) -> None:
        """Go to the end of the log, or begin a new one; one that is damaged is set aside.

        Raises:
            SchemaTooNew: the log was written by a newer version.
            StoreError: the policy is to stop, and the store cannot be read or written.
            LogCorrupt: the policy is to stop, and the log does not fold.
        """
        try:
            end = self._store.end(self._session)
            is_new = not end.seq
            if not is_new:
                self._read_all(end)
        except StoreError:
            if self._stops:
                raise
            is_new = True  # as far as anybody can tell
        except _DAMAGE as error:
            if self._stops:
                raise
            self._abandon(error, at)
            return
        if is_new:
            self._begin(at)

    def catch_up(self, at: float) -> None:
        """Learn what other writers wrote, and write what waits.

        While this writer holds its session, there is nothing to learn.

        Raises:
            SequenceConflict: events wait, and another writer holds the session.
            StoreError: the store cannot be read, and the policy is to stop.
            LogCorrupt: what was written does not fold, and the policy is to stop.
        """
        try:
            if self.writer.backlog:
                self._settle(at)
            elif not self.writer.holds(at):
                end = self._store.end(self._session)
                if end != self.writer.end:
                    self._renew(end, at)
        except StoreError:
            if self._stops:
                raise
        except _DAMAGE as error:
            if self._stops:
                raise
            self._abandon(error, at)

    def commit(self, events: Sequence[Event], state: State) -> None:
        """Write events, or let them wait; the state after them is this one, and what a gap adds."""
        gap = self.writer.commit(events, calls=state.calls) if events else None
        self.state = state if gap is None else self._resumed(state, gap)

    def commit_strictly(self, events: Sequence[Event], state: State) -> None:
        """Write events, or nothing.

        Raises:
            SequenceConflict: another writer holds the session, or went on with it.
            StoreError: the store did not take them.
            LogCorrupt: the log is damaged.
        """
        if events:
            self.writer.append(events)
            self.state = state

    def is_last(self) -> bool:
        """Whether nobody else wrote since, as far as the store says.

        Raises:
            StoreError: the store cannot be read.
        """
        writer = self.writer
        return bool(writer.backlog) or self._store.last_seq(self._session) == writer.stored_seq

    def is_gone(self) -> bool:
        """Whether the log that it followed was deleted.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._store.end(self._session).log != self.writer.end.log

    def close(self, at: float) -> None:
        """Write what waits, or say that it is lost."""
        if self.writer.backlog:
            self.writer.let_go()
            try:
                self.catch_up(at)
            except (SequenceConflict, LogCorrupt) as error:
                _log.error("barograph: %s", error)
        if self.writer.backlog:
            _log.error(
                "barograph: %d events of session %s are lost: its store did not come back",
                self.writer.waiting_events,
                self._session,
            )

    @property
    def _stops(self) -> bool:
        return self._engine.policy.on_store_error == "stop"

    def _begin(self, at: float) -> None:
        try:
            self.commit(*self._opening(at))
        except SequenceConflict:  # another writer began it at this very moment
            self._read_all(self._store.end(self._session))

    def _opening(self, at: float) -> tuple[list[Event], State]:
        """How a log begins, and the state after that."""
        given = SessionStarted(at=at, session=self._session, made_by=self._made_by, mode=self._mode)
        state, effects = self._engine.step(State(), given)
        return events_in(effects), state

    def _read_all(self, end: End) -> None:
        self._take_over(restore(self._engine.codec, self._store.read(self._session)), end)

    def _renew(self, end: End, at: float) -> None:
        """Take over a log that others changed: it grew, or was deleted and perhaps begun anew."""
        known = self.writer.end
        if end.log == known.log and end.seq > known.seq:
            state = self.state
            for seq, event in self._store.read(self._session, after=known.seq):
                state = learn(self._engine.codec, state, seq, event)
            self._take_over(state, end)
        elif end.seq:
            self._read_all(end)
        else:
            self._start_empty()
            self._begin(at)
        self._is_another()

    def _take_over(self, state: State, end: End) -> None:
        """Go on with what was read of a log after its end was asked for.

        Where it was deleted in between, that is another log's: the next append is refused then.
        """
        self.state = state
        self.writer.follow(End(end.log, state.fold.seq))

    def _settle(self, at: float) -> None:
        """Write what waits, if the store is back; in a turn, its next call takes it along."""
        writer = self.writer
        if not writer.backlog.lost and not writer.holds(at):
            gap = writer.write_late(at=at, calls=self.state.calls)
            if gap is not None:
                self.state = self._resumed(self.state, gap)
        if writer.backlog.lost and not writer.turns.is_running:
            self._start_over(at)

    def _resumed(self, state: State, gap: StoreGap) -> State:
        """The state after what was late is in the log."""
        state = learn(self._engine.codec, state, state.fold.seq + 1, gap)
        self.writer.say_it_is_back(gap)
        return state

    def _start_over(self, at: float) -> None:
        """Say in the log what is not in it, and go back to what is."""
        opening, _ = self._opening(at)
        gap = self.writer.write_loss(opening, at=at, calls=self.state.calls)
        if gap is None:
            return
        self._read_all(self.writer.end)
        self._is_another()
        self.writer.say_it_is_back(gap)

    def _abandon(self, error: Exception, at: float) -> None:
        """Set a damaged log aside and begin a new one; where it cannot be, go on unlogged."""
        self._start_empty()
        self._is_another()
        try:
            aside = self._store.set_aside(self._session)
        except (StoreError, LogCorrupt) as why:
            opening, self.state = self._opening(at)
            self.writer.wait(opening, f"{error} {why}")
            self.writer.backlog.give_up()
        else:
            _log.error("barograph: a new log is begun, the old one is %r: %s", aside, error)
            self._begin(at)

    def _start_empty(self) -> None:
        self.state = State()
        self.writer.follow()

    def _is_another(self) -> None:
        """What was shown last is not what comes next."""
        self.pieces.clear()
        self.renewals += 1


def peek(store: Store, session: str, engine: Engine) -> State:
    """The state after the log of a session, or of one that has none yet; nothing is written.

    Raises:
        StoreError: the store cannot be read.
        LogError: the log is damaged, or of a newer version.
    """
    if not store.last_seq(session):
        return State()
    try:
        return restore(engine.codec, store.read(session))
    except (LookupError, TypeError, ValueError) as error:
        raise LogCorrupt(
            f"The log of session {session!r} does not fold ({type(error).__name__}: {error}).",
            next_step="Run `barograph verify` to see what is damaged.",
            session=session,
        ) from error


def events_in(effects: Sequence[Effect]) -> list[Event]:
    """What effects add to the log."""
    return [event for one in effects if isinstance(one, Append) for event in one.events]
