"""Tools that are not offered at first: a model finds them with `search_tools` when it needs them.

Which tools those are is the policy's to say (`base_tools`); what was found is an event of the log.
So the next process offers the same, and no fold takes it back. LangChain's own node knows all tools
and runs whichever is called.
"""

from typing import Annotated, Final

from langchain_core.tools import BaseTool, tool

from barograph.core.inputs import ToolsWanted
from barograph.core.texts import TOOLS_UNKNOWN, no_tools_found, tools_found
from barograph.core.tooling import SEARCH
from barograph.core.toolsearch import find_tools
from barograph.langchain.asking import ASKING

_MOST: Final = 20


@tool(SEARCH)
def _search_tools(
    query: Annotated[str, "What the tool should do, in a few words, or its name."],
    limit: Annotated[int, "How many tools to add, at most 20."] = 5,
) -> str:
    """Find tools that you do not have yet, and add them to those you can call.

    Search before you say that something cannot be done.
    """
    asking = ASKING.get()
    cards = asking.track.offering.deferred if asking is not None else None
    if asking is None or cards is None:
        return TOOLS_UNKNOWN
    found = find_tools(cards, query, min(limit, _MOST))
    if not found:
        return no_tools_found(sorted(card.name for card in cards))
    track, names = asking.track, tuple(card.name for card in found)
    track.session.take(ToolsWanted(at=asking.clock(), path=track.path, names=names))
    return tools_found([(card.name, card.description) for card in found])


SEARCH_TOOLS: Final[BaseTool] = _search_tools
"""What an agent has whose policy names its base tools."""
