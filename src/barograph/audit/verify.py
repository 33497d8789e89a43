"""Prove a log: every number, every body, every request.

A damaged log is what this is for, so damage is a finding, never an exception. Events are read to
the end whatever is found; from the first event that cannot be trusted on, nothing is derived, and
the requests that follow are counted as unchecked.
"""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct

from barograph.audit.reading import ALTERED, codec_of, unfit
from barograph.core.canonical import canonical_json
from barograph.core.cuts import Pairing
from barograph.core.errors import (
    BarographError,
    LogError,
    SchemaTooNew,
    SurfaceError,
    UnknownSession,
)
from barograph.core.events import CallPlanned, Event, RequestSent, StoreGap
from barograph.core.readback import Request, read_requests
from barograph.store.protocol import Store

MOST_FINDINGS: Final = 100
"""After so many findings a session is not read further: it is lost, and the list is long enough."""

_RESTORE: Final = (
    "Restore the store from a copy; the figures of this session are not to be trusted."
)


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be.

    Attributes:
        code: `log_corrupt`, `schema_too_new`, `not_exact`, `not_derived`, `unpaired`,
            `digest_differs`, `mismatch_at_send`, `events_lost`, or the code of another error; in a
            note, `events_late`.
        session: the session.
        seq: the event; None where none can be named.
        call: the call; None where none is concerned.
        what: one sentence.
        next_step: what to do.
    """

    code: str
    session: str
    seq: int | None = None
    call: int | None = None
    what: str
    next_step: str


class Verification(Struct, frozen=True, kw_only=True):
    """What was checked in one session, and what was found.

    Attributes:
        session: the session.
        events: events that were read.
        calls: calls that were planned.
        requests: requests that left or, under the policy to stop, were about to; attempts counted
            one by one.
        observed: those whose bytes the HTTP layer showed us.
        exact: those whose exact bytes come back with the recorded hash.
        derived: those that the events alone give, as canonical JSON.
        unchecked: those behind damage, of which nothing can be said.
        findings: what is not as it should be.
        notes: what is as it should be now, and was not always.
    """

    session: str
    events: int = 0
    calls: int = 0
    requests: int = 0
    observed: int = 0
    exact: int = 0
    derived: int = 0
    unchecked: int = 0
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify_store(store: Store) -> Iterator[Verification]:
    """Verify all sessions, the most recent first.

    Raises:
        StoreError: the store cannot be read.
    """
    for info in store.sessions():
        with suppress(UnknownSession):  # deleted meanwhile
            yield verify_session(store, info.session)


def verify_session(store: Store, session: str) -> Verification:
    """Verify one session.

    Raises:
        UnknownSession: no session of exactly that id.
        StoreError: the store cannot be read.
    """
    return _Verifier(store, session).run()


class _Verifier:
    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._findings: list[Finding] = []
        self._notes: list[Finding] = []
        self._events = self._calls = self._requests = self._observed = 0
        self._exact = self._derived = self._checked = 0
        self._is_damaged = False
        self._paired: dict[str, tuple[bytes, int, int]] = {}
        self._last: tuple[int, Event] | None = None

    def run(self) -> Verification:
        events = self._read()
        try:
            self._check_requests(events)
        except (LogError, SurfaceError) as error:
            self._report(error)
        deque(events, maxlen=0)  # bodies and numbers are proved by reading them
        return Verification(
            session=self._session,
            events=self._events,
            calls=self._calls,
            requests=self._requests,
            observed=self._observed,
            exact=self._exact,
            derived=self._derived,
            unchecked=self._requests - self._checked,
            findings=tuple(self._findings),
            notes=tuple(self._notes),
        )

    def _read(self) -> Iterator[tuple[int, Event]]:
        """Every event that can be read; past damage the numbering has a gap, and the fold stops."""
        after, end = 0, self._store.last_seq(self._session)
        while len(self._findings) < MOST_FINDINGS:
            try:
                for seq, event in self._store.read(self._session, after=after):
                    after = seq
                    self._count(event)
                    if isinstance(event, StoreGap):
                        self._tell_gap(seq, event)
                    yield seq, event
            except LogError as error:
                self._is_damaged = True
                self._report(error)
                broken = error.ids.get("seq")
                if not isinstance(broken, int) or isinstance(error, SchemaTooNew):
                    return
                after = max(after + 1, broken)
                if after >= end:
                    return
            else:
                return

    def _check_requests(self, events: Iterator[tuple[int, Event]]) -> None:
        first = next(events, None)
        if first is None or self._is_damaged:
            return
        codec, _ = codec_of(self._session, [first])
        try:
            for request in read_requests(codec, self._sound(first, events)):
                self._checked += 1
                self._check(request)
        except ALTERED as error:
            raise unfit(self._session, *(self._last or first), error) from error

    def _sound(
        self, first: tuple[int, Event], events: Iterator[tuple[int, Event]]
    ) -> Iterator[tuple[int, Event]]:
        """Events up to the first damage: what follows it cannot be folded."""
        yield first
        for seq, event in events:
            if self._is_damaged:
                return
            self._last = seq, event
            yield seq, event

    def _count(self, event: Event) -> None:
        self._events += 1
        if isinstance(event, CallPlanned):
            self._calls = max(self._calls, event.call)
        if isinstance(event, RequestSent):
            self._requests += 1
            self._observed += event.observed

    def _tell_gap(self, seq: int, gap: StoreGap) -> None:
        if gap.first_call:
            left = f"Calls {gap.first_call} to {gap.last_call} left before they were logged."
        else:
            left = "No call left meanwhile."
        told = self._findings if gap.lost else self._notes
        told.append(
            Finding(
                code="events_lost" if gap.lost else "events_late",
                session=self._session,
                seq=seq,
                what=(
                    f"The store could not be written for {gap.at - gap.since:.1f} s "
                    f"({gap.reason}): "
                    f"events late {gap.late}, lost {gap.lost}. {left}"
                ),
                next_step=(
                    "What the model saw meanwhile is not in this log; the rest of it is sound."
                    if gap.lost
                    else "Nothing is missing."
                ),
            )
        )

    def _check(self, request: Request) -> None:
        record, call = request.record, request.record.call
        if request.is_exact:
            self._exact += 1
        else:
            self._find(
                "not_exact",
                request,
                f"The bytes of call {call} do not have the hash recorded before they left.",
                _RESTORE,
            )
        if _same_json(request):
            self._derived += 1
        elif not record.mismatches:
            self._find(
                "not_derived",
                request,
                f"The events do not give the request of call {call}, and nothing was said of it "
                "when it left.",
                "Keep this log and report a defect of Barograph.",
            )
        for where in record.mismatches:
            self._find(
                "mismatch_at_send",
                request,
                # it left, unless the policy was to stop it
                f"The request of call {call} has another {_place(where)} than its log gives.",
                "Find what edits requests after Barograph: it must be the last middleware.",
            )
        for fault in self._pairing_faults(request):
            self._find("unpaired", request, f"Call {call} breaks pairing, {fault}.", _RESTORE)
        if request.plan.digest != request.surface.digest:
            self._find(
                "digest_differs",
                request,
                f"The messages of call {call} are not those that were planned.",
                _RESTORE,
            )

    def _pairing_faults(self, request: Request) -> list[str]:
        """Faults of a request; what the one before proved of the same entries is not redone."""
        path, entries = request.record.path, request.surface.entries
        segments = request.surface.segments
        key, blocks, proved = self._paired.get(path, (b"", 0, 0))
        is_longer = 0 < blocks <= len(segments) and segments[blocks - 1].key == key
        faults = Pairing().faults(entries.span(proved if is_longer else 0))
        if not faults and len(segments):
            self._paired[path] = segments[-1].key, len(segments), len(entries)
        else:
            self._paired.pop(path, None)
        return faults

    def _find(self, code: str, request: Request, what: str, next_step: str) -> None:
        self._findings.append(
            Finding(
                code=code,
                session=self._session,
                seq=request.seq,
                call=request.record.call,
                what=what,
                next_step=next_step,
            )
        )

    def _report(self, error: BarographError) -> None:
        seq = error.ids.get("seq")
        self._findings.append(
            Finding(
                code=error.code,
                session=self._session,
                seq=seq if isinstance(seq, int) else None,
                what=error.what,
                next_step=error.next_step,
            )
        )


def _same_json(request: Request) -> bool:
    if request.exact == request.derived:  # almost always, and much quicker than to parse both
        return True
    try:
        sent, derived = json.loads(request.exact), json.loads(request.derived)
    except (ValueError, RecursionError):
        return False
    return canonical_json(sent) == canonical_json(derived)


def _place(where: str) -> str:
    return f"message {where}" if where.isdecimal() else where
