"""Recognise a summary that stands in a history, whoever made it.

A summary is nobody's speech: what it holds is neither a wish of the user nor a fact of the log. It
is told by how its text begins, since that is all that survives between frameworks.
"""

from typing import Final

from barograph.core.parts import Parts, Text
from barograph.core.texts import DIGEST_OPENS

_BEGINNINGS: Final = (
    DIGEST_OPENS,
    # LangChain's SummarizationMiddleware, and deepagents without a file
    "Here is a summary of the conversation to date:",
    # deepagents with a file
    "You are in the middle of a conversation that has been summarized.",
    # Claude Code
    "This session is being continued from a previous conversation that ran out of context",
    # Codex
    "Another language model started to solve this problem and produced a summary",
    # pi
    "The conversation history before this point was compacted into the following summary:",
)


def is_summary(parts: Parts) -> bool:
    """Whether a message is a summary, ours or that of another producer."""
    return _first_text(parts).startswith(_BEGINNINGS)


def is_ours(parts: Parts) -> bool:
    """Whether a message is a digest of ours."""
    return _first_text(parts).startswith(DIGEST_OPENS)


def _first_text(parts: Parts) -> str:
    return next((part.text.lstrip() for part in parts if isinstance(part, Text)), "")
