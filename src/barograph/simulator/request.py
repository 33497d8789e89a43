"""Read a request body into what the cache and the rules need, without decoding known blocks."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from barograph.simulator.blocks import BlockFacts, BlockReader, Ttl, marker_of
from barograph.simulator.refusal import Refused

CURRENT_VERSION: Final = "2026-10-21"

# reference: messages API, request body; beta parameters are accepted without their header
_PARAMETERS: Final = frozenset(
    {
        "billing_policy",
        "cache_control",
        "compaction",
        "container",
        "context_management",
        "diagnostics",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "thinking",
        "thread",
        "tool_choice",
        "tools",
        "user_profile_id",
        "workspace_id",
    }
)
# reference: provider migration page of API version 2026-10-21, removed parameters
_REMOVED_PARAMETERS: Final = frozenset({"temperature", "top_p", "top_k"})
_ROLES: Final = frozenset({"user", "assistant", "system"})


class Message(Struct, frozen=True, kw_only=True):
    """One message: its role and the facts of its blocks."""

    role: str
    blocks: tuple[BlockFacts, ...]


class Parameters(Struct, frozen=True, kw_only=True):
    """Parameters beside the prompt that matter to the cache or to what is allowed.

    Attributes:
        tool_choice: the choice, `{"type": "auto"}` where none is given.
        thinking: mode and budget, empty for none or `disabled`.
        effort: the effort, empty for none.
        speed: the speed, empty for none or `standard`.
        structured_output: whether an output format is asked for.
    """

    tool_choice: dict[str, Any]
    thinking: dict[str, Any]
    effort: str
    speed: str
    structured_output: bool


class Request(Struct, frozen=True, kw_only=True):
    """A request body, read.

    Attributes:
        model: the model id as sent.
        max_tokens: cap on the output; 0 asks for a cache write only.
        stream: whether the answer is to be streamed.
        tools: facts of the tool definitions.
        system: facts of the system blocks.
        messages: the messages.
        automatic: TTL class of the request's own `cache_control`, None without one.
        parameters: what else matters.
    """

    model: str
    max_tokens: int
    stream: bool
    tools: tuple[BlockFacts, ...]
    system: tuple[BlockFacts, ...]
    messages: tuple[Message, ...]
    automatic: Ttl | None
    parameters: Parameters

    def blocks(self) -> list[BlockFacts]:
        """Every block in the order of the prefix: tools, system, messages."""
        inner = [block for message in self.messages for block in message.blocks]
        return [*self.tools, *self.system, *inner]


class _RawMessage(Struct, forbid_unknown_fields=True):
    role: str
    content: str | list[Raw]
    clear_at: str | None = None  # turn-scoped system messages


_TOP: Final = msgspec.json.Decoder(dict[str, Raw])


def read_request(body: bytes, reader: BlockReader, version: str) -> Request:
    """Read a body.

    Args:
        body: JSON as it came.
        reader: where block facts come from.
        version: value of the `anthropic-version` header.

    Raises:
        Refused: the body is no JSON object, lacks a field, or holds a field or a type that the
            version does not know.
    """
    try:
        top = _TOP.decode(body)
    except msgspec.DecodeError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from error
    _check_names(top, version)
    automatic, problem = marker_of(top["cache_control"]) if "cache_control" in top else (None, "")
    if problem:
        raise Refused(problem.removeprefix("."))
    return Request(
        model=_field(top, "model", str, "valid string"),
        max_tokens=_max_tokens(top),
        stream=_field(top, "stream", bool | None, "valid boolean", optional=True) or False,
        tools=tuple(reader.tool(raw) for raw in _list(top, "tools")),
        system=_system(top, reader),
        messages=_messages(top, reader),
        automatic=automatic,
        parameters=_parameters(top),
    )


def _check_names(top: Mapping[str, Raw], version: str) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in top:
            raise Refused(f"{name}: Field required")
    allowed = _PARAMETERS if version >= CURRENT_VERSION else _PARAMETERS | _REMOVED_PARAMETERS
    for name in top:
        if name not in allowed:
            raise Refused(f"{name}: Extra inputs are not permitted")


def _field(
    top: Mapping[str, Raw], name: str, wanted: Any, words: str, *, optional: bool = False
) -> Any:
    if optional and name not in top:
        return None
    try:
        return msgspec.json.decode(top[name], type=wanted)
    except msgspec.DecodeError as error:
        raise Refused(f"{name}: Input should be a {words}") from error


def _max_tokens(top: Mapping[str, Raw]) -> int:
    max_tokens: int = _field(top, "max_tokens", int, "valid integer")
    if max_tokens < 0:
        raise Refused("max_tokens: Input should be greater than or equal to 0")
    return max_tokens


def _list(top: Mapping[str, Raw], name: str) -> list[Raw]:
    items: list[Raw] | None = _field(top, name, list[Raw] | None, "valid list", optional=True)
    return items or []


def _system(top: Mapping[str, Raw], reader: BlockReader) -> tuple[BlockFacts, ...]:
    content: str | list[Raw] | None = _field(
        top, "system", str | list[Raw] | None, "valid string or list of blocks", optional=True
    )
    if isinstance(content, str):
        return (reader.text(content),) if content else ()
    return tuple(reader.block(raw) for raw in content or ())


def _messages(top: Mapping[str, Raw], reader: BlockReader) -> tuple[Message, ...]:
    try:
        raws = msgspec.json.decode(top["messages"], type=list[_RawMessage])
    except msgspec.DecodeError as error:
        raise Refused(f"messages: {error}") from error
    for index, raw in enumerate(raws):
        if raw.role not in _ROLES:
            raise Refused(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    return tuple(_message(raw, reader) for raw in raws)


def _message(raw: _RawMessage, reader: BlockReader) -> Message:
    if isinstance(raw.content, str):
        blocks = (reader.text(raw.content),) if raw.content else ()
        return Message(role=raw.role, blocks=blocks)
    return Message(role=raw.role, blocks=tuple(reader.block(block) for block in raw.content))


def _parameters(top: Mapping[str, Raw]) -> Parameters:
    def value(name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = _field(
            top, name, dict[str, Any] | None, "valid object", optional=True
        )
        return found or {}

    thinking, output = value("thinking"), value("output_config")
    mode = {key: thinking[key] for key in ("type", "budget_tokens") if thinking.get(key)}
    speed = _field(top, "speed", str | None, "valid string", optional=True)
    return Parameters(
        tool_choice=value("tool_choice") or {"type": "auto"},
        thinking={} if mode.get("type") == "disabled" else mode,
        effort=str(output.get("effort") or ""),
        speed="" if speed in (None, "standard") else str(speed),
        structured_output=output.get("format") is not None,
    )
