"""Every model-visible sentence of ours. Each is stored in the log as it was sent."""

from typing import Final

NO_RESULT: Final = (
    "[No result: this tool call was never answered. Whether it ran is not known; "
    "check before you rely on its effect.]"
)
