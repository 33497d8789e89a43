"""Render a surface as an Anthropic Messages request, block by block.

One canonical block shape, always: every content is a list of blocks, every tool result a list of
blocks with an explicit `is_error`, every marker the last key of its block with an explicit TTL. So
placing a marker changes no other byte (invariant 4).

Keys come in the order in which the stock LangChain client sends them, which lets a request record
refer to our rendering instead of storing what was sent a second time.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from barograph.core.canonical import clean_text, digest, one_spelling, parse_json
from barograph.core.events import Ttl
from barograph.core.model import Body, MarkerFault, ModelFacts, Refreshing, Scope, WireBlock
from barograph.core.parts import (
    Document,
    Image,
    Opaque,
    Part,
    Parts,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    calls_in,
)
from barograph.providers.anthropic.models import facts_of
from barograph.providers.anthropic.refreshing import refreshing
from barograph.providers.anthropic.refusals import marker_fault
from barograph.providers.anthropic.weight import weigh

# Parameters that a cache entry depends on (prompt-caching page, table of what invalidates what).
_HEADER_PARAMETERS: Final = ("model", "speed")
_MESSAGE_PARAMETERS: Final = ("tool_choice", "thinking", "output_config")
_OWN_KEYS: Final = ("messages", "system", "tools", "diagnostics")
# Leaves room for the message around them within `canonical.DEEPEST`.
_DEEPEST_ARGUMENTS: Final = 200

_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_array = msgspec.json.Decoder(list[msgspec.Raw])


class AnthropicCodec:
    """The Messages wire format.

    Args:
        respell_arguments: render tool arguments as a client does that parsed them (compact, floats
            in Python's spelling). Off, the text goes back exactly as it was received.
    """

    def __init__(self, *, respell_arguments: bool = False) -> None:
        self._respell = respell_arguments
        self.renderer = "anthropic-respelled/1" if respell_arguments else "anthropic/1"

    def facts_of(self, model: str) -> ModelFacts:
        """Limits, minimums and ratios of a model id."""
        return facts_of(model)

    def sendable(self, parts: Parts, *, prefill: bool = False) -> Parts:
        """Leave out what the API refuses.

        That is empty text, arguments that are not a JSON object, and a call whose id an earlier
        call of the same message has: nothing could tell their results apart.
        """
        kept: list[Part] = []
        calls: set[str] = set()
        for part in parts:
            fixed = _sendable(part)
            if fixed is None:
                continue
            if isinstance(fixed, ToolCall | Opaque):
                called = calls_in((fixed,))
                if not calls.isdisjoint(called):
                    continue
                calls.update(called)
            kept.append(fixed)
        if prefill and kept and isinstance(kept[-1], Text):
            # The API refuses trailing white space in a final assistant message.
            kept[-1] = Text(kept[-1].text.rstrip())
        return tuple(kept)

    def block(self, part: Part) -> WireBlock:
        """One part as one wire block."""
        if isinstance(part, Text):
            return WireBlock('{"type":"text","text":' + _string(part.text) + "}", markable=True)
        if isinstance(part, ToolResult):
            content = ",".join(self.block(leaf).text for leaf in part.content)
            error = "true" if part.is_error else "false"
            text = (
                f'{{"type":"tool_result","content":[{content}],'
                f'"tool_use_id":{_string(part.call_id)},"is_error":{error}}}'
            )
            return WireBlock(text, markable=True)
        if isinstance(part, ToolCall):
            arguments = one_spelling(part.arguments) if self._respell else part.arguments
            text = (
                f'{{"type":"tool_use","name":{_string(part.name)},'
                f'"input":{arguments},"id":{_string(part.id)}}}'
            )
            # The API allows a marker here; the stock LangChain client drops it.
            return WireBlock(text, markable=False)
        if isinstance(part, Thinking):
            signature = "" if part.signature is None else f',"signature":{_string(part.signature)}'
            text = f'{{"type":"thinking","thinking":{_string(part.text)}{signature}}}'
            return WireBlock(text, markable=False)
        return WireBlock(part.block, markable=isinstance(part, Image | Document))

    def weigh(self, part: Part) -> int:
        """What a part weighs, in characters."""
        return weigh(part)

    def render_message(self, role: Role, blocks: Sequence[str], marks: Mapping[int, Ttl]) -> bytes:
        """A wire message: tool results ride in a user message."""
        speaker = "assistant" if role == "assistant" else "user"
        content = ",".join(_marked(block, marks.get(i)) for i, block in enumerate(blocks))
        return f'{{"role":"{speaker}","content":[{content}]}}'.encode()

    def render_system(self, system: Parts, marks: Mapping[int, Ttl]) -> bytes | None:
        """The system field, always a list of blocks."""
        if not system:
            return None
        blocks = (_marked(self.block(part).text, marks.get(i)) for i, part in enumerate(system))
        return f"[{','.join(blocks)}]".encode()

    def render_tools(self, tools: str, marks: Mapping[int, Ttl]) -> bytes | None:
        """The tools field from the definitions as sent."""
        definitions = _raw_array.decode(tools) if tools else []
        if not definitions:
            return None
        if not marks:
            return tools.encode()
        texts = (_marked(bytes(raw).decode(), marks.get(i)) for i, raw in enumerate(definitions))
        return f"[{','.join(texts)}]".encode()

    def render_diagnostics(self, compared_with: str | None) -> bytes:
        """The field that asks for a comparison with the call of that answer (cache diagnostics)."""
        named = "null" if compared_with is None else _string(compared_with)
        return f'{{"previous_message_id":{named}}}'.encode()

    def split_body(self, body: bytes) -> Body | None:
        """Take a request body apart without re-encoding any piece."""
        try:
            body.decode()
            fields = _raw_object.decode(body)
            messages = tuple(bytes(raw) for raw in _raw_array.decode(fields["messages"]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            return None
        pieces = {key: bytes(raw) for key, raw in fields.items()}
        apart = Body(
            order=tuple(pieces),
            messages=messages,
            system=pieces.get("system"),
            tools=pieces.get("tools"),
            diagnostics=pieces.get("diagnostics"),
            parameters=_object({k: v for k, v in pieces.items() if k not in _OWN_KEYS}),
        )
        return apart if self.join_body(apart) == body else None

    def join_body(self, body: Body) -> bytes:
        """Put the pieces together in the order they were sent."""
        pieces = {key: bytes(raw) for key, raw in _raw_object.decode(body.parameters).items()}
        pieces["messages"] = b"[" + b",".join(body.messages) + b"]"
        pieces["system"] = body.system or b"[]"
        pieces["tools"] = body.tools or b"[]"
        pieces["diagnostics"] = body.diagnostics or b"{}"
        return _object({key: pieces[key] for key in body.order})

    def unmarked_tools(self, tools: bytes) -> str:
        """The tool definitions as sent, without markers."""
        if b'"cache_control"' not in tools:
            return tools.decode()
        definitions = []
        for raw in _raw_array.decode(tools):
            fields = {key: bytes(value) for key, value in _raw_object.decode(raw).items()}
            fields.pop("cache_control", None)
            definitions.append(_object(fields))
        return (b"[" + b",".join(definitions) + b"]").decode()

    def refreshing(self, parameters: str) -> Refreshing:
        """What to send in their place where no answer is wanted."""
        return refreshing(parameters)

    def marker_fault(self, status: int | None, message: str) -> MarkerFault | None:
        """What an error says of the markers; None where it is about something else."""
        return marker_fault(status, message)

    def scope_of(self, system: Parts, tools: str, parameters: str) -> Scope:
        """The header and the parameters that a cache entry depends on."""
        given = _raw_object.decode(parameters)
        header = digest(
            *(bytes(given.get(key, b"")) for key in _HEADER_PARAMETERS),
            tools.encode(),
            self.render_system(system, {}) or b"",
        )
        more = (bytes(given.get(key, b"")) for key in _MESSAGE_PARAMETERS)
        return Scope(header=header, messages=digest(header, *more))


def _sendable(part: Part) -> Part | None:
    if isinstance(part, Text):
        text = clean_text(part.text)
        if not text or text.isspace():
            return None
        return part if text == part.text else Text(text)
    if isinstance(part, Thinking):
        signature = None if part.signature is None else clean_text(part.signature)
        return Thinking(clean_text(part.text), signature)
    if isinstance(part, ToolCall):
        arguments = part.arguments if _is_sendable_object(part.arguments) else "{}"
        return ToolCall(clean_text(part.id), clean_text(part.name), arguments)
    if isinstance(part, ToolResult):
        leaves = (_sendable(leaf) for leaf in part.content)
        content = tuple([leaf for leaf in leaves if leaf is not None])
        return replace(part, call_id=clean_text(part.call_id), content=content)
    return replace(part, block=clean_text(part.block))


def _is_sendable_object(arguments: str) -> bool:
    value = parse_json(arguments, deepest=_DEEPEST_ARGUMENTS)
    if not isinstance(value, dict):
        return False
    if arguments.isascii() and "\\u" not in arguments:
        return True  # nothing here can stand for a lone surrogate
    spelled = json.dumps(value, ensure_ascii=False)
    return clean_text(spelled) == spelled


def _string(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _marked(block: str, ttl: Ttl | None) -> str:
    if ttl is None:
        return block
    return f'{block[:-1]},"cache_control":{{"type":"ephemeral","ttl":"{ttl}"}}}}'


def _object(fields: Mapping[str, bytes]) -> bytes:
    return (
        b"{" + b",".join(_string(key).encode() + b":" + raw for key, raw in fields.items()) + b"}"
    )
