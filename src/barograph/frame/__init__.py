"""Sources of the turn frame, and the composer that asks them."""

from barograph.core.events import Mode
from barograph.frame.composer import Composer
from barograph.frame.digest import session_digest
from barograph.frame.skills import skills
from barograph.frame.source import Ask, Caller, MODES, Source, SourceTool

__all__ = [
    "Ask",
    "Caller",
    "Composer",
    "MODES",
    "Mode",
    "Source",
    "SourceTool",
    "session_digest",
    "skills",
]
