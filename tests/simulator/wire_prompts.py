"""Prompts in wire form, and a driver that sends them to a provider without a socket."""

from typing import Any

import msgspec

from barograph.core.model import ModelFacts
from barograph.simulator import Exchange, Reply, SimulatedProvider, Switches, TokenRule

MODEL = "claude-sonnet-5"
ONE_PER_CHAR = TokenRule(tokens_per_1000_chars=1000, block_overhead_tokens=0)


def facts(**changes: Any) -> ModelFacts:
    """Facts without a minimum or a window that a small test could meet."""
    plain = ModelFacts(
        name="test",
        window_tokens=10**9,
        minimum_tokens=0,
        input_usd=2.0,
        output_usd=10.0,
        as_of="2026-10-03",
    )
    return msgspec.structs.replace(plain, **changes)


def marker(ttl: str | None) -> dict[str, Any]:
    return {} if ttl is None else {"cache_control": {"type": "ephemeral", "ttl": ttl}}


def text(words: str, ttl: str | None = None) -> dict[str, Any]:
    return {"type": "text", "text": words, **marker(ttl)}


def call(name: str, ttl: str | None = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {"at": name}, **marker(ttl)}


def result(name: str, ttl: str | None = None) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "seen", **marker(ttl)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def tool(name: str, ttl: str | None = None) -> dict[str, Any]:
    return {"name": name, "description": name, "input_schema": {"type": "object"}, **marker(ttl)}


class Driver:
    """Sends bodies to a provider that always answers."""

    def __init__(
        self, *, switches: Switches | None = None, rule: TokenRule = ONE_PER_CHAR, **changes: Any
    ) -> None:
        rng = changes.pop("rng", None)
        script = changes.pop("script", lambda _request, _index: Reply(content="ok"))
        model_facts = facts(**changes)
        self.provider = SimulatedProvider(
            script,
            switches=switches,
            rule=rule,
            rng=rng,
            facts=lambda _model: model_facts,
        )

    def send(
        self,
        *messages: dict[str, Any],
        now: float = 0.0,
        key: str = "a",
        beta: str = "",
        **body: Any,
    ) -> Exchange:
        made = {"model": MODEL, "max_tokens": 1, "messages": list(messages), **body}
        return self.post(made, now=now, key=key, beta=beta)

    def post(
        self, body: dict[str, Any], *, now: float = 0.0, key: str = "a", beta: str = ""
    ) -> Exchange:
        headers = {"x-sim-now": str(now), "x-api-key": key, "anthropic-beta": beta}
        return self.provider.handle(msgspec.json.encode(body), headers)

    def count(self, *messages: dict[str, Any], beta: str = "", **body: Any) -> Exchange:
        made = {"model": MODEL, "messages": list(messages), **body}
        return self.provider.count(msgspec.json.encode(made), {"anthropic-beta": beta})


def error_of(exchange: Exchange) -> str:
    """The message of a 400."""
    assert exchange.status == 400, exchange.response
    body = msgspec.json.decode(exchange.response)
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"
    assert body["request_id"] == exchange.request_id
    message: str = body["error"]["message"]
    return message


def parts(exchange: Exchange) -> tuple[int, int, int, int]:
    """Tokens read, written for an hour, written for five minutes, uncached."""
    usage = exchange.usage
    assert usage is not None, exchange.response
    return (usage.read_tokens, usage.write_1h_tokens, usage.write_5m_tokens, usage.uncached_tokens)
