"""What a writer is in the middle of: how long it needs its session to itself.

A path is in a turn from its first input until its final answer, an error, or an interruption. While
a call or a tool runs nothing is heard of it for long; between them the next input follows at once,
unless the graph stopped in a place that tells nobody (a person is asked, a limit was reached).
"""

from typing import Final

from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Input,
    Refused,
    ToolReturned,
    ToolStarted,
)
from barograph.core.parts import calls_in

RUNNING_SECONDS: Final = 600.0
"""How long a call or a tool may be silent: as long as the stock client waits for an answer."""

BETWEEN_SECONDS: Final = 2.0
"""How long it may take from an answer to its tools, or from a result to the next call."""

_MODEL: Final = ""


class Turns:
    """The agent paths of one writer that are in a turn, and what each of them waits for."""

    def __init__(self) -> None:
        self._awaited: dict[str, set[str]] = {}
        self._ending: set[str] = set()

    def follow(self, given: Input, *, sent: str | None) -> None:
        """Take note of an input; `sent` is the path of the call that leaves because of it."""
        match given:
            case Refused() if sent == given.path:
                pass
            case CallWanted() if sent is None:  # handed back
                self.forget(given.path)
            case CallWanted() | BodyLeft():
                self._ending.discard(given.path)
                self._of(given.path).add(_MODEL)
            case ToolStarted():
                self._ending.discard(given.path)
                self._of(given.path).add(given.call_id)
            case Answered():
                self._of(given.path).discard(_MODEL)
                if not calls_in(given.parts):
                    self.forget(given.path)
            case Refused():
                self.forget(given.path)
            case ToolReturned():
                self._of(given.path).discard(given.call_id)
                if given.error is not None or given.path in self._ending:
                    self.stop(given.path)
            case _:
                pass

    def stop(self, path: str, call_id: str = _MODEL) -> None:
        """A call or a tool ended without an input; the turn ends when nothing of it runs."""
        awaited = self._of(path)
        awaited.discard(call_id)
        self._ending.add(path)
        if not awaited:
            self.forget(path)

    def forget(self, path: str) -> None:
        """The turn of a path is over."""
        self._awaited.pop(path, None)
        self._ending.discard(path)

    def clear(self) -> None:
        """All turns are over."""
        self._awaited.clear()
        self._ending.clear()

    @property
    def is_running(self) -> bool:
        """Whether a call or a tool is under way."""
        return any(self._awaited.values())

    @property
    def needed_seconds(self) -> float:
        """How long the session is needed without a word; 0 between turns."""
        if not self._awaited:
            return 0.0
        return RUNNING_SECONDS if self.is_running else BETWEEN_SECONDS

    def _of(self, path: str) -> set[str]:
        return self._awaited.setdefault(path, set())
