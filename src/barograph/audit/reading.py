"""Read a session's log, once, into its calls: what left, what came back, what changed between.

The reader folds the log with the same `learn` as the live engine and keeps, for each call, the
surface as it was when the request left. Versions of a surface share their storage, so a session of
n calls takes O(n) time and space.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from barograph.core.errors import LogCorrupt, UnknownCall
from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Compacted,
    Event,
    Forked,
    FrameComposed,
    HeaderSet,
    KeptWarm,
    MessageSeen,
    Nudged,
    Pruned,
    Replaced,
    RequestSent,
    ResponseCame,
    SessionOpened,
)
from barograph.core.learning import learn
from barograph.core.model import Codec
from barograph.core.sent import Sent
from barograph.core.state import State
from barograph.core.verdict import Change, Rewrite, Verdict, judge
from barograph.providers.registry import codec_named
from barograph.store.protocol import Store

Outcome: TypeAlias = Literal["answered", "failed", "unanswered", "not_sent"]
Recovery: TypeAlias = Literal["succeeded", "failed", "open"]

RECOVERED: Final = ("overflow", "output_room")
"""Causes of failed attempts after which the same call is sent once more, and smaller."""

ALTERED: Final = (LookupError, ValueError, TypeError, RecursionError, msgspec.MsgspecError)
"""What folding a log raises that holds well-formed events which make no sense together."""


def recovery_of(outcome: Outcome) -> Recovery:
    """What came of sending a call once more, by how it ended."""
    if outcome == "answered":
        return "succeeded"
    return "failed" if outcome == "failed" else "open"


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One call as the log has it.

    Attributes:
        plan: the call: its number, path, turn, round and markers.
        plan_seq: its event.
        sent: the request of its last attempt; None where none left.
        record: the request record of that attempt.
        record_seq: its event.
        response: the answer; None where none came.
        failure: the error; None where the call did not fail.
        before: the last call of the same path that was answered before this one, or of the path
            that it was forked from.
        changes: events since then, of this path or of that one, that changed header or history.
        window_tokens: the model's window, where its provider had named it; else None.
        recovers: whether it was refused as too long, and was to be sent once more, smaller.
    """

    plan: CallPlanned
    plan_seq: int
    sent: Sent | None = None
    record: RequestSent | None = None
    record_seq: int | None = None
    response: ResponseCame | None = None
    failure: CallFailed | None = None
    before: Sent | None = None
    changes: tuple[Change, ...] = ()
    window_tokens: int | None = None
    recovers: bool = False

    @property
    def recovery(self) -> Recovery | None:
        """What came of sending it once more; None where it was not refused as too long."""
        return recovery_of(self.outcome) if self.recovers else None

    @property
    def outcome(self) -> Outcome:
        """How the call went."""
        if self.response is not None:
            return "answered"
        if self.failure is not None:
            return "failed"
        return "not_sent" if self.sent is None else "unanswered"

    def verdict(self, codec: Codec) -> Verdict | None:
        """Why the cache held or did not; None for a call that was not answered.

        Raises:
            LogCorrupt: the log does not hold a request of that wire format.
        """
        if self.sent is None or self.response is None:
            return None
        with damage_named(f"Call {self.plan.call}", call=self.plan.call):
            return judge(codec, self.before, self.sent, self.changes)


class Source(Struct, frozen=True, kw_only=True):
    """The event that a segment comes from.

    Attributes:
        seq: its number.
        event: its type.
        path: agent path.
        origin: `caller`, `model`, `tool`, `repair` or `nudge`; the cause of a replacement; what a
            header changed; the path that a fork begins as.
        same_as: the event that holds the content, where this one only names it.
        native_id: the framework's own id of the message.
    """

    seq: int
    event: str
    path: str
    origin: str
    same_as: int | None = None
    native_id: str | None = None


class LoggedSession(Struct, frozen=True, kw_only=True):
    """A session, read. `calls` are in the order of their numbers."""

    session: str
    codec: Codec
    opened: SessionOpened
    events: int
    calls: tuple[LoggedCall, ...]
    sources: dict[int, Source]

    def call(self, number: int) -> LoggedCall:
        """The call of that number.

        Raises:
            UnknownCall: there is none.
        """
        calls = self.calls
        index = bisect_left(calls, number, key=lambda call: call.plan.call)
        if index < len(calls) and calls[index].plan.call == number:
            return calls[index]
        there = "it has no calls yet"
        if calls:
            there = f"it has calls {calls[0].plan.call} to {calls[-1].plan.call}"
        raise UnknownCall(
            f"Session {self.session!r} has no call {number}: {there}.",
            next_step="`barograph why SESSION` lists its calls.",
            session=self.session,
            call=number,
        )

    @property
    def last(self) -> LoggedCall:
        """The last call.

        Raises:
            UnknownCall: the session has none yet.
        """
        return self.calls[-1] if self.calls else self.call(1)

    def showings(self, path: str) -> list[tuple[int, int]]:
        """Each request of an agent path that left: seq of its record, number of its call."""
        return [
            (call.record_seq, call.plan.call)
            for call in self.calls
            if call.plan.path == path and call.record_seq is not None
        ]


def codec_of(session: str, events: Iterable[tuple[int, Event]]) -> tuple[Codec, SessionOpened]:
    """The codec that a log names in its first event.

    Raises:
        LogCorrupt: the log does not begin as every log does.
        SchemaTooNew: a newer Barograph rendered its requests.
    """
    for _, event in events:
        if isinstance(event, SessionOpened):
            return codec_named(event.renderer), event
        break
    raise LogCorrupt(
        f"Session {session!r} does not begin with its opening event.",
        next_step="Run `barograph verify` to see what else is damaged.",
        session=session,
        seq=1,
    )


def read_session(store: Store, session: str) -> LoggedSession:
    """Read a whole session.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    events = iter(store.read(session))
    first = next(events, None)
    head = [] if first is None else [first]
    codec, opened = codec_of(session, head)
    reader = _Reader(session, codec)
    for seq, event in chain(head, events):
        reader.take(seq, event)
    return LoggedSession(
        session=session,
        codec=codec,
        opened=opened,
        events=reader.state.fold.seq,
        calls=tuple(reader.calls[number] for number in sorted(reader.calls)),
        sources=reader.sources,
    )


@contextmanager
def damage_named(what: str, **ids: object) -> Iterator[None]:
    """Turn what damaged content raises into an error that says whose content it is.

    Raises:
        LogCorrupt: in place of what was raised.
    """
    try:
        yield
    except ALTERED as error:
        raise LogCorrupt(
            f"{what} cannot be read back ({type(error).__name__}: {error}).",
            next_step="Run `barograph verify` to see what is damaged.",
            **ids,
        ) from error


def learn_logged(codec: Codec, state: State, seq: int, event: Event, session: str) -> State:
    """Learn an event of a stored log.

    Raises:
        LogCorrupt: the event does not fit the ones before it.
        SurfaceError: neither does it, and says why.
    """
    try:
        return learn(codec, state, seq, event)
    except ALTERED as error:
        raise unfit(session, seq, event, error) from error


def unfit(session: str, seq: int, event: Event, error: Exception) -> LogCorrupt:
    """The event is well formed and does not fit the log before it."""
    what = f"{type(error).__name__}: {error}"
    return LogCorrupt(
        f"Event {seq} ({tag_of(event)}) of session {session!r} does not fit its log ({what}).",
        next_step="Run `barograph verify` to see what else is damaged.",
        session=session,
        seq=seq,
    )


def tag_of(event: Event) -> str:
    """The name of an event's type in the log."""
    return str(event.__struct_config__.tag)


class _Reader:
    """The state of reading: calls so far, and per path the last answered one and what followed."""

    def __init__(self, session: str, codec: Codec) -> None:
        self.session = session
        self.codec = codec
        self.state = State()
        self.calls: dict[int, LoggedCall] = {}
        self.sources: dict[int, Source] = {}
        self._answered: dict[str, Sent] = {}
        self._changes: dict[str, list[Change]] = {}

    def take(self, seq: int, event: Event) -> None:
        self.state = learn_logged(self.codec, self.state, seq, event, self.session)
        match event:
            case (
                MessageSeen()
                | Nudged()
                | FrameComposed()
                | Replaced()
                | Pruned()
                | Compacted()
                | HeaderSet()
                | Forked()
            ):
                self.sources[seq] = _source(seq, event)
                if isinstance(event, Forked) and event.of in self._answered:
                    self._answered[event.path] = self._answered[event.of]
                    self._changes[event.path] = list(self._changes.get(event.of, ()))
                if not isinstance(event, MessageSeen | Nudged | FrameComposed | Forked):
                    self._changes.setdefault(event.path, []).append((seq, event))
            case KeptWarm() if event.path in self._answered:
                self._answered[event.by] = self._answered[event.path]
            case CallPlanned():
                # a call that is planned again keeps what it had
                known = self.calls.get(event.call, LoggedCall(plan=event, plan_seq=seq))
                again = msgspec.structs.replace(known, plan=event, plan_seq=seq)
                self.calls[event.call] = again
            case RequestSent():
                self._update(event.call, **self._sent(event), record=event, record_seq=seq)
            case AttemptFailed() if event.cause in RECOVERED:
                self._update(event.call, recovers=True)
            case ResponseCame():
                self._answer(event)
            case CallFailed():
                self._update(event.call, failure=event)
            case _:
                pass

    def _sent(self, event: RequestSent) -> dict[str, object]:
        path = self.state.path(event.path)
        if path.planned is None:
            return {}
        sent = Sent(
            plan=path.planned,
            surface=self.state.surface(event.path),
            scope=path.scope,
            stored=path.stored,
        )
        return {
            "sent": sent,
            "before": self._answered.get(event.path),
            "changes": tuple(self._changes.get(event.path, ())),
            "window_tokens": self.state.windows.get(sent.header.model) if sent.header else None,
        }

    def _answer(self, event: ResponseCame) -> None:
        call = self.calls.get(event.call)
        sent = call.sent if call else None
        if sent is not None:
            sent = msgspec.structs.replace(sent, usage=event.usage)
            self._answered[event.path] = sent
            self._changes[event.path] = []
            kept = self.state.path(event.path).keeps
            if kept is not None:  # what the next call of that path finds is what this one left
                self._answered[kept.path] = sent
        self._update(event.call, response=event, sent=sent)

    def _update(self, number: int, **fields: object) -> None:
        if number in self.calls:
            self.calls[number] = msgspec.structs.replace(self.calls[number], **fields)


def _source(
    seq: int, event: MessageSeen | Nudged | FrameComposed | Rewrite | HeaderSet | Forked
) -> Source:
    if isinstance(event, MessageSeen):
        origin: str = event.origin
    elif isinstance(event, Nudged):
        origin = "nudge"
    elif isinstance(event, FrameComposed):
        origin = "frame"
    elif isinstance(event, Forked):
        origin = event.of
    else:
        origin = " ".join(event.changed) if isinstance(event, HeaderSet) else event.cause
    return Source(
        seq=seq,
        event=tag_of(event),
        path=event.path,
        origin=origin,
        same_as=event.same_as if isinstance(event, MessageSeen) else None,
        native_id=event.native_id if isinstance(event, MessageSeen) else None,
    )
