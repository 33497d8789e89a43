"""Sources of the turn frame, and the composer that asks them."""

from barograph.frame.composer import Composer
from barograph.frame.digest import session_digest
from barograph.frame.skills import skills
from barograph.frame.source import MODES, Ask, Caller, Mode, Source, SourceTool

__all__ = [
    "MODES",
    "Ask",
    "Caller",
    "Composer",
    "Mode",
    "Source",
    "SourceTool",
    "session_digest",
    "skills",
]
