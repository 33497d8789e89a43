"""One writer of one session: the engine's effects, made durable.

The engine is pure; a `Session` holds its state, commits what it says must be committed and keeps
the store's failures from becoming the agent's (policy `on_store_error`). Events that could not be
written wait in order and are written before the next ones, so a store that comes back has a log
without a gap.

It holds the lease of its session while a turn is under way. Between turns others may write; it
then reads what they wrote before it goes on (`catch_up`).
"""

import logging
from collections.abc import Sequence
from threading import RLock

from barograph.core.engine import Append, Engine, Send
from barograph.core.errors import SequenceConflict, StoreError
from barograph.core.events import Event, Replaced, RequestSent
from barograph.core.inputs import BodyLeft, CallWanted, Header, Input, SessionStarted
from barograph.core.state import State, learn, restore
from barograph.store.lease import Lease, new_holder
from barograph.store.protocol import Store
from barograph.store.turns import Turns

_log = logging.getLogger("barograph")


class Session:
    """The live end of a log. Safe to use from several threads of one process.

    Args:
        store: where the log lives.
        session: id of the session, exactly as the store has it.
        engine: the rules it follows.
        made_by: names the writer and its version, for a log that begins.
    """

    def __init__(self, store: Store, session: str, engine: Engine, *, made_by: str) -> None:
        self.id = session
        self.engine = engine
        self.renewals = 0
        self._made_by = made_by
        self._store = store
        self._state = State()
        self._stored_seq = 0
        self._last: Event | None = None
        self._waiting: list[Event] = []
        self._pieces: dict[str, tuple[bytes, ...]] = {}
        self._holder = new_holder()
        self._held_until = 0.0
        self._turns = Turns()
        self._lock = RLock()

    @classmethod
    def open(
        cls, store: Store, session: str, engine: Engine, *, at: float, made_by: str
    ) -> "Session":
        """Continue a session where its log ends, or begin a new one.

        Raises:
            StoreError: the store cannot be read, or a new session cannot be written.
            LogCorrupt: the log does not fold.
        """
        opened = cls(store, session, engine, made_by=made_by)
        if store.last_seq(session):
            opened._read_all()
        else:
            opened._begin(at)
        return opened

    @property
    def state(self) -> State:
        """The state after the last input."""
        return self._state

    @property
    def waiting_events(self) -> int:
        """Events that the store has not taken yet."""
        return len(self._waiting)

    def is_idle(self, at: float) -> bool:
        """Whether nothing is lost if this object is dropped at that time."""
        return not self._waiting and self._held_until <= at

    def catch_up(self, *, at: float) -> None:
        """Learn what other writers wrote since the last turn; `renewals` counts when they did.

        To be called before anything is asked of the state. While this writer holds its session,
        there is nothing to learn.

        Raises:
            StoreError: the store cannot be read, and the policy is to stop.
            LogCorrupt: what was written does not fold.
        """
        with self._lock:
            if self._waiting or self._held_until > at:
                return
            try:
                last = self._store.last_seq(self.id)
                if last != self._stored_seq:
                    self._renew(last, at)
            except StoreError:
                if self.engine.policy.on_store_error == "stop":
                    raise

    def rest(self, path: str, call_id: str = "") -> None:
        """A call of that path, or the tool of that id, ended without a word, so others may go on.

        It was interrupted or cancelled, and nothing says when it goes on, or where.
        """
        with self._lock:
            self._turns.stop(path, call_id)
            if self._turns.needed_seconds or not self._held_until:
                return
            self._held_until = 0.0
            try:
                self._store.release(self.id, self._holder)
            except StoreError as error:
                _log.warning("barograph: session %s stays held for a while: %s", self.id, error)

    def want(self, wanted: CallWanted) -> tuple[Send, bool]:
        """Ask for the surface of the next call; the flag says that history was rewritten for it."""
        with self._lock:
            events, send = self._step(wanted)
        if send is None:
            raise AssertionError(wanted)  # the engine answers every wanted call
        return send, any(isinstance(event, Replaced) for event in events)

    def leave(
        self, *, at: float, path: str, header: Header, body: bytes, observed: bool
    ) -> tuple[str, ...]:
        """Record a body before its bytes leave; where its meaning is not that of the surface."""
        with self._lock:
            before = self._pieces.get(path, ())
            events, _ = self._step(
                BodyLeft(
                    at=at, path=path, header=header, body=body, observed=observed, before=before
                )
            )
            pieces = self.engine.codec.split_body(body)
            self._pieces[path] = pieces.messages if pieces else ()
        return next((e.mismatches for e in events if isinstance(e, RequestSent)), ())

    def take(self, given: Input) -> Send | None:
        """Log what happened otherwise; what to send, where a refused call is tried once more."""
        with self._lock:
            return self._step(given)[1]

    def _step(self, given: Input) -> tuple[Sequence[Event], Send | None]:
        state, effects = self.engine.step(self._state, given)
        events: Sequence[Event] = ()
        send = None
        for effect in effects:
            if isinstance(effect, Append):
                events = effect.events
            else:
                send = effect
        self._turns.follow(given, is_sent=send is not None)
        if events:
            self._commit(events)
        self._state = state
        return events, send

    def _commit(self, events: Sequence[Event]) -> None:
        needed, at = self._turns.needed_seconds, events[-1].at
        until = at + needed if needed else 0.0
        lease = Lease(holder=self._holder, until=until)
        try:
            self._stored_seq = self._store.append(
                self.id, [*self._waiting, *events], after=self._stored_seq, lease=lease
            )
        except SequenceConflict:
            # The turn is lost to another writer; the next one begins with what that one wrote.
            self._held_until = 0.0
            self._turns.clear()
            raise
        except StoreError as error:
            if self.engine.policy.on_store_error == "stop":
                raise
            if not self._waiting:
                _log.error(
                    "barograph: session %s goes on unlogged, its events wait in memory: %s",
                    self.id,
                    error,
                )
            self._waiting.extend(events)
        else:
            self._waiting.clear()
        self._held_until = until
        self._last = events[-1]

    def _begin(self, at: float) -> None:
        try:
            self.take(SessionStarted(at=at, session=self.id, made_by=self._made_by))
        except SequenceConflict:  # another writer began it at this very moment
            self._read_all()

    def _read_all(self) -> None:
        events = list(self._store.read(self.id))
        self._set(restore(self.engine.codec, events), events[-1].event)

    def _renew(self, last: int, at: float) -> None:
        """Take over a log that others changed: it grew, or was deleted and perhaps begun anew."""
        known, newer = self._stored_seq, []
        if last > known:
            newer = list(self._store.read(self.id, after=known - 1))
        if newer and newer[0].event == self._last:
            state = self._state
            for seq, event in newer[1:]:
                state = learn(self.engine.codec, state, seq, event)
            self._set(state, newer[-1].event)
        elif last:
            self._read_all()
        else:
            self._state, self._stored_seq = State(), 0
            self._begin(at)
        self._pieces.clear()
        self.renewals += 1

    def _set(self, state: State, last: Event) -> None:
        self._state, self._stored_seq, self._last = state, state.fold.seq, last
