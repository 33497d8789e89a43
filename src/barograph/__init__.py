"""Barograph: keeps long LLM agents cheap, coherent and explainable.

A session's **log** is the truth; the **surface** of each call is derived from it; nothing is ever
lost. This front door loads no framework: the LangChain adapter lives in `barograph.langchain`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from barograph.core.errors import (
    BarographError,
    LogCorrupt,
    LogError,
    PolicyError,
    ProviderError,
    SchemaTooNew,
    SecondOwner,
    SequenceConflict,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    SurfaceError,
    UnknownCall,
    UnknownDocument,
    UnknownHandle,
    UnknownSession,
    UnknownTurn,
    UnpairedToolCall,
    UsageError,
)

if TYPE_CHECKING:
    from barograph.core.policy import Policy
    from barograph.store import open_store

__version__ = "0.1.0"
__all__ = [
    "BarographError",
    "LogCorrupt",
    "LogError",
    "Policy",
    "PolicyError",
    "ProviderError",
    "SchemaTooNew",
    "SecondOwner",
    "SequenceConflict",
    "SettingsError",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "SurfaceError",
    "UnknownCall",
    "UnknownDocument",
    "UnknownHandle",
    "UnknownSession",
    "UnknownTurn",
    "UnpairedToolCall",
    "UsageError",
    "__version__",
    "open_store",
]

# Loaded on first use: a program that only catches our errors pays for nothing else.
_HOMES: Final = {"Policy": "barograph.core.policy", "open_store": "barograph.store"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
