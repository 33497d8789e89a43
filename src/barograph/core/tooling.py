"""Tools as a request offers them: their names, in wire order.

The list of tools comes first in a request, so each change of it costs the whole cache. It only
widens, at its end: a tool keeps the place that it had when it first came.

The keys of a schema are an object's, so a server may spell them in any order. Where nothing else
says how a schema was sent before, the alphabet decides.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from barograph.core.canonical import digest, parse_json

SEARCH: Final = "search_tools"
"""Name of the tool that finds tools which are not offered yet."""

LOAD_SKILL: Final = "load_skill"
"""Name of the tool that reads a skill."""

RECALL_SESSION: Final = "recall_session"
"""Name of the tool that reads what was said in another session."""

UPDATE_WORKING: Final = "update_working_state"
READ_WORKING: Final = "read_working_state"
"""Names of the tools that change and read a working state."""

OWN: Final = frozenset(
    {
        "read_original",
        "history_search",
        "history_read",
        SEARCH,
        LOAD_SKILL,
        RECALL_SESSION,
        UPDATE_WORKING,
        READ_WORKING,
    }
)
"""Names of our own tools, which are offered from the first call on."""

ToolOfServer: TypeAlias = tuple[str, str]
"""Name of a server, and the name that it gives its tool."""

_MOST_CHARS: Final = 64
_DIGEST_CHARS: Final = 6
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_-]")

# Below these keys of a schema stand names, and values that mean something in their order.
_NAMES: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_VALUES: Final = frozenset({"enum", "const", "default", "examples"})


def tool_names(tools: str) -> tuple[str, ...]:
    """Names of the tools in a JSON array of definitions; none where it is no such array."""
    definitions = parse_json(tools or "[]")
    if not isinstance(definitions, list):
        return ()
    named = (tool for tool in definitions if isinstance(tool, dict))
    return tuple(str(tool.get("name") or tool.get("type") or "") for tool in named)


def in_place(names: Iterable[str], *, known: Sequence[str], first: Sequence[str]) -> dict[str, int]:
    """The place of each name: those known keep theirs, then those of `first`, then the alphabet."""
    present = set(names)
    ranked = chain(known, first, sorted(present))
    return {name: place for place, name in enumerate(dict.fromkeys(ranked)) if name in present}


def settled_schema(schema: Any) -> Any:
    """A JSON schema in the one order that all its spellings have: equal where they mean the same.

    Values such as defaults keep the order of their keys.
    """
    if isinstance(schema, list):
        return [settled_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    read: dict[str, Any] = {}
    for key in sorted(schema):
        value = schema[key]
        if key in _NAMES and isinstance(value, Mapping):
            read[key] = {name: settled_schema(value[name]) for name in sorted(value)}
        elif key == "required" and isinstance(value, list):
            read[key] = sorted(value, key=str)
        else:
            read[key] = value if key in _VALUES else settled_schema(value)
    return read


def name_server_tools(
    tools: Iterable[ToolOfServer], taken: Mapping[ToolOfServer, str]
) -> dict[ToolOfServer, str]:
    """Names by which a model calls the tools of several servers, one for each.

    A tool keeps its own name where no other has it, none of ours either; else its server's stands
    before it. What came in which order makes no difference among the new ones.

    Args:
        tools: all tools that there are.
        taken: names that were given before, which stay.
    """
    new = sorted(set(tools) - taken.keys())
    used = {*OWN, *taken.values()}
    shared = Counter(_allowed(name) for _, name in new)
    names = dict(taken)
    for one in new:
        name = _allowed(one[1])
        if not name or shared[name] > 1 or name in used:
            name = _allowed("_".join(one))
        if len(name) > _MOST_CHARS or name in used:
            tail = digest(*(part.encode("utf-8", "replace") for part in one)).hex()
            room = _MOST_CHARS - _DIGEST_CHARS - 1
            name = f"{name[:room]}_{tail[:_DIGEST_CHARS]}"
        used.add(name)
        names[one] = name
    return names


def _allowed(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name)
