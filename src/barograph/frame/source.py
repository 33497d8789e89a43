"""What a source of the frame is: something that is asked once a turn, within limits."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import iscoroutinefunction, signature
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from barograph.core.canonical import clean_text
from barograph.core.errors import UsageError
from barograph.core.events import Mode
from barograph.core.state import State, is_main
from barograph.core.trust import Item, Trust

MODES: Final[frozenset[Mode]] = frozenset(("normal", "goal", "private"))
NOT_PRIVATE: Final[frozenset[Mode]] = frozenset(("normal", "goal"))
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Ask(Struct, frozen=True, kw_only=True):
    """What a source may know of the turn.

    Attributes:
        session: id of the session.
        path: agent path.
        text: what the user says.
        at: seconds since the epoch.
        mode: what kind of run it is.
        state: the session so far, with what the user says.
    """

    session: str
    path: str
    text: str
    at: float
    mode: Mode
    state: State

    def kept(self, source: str) -> Mapping[str, str]:
        """What a source keeps for that path, by key; what was kept last stands last."""
        return self.state.path(self.path).kept.of(source)


class Caller(Struct, frozen=True, kw_only=True):
    """What a tool of a source may know of the call, and do in its session.

    Attributes:
        session: id of the session.
        path: agent path that called it.
        at: seconds since the epoch.
        state: the session so far.
        keep: logs texts that the source keeps for that path, by key; an empty one is let go.
    """

    session: str
    path: str
    at: float
    state: State
    keep: Callable[[Mapping[str, str]], None]


class SourceTool(Struct, frozen=True, kw_only=True):
    """A tool that goes with a source: it reads more of it, or changes what it says next turn.

    Attributes:
        name: by which a model calls it.
        run: does it, and answers in words. Its first parameter is a `Caller`; the others, with
            their annotations and defaults, and its docstring are what the model is told. A
            `BarographError` is an answer, in its words. It may run in any thread, those of one
            agent path one after another: what one keeps, the next one finds.
        subagents: whether agents below the main one have it where the source is not asked for
            them: for one that is of use without the section.

    Raises:
        UsageError: a name that no provider takes, or a function that cannot be run so.
    """

    name: str
    run: Callable[..., str]
    subagents: bool = False

    def __post_init__(self) -> None:
        if not _TOOL_NAME.fullmatch(self.name):
            what = f"A tool of a source has the name {self.name!r}."
            next_step = "Give it at most 64 letters, digits, hyphens and underscores."
        elif iscoroutinefunction(self.run):
            what = f"The tool {self.name} of a source is a coroutine function."
            next_step = "Give a plain function: it runs in a thread, so it may wait."
        elif not _takes_caller(self.run):
            what = f"The tool {self.name} of a source has no parameter for its caller."
            next_step = "Let its first parameter be the Caller."
        else:
            return
        raise UsageError(what, next_step=next_step, tool=self.name)


def _takes_caller(run: Callable[..., object]) -> bool:
    first = next(iter(signature(run).parameters.values()), None)
    return first is not None and first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)


Given: TypeAlias = str | Sequence[Item] | None
"""What a source gives: a text, or items. None, or nothing in it, takes back what it gave before."""


class Source(Struct, frozen=True, kw_only=True):
    """A source of the frame.

    Attributes:
        name: of its section, as the model sees it.
        compose: asked once a turn; may be a coroutine function. What is no coroutine runs in a
            thread, so it may wait for a disk, and must be safe there.
        budget_chars: the most that its section may hold; what is beyond is left out.
        timeout_seconds: how long it is waited for, above 0. One that is late gives nothing in this
            turn, and what it gave before still holds.
        trust: of a text that it gives. What is the operator's own stands as it is, all else in an
            envelope that says what it is. Items have their own.
        adds: whether its items stand beside those of earlier turns; else they take their place.
        modes: kinds of runs in which it is asked; none turns it off.
        subagents: whether it is asked for the agents below the main one too.
        tools: what goes with it, offered where it is asked.

    Raises:
        UsageError: a value outside its range.
    """

    name: str
    compose: Callable[[Ask], Given | Awaitable[Given]]
    budget_chars: int = 4_000
    timeout_seconds: float = 2.0
    trust: Trust = "external"
    adds: bool = False
    modes: frozenset[Mode] = NOT_PRIVATE
    subagents: bool = False
    tools: tuple[SourceTool, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            what, next_step = "A source of the frame has no name.", "Name it as the model sees it."
        elif clean_text(self.name) != self.name:
            what = f"The name {self.name!r} of a source of the frame is no text that can be sent."
            next_step = "Name it in characters that UTF-8 can carry."
        elif self.budget_chars < 1:
            what = f"budget_chars of the source {self.name} is {self.budget_chars}."
            next_step = "Give the most characters of its section, or leave the source out."
        elif self.trust not in get_args(Trust):  # no log could be read that holds another
            what = f"trust of the source {self.name} is {self.trust!r}."
            next_step = f"Choose one of {', '.join(get_args(Trust))}."
        elif not MODES.issuperset(self.modes):
            given = ", ".join(sorted(map(repr, self.modes)))
            what = f"modes of the source {self.name} are {given}: not all of them are modes."
            next_step = f"Give a set of some of {', '.join(sorted(MODES))}; none turns it off."
        elif not 0 < self.timeout_seconds <= 60:
            what = f"timeout_seconds of the source {self.name} is {self.timeout_seconds}."
            next_step = "Give seconds above 0 and at most 60: the turn waits for it."
        else:
            return
        raise UsageError(what, next_step=next_step, source=self.name)

    def is_for(self, ask: Ask) -> bool:
        """Whether it is asked for this turn at all."""
        return ask.mode in self.modes and (self.subagents or is_main(ask.path))
