"""Every model-visible sentence of ours. Each is stored in the log as it was sent."""

from typing import Final

NO_RESULT: Final = (
    "[No result: this tool call was never answered. Whether it ran is not known; "
    "check before you rely on its effect.]"
)
NOT_STARTED: Final = "[No result: this tool call was not started. It had no effect.]"
OUTCOME_UNKNOWN: Final = (
    "[No result: the tool was started and then interrupted. Its outcome is unknown; "
    "check before you rely on its effect or call it again.]"
)


def failed(error: str) -> str:
    """The result of a tool whose body raised."""
    return f"[No result: the tool failed. {error}]"
