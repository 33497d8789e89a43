"""Barograph for LangChain and LangGraph: one middleware, last in the list."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

try:
    from barograph.langchain.middleware import Barograph
    from barograph.langchain.owners import check
except ImportError as error:
    if (error.name or "").startswith("barograph"):
        raise
    raise ImportError(
        f"The LangChain adapter needs {error.name}: pip install 'barograph[langchain]'",
        name=error.name,
    ) from error

if TYPE_CHECKING:
    from barograph.langchain.deepagents import deep_agent_memory, deep_agent_profile

__all__ = ["Barograph", "check", "deep_agent_memory", "deep_agent_profile"]

_OF_DEEPAGENTS: Final = frozenset({"deep_agent_memory", "deep_agent_profile"})
"""Loaded on first use: `deepagents` is no dependency, and takes its time."""


def __getattr__(name: str) -> Any:
    if name not in _OF_DEEPAGENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module("barograph.langchain.deepagents"), name)
    except ImportError as error:
        raise ImportError(
            f"{name} needs {error.name}: pip install deepagents", name=error.name
        ) from error
