"""What precedes the messages: the system message and the tools, in one stable form."""

from collections.abc import Sequence
from typing import Any

from langchain_anthropic import convert_to_anthropic_tool
from langchain_core.tools import BaseTool
from msgspec import Struct

from barograph.core.canonical import dump_json
from barograph.core.errors import PolicyError
from barograph.core.events import Ttl
from barograph.langchain.messages import check_marker

Tool = BaseTool | dict[str, Any]


class Tools(Struct, frozen=True):
    """The tools of a request, ordered and without the caller's markers.

    Attributes:
        given: what the caller passed, to recognise it by identity.
        ordered: what is bound instead.
        definitions: their wire form, as a JSON array.
        markers: markers of the caller that were taken off.
    """

    given: tuple[Tool, ...]
    ordered: tuple[Tool, ...]
    definitions: str
    markers: int

    def are(self, tools: Sequence[Tool]) -> bool:
        """Whether these are the very tools of the last call."""
        return len(tools) == len(self.given) and all(
            one is other for one, other in zip(tools, self.given, strict=True)
        )


def read_tools(tools: Sequence[Tool], first: Sequence[str]) -> Tools:
    """Put tools into canonical order: those named in `first`, then the rest by name.

    Raises:
        PolicyError: `first` names a tool that is not there, or a marker is not one.
    """
    names = [_name(tool) for tool in tools]
    unknown = [name for name in first if name not in names]
    if unknown:
        raise PolicyError(
            f"tool_order names {', '.join(unknown)}, which this agent does not have.",
            next_step=f"Its tools are {', '.join(sorted(names))}.",
            knob="tool_order",
        )
    rank = {name: index for index, name in enumerate(first)}
    ordered = sorted(tools, key=lambda tool: (rank.get(_name(tool), len(rank)), _name(tool)))
    markers = sum(_marker(tool) for tool in ordered)
    bare = tuple(_without_marker(tool) for tool in ordered)
    definitions = [convert_to_anthropic_tool(tool) for tool in bare]
    return Tools(tuple(tools), bare, dump_json(definitions).decode(), markers)


def mark_last_tool(tools: Tools, ttl: Ttl) -> list[Tool]:
    """The ordered tools, the last one marked: for requests that have no system message."""
    marked = dict(convert_to_anthropic_tool(tools.ordered[-1]))
    marked["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    return [*tools.ordered[:-1], marked]


def _name(tool: Tool) -> str:
    if isinstance(tool, dict):
        return str(tool.get("name") or tool.get("type") or "")
    return tool.name


def _marker(tool: Tool) -> int:
    fields = tool if isinstance(tool, dict) else (tool.extras or {})
    return check_marker({"cache_control": fields.get("cache_control")}, f"tool {_name(tool)}")


def _without_marker(tool: Tool) -> Tool:
    if isinstance(tool, dict):
        return {key: value for key, value in tool.items() if key != "cache_control"}
    if tool.extras and "cache_control" in tool.extras:
        extras = {key: value for key, value in tool.extras.items() if key != "cache_control"}
        return tool.model_copy(update={"extras": extras})
    return tool
