"""Send what keeps cache entries alive (`core.warming`), from a thread that wakes up for it.

One daemon thread for all agents of a middleware, and none while nothing is awaited: it begins with
the first answer that a pause may follow, and ends when no refresh is to come. It sends with the
synchronous client of the agent's model, async agents too, so no event loop waits for it, and with
the headers of the request that it repeats. Nothing of it outlives `close`.

What happens to a refresh never reaches the agent: a refusal is logged and said in one line, and the
path is left to cool.
"""

import logging
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any, Final

from msgspec import Struct

from barograph.core.errors import BarographError, SequenceConflict
from barograph.core.inputs import Answered, Refused
from barograph.core.warming import Refresh, Repeat
from barograph.langchain.calls import ModelCall
from barograph.langchain.track import Track
from barograph.langchain.wire import Envelope, Watch, resend
from barograph.store.session import Session

_NAP_SECONDS: Final = 5.0
"""The clock is asked as often as that: it is the caller's, and a machine may have slept."""

_SHOWN_CHARS: Final = 2000
_OK: Final = 200
_log = logging.getLogger("barograph")


class Pause(Struct, frozen=True, kw_only=True):
    """A path that was answered, and how its last request was sent.

    Attributes:
        call: number of that call; a newer one ends the pause.
    """

    session: Session
    path: str
    call: int
    model: Any
    envelope: Envelope

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.session.id, self.path

    def next_refresh(self) -> Refresh | None:
        """The next refresh; None where none is to come."""
        refresh = self.session.next_refresh(self.path)
        return refresh if refresh is not None and refresh.call == self.call else None


class Warmer:
    """The pauses of one middleware.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pauses: dict[tuple[str, str], Pause] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_closed = False

    def follow(self, track: Track, call: ModelCall) -> None:
        """Take note of an answer: a pause may begin."""
        plan = track.session.state.path(track.path).planned
        if not track.session.engine.policy.keep_warm_tokens or plan is None:
            return
        if call.envelope is None:
            return
        pause = Pause(
            session=track.session,
            path=track.path,
            call=plan.call,
            model=call.model,
            envelope=call.envelope,
        )
        with self._changed:
            if self._is_closed:
                return
            self._pauses[pause.key] = pause
            if self._thread is None:
                self._begin()
            self._changed.notify()

    def refresh_due(self) -> float | None:
        """Send what is due by the clock, now; when the next one is due, None where none is."""
        with self._changed:
            pauses = list(self._pauses.values())
        due = map(self._attend, pauses)
        return min((each for each in due if each is not None), default=None)

    def close(self) -> None:
        """Send nothing more, and wait for what is under way."""
        with self._changed:
            self._is_closed = True
            self._pauses.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _begin(self) -> None:
        """Start the thread; a turn goes on where the machine has none left, or its program ends."""
        thread = Thread(target=self._run, name="barograph-keep-warm", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._pauses.clear()
            _log.warning("barograph: nothing is kept warm: %s", error)
        else:
            self._thread = thread

    def _run(self) -> None:
        while True:
            due = self.refresh_due()
            with self._changed:
                if not self._pauses:
                    self._thread = None
                    return
                left = _NAP_SECONDS if due is None else due - self._clock()
                self._changed.wait(min(max(left, 0.0), _NAP_SECONDS))

    def _end(self, pause: Pause) -> None:
        with self._changed:
            if self._pauses.get(pause.key) is pause:
                del self._pauses[pause.key]

    def _attend(self, pause: Pause) -> float | None:
        """Send what is due of a pause; when its next refresh is due, None where it is over."""
        refresh = None
        try:
            refresh = pause.next_refresh()
            if refresh is not None and refresh.due <= self._clock():
                self._refresh(pause)
                refresh = pause.next_refresh()
                is_new = refresh is not None and refresh.due > self._clock()
                refresh = refresh if is_new else None
        except SequenceConflict:
            refresh = None  # another process goes on with the session
        except Exception as error:  # noqa: BLE001 - a thread of its own has nobody to tell
            refresh = None
            _say_it_ends(pause, str(error))
        if refresh is None:
            self._end(pause)
        return refresh.due if refresh is not None else None

    def _refresh(self, pause: Pause) -> None:
        """Keep one path warm, unless it was closed or called meanwhile."""
        with self._changed:
            if self._pauses.get(pause.key) is not pause:
                return
        repeat = pause.session.warm(pause.path, pause.call, at=self._clock())
        if repeat is not None:
            self._send(pause, repeat)

    def _send(self, pause: Pause, repeat: Repeat) -> None:
        session = pause.session

        def record(body: bytes) -> None:
            session.leave(
                at=self._clock(), path=repeat.path, header=repeat.header, body=body, observed=True
            )

        watch = Watch(record, _nothing, session.engine.policy.entry_ttl)
        try:
            answered, message = self._ask(pause, repeat, watch)
            session.take(answered)
            if message is None and session.state.path(pause.path).warmth.is_given_up:
                message = "the provider had nothing of it in its cache"
        finally:
            session.rest(repeat.path)
        if message is not None:
            self._end(pause)
            _say_it_ends(pause, message)

    def _ask(
        self, pause: Pause, repeat: Repeat, watch: Watch
    ) -> tuple[Answered | Refused, str | None]:
        """What came of a request, and what is to be said of it where it failed.

        Raises:
            BarographError: it could not be recorded, and did not leave.
        """
        status: int | None = None
        try:
            response = resend(pause.model, pause.envelope, repeat.body, watch)
            if response is not None and response.status_code == _OK:
                return self._answered(repeat, watch), None
            kind = "APIStatusError" if response is not None else "UnknownClient"
            status = response.status_code if response is not None else None
            message = response.text if response is not None else "its client is not known"
        except Exception as error:
            if isinstance(watch.stopped_by, BarographError):
                raise watch.stopped_by from error
            kind, message = type(error).__name__, str(error)
        message = message[:_SHOWN_CHARS]
        refused = Refused(
            at=self._clock(), path=repeat.path, error=kind, status=status, message=message
        )
        return refused, message

    def _answered(self, repeat: Repeat, watch: Watch) -> Answered:
        said = watch.answer()
        return Answered(
            at=self._clock(),
            path=repeat.path,
            parts=said.parts if said else (),
            stop_reason=said.stop_reason if said else None,
            usage=said.usage if said else None,
            provider_id=said.provider_id if said else None,
            request_id=watch.request_id,
            diagnosis=said.diagnosis if said else None,
        )


def _nothing() -> None:
    pass


def _say_it_ends(pause: Pause, why: str) -> None:
    _log.warning(
        "barograph: %s of session %s is not kept warm any more: %s",
        pause.path,
        pause.session.id,
        why,
    )
