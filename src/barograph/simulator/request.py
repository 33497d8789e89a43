"""Read a request body into what the cache and the rules need, without decoding known blocks."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from barograph.core.events import Ttl
from barograph.simulator.blocks import BlockFacts, BlockReader, Memory, key_of, marker_of
from barograph.simulator.refusal import Refused
from barograph.simulator.tokens import TokenRule

CURRENT_VERSION: Final = "2026-10-21"

# reference: provider migration page of API version 2026-10-21, removed parameters
_REMOVED_PARAMETERS: Final = ("temperature", "top_p", "top_k")
_ABSENT: Final = Raw()
_INDEX: Final = re.compile(r"\[(\d+)\]")
_NAMED: Final = re.compile(r"(?:missing required|contains unknown) field `(\w+)`")


class Message(Struct, frozen=True, kw_only=True):
    """One message: its role and the facts of its blocks.

    Attributes:
        role: as on the wire.
        blocks: facts of its blocks, a string counting as one text block.
        calls: ids of its `tool_use` blocks.
        answers: ids of its `tool_result` blocks.
        faulty: index of the first block with a problem, -1 for none.
    """

    role: str
    blocks: tuple[BlockFacts, ...]
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    faulty: int


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
    role: Literal["user", "assistant", "system"]
    content: str | list[Raw]
    clear_at: str | None = None  # turn-scoped system messages


class _Body(Struct, forbid_unknown_fields=True):
    """Every parameter of the messages API; beta parameters are accepted without their header."""

    model: str
    max_tokens: Annotated[int, Meta(ge=0)]
    messages: list[Raw]
    billing_policy: Raw = _ABSENT
    cache_control: Raw = _ABSENT
    compaction: Raw = _ABSENT
    container: Raw = _ABSENT
    context_management: Raw = _ABSENT
    diagnostics: Raw = _ABSENT
    fallback_credit_token: Raw = _ABSENT
    fallbacks: Raw = _ABSENT
    inference_geo: Raw = _ABSENT
    mcp_servers: Raw = _ABSENT
    metadata: Raw = _ABSENT
    output_config: dict[str, Any] | None = None
    service_tier: Raw = _ABSENT
    speed: str | None = None
    stop_sequences: Raw = _ABSENT
    stream: bool | None = None
    system: str | list[Raw] | None = None
    temperature: Raw = _ABSENT
    thinking: dict[str, Any] | None = None
    thread: Raw = _ABSENT
    tool_choice: dict[str, Any] | None = None
    tools: list[Raw] | None = None
    top_k: Raw = _ABSENT
    top_p: Raw = _ABSENT
    user_profile_id: Raw = _ABSENT
    workspace_id: Raw = _ABSENT


_BODY: Final = msgspec.json.Decoder(_Body)
_MESSAGE: Final = msgspec.json.Decoder(_RawMessage)


class RequestReader:
    """Reads bodies; messages it has seen before are looked up, not decoded.

    Args:
        rule: how tokens are counted.
    """

    def __init__(self, rule: TokenRule) -> None:
        self._blocks = BlockReader(rule)
        self._messages: Memory[Message] = Memory()

    def read(self, body: bytes, version: str) -> Request:
        """Read a body.

        Args:
            body: JSON as it came.
            version: value of the `anthropic-version` header.

        Raises:
            Refused: the body is no JSON object, lacks a field, or holds a field or a type that
                the version does not know.
        """
        try:
            top = _BODY.decode(body)
            return self._read(top, version)
        except msgspec.DecodeError as error:
            raise _refusal(error) from error

    def _read(self, top: _Body, version: str) -> Request:
        _check_removed(top, version)
        automatic, problem = marker_of(top.cache_control) if top.cache_control else (None, "")
        if problem:
            raise Refused(problem.removeprefix("."))
        return Request(
            model=top.model,
            max_tokens=top.max_tokens,
            stream=bool(top.stream),
            tools=tuple(self._blocks.tool(raw) for raw in top.tools or ()),
            system=self._content(top.system or ()),
            messages=tuple(self._message(raw, at) for at, raw in enumerate(top.messages)),
            automatic=automatic,
            parameters=_parameters(top),
        )

    def _content(self, content: str | Sequence[Raw]) -> tuple[BlockFacts, ...]:
        if isinstance(content, str):
            return (self._blocks.text(content),) if content else ()
        return tuple(self._blocks.block(raw) for raw in content)

    def _message(self, raw: Raw, at: int) -> Message:
        key = key_of(raw)
        known = self._messages.get(key)
        if known is not None:
            return known
        try:
            message = _MESSAGE.decode(raw)
        except msgspec.DecodeError as error:
            raise _refusal(error, inside=f"messages.{at}") from error
        blocks = self._content(message.content)
        faulty = next((index for index, block in enumerate(blocks) if block.problem), -1)
        read = Message(
            role=message.role,
            blocks=blocks,
            calls=tuple(block.tool_id for block in blocks if block.kind == "tool_use"),
            answers=tuple(block.tool_id for block in blocks if block.kind == "tool_result"),
            faulty=faulty,
        )
        return self._messages.put(key, read)


def _refusal(error: msgspec.DecodeError, *, inside: str = "") -> Refused:
    """The provider's words for what msgspec found: the path first, then the complaint."""
    words = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return Refused(f"The request body is not valid JSON: {words}")
    complaint, _, place = words.partition(" - at `$")
    path = inside + _INDEX.sub(r".\1", place.rstrip("`"))
    name = _NAMED.search(complaint)
    if name is not None:
        path += f".{name[1]}"
        complaint = "Field required" if "missing" in complaint else "Extra inputs are not permitted"
    return Refused(f"{path.strip('.') or 'body'}: {complaint}")


def _check_removed(top: _Body, version: str) -> None:
    if version < CURRENT_VERSION:
        return
    for name in _REMOVED_PARAMETERS:
        if getattr(top, name):
            raise Refused(f"{name}: Extra inputs are not permitted")


def _parameters(top: _Body) -> Parameters:
    thinking, output = top.thinking or {}, top.output_config or {}
    mode = {key: thinking[key] for key in ("type", "budget_tokens") if thinking.get(key)}
    return Parameters(
        tool_choice=top.tool_choice or {"type": "auto"},
        thinking={} if mode.get("type") == "disabled" else mode,
        effort=str(output.get("effort") or ""),
        speed="" if top.speed in (None, "standard") else str(top.speed),
        structured_output=output.get("format") is not None,
    )
