"""The tools that an agent path is offered, as its requests have them."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool

from barograph.core.events import Ttl
from barograph.core.state import is_main
from barograph.core.tooling import OWN, tool_names
from barograph.core.toolsearch import ToolCard
from barograph.langchain.header import (
    ALWAYS_OFFERED,
    MAIN_ONLY,
    Tools,
    are_same,
    definitions_in,
    mark_last_tool,
    name_of,
    read_tools,
)
from barograph.langchain.sieve import Sieved, sieve
from barograph.store.session import Session


class Offering:
    """What a path was offered last: read once, as long as its tools are the very same objects.

    Args:
        session: whose log says what was offered before.
        path: agent path.
        first: names of tools that come before all others, where they are offered.
    """

    def __init__(self, session: Session, path: str, first: Sequence[str]) -> None:
        self._session = session
        self._path = path
        self._first = first
        self._sieved: Sieved | None = None
        self._tools: Tools | None = None
        self._deferred: Sequence[ToolCard] | None = None

    @property
    def deferred(self) -> Sequence[ToolCard] | None:
        """Tools that a search may find; None before the first call here."""
        return self._deferred

    def read(self, asked: Sequence[Any]) -> Tools:
        """The tools of a request in their order, without those that it will not have.

        Raises:
            UsageError: a tool carries a marker that no provider takes.
        """
        if self._sieved is None or not are_same(asked, self._sieved.given):
            self._sieved = sieve(asked, self._session, self._path)
        given, kept_back = self._split(self._sieved.kept)
        useless = self._useless(given)
        if useless:
            given = [tool for tool in given if name_of(tool) not in useless]
        absent = kept_back.union(useless, map(name_of, self._sieved.dropped))
        first = [name for name in self._first if name not in absent]
        if self._tools is None or not are_same(given, self._tools.given):
            surfaces = self._session.state.fold.surfaces
            own = self._session.state.surface(self._path)
            sent = definitions_in(one.header for one in (own, *surfaces.values()))
            self._tools = read_tools(given, first, sent, self._known(given))
        return self._tools

    def bound(self, marks: dict[int, Ttl]) -> list[Any]:
        """What the client is given: it drops by itself what the header leaves out."""
        tools, sieved = self._tools, self._sieved
        if tools is None or sieved is None:
            return []
        shown = mark_last_tool(tools, next(iter(marks.values()))) if marks else tools.ordered
        return [*sieved.dropped, *shown]

    def _split(self, given: Sequence[Any]) -> tuple[Sequence[Any], frozenset[str]]:
        """The tools that are offered, and the names of those that are to be found first."""
        base = self._session.engine.policy.base_tools
        if base is None:
            return given, frozenset()
        always = OWN.union(base)
        found = self._session.state.path(self._path).loaded
        # what the provider runs itself is no tool of LangChain, and is always offered
        later = [
            tool
            for tool in given
            if isinstance(tool, BaseTool)
            and tool.name not in always
            and not (tool.metadata or {}).get(ALWAYS_OFFERED)
        ]
        self._deferred = [ToolCard(tool.name, tool.description) for tool in later]
        kept_back = frozenset(tool.name for tool in later).difference(found)
        return [tool for tool in given if name_of(tool) not in kept_back], kept_back

    def _useless(self, given: Sequence[Any]) -> frozenset[str]:
        """Names of tools that would refuse here, and are not offered: those of the main agent only.

        A child that has the very tools of its parent has these too, as it would else begin with
        other bytes. And what an agent was offered once stays.
        """
        if is_main(self._path):
            return frozenset()
        only = frozenset(tool.name for tool in given if _is_main_only(tool))
        return only.difference(self._known(given)) if only else only

    def _known(self, given: Sequence[Any]) -> tuple[str, ...]:
        """Names in the order in which this path was offered them.

        A child that has the very tools of its parent begins with the parent's bytes. A fork whose
        tools never changed has no others than the header that it began with.
        """
        path = self._session.state.path(self._path)
        header = self._session.state.surface(self._path).header
        if path.tools:
            return path.tools
        if path.sent is not None and header is not None:
            return tool_names(header.tools)
        above = self._first_above()
        return above if set(above) == set(map(name_of, given)) else ()

    def _first_above(self) -> tuple[str, ...]:
        """Names of the tools of the nearest agent above, in order, less what it found later."""
        state, above = self._session.state, self._path
        while "/" in above:
            above = above.rpartition("/")[0]
            header, found = state.surface(above).header, state.path(above).loaded
            if header is not None:
                return tuple(name for name in tool_names(header.tools) if name not in found)
        return ()


def _is_main_only(tool: Any) -> bool:
    return isinstance(tool, BaseTool) and bool((tool.metadata or {}).get(MAIN_ONLY))
