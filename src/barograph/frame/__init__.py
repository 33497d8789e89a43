"""Sources of the turn frame, and the composer that asks them."""

from barograph.core.events import Mode
from barograph.frame.composer import Composer
from barograph.frame.digest import session_digest
from barograph.frame.hot import hot_memory
from barograph.frame.knowledge import Knowledge, knowledge_source
from barograph.frame.skills import skills
from barograph.frame.source import MODES, Ask, Caller, Source, SourceTool
from barograph.frame.working import working_state

__all__ = [
    "MODES",
    "Ask",
    "Caller",
    "Composer",
    "Knowledge",
    "Mode",
    "Source",
    "SourceTool",
    "hot_memory",
    "knowledge_source",
    "session_digest",
    "skills",
    "working_state",
]
