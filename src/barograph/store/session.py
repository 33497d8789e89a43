"""The live end of one session: the engine's effects, made durable.

The engine is pure; a `Session` holds its state, commits what it says must be committed and keeps
the store's failures from becoming the agent's (policy `on_store_error`). Its `Writer` says what
waits while the store is away; a session whose events are lost starts over from what is in its log.

Between turns others may write; it then reads what they wrote before it goes on (`catch_up`).
"""

import logging
from collections.abc import Sequence
from threading import RLock

from msgspec.structs import replace

from barograph.core.engine import Append, Archive, Engine, Send
from barograph.core.errors import ArchiveFailed
from barograph.core.events import (
    ArchiveMissed,
    Compacted,
    Event,
    Mode,
    Pruned,
    Replaced,
    RequestSent,
)
from barograph.core.framing import Opening, opens_turn
from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Header,
    Input,
    Refused,
    WarmWanted,
)
from barograph.core.learning import learn
from barograph.core.pressure import Gauge
from barograph.core.relief import measure
from barograph.core.state import State
from barograph.core.steering import HandBack
from barograph.core.warming import Refresh, Repeat, next_refresh
from barograph.core.work import Work
from barograph.store.archive import archive_messages
from barograph.store.originals import read_original
from barograph.store.protocol import Store
from barograph.store.tail import Tail, events_in, peek
from barograph.store.writer import Writer

_log = logging.getLogger("barograph")
_REWRITES = (Replaced, Pruned, Compacted)
"""What changes a surface elsewhere than at its end."""


class Session:
    """The live end of a log. Safe to use from several threads of one process.

    Args:
        store: where the log lives.
        session: id of the session, exactly as the store has it.
        engine: the rules it follows.
        made_by: names the writer and its version, for a log that begins.
        mode: the kind of run that it is, for a log that begins.

    Attributes:
        failed_archives: how often what a fold hides was not copied to where it is searched.
    """

    def __init__(
        self, store: Store, session: str, engine: Engine, *, made_by: str, mode: Mode = "normal"
    ) -> None:
        self.id = session
        self.engine = engine
        self.failed_archives = 0
        self._mode = mode
        self._store = store
        self._tail = Tail(store, session, engine, made_by=made_by, mode=mode)
        self._lock = RLock()

    @classmethod
    def open(
        cls,
        store: Store,
        session: str,
        engine: Engine,
        *,
        at: float,
        made_by: str,
        mode: Mode = "normal",
    ) -> "Session":
        """Continue a session where its log ends, or begin a new one.

        A log that is damaged is set aside under another id, and a new one begins.

        Raises:
            SchemaTooNew: the log was written by a newer version.
            StoreError: the policy is to stop, and the store cannot be read or written.
            LogCorrupt: the policy is to stop, and the log does not fold.
        """
        opened = cls(store, session, engine, made_by=made_by, mode=mode)
        opened._tail.open(at)
        return opened

    @property
    def mode(self) -> Mode:
        """What kind of run it is here; the log may have begun as another."""
        return self._mode

    @property
    def state(self) -> State:
        """The state after the last input."""
        return self._tail.state

    @property
    def store(self) -> Store:
        """Where its log lives."""
        return self._store

    @property
    def renewals(self) -> int:
        """How often it started over from a log that it had not written itself, or not so."""
        return self._tail.renewals

    @property
    def waiting_events(self) -> int:
        """Events that the store has not taken yet, those given up included."""
        return self._writer.waiting_events

    @property
    def failed_appends(self) -> int:
        """How often the store did not take events."""
        return self._writer.failed_appends

    @property
    def _writer(self) -> Writer:
        return self._tail.writer

    def peek(self) -> State:
        """The state with what other writers wrote since; this object stays as it is.

        Raises:
            StoreError: the store cannot be read.
            LogError: the log is damaged, or of a newer version.
        """
        with self._lock:
            return self.state if self._tail.is_last() else peek(self._store, self.id, self.engine)

    def is_idle(self, at: float) -> bool:
        """Whether nothing is lost if this object is dropped at that time."""
        return not self._writer.backlog and not self._writer.holds(at)

    def catch_up(self, *, at: float) -> None:
        """Learn what other writers wrote since the last turn; `renewals` counts when they did.

        To be called before anything is asked of the state. While this writer holds its session,
        there is nothing to learn. What waits for the store is written here too.

        Raises:
            SequenceConflict: events wait, and another writer holds the session.
            StoreError: the store cannot be read, and the policy is to stop.
            LogCorrupt: what was written does not fold, and the policy is to stop.
        """
        with self._lock:
            self._tail.catch_up(at)

    def close(self, *, at: float) -> None:
        """Write what waits, or say that it is lost."""
        with self._lock:
            self._tail.close(at)

    def next_refresh(self, path: str) -> Refresh | None:
        """When the last request of a path is to be repeated, to keep its cache entry alive."""
        with self._lock:
            return next_refresh(self.state, self.engine.codec, self.engine.policy, path)

    def warm(self, path: str, call: int, *, at: float) -> Repeat | None:
        """What to send now to keep the cache entry of that call alive; None where nothing is.

        It is in the log then, whatever the policy. A session that was deleted is not begun anew.

        Raises:
            SequenceConflict: another writer holds the session, or went on with it.
            StoreError: the store cannot be read or written.
            LogCorrupt: the log does not fold, and the policy is to stop.
        """
        with self._lock:
            if self._tail.is_gone():
                return None
            self._tail.catch_up(at)
            if self._writer.backlog:
                return None
            state, effects = self.engine.step(self.state, WarmWanted(at=at, path=path, call=call))
            self._tail.commit_strictly(events_in(effects), state)
        return next((one for one in effects if isinstance(one, Repeat)), None)

    def rest(self, path: str, call_id: str = "") -> None:
        """A call of that path, or the tool of that id, ended without a word, so others may go on.

        It was interrupted or cancelled, and nothing says when it goes on, or where.
        """
        with self._lock:
            self._writer.rest(path, call_id)

    def original(self, handle: str) -> str:
        """The text that a stub stands for.

        Raises:
            UnknownHandle: there is none of that handle.
            LogError: the log is damaged.
            StoreError: the store cannot be read.
        """
        return read_original(self._store, self.id, handle)

    def opens_turn(self, wanted: CallWanted) -> Opening | None:
        """The turn that this call begins; None where it begins none."""
        with self._lock:
            return opens_turn(self.engine.codec, self.state, wanted, self.engine.policy)

    def want(self, wanted: CallWanted) -> tuple[Send | HandBack, bool]:
        """Ask for the surface of the next call; the flag says that history was rewritten for it.

        Where the turn is handed back, there is no next call.
        """
        with self._lock:
            events, send = self._step(self._allowed(wanted))
        if send is None:
            raise AssertionError(wanted)  # the engine answers every wanted call
        return send, any(isinstance(event, _REWRITES) for event in events)

    def leave(
        self, *, at: float, path: str, header: Header, body: bytes, observed: bool
    ) -> tuple[str, ...]:
        """Record a body before its bytes leave; where its meaning is not that of the surface."""
        with self._lock:
            apart = self.engine.codec.split_body(body)
            left = BodyLeft(
                at=at,
                path=path,
                header=header,
                body=body,
                observed=observed,
                before=self._tail.pieces.get(path, ()),
                apart=apart,
            )
            events, _ = self._step(left)
            self._tail.pieces[path] = apart.messages if apart else ()
        return next((e.mismatches for e in events if isinstance(e, RequestSent)), ())

    def take(self, given: Input) -> Send | None:
        """Log what happened otherwise; what to send, where a refused call is tried once more."""
        with self._lock:
            if isinstance(given, Answered | Refused) and given.wanted is not None:
                allowed = self._allowed(given.wanted)
                given = given if allowed is given.wanted else replace(given, wanted=allowed)
            send = self._step(given)[1]
        return send if isinstance(send, Send) else None

    def gauge(self, wanted: CallWanted) -> Gauge:
        """What the next request of that path weighs as it stands."""
        with self._lock:
            work = Work(self.engine.codec, self.state)
            return measure(work, wanted, self.engine.policy.of(wanted.header.model))

    @property
    def is_running(self) -> bool:
        """Whether a call or a tool is under way here."""
        return self._writer.turns.is_running

    def propose(self, given: Input) -> tuple[State, Sequence[Event]]:
        """What an input would log and lead to; nothing is written."""
        with self._lock:
            state, effects = self.engine.step(self.state, given)
        return state, events_in(effects)

    def commit_strictly(self, events: Sequence[Event], state: State) -> None:
        """Write what was proposed, or nothing.

        Raises:
            ArchiveFailed: what it hides could not be copied to where it is searched.
            SequenceConflict: another writer holds the session, or went on with it.
            StoreError: the store did not take it.
        """
        with self._lock:
            hidden = [seq for e in events if isinstance(e, Compacted) for seq in e.shadows]
            archive_messages(
                self._store, self.id, [q for q in hidden if q <= self._writer.stored_seq]
            )
            self._tail.commit_strictly(events, state)
            self._tail.renewals += 1  # what adapters showed last is not what comes next

    def _step(self, given: Input) -> tuple[Sequence[Event], Send | HandBack | None]:
        state, effects = self.engine.step(self.state, given)
        events: list[Event] = []
        missed: list[Event] = []
        send: Send | HandBack | None = None
        for effect in effects:
            match effect:
                case Archive():
                    missed += self._archive(effect)
                case Append():
                    events += effect.events
                case Send() | HandBack():
                    send = effect
        for event in missed:
            events.append(event)
            state = learn(self.engine.codec, state, state.fold.seq + 1, event)
        self._writer.turns.follow(given, sent=send.plan.path if isinstance(send, Send) else None)
        self._tail.commit(events, state)
        for path in self._tail.pieces.keys() - state.paths.keys():  # a summary that is over
            del self._tail.pieces[path]
        return events, send

    def _allowed(self, wanted: CallWanted) -> CallWanted:
        """What is wanted, without folds while the store is down: what is not kept stays shown."""
        return replace(wanted, folds=False) if self._writer.backlog else wanted

    def _archive(self, effect: Archive) -> list[Event]:
        """Copy what a fold will hide to where it is searched; the event that says that it failed.

        What came with this very step is not in the log yet. A search copies it when it is asked.
        """
        known = [seq for seq in effect.seqs if seq <= self._writer.stored_seq]
        try:
            archive_messages(self._store, self.id, known)
        except ArchiveFailed as error:
            self.failed_archives += 1
            _log.error("barograph: %s is compacted all the same: %s", effect.path, error)
            return [ArchiveMissed(at=effect.at, path=effect.path, reason=error.what)]
        return []
