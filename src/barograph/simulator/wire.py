"""The wire form of answers: the JSON message, and the same message as server-sent events.

Source: provider streaming page and the types of its SDK. The first event carries the input side of
the usage with the split by TTL; `message_delta` repeats the input and cache totals, cumulative and
without the split.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from barograph.core.events import Usage

# Long enough to keep events few, short enough that clients must join several.
_DELTA_CHARS: Final = 1024


def message_json(
    *,
    message_id: str,
    model: str,
    content: list[Any],
    stop_reason: str,
    usage: Usage,
    diagnostics: dict[str, Any] | None = None,
    input_transformations: Sequence[dict[str, str]] | None = None,
) -> bytes:
    """The body of a 200 answer; `input_transformations` is left out where it is None."""
    told = {} if input_transformations is None else {"input_transformations": input_transformations}
    return msgspec.json.encode(
        {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage_json(usage),
            "diagnostics": diagnostics,
            **told,
        }
    )


def usage_json(usage: Usage) -> dict[str, Any]:
    """The usage object of a message."""
    return {
        "input_tokens": usage.uncached_tokens,
        "cache_creation_input_tokens": usage.write_tokens,
        "cache_read_input_tokens": usage.read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.write_5m_tokens,
            "ephemeral_1h_input_tokens": usage.write_1h_tokens,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }


def stream_of(message: bytes) -> Iterator[bytes]:
    """The server-sent events that deliver a message.

    Args:
        message: the JSON form of a 200 answer.
    """
    whole = msgspec.json.decode(message)
    usage = whole.get("usage", {})
    opening = whole | {"content": [], "stop_reason": None}
    if usage:
        opening["usage"] = usage | {"output_tokens": _first_of(usage["output_tokens"])}
    yield _event("message_start", message=opening)
    yield _event("ping")
    for index, block in enumerate(whole["content"]):
        start, deltas = _parts(block)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    totals = {
        name: usage[name]
        for name in (
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
            "output_tokens",
        )
        if name in usage
    }
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    told = {name: whole[name] for name in ("input_transformations",) if name in whole}
    yield _event("message_delta", delta=delta, usage=totals, **told)
    yield _event("message_stop")


def error_event(error: bytes) -> bytes:
    """An error inside a stream.

    Args:
        error: the JSON body of the error.
    """
    return b"event: error\ndata: " + error + b"\n\n"


def _first_of(output_tokens: object) -> object:
    """Output tokens as the first event has them."""
    return min(1, output_tokens) if isinstance(output_tokens, int) else output_tokens


def _event(name: str, **fields: object) -> bytes:
    data = msgspec.json.encode({"type": name, **fields})
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def _parts(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block's empty start and the deltas that fill it; other kinds come whole."""
    kind = block["type"]
    if kind == "text":
        return block | {"text": ""}, _deltas("text_delta", "text", block["text"])
    if kind == "thinking":
        deltas = _deltas("thinking_delta", "thinking", block["thinking"])
        deltas += [{"type": "signature_delta", "signature": block.get("signature", "")}]
        return block | {"thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        given = block["input"]
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        empty = {"type": "input_json_delta", "partial_json": ""}
        deltas = [empty, *_deltas("input_json_delta", "partial_json", text)]
        return block | {"input": {}}, deltas
    return block, []


def _deltas(kind: str, name: str, text: str) -> list[dict[str, Any]]:
    starts = range(0, len(text), _DELTA_CHARS)
    return [{"type": kind, name: text[start : start + _DELTA_CHARS]} for start in starts]
