"""Stand-ins for what recordings lack: a system prompt of a given size and tool definitions.

The text is the same in every process and for every agent of a file, so that all of them can share
one cached prefix of tools and system, as the agents of a real harness do.
"""

from itertools import count
from math import ceil
from typing import Any, Final

from msgspec import Struct

from barograph.audit.recorded import Recording

# Just above the largest known minimum (4 096), so that the prefix is cacheable on every model.
LEAST_BASE_TOKENS: Final = 4_500
# Middle of what recorded sessions show whose tokens are a straight line of characters (0.24-0.44).
FILLER_TOKENS_PER_CHAR: Final = 0.37

# Lengths without a common factor: a combination repeats only after 7 * 8 * 9 sentences.
_WHEN: Final = (
    "Before a file is changed",
    "When a command fails",
    "While a test is running",
    "If two sources disagree",
    "After a long search",
    "Where a name is unclear",
    "Once the work is done",
)
_WHAT: Final = (
    "read the part that matters in full",
    "say what was expected and what happened",
    "prefer the smallest step that can be checked",
    "keep the wording of the request at hand",
    "look for an existing helper first",
    "write down the assumption being made",
    "leave unrelated lines as they are",
    "stop and ask if the risk is high",
)
_WHY: Final = (
    "because a guess costs more than a look",
    "so that the next reader can follow",
    "since later steps build on it",
    "as results are compared afterwards",
    "because silence hides mistakes",
    "so that nothing has to be done twice",
    "since the reason is easily forgotten",
    "as the order of steps matters",
    "because small errors add up",
)


class Furnishing(Struct, frozen=True, kw_only=True):
    """What goes in front of the messages.

    Attributes:
        systems: the system prompt by agent; one text for all agents without a recorded one.
        tools: one permissive definition per tool name, sorted by name.
    """

    systems: dict[str, str]
    tools: tuple[dict[str, Any], ...]


def synthesise(recording: Recording, base_tokens: int | None = None) -> Furnishing:
    """The tools and system prompts to replay a recording with.

    Args:
        recording: what is to be replayed.
        base_tokens: size of a system prompt in tokens; by default what the recording's own
            estimate says. Never less than `LEAST_BASE_TOKENS`. A recorded system prompt stays in
            front and is only topped up.
    """
    if base_tokens is None:
        base_tokens = recording.base_tokens or 0
    wanted_chars = ceil(max(base_tokens, LEAST_BASE_TOKENS) / FILLER_TOKENS_PER_CHAR)
    return Furnishing(
        systems={track.agent: _topped_up(track.system, wanted_chars) for track in recording.agents},
        tools=tuple(_tool(name) for name in recording.tool_names),
    )


def _topped_up(recorded: str | None, wanted_chars: int) -> str:
    if not recorded or recorded.isspace():
        return filler(wanted_chars)
    missing_chars = wanted_chars - len(recorded)
    return f"{recorded}\n\n{filler(missing_chars)}" if missing_chars > 0 else recorded


def filler(chars: int) -> str:
    """Whole numbered sentences of at least so many characters, always the same ones."""
    sentences: list[str] = []
    length = 0
    for number in count():
        sentence = (
            f"{number + 1}. {_WHEN[number % len(_WHEN)]}, {_WHAT[number % len(_WHAT)]}, "
            f"{_WHY[number % len(_WHY)]}."
        )
        sentences.append(sentence)
        length += len(sentence) + 1
        if length > chars:
            break
    return "\n".join(sentences)


def _tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The tool `{name}` of the recorded session.",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": True},
    }
