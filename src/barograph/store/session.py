"""One writer of one session: the engine's effects, made durable.

The engine is pure; a `Session` holds its state, commits what it says must be committed and keeps
the store's failures from becoming the agent's (policy `on_store_error`). Events that could not be
written wait in order and are written before the next ones, so a store that comes back has a log
without a gap.
"""

import logging
from collections.abc import Sequence
from threading import RLock

from barograph.core.engine import Append, Engine, Send
from barograph.core.errors import StoreError
from barograph.core.events import Event, Replaced, RequestSent
from barograph.core.inputs import BodyLeft, CallWanted, Header, Input, SessionStarted
from barograph.core.state import State, restore
from barograph.store.protocol import Store

_log = logging.getLogger("barograph")


class Session:
    """The live end of a log. Safe to use from several threads of one process.

    Args:
        store: where the log lives.
        session: id of the session, exactly as the store has it.
        engine: the rules it follows.
        state: its state so far.
    """

    def __init__(self, store: Store, session: str, engine: Engine, state: State) -> None:
        self.id = session
        self.engine = engine
        self._store = store
        self._state = state
        self._stored_seq = state.fold.seq
        self._waiting: list[Event] = []
        self._pieces: dict[str, tuple[bytes, ...]] = {}
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
        if store.last_seq(session):
            return cls(store, session, engine, restore(engine.codec, store.read(session)))
        opened = cls(store, session, engine, State())
        opened.take(SessionStarted(at=at, session=session, made_by=made_by))
        return opened

    @property
    def state(self) -> State:
        """The state after the last input."""
        return self._state

    @property
    def waiting_events(self) -> int:
        """Events that the store has not taken yet."""
        return len(self._waiting)

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
                self._commit(events)
            else:
                send = effect
        self._state = state
        return events, send

    def _commit(self, events: Sequence[Event]) -> None:
        try:
            self._stored_seq = self._store.append(
                self.id, [*self._waiting, *events], after=self._stored_seq
            )
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
