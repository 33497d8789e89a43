"""What precedes the messages: the system message and the tools, in one stable form.

A tool server that reconnects may offer the same tools in another order, and spell the same schema
with its keys in another order. Tools are ordered by name; one that comes later stands at the end,
so that those before it keep their place, in this process and in the next. A definition that means
what was sent before is sent as it was then: the author's own order of the keys is kept (models
answer in it), and the bytes do not move.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_anthropic import convert_to_anthropic_tool
from langchain_core.tools import BaseTool
from msgspec import Struct

from barograph.core.canonical import dump_json
from barograph.core.errors import PolicyError
from barograph.core.events import HeaderSet, Ttl
from barograph.core.tooling import in_place, settled_schema
from barograph.langchain.messages import check_marker

ALWAYS_OFFERED = "barograph_always_offered"
"""Key in the metadata of a tool that is no part of what a policy may keep back at first."""

MAIN_ONLY = "barograph_main_only"
"""Key in the metadata of a tool that is of no use below the main agent, where that is so."""

_OF_CALLERS: Final = frozenset({"custom", "function", "object"})
"""Types that a definition of the caller's own may have: of a tool, or of a bare JSON schema."""

Tool = BaseTool | dict[str, Any]
Definitions = Mapping[str, Mapping[str, Any]]


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


def are_same(tools: Sequence[Tool], others: Sequence[Tool]) -> bool:
    """Whether these are the very same tools, not only equal ones."""
    return len(tools) == len(others) and all(
        one is other for one, other in zip(tools, others, strict=True)
    )


def definitions_in(headers: Iterable[HeaderSet | None]) -> Definitions:
    """Tool definitions as they were sent, by name; where headers differ the earlier one counts."""
    found: dict[str, Mapping[str, Any]] = {}
    # many agents have the same tools, and parsing is what costs
    for text in dict.fromkeys(header.tools for header in headers if header is not None):
        for tool in json.loads(text or "[]"):
            found.setdefault(name_of(tool), tool)
    return found


def read_tools(
    tools: Sequence[Tool],
    first: Sequence[str],
    sent: Definitions,
    known: Sequence[str] = (),
) -> Tools:
    """Put tools into canonical order: those known, those named in `first`, then the rest by name.

    Args:
        tools: as the caller offers them.
        first: names of tools that come first among those that are new.
        known: names in the order in which they were offered before.
        sent: definitions as sent before, whose spelling is kept where the meaning is the same.

    Raises:
        PolicyError: `first` names a tool that is not there, or a marker is not one.
    """
    names = [name_of(tool) for tool in tools]
    unknown = [name for name in first if name not in names]
    if unknown:
        raise PolicyError(
            f"tool_order names {', '.join(unknown)}, which this agent does not have.",
            next_step=f"Its tools are {', '.join(sorted(names))}.",
            knob="tool_order",
        )
    places = in_place(names, known=known, first=first)
    ordered = sorted(tools, key=lambda tool: places[name_of(tool)])
    markers = sum(_marker(tool) for tool in ordered)
    bare = tuple(_as_sent(_without_marker(tool), sent) for tool in ordered)
    definitions = [definition_of(tool) for tool in bare]
    return Tools(tuple(tools), bare, dump_json(definitions).decode(), markers)


def mark_last_tool(tools: Tools, ttl: Ttl) -> list[Tool]:
    """The ordered tools, the last one marked: for requests that have no system message."""
    marked = dict(definition_of(tools.ordered[-1]))
    marked["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    return [*tools.ordered[:-1], marked]


def definition_of(tool: Tool) -> Mapping[str, Any]:
    """A tool as it stands in a request: as it was given, where the provider runs it itself."""
    kind = provider_kind(tool)
    return tool if kind and isinstance(tool, dict) else convert_to_anthropic_tool(tool)


def provider_kind(tool: Tool) -> str:
    """The kind of a tool that the provider knows by it; empty for all that are the caller's."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    return kind if isinstance(kind, str) and kind not in _OF_CALLERS else ""


def name_of(tool: Tool) -> str:
    """Name of a tool; the kind, of one that has none."""
    if isinstance(tool, dict):
        named = tool if tool.get("name") or provider_kind(tool) else definition_of(tool)
        return str(named.get("name") or named.get("type") or "")
    return tool.name


def _as_sent(tool: Tool, sent: Definitions) -> Tool:
    """The tool, or the definition that was sent for it if that means the same in other bytes."""
    before = sent.get(name_of(tool))
    if before is None:
        return tool
    now = definition_of(tool)
    if dump_json(now) == dump_json(before) or _meaning(now) != _meaning(before):
        return tool
    return dict(before)


def _meaning(definition: Mapping[str, Any]) -> bytes:
    """Equal for definitions that differ in the order of keys and of required names alone."""
    schema = definition.get("input_schema")
    read = settled_schema(schema) if isinstance(schema, Mapping) else None
    return _sorted_json({**definition, "input_schema": read})


def _sorted_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _marker(tool: Tool) -> int:
    fields = tool if isinstance(tool, dict) else (tool.extras or {})
    return check_marker({"cache_control": fields.get("cache_control")}, f"tool {name_of(tool)}")


def _without_marker(tool: Tool) -> Tool:
    if isinstance(tool, dict):
        return {key: value for key, value in tool.items() if key != "cache_control"}
    if tool.extras and "cache_control" in tool.extras:
        extras = {key: value for key, value in tool.extras.items() if key != "cache_control"}
        return tool.model_copy(update={"extras": extras})
    return tool
