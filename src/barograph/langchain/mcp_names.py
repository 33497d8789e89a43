"""Say that a tool of a server is not offered, since the agent has another tool of that name.

Names are given when the servers are opened, before there is an agent, and they stay. LangChain
keeps one tool of a name: an agent's own before those of its middlewares. That may be meant, so it
is no error; but it is said.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.tools import BaseTool

from barograph.langchain.calls import SERVER
from barograph.langchain.header import Tool, name_of, provider_kind

_log = logging.getLogger("barograph")


class Namesakes:
    """What was said of tools that hide one of a server: once of each, whatever agents there are."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def look(self, ours: Iterable[BaseTool], offered: Iterable[Tool]) -> None:
        """Look at the tools of a request for one that stands in the place of a server's."""
        there: dict[str, Tool] = {}
        for tool in offered:
            there.setdefault(name_of(tool), tool)
        for one in ours:
            other = there.get(one.name, one)
            if other is not one and _server_of(other) != _server_of(one):
                self._tell(one, _origin(other))

    def _tell(self, tool: BaseTool, origin: str) -> None:
        if not origin or (tool.name, origin) in self._told:
            return
        self._told.add((tool.name, origin))
        _log.warning(
            "barograph: the tool %s of server %r is not offered: the agent has another one of that "
            "name, %s. Where both are needed, give that one another name.",
            tool.name,
            _server_of(tool),
            origin,
        )


def _origin(tool: Tool) -> str:
    """Where a tool is from; empty where that cannot be told."""
    if isinstance(tool, dict):
        kind = provider_kind(tool)
        return kind and f"{kind}, which the provider runs"
    server = _server_of(tool)
    if server:
        return f"of server {server!r}"
    body: Any = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    named = body if hasattr(body, "__qualname__") else type(tool)
    return f"{named.__module__}.{named.__qualname__}"


def _server_of(tool: Tool) -> Any:
    metadata: Mapping[str, Any] = {} if isinstance(tool, dict) else tool.metadata or {}
    return metadata.get(SERVER)
