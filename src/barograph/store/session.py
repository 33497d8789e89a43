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

from barograph.core.engine import Append, Archive, Effect, Engine, Send
from barograph.core.errors import (
    ArchiveFailed,
    LogCorrupt,
    SequenceConflict,
    StoreError,
    SurfaceError,
)
from barograph.core.events import (
    ArchiveMissed,
    Compacted,
    Event,
    Mode,
    Pruned,
    Replaced,
    RequestSent,
    StoreGap,
)
from barograph.core.framing import Opening, opens_turn
from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Header,
    Input,
    Refused,
    SessionStarted,
    WarmWanted,
)
from barograph.core.learning import learn, restore
from barograph.core.pressure import Gauge
from barograph.core.relief import measure
from barograph.core.state import State
from barograph.core.steering import HandBack
from barograph.core.warming import Refresh, Repeat, next_refresh
from barograph.core.work import Work
from barograph.store.archive import archive_messages
from barograph.store.originals import read_original
from barograph.store.protocol import End, Store
from barograph.store.writer import Writer

_log = logging.getLogger("barograph")
_REWRITES = (Replaced, Pruned, Compacted)
"""What changes a surface elsewhere than at its end."""

_DAMAGE = (LogCorrupt, SurfaceError, LookupError, TypeError, ValueError)
"""What reading and folding a log raises whose events make no sense, alone or together."""


class Session:
    """The live end of a log. Safe to use from several threads of one process.

    Args:
        store: where the log lives.
        session: id of the session, exactly as the store has it.
        engine: the rules it follows.
        made_by: names the writer and its version, for a log that begins.
        mode: the kind of run that it is, for a log that begins.

    Attributes:
        renewals: how often this object started over from a log that it had not written itself.
        failed_archives: how often what a fold hides was not copied to where it is searched.
    """

    def __init__(
        self, store: Store, session: str, engine: Engine, *, made_by: str, mode: Mode = "normal"
    ) -> None:
        self.id = session
        self.engine = engine
        self.renewals = 0
        self.failed_archives = 0
        self._made_by, self._mode = made_by, mode
        self._store = store
        self._writer = Writer(store, session, stops=engine.policy.on_store_error == "stop")
        self._state = State()
        self._pieces: dict[str, tuple[bytes, ...]] = {}
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
        goes_on = engine.policy.on_store_error == "continue"
        try:
            end = store.end(session)
            is_new = not end.seq
            if not is_new:
                opened._read_all(end)
        except StoreError:
            if not goes_on:
                raise
            is_new = True  # as far as anybody can tell
        except _DAMAGE as error:
            if not goes_on:
                raise
            opened._abandon(error, at)
            return opened
        if is_new:
            opened._begin(at)
        return opened

    @property
    def mode(self) -> Mode:
        """What kind of run it is here; the log may have begun as another."""
        return self._mode

    @property
    def state(self) -> State:
        """The state after the last input."""
        return self._state

    @property
    def store(self) -> Store:
        """Where its log lives."""
        return self._store

    def peek(self) -> State:
        """The state with what other writers wrote since; this object stays as it is.

        Raises:
            StoreError: the store cannot be read.
            LogError: the log is damaged, or of a newer version.
        """
        with self._lock:
            is_last = self._writer.backlog or (
                self._store.last_seq(self.id) == self._writer.stored_seq
            )
            return self._state if is_last else peek(self._store, self.id, self.engine)

    @property
    def waiting_events(self) -> int:
        """Events that the store has not taken yet, those given up included."""
        return self._writer.waiting_events

    @property
    def failed_appends(self) -> int:
        """How often the store did not take events."""
        return self._writer.failed_appends

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
            try:
                if self._writer.backlog:
                    self._settle(at)
                elif not self._writer.holds(at):
                    end = self._store.end(self.id)
                    if end != self._writer.end:
                        self._renew(end, at)
            except StoreError:
                if self.engine.policy.on_store_error == "stop":
                    raise
            except _DAMAGE as error:
                if self.engine.policy.on_store_error == "stop":
                    raise
                self._abandon(error, at)

    def close(self, *, at: float) -> None:
        """Write what waits, or say that it is lost."""
        with self._lock:
            if self._writer.backlog:
                self._writer.let_go()
                try:
                    self.catch_up(at=at)
                except (SequenceConflict, LogCorrupt) as error:
                    _log.error("barograph: %s", error)
            if self._writer.backlog:
                _log.error(
                    "barograph: %d events of session %s are lost: its store did not come back",
                    self.waiting_events,
                    self.id,
                )

    def next_refresh(self, path: str) -> Refresh | None:
        """When the last request of a path is to be repeated, to keep its cache entry alive."""
        with self._lock:
            return next_refresh(self._state, self.engine.codec, self.engine.policy, path)

    def warm(self, path: str, call: int, *, at: float) -> Repeat | None:
        """What to send now to keep the cache entry of that call alive; None where nothing is.

        It is in the log then, whatever the policy. A session that was deleted is not begun anew.

        Raises:
            SequenceConflict: another writer holds the session, or went on with it.
            StoreError: the store cannot be read or written.
            LogCorrupt: the log does not fold, and the policy is to stop.
        """
        with self._lock:
            if self._store.end(self.id).log != self._writer.end.log:
                return None
            self.catch_up(at=at)
            if self._writer.backlog:
                return None
            state, effects = self.engine.step(self._state, WarmWanted(at=at, path=path, call=call))
            events = _events_in(effects)
            if events:
                self._writer.append(events)
                self._state = state
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
            return opens_turn(self.engine.codec, self._state, wanted, self.engine.policy)

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
                before=self._pieces.get(path, ()),
                apart=apart,
            )
            events, _ = self._step(left)
            self._pieces[path] = apart.messages if apart else ()
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
            work = Work(self.engine.codec, self._state)
            return measure(work, wanted, self.engine.policy)

    @property
    def is_running(self) -> bool:
        """Whether a call or a tool is under way here."""
        return self._writer.turns.is_running

    def propose(self, given: Input) -> tuple[State, Sequence[Event]]:
        """What an input would log and lead to; nothing is written."""
        with self._lock:
            state, effects = self.engine.step(self._state, given)
        return state, _events_in(effects)

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
            self._writer.append(events)
            self._state = state
            self.renewals += 1  # what adapters showed last is not what comes next

    def _step(self, given: Input) -> tuple[Sequence[Event], Send | HandBack | None]:
        state, effects = self.engine.step(self._state, given)
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
        if events:
            state = self._commit(events, state)
        for path in self._pieces.keys() - state.paths.keys():  # a summary that is over
            del self._pieces[path]
        self._state = state
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

    def _commit(self, events: Sequence[Event], state: State) -> State:
        """Write events; the state after them is what they led to, and what a gap adds to it."""
        gap = self._writer.commit(events, calls=state.calls)
        return state if gap is None else self._resumed(state, gap)

    def _resumed(self, state: State, gap: StoreGap) -> State:
        """The state after what was late is in the log."""
        state = learn(self.engine.codec, state, state.fold.seq + 1, gap)
        self._writer.say_it_is_back(gap)
        return state

    def _settle(self, at: float) -> None:
        """Write what waits, if the store is back; in a turn, its next call takes it along."""
        writer = self._writer
        if not writer.backlog.lost and not writer.holds(at):
            gap = writer.write_late(at=at, calls=self._state.calls)
            if gap is not None:
                self._state = self._resumed(self._state, gap)
        if writer.backlog.lost and not writer.turns.is_running:
            self._start_over(at)

    def _start_over(self, at: float) -> None:
        """Say in the log what is not in it, and go back to what is."""
        gap = self._writer.write_loss(self._opening(at), at=at, calls=self._state.calls)
        if gap is None:
            return
        self._read_all(self._writer.end)
        self._pieces.clear()
        self.renewals += 1
        self._writer.say_it_is_back(gap)

    def _opening(self, at: float) -> tuple[Event, ...]:
        _, effects = self.engine.step(State(), self._started(at))
        return tuple(_events_in(effects))

    def _started(self, at: float) -> SessionStarted:
        return SessionStarted(at=at, session=self.id, made_by=self._made_by, mode=self._mode)

    def _abandon(self, error: Exception, at: float) -> None:
        """Set a damaged log aside and begin a new one; where it cannot be, go on unlogged."""
        self._start_empty()
        self._pieces.clear()
        self.renewals += 1
        try:
            aside = self._store.set_aside(self.id)
        except (StoreError, LogCorrupt) as why:
            opening = self._opening(at)
            self._writer.wait(opening, f"{error} {why}")
            self._writer.backlog.give_up()
            self._state = restore(self.engine.codec, enumerate(opening, start=1))
        else:
            _log.error("barograph: a new log is begun, the old one is %r: %s", aside, error)
            self._begin(at)

    def _begin(self, at: float) -> None:
        try:
            self.take(self._started(at))
        except SequenceConflict:  # another writer began it at this very moment
            self._read_all(self._store.end(self.id))

    def _read_all(self, end: End) -> None:
        self._take_over(restore(self.engine.codec, self._store.read(self.id)), end)

    def _renew(self, end: End, at: float) -> None:
        """Take over a log that others changed: it grew, or was deleted and perhaps begun anew."""
        known = self._writer.end
        if end.log == known.log and end.seq > known.seq:
            state = self._state
            for seq, event in self._store.read(self.id, after=known.seq):
                state = learn(self.engine.codec, state, seq, event)
            self._take_over(state, end)
        elif end.seq:
            self._read_all(end)
        else:
            self._start_empty()
            self._begin(at)
        self._pieces.clear()
        self.renewals += 1

    def _take_over(self, state: State, end: End) -> None:
        """Go on with what was read of a log after its end was asked for.

        Where it was deleted in between, that is another log's: the next append is refused then.
        """
        self._state = state
        self._writer.follow(End(end.log, state.fold.seq))

    def _start_empty(self) -> None:
        self._state = State()
        self._writer.follow()


def _events_in(effects: Sequence[Effect]) -> list[Event]:
    return [event for one in effects if isinstance(one, Append) for event in one.events]


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
