"""Barograph: keeps long LLM agents cheap, coherent and explainable.

A session's **log** is the truth; the **surface** of each call is derived from it; nothing is ever
lost. This front door loads no framework: the LangChain adapter lives in `barograph.langchain`.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from barograph.core.errors import (
    BarographError,
    LogCorrupt,
    LogError,
    PolicyError,
    ProviderError,
    SchemaTooNew,
    SequenceConflict,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    SurfaceError,
    UnknownCall,
    UnknownSession,
    UnpairedToolCall,
    UsageError,
)
from barograph.core.policy import Policy

if TYPE_CHECKING:
    from barograph.store import open_store

__version__: Final = version("barograph")
__all__ = [
    "BarographError",
    "LogCorrupt",
    "LogError",
    "Policy",
    "PolicyError",
    "ProviderError",
    "SchemaTooNew",
    "SequenceConflict",
    "SettingsError",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "SurfaceError",
    "UnknownCall",
    "UnknownSession",
    "UnpairedToolCall",
    "UsageError",
    "__version__",
    "open_store",
]


def __getattr__(name: str) -> Any:
    if name == "open_store":
        from barograph.store import open_store  # noqa: PLC0415 - loads SQLite, so on first use

        return open_store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
