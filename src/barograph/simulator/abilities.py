"""What a model can do that its price list does not say, by its name.

Sources: the provider's pages on preserved thinking (whose thinking a model reads), on system
messages within a conversation (which models take them), on prompt caching (which models strip
earlier thinking) and on context windows (which models stop at the window instead of refusing).
"""

import re
from typing import Final, NamedTuple

_CURRENT: Final = re.compile(
    r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)"
)
_EARLY: Final = re.compile(r"claude-(\d)(?:-(\d))?-(opus|sonnet|haiku)")

# The first version of each line that keeps earlier thinking when user text follows it.
_KEEPS_THINKING_FROM: Final = {"opus": (4, 5), "sonnet": (4, 6), "haiku": (4, 6)}
_SYSTEM_MESSAGES_FROM: Final = {"opus": (4, 8), "fable": (5, 0), "mythos": (5, 0)}
_STOPS_AT_WINDOW_FROM: Final = (4, 5)
# Foreign thinking that a model reads beside its own.
_ALSO_READS: Final = {"fable-5-1": frozenset({"opus-5-0", "opus-5-5"})}
_READ_BY_ALL: Final = frozenset({"haiku-5-5"})


class Family(NamedTuple):
    """A model line and its version."""

    line: str
    version: tuple[int, int]

    @property
    def label(self) -> str:
        """Line and version in one word."""
        return f"{self.line}-{self.version[0]}-{self.version[1]}"


def family_of(model: str) -> Family | None:
    """Line and version of a model id, dates and prefixes aside; None for other names."""
    if found := _CURRENT.search(model):
        return Family(found[1], (int(found[2]), int(found[3] or 0)))
    if found := _EARLY.search(model):
        return Family(found[3], (int(found[1]), int(found[2] or 0)))
    return None


def strips_thinking(model: str) -> bool:
    """Whether thinking leaves the prompt once user text, not only a tool result, follows it."""
    family = family_of(model)
    if family is None:
        return False
    return family.version < _KEEPS_THINKING_FROM.get(family.line, (0, 0))


def takes_system_messages(model: str) -> bool:
    """Whether a message may have the role `system`."""
    family = family_of(model)
    first = _SYSTEM_MESSAGES_FROM.get(family.line) if family is not None else None
    return family is not None and first is not None and family.version >= first


def stops_at_window(model: str) -> bool:
    """Whether input and `max_tokens` may exceed the window together: then the answer stops there.

    Earlier models refuse such a request. A name of no known line counts as current.
    """
    family = family_of(model)
    return family is None or family.version >= _STOPS_AT_WINDOW_FROM


def reads_thinking_of(model: str, producer: str) -> bool:
    """Whether a model may read thinking that another, or the same, has produced."""
    reader, writer = family_of(model), family_of(producer)
    if reader is None or writer is None:
        return model == producer
    also = _ALSO_READS.get(reader.label, frozenset())
    return reader == writer or writer.label in also or writer.label in _READ_BY_ALL
