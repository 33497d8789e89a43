"""Read a response body, streamed or not, into parts and usage.

Tool arguments keep the text in which the model wrote them: a parsed and re-serialised `1e-7` is
not what was generated.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from barograph.core.canonical import dump_json, parse_json
from barograph.core.events import Ttl, Usage
from barograph.core.parts import Document, Image, Opaque, Part, Parts, Text, Thinking, ToolCall
from barograph.providers.anthropic.usage import usage_of

_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
# What reading raises where a value is not of the kind that the API sends.
_NO_RESPONSE: Final = (
    msgspec.DecodeError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
_PLAIN_TEXT_KEYS: Final = frozenset({"type", "text", "citations"})


class Answer(Struct, frozen=True, kw_only=True):
    """What a response says.

    `usage` is None where none was reported, `diagnosis` where no difference was named.
    """

    parts: Parts
    stop_reason: str | None
    usage: Usage | None
    provider_id: str | None
    model: str | None
    diagnosis: str | None = None


def read_response(body: bytes, *, streamed: bool, ttl: Ttl = "5m") -> Answer | None:
    """Read the body of a successful response; None where it is not one.

    Args:
        body: decoded bytes, possibly of a stream that was cut short.
        streamed: whether it is a stream of server-sent events.
        ttl: lifetime to book a cache write under that the provider did not split.
    """
    try:
        answer = _read_stream(body, ttl) if streamed else _read_message(body, ttl)
        # a null where the API sends text would be found out only when it is stored
        return msgspec.convert(msgspec.to_builtins(answer), Answer | None)
    except _NO_RESPONSE:
        return None


def part_of(block: Mapping[str, Any], raw: str) -> Part:
    """One content block as a part; `raw` is its JSON text."""
    kind = block.get("type")
    if kind == "text" and not block.get("citations") and block.keys() <= _PLAIN_TEXT_KEYS:
        return Text(block["text"])
    if kind == "thinking":
        return Thinking(block.get("thinking") or "", block.get("signature"))
    if kind == "image":
        return Image(raw)
    if kind == "document":
        return Document(raw)
    return Opaque(str(kind), raw)


def _read_message(body: bytes, ttl: Ttl) -> Answer | None:
    fields = _raw_object.decode(body)
    if "content" not in fields:
        return None
    message = json.loads(body)
    parts = tuple(
        _complete_part(bytes(raw))
        for raw in msgspec.json.decode(fields["content"], type=list[msgspec.Raw])
    )
    return Answer(
        parts=parts,
        stop_reason=message.get("stop_reason"),
        usage=usage_of(message.get("usage"), ttl=ttl),
        provider_id=message.get("id"),
        model=message.get("model"),
        diagnosis=_diagnosis(message),
    )


def _diagnosis(message: Mapping[str, Any]) -> str | None:
    """Type of the difference that the provider found; None where there is none, or not yet."""
    reason = (message.get("diagnostics") or {}).get("cache_miss_reason") or {}
    return str(reason["type"]) if "type" in reason else None


def _complete_part(raw: bytes) -> Part:
    block = json.loads(raw)
    if block.get("type") == "tool_use" and not block.get("caller"):
        arguments = bytes(_raw_object.decode(raw)["input"]).decode()
        return ToolCall(block["id"], block["name"], arguments)
    return part_of(block, raw.decode())


def _read_stream(body: bytes, ttl: Ttl) -> Answer | None:
    message: dict[str, Any] | None = None
    blocks: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    ended: dict[str, Any] = {}
    stop_reason = None
    for event in _events(body):
        match event.get("type"):
            case "message_start":
                message = event["message"]
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                _add_delta(blocks[event["index"]], event["delta"], arguments, event["index"])
            case "message_delta":
                ended = event.get("usage") or {}
                stop_reason = event["delta"].get("stop_reason")
    if message is None:
        return None
    return Answer(
        parts=tuple(_streamed_part(blocks[i], arguments.get(i)) for i in sorted(blocks)),
        stop_reason=stop_reason,
        usage=usage_of(message.get("usage"), ended, ttl=ttl),
        provider_id=message.get("id"),
        model=message.get("model"),
        diagnosis=_diagnosis(message),
    )


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.split(b"\n"):
        if line.startswith(b"data:"):
            try:
                yield json.loads(line[5:])
            except ValueError:
                return  # the stream was cut inside this event


def _add_delta(
    block: dict[str, Any], delta: Mapping[str, Any], arguments: dict[int, str], index: int
) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]
        case "citations_delta":
            block.setdefault("citations", []).append(delta["citation"])


def _streamed_part(block: Mapping[str, Any], arguments: str | None) -> Part:
    if block.get("type") == "tool_use" and not block.get("caller"):
        given = arguments or json.dumps(block.get("input") or {})
        return ToolCall(block["id"], block["name"], given)
    raw = {key: dump_json(value).decode("utf-8", "surrogatepass") for key, value in block.items()}
    if arguments:
        # as written; a stream that was cut leaves no value
        raw["input"] = "{}" if parse_json(arguments) is None else arguments
    return part_of(block, "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in raw.items()) + "}")
