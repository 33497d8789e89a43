"""Read a request body into what the cache and the rules need, without decoding known blocks."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from barograph.core.events import Ttl
from barograph.simulator.blocks import BlockFacts, marker_of
from barograph.simulator.messages import Message, MessageReader
from barograph.simulator.refusal import Refused, refusal_of
from barograph.simulator.tokens import TokenRule

CURRENT_VERSION: Final = "2026-10-21"

# reference: provider migration page of API version 2026-10-21, removed parameters
_REMOVED_PARAMETERS: Final = ("temperature", "top_p", "top_k")
_ABSENT: Final = Raw()
# reference: provider token-counting endpoint, which takes the prompt and what shapes it
_NOT_COUNTED: Final = (
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "metadata",
    "service_tier",
    "stop_sequences",
    "stream",
)


class Parameters(Struct, frozen=True, kw_only=True):
    """Parameters beside the prompt that matter to the cache or to what is allowed.

    Attributes:
        tool_choice: the choice, `{"type": "auto"}` where none is given.
        thinking: mode and budget, empty for none or `disabled`.
        effort: the effort, empty for none.
        speed: the speed, empty for none or `standard`.
        structured_output: whether an output format is asked for.
        task_budget: the budget of the task, None without one.
        has_binding: whether `thinking.block_binding` is given.
        on_mismatch: its `prefix_mismatch_behavior`, empty for none.
    """

    tool_choice: dict[str, Any]
    thinking: dict[str, Any]
    effort: str
    speed: str
    structured_output: bool
    task_budget: Any = None
    has_binding: bool = False
    on_mismatch: str = ""


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
        diagnosed: whether it has `diagnostics`.
        previous_message_id: id of the answer it is to be compared with, None for none.
    """

    model: str
    max_tokens: int
    stream: bool
    tools: tuple[BlockFacts, ...]
    system: tuple[BlockFacts, ...]
    messages: tuple[Message, ...]
    automatic: Ttl | None
    parameters: Parameters
    diagnosed: bool = False
    previous_message_id: str | None = None

    def blocks(self) -> list[BlockFacts]:
        """Every block in the order of the prefix: tools, system, messages."""
        inner = [block for message in self.messages for block in message.blocks]
        return [*self.tools, *self.system, *inner]


class _Diagnostics(Struct, forbid_unknown_fields=True):
    previous_message_id: str | None = None


class _Body(Struct, forbid_unknown_fields=True):
    """Every parameter of the messages API; beta parameters are accepted without their header."""

    model: str
    messages: list[Raw]
    max_tokens: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    billing_policy: Raw = _ABSENT
    cache_control: Raw = _ABSENT
    compaction: Raw = _ABSENT
    container: Raw = _ABSENT
    context_management: Raw = _ABSENT
    diagnostics: _Diagnostics | None = None
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


class RequestReader:
    """Reads bodies; messages it has seen before are looked up, not decoded.

    Args:
        rule: how tokens are counted.
    """

    def __init__(self, rule: TokenRule) -> None:
        self._messages = MessageReader(rule)
        self.blocks = self._messages.blocks

    def read(self, body: bytes, version: str, *, counting: bool = False) -> Request:
        """Read a body.

        Args:
            body: JSON as it came.
            version: value of the `anthropic-version` header.
            counting: whether only its tokens are asked for, which takes fewer fields.

        Raises:
            Refused: the body is no JSON object, lacks a field, or holds a field or a type that
                the version does not know.
        """
        try:
            top = _BODY.decode(body)
        except msgspec.DecodeError as error:
            raise refusal_of(error) from error
        if counting:
            _check_counted(top)
            top.max_tokens = 1
        _check_removed(top, version)
        return self._read(top)

    def _read(self, top: _Body) -> Request:
        if top.max_tokens is UNSET:
            raise Refused("max_tokens: Field required")
        automatic, problem = marker_of(top.cache_control) if top.cache_control else (None, "")
        if problem:
            raise Refused(problem.removeprefix("."))
        asked = top.diagnostics
        return Request(
            model=top.model,
            max_tokens=top.max_tokens,
            stream=bool(top.stream),
            tools=tuple(self.blocks.tool(raw) for raw in top.tools or ()),
            system=self._messages.content(top.system or ()),
            messages=tuple(self._messages.message(raw, at) for at, raw in enumerate(top.messages)),
            automatic=automatic,
            parameters=_parameters(top),
            diagnosed=asked is not None,
            previous_message_id=asked.previous_message_id if asked is not None else None,
        )


def _check_counted(top: _Body) -> None:
    for name in _NOT_COUNTED:
        value = getattr(top, name)
        if value is not None and value is not UNSET and value is not _ABSENT:
            raise Refused(f"{name}: Extra inputs are not permitted")


def _check_removed(top: _Body, version: str) -> None:
    if version < CURRENT_VERSION:
        return
    for name in _REMOVED_PARAMETERS:
        if getattr(top, name):
            raise Refused(f"{name}: Extra inputs are not permitted")


def _parameters(top: _Body) -> Parameters:
    thinking, output = top.thinking or {}, top.output_config or {}
    mode = {key: thinking[key] for key in ("type", "budget_tokens") if thinking.get(key)}
    binding = thinking.get("block_binding")
    return Parameters(
        tool_choice=top.tool_choice or {"type": "auto"},
        thinking={} if mode.get("type") == "disabled" else mode,
        effort=str(output.get("effort") or ""),
        speed="" if top.speed in (None, "standard") else str(top.speed),
        structured_output=output.get("format") is not None,
        task_budget=output.get("task_budget"),
        has_binding=binding is not None,
        on_mismatch=_on_mismatch(binding),
    )


def _on_mismatch(binding: object) -> str:
    """What is to happen with thinking whose prefix changed (reference: preserved thinking)."""
    if not isinstance(binding, dict):
        return ""
    value = binding.get("prefix_mismatch_behavior")
    if value not in (None, "error", "drop_block"):
        raise Refused(
            "thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or"
            " 'drop_block'"
        )
    return value or ""
