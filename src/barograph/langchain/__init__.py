"""Barograph for LangChain and LangGraph: one middleware, last in the list."""

from barograph.langchain.middleware import Barograph

__all__ = ["Barograph"]
