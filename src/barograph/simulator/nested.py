"""What is looked for inside a block: documents that may be cited, and references to tools.

Sources: provider citations page (a document or search result turns them on) and tool-search page
(`defer_loading`, `tool_reference`); the SDK's types for `tool_addition`.
"""

from collections.abc import Iterator
from typing import Any, Final

# Kinds of blocks that may hold either.
HOLDERS: Final = frozenset(
    {
        "document",
        "search_result",
        "tool_addition",
        "tool_reference",
        "tool_result",
        "tool_search_tool_result",
    }
)


def inside(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The block and the blocks in it."""
    yield block
    content = block.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict):
            yield from inside(part)


def is_cited(block: dict[str, Any]) -> bool:
    """Whether the block turns citations on."""
    citations = block.get("citations")
    return isinstance(citations, dict) and citations.get("enabled") is True


def tools_named(block: dict[str, Any]) -> Iterator[str]:
    """Names of the tools that a block makes known to the model."""
    kind, tool = block.get("type"), block.get("tool")
    named = block.get("tool_name") if kind == "tool_reference" else None
    if kind == "tool_addition" and isinstance(tool, dict):
        named = tool.get("name")
    if isinstance(named, str):
        yield named
    found = block.get("tool_references")
    for part in found if isinstance(found, list) else ():
        if isinstance(part, dict):
            yield from tools_named(part)
