"""Agents that start at once on a cold cache: the first one writes what they share, then all go.

Eight subagents with the same tools and system that leave together write the same prefix eight
times: an entry can be read once the response of its writer begins, and not before. So the first
call of a session that would write a prefix leaves at once, and others that would write the same
one wait until the response to it begins. They wait in threads and in tasks alike, and no event
loop is ever blocked.

What always holds: nobody waits longer than the policy's `fanout_wait_seconds`; whoever is waited
for waits for nobody; and where the first one ends without a response, whatever the reason, the next
one takes its place. So nothing that happens to one call keeps another from leaving.

Whether there is anything to wait for at all (`core.sharing`) is asked before a call is planned, so
that its start, from which its cache entries live, is when it leaves.
"""

import asyncio
import logging
from concurrent.futures import Future
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from barograph.store.session import Session

_log = logging.getLogger("barograph")
_lock = Lock()
_firsts: WeakKeyDictionary[Session, dict[bytes, "Departure"]] = WeakKeyDictionary()
"""By session and prefix, the call that writes it. Middlewares of several agents share a session."""


def _outcome() -> Future[bool]:
    outcome: Future[bool] = Future()
    outcome.set_running_or_notify_cancel()  # one who waits for it cannot cancel it
    return outcome


_NOT_AWAITED = _outcome()
"""Of each call that others need not wait for."""

_NOT_AWAITED.set_result(True)


class Departure:
    """A call that is about to leave; a context that lasts until it is over.

    Args:
        session: the session it belongs to.
        prefix: what it would be the first to write; None where it need not wait for anybody.

    Attributes:
        outcome: whether a response to it began, known then or when it is over.
    """

    def __init__(self, session: Session, prefix: bytes | None) -> None:
        self._session, self._prefix = session, prefix
        self._until = monotonic() + session.engine.policy.fanout_wait_seconds
        self.outcome = _NOT_AWAITED if prefix is None else _outcome()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._prefix is None:
            return
        with _lock:
            firsts = _firsts.get(self._session, {})
            if firsts.get(self._prefix) is self:
                del firsts[self._prefix]
        self._settle(has_begun=False)

    def begun(self) -> None:
        """A response to it begins: what it wrote can be read from now on."""
        self._settle(has_begun=True)

    def turn(self) -> None:
        """Wait for its turn, in a thread. On the thread of an event loop there is no waiting."""
        while (first := self._ahead()) is not None and not _is_on_loop():
            try:
                has_begun = first.outcome.result(self._left_seconds)
            except TimeoutError:
                self._overtake(first)
                return
            if has_begun:
                return

    async def turn_async(self) -> None:
        """The same in a task."""
        while (first := self._ahead()) is not None:
            outcome = asyncio.wrap_future(first.outcome)
            try:
                has_begun = await asyncio.wait_for(outcome, self._left_seconds)
            except TimeoutError:
                self._overtake(first)
                return
            if has_begun:
                return

    def _ahead(self) -> "Departure | None":
        """Whom to wait for; None where this one may leave, as the first one if there is none."""
        if self._prefix is None:
            return None
        with _lock:
            first = _firsts.setdefault(self._session, {}).setdefault(self._prefix, self)
        if first is self or first.outcome.done():
            return None
        _log.debug("barograph: a call waits for another one that writes the same tools and system")
        return first

    def _overtake(self, first: "Departure") -> None:
        """Leave without waiting any longer, and let those who come now wait for this one."""
        with _lock:
            firsts = _firsts.setdefault(self._session, {})
            if self._prefix is not None and firsts.get(self._prefix, first) is first:
                firsts[self._prefix] = self
        _log.info("barograph: a call waited as long as it may for a shared prefix, and leaves")

    def _settle(self, *, has_begun: bool) -> None:
        if not self.outcome.done():
            self.outcome.set_result(has_begun)

    @property
    def _left_seconds(self) -> float:
        return max(0.0, self._until - monotonic())


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
