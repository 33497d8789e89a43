"""Which agent runs a tool: known to the tool's body, in whatever thread that runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from barograph.langchain.track import Track


class Asking(Struct, frozen=True):
    """The agent that called a tool, and its clock."""

    track: Track
    clock: Callable[[], float]


ASKING: Final[ContextVar[Asking | None]] = ContextVar("barograph_asking", default=None)


@contextmanager
def asked_by(track: Track, clock: Callable[[], float]) -> Iterator[None]:
    """While it lasts, a tool that runs was called by that agent."""
    token = ASKING.set(Asking(track, clock))
    try:
        yield
    finally:
        ASKING.reset(token)
