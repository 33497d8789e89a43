"""Between LangChain's messages and typed parts, both ways.

Every message is sent in one canonical shape, built from the parts in the log: content as a list of
blocks in wire form, whatever shape the framework's message had. So a thread that mixes streamed and
whole answers, or strings and blocks, stays byte-stable, and a marker never changes a shape.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_anthropic import chat_models as _anthropic
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from msgspec import Struct

from barograph.core.canonical import dump_json, parse_json
from barograph.core.errors import PolicyError, UsageError
from barograph.core.events import Ttl
from barograph.core.ingest import Incoming
from barograph.core.parts import Leaf, Part, Parts, Text, Thinking, ToolCall, ToolResult
from barograph.core.surface import Entry
from barograph.providers.anthropic.response import part_of

# Blocks whose conversion to wire form is the client's business: images, files, server tools ...
_PLAIN = frozenset({"text", "thinking", "redacted_thinking"})
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
_SKIPPED = frozenset({"reasoning", "function_call", "refusal"})


class Arrival(Struct, frozen=True):
    """A message read: what it says, and how many cache markers of the caller were taken off."""

    incoming: Incoming
    markers: int


def read_message(message: BaseMessage) -> Arrival:
    """A LangChain message as typed parts.

    Raises:
        PolicyError: the caller placed a cache marker where the API allows none.
        UsageError: a kind of message that cannot be sent in this place.
    """
    markers = _count_markers(message)
    if isinstance(message, ToolMessage):
        return Arrival(Incoming("tool", _tool_parts(message), message.id), markers)
    if isinstance(message, AIMessage):
        return Arrival(Incoming("assistant", _model_parts(message), message.id), markers)
    if isinstance(message, HumanMessage):
        return Arrival(Incoming("user", _user_parts(message), message.id), markers)
    raise UsageError(
        f"A {type(message).__name__} (id {message.id}) stands in the middle of the history.",
        next_step="Give the agent's instructions as `system_prompt`, and say what is new in a "
        "HumanMessage.",
        message=message.id,
    )


def read_system(message: SystemMessage | None) -> tuple[Parts, int]:
    """The system message as parts, and the number of markers taken off it."""
    if message is None:
        return (), 0
    parts = tuple(part for block in _blocks(message.content) for part in _user_part(block))
    return parts, _count_markers(message)


def write_message(entry: Entry, marks: Mapping[int, Ttl]) -> BaseMessage:
    """An entry of a surface as the LangChain message that renders to it, `marks` by part.

    Plain text goes as an item of its own and not as a block, which the client turns into the same
    block: for each block it is given it works out anew which types are data blocks, and spends
    more than on all the rest (0.3 ms a block with langchain-core 1.8.3).
    """
    parts = entry.parts
    content = [_item(part, marks.get(index)) for index, part in enumerate(parts)]
    if entry.role == "tool":
        (result,) = (part for part in parts if isinstance(part, ToolResult))
        status = "error" if result.is_error else "success"
        return ToolMessage(content=content, tool_call_id=result.call_id, status=status)
    if entry.role == "assistant":
        calls = [
            {"name": p.name, "args": json.loads(p.arguments), "id": p.id, "type": "tool_call"}
            for p in parts
            if isinstance(p, ToolCall)
        ]
        if not any(isinstance(part, ToolCall) for part in parts[: len(parts) - len(calls)]):
            # calls at the end are put there by the client; elsewhere a block keeps their place
            content = content[: len(parts) - len(calls)]
        return AIMessage(content=content, tool_calls=calls)
    return HumanMessage(content=content)


def write_system(parts: Parts, marks: Mapping[int, Ttl]) -> SystemMessage | None:
    """The system message that renders to these parts."""
    if not parts:
        return None
    return SystemMessage(content=[_item(part, marks.get(i)) for i, part in enumerate(parts)])


def _tool_parts(message: ToolMessage) -> Parts:
    blocks = _blocks(message.content)
    if blocks and all(block.get("type") == "tool_result" for block in blocks):
        return tuple(part for block in blocks for part in _user_part(block))
    leaves = tuple(leaf for block in blocks for leaf in _leaves(block))
    call = _legal_id(message.tool_call_id)
    return (ToolResult(call, leaves, is_error=message.status == "error"),)


def _user_parts(message: HumanMessage) -> Parts:
    return tuple(part for block in _blocks(message.content) for part in _user_part(block))


def _user_part(block: dict[str, Any]) -> Iterator[Part]:
    if block.get("type") == "tool_result":
        inner = _blocks(block.get("content") or [])
        leaves = tuple(leaf for item in inner for leaf in _leaves(item))
        call = _legal_id(str(block.get("tool_use_id")))
        yield ToolResult(call, leaves, is_error=bool(block.get("is_error")))
    else:
        yield from _leaves(block)


def _leaves(block: dict[str, Any]) -> Iterator[Leaf]:
    wire = [block] if block.get("type") in _PLAIN else _converted(HumanMessage([block]))
    for formatted in wire:
        yield _part_of(formatted)  # type: ignore[misc]  # user blocks never are calls


def _model_parts(message: AIMessage) -> Parts:
    calls = {call["id"]: call for call in message.tool_calls}
    parts: list[Part] = []
    for block in _blocks(message.content):
        parts.extend(_model_part(block, calls, message))
    told = {part.id for part in parts if isinstance(part, ToolCall)}
    parts.extend(
        _call(call["id"], call["name"], call["args"])
        for call in message.tool_calls
        if _legal_id(call["id"]) not in told
    )
    for invalid in message.invalid_tool_calls:
        call_id, name = invalid.get("id"), invalid.get("name")
        if call_id and name and _legal_id(call_id) not in told:
            parts.append(ToolCall(_legal_id(call_id), name, invalid.get("args") or "{}"))
    return tuple(parts)


def _model_part(
    block: dict[str, Any], calls: Mapping[str | None, Any], message: AIMessage
) -> Iterator[Part]:
    kind = block.get("type")
    if kind == "tool_use" and not block.get("caller"):
        call = calls.get(block["id"])
        if call is not None:
            yield _call(call["id"], call["name"], call["args"])
        else:
            given = block.get("input") or parse_json(block.get("partial_json") or "{}")
            yield _call(block["id"], block["name"], given)
    elif kind in _SKIPPED and kind != "reasoning":
        return
    elif kind in _PLAIN:
        yield _part_of(block)
    else:
        copy = AIMessage([block], response_metadata=message.response_metadata)
        for formatted in _converted(copy):
            yield _part_of(formatted)


def _call(call_id: str | None, name: str, arguments: object) -> ToolCall:
    return ToolCall(_legal_id(call_id), name, dump_json(arguments).decode("utf-8", "replace"))


def _part_of(block: dict[str, Any]) -> Part:
    if block.get("type") == "text":
        if not block.get("citations"):
            return Text(block["text"])  # by far the most: no need of its JSON
        bare = {k: v for k, v in block.items() if k in ("type", "text", "citations")}
    else:
        bare = {k: v for k, v in block.items() if k not in ("cache_control", "index")}
    return part_of(bare, dump_json(bare).decode("utf-8", "replace"))


def _converted(message: BaseMessage) -> list[dict[str, Any]]:
    """Wire form of a block that we do not know, by the client's own conversion."""
    formatted = _anthropic._format_messages([message], model=None)[1]  # noqa: SLF001
    return [block for turn in formatted for block in _blocks(turn["content"])]


def _legal_id(call_id: str | None) -> str:
    """The id as the client sends it: ids of other providers are rewritten by a fixed rule."""
    return str(_anthropic._normalize_tool_call_id(call_id or ""))  # noqa: SLF001


def _wire_block(part: Part) -> dict[Any, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolResult):
        return {
            "type": "tool_result",
            "content": [_item(leaf, None) for leaf in part.content],
            "tool_use_id": part.call_id,
            "is_error": part.is_error,
        }
    if isinstance(part, ToolCall):
        # the client takes the arguments from `tool_calls`; this keeps the place
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
    if isinstance(part, Thinking):
        signature = {} if part.signature is None else {"signature": part.signature}
        return {"type": "thinking", "thinking": part.text, **signature}
    block: dict[str, Any] = json.loads(part.block)
    return block


def _item(part: Part, ttl: Ttl | None) -> str | dict[Any, Any]:
    if ttl is not None:
        return {**_wire_block(part), "cache_control": {"type": "ephemeral", "ttl": ttl}}
    return part.text if isinstance(part, Text) else _wire_block(part)


def _blocks(content: str | Sequence[Any]) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]


def _count_markers(message: BaseMessage) -> int:
    if isinstance(message.content, str):
        return 0
    return sum(
        check_marker(block, f"block {index} of message {message.id}")
        for index, block in enumerate(message.content)
        if isinstance(block, dict)
    )


def check_marker(block: Mapping[str, Any], where: str) -> int:
    """How many markers a caller's block carries: 0 or 1.

    Raises:
        PolicyError: the API would refuse it.
    """
    marker = block.get("cache_control")
    if marker is None:
        return 0
    is_known = isinstance(marker, Mapping) and marker.get("type") == "ephemeral"
    if not is_known or marker.get("ttl", "5m") not in ("5m", "1h"):
        problem = f"is {dump_json(marker).decode()}"
    elif block.get("type") in _UNMARKABLE:
        problem = f"stands on a {block['type']} block"
    elif block.get("type") == "text" and not str(block.get("text", "")).strip():
        problem = "stands on an empty text"
    else:
        return 1
    raise PolicyError(
        f"The cache marker on {where} {problem}; the provider would refuse the request.",
        next_step="Remove it: Barograph places the markers of every request.",
        where=where,
    )
