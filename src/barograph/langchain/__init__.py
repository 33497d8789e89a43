"""Barograph for LangChain and LangGraph: one middleware, last in the list."""

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

__all__ = ["Barograph", "check"]
