"""Cache diagnostics: how a request differs from the one that an earlier answer was given to.

It compares what was sent, whatever the cache did. Only requests that ask for it are remembered. The
order of the checks is that of the prompt: model, tools, system, and then either other parameters
(`unavailable`) or messages. A reason counts the tokens of the earlier prompt after the first
difference, which could have been read.

Source: provider cache-diagnostics page and the types of its SDK. No page says which reason wins
where several apply.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from barograph.simulator.blocks import Memory
from barograph.simulator.layout import as_sent
from barograph.simulator.prefix import shared_length
from barograph.simulator.request import Request

_REMEMBERED: Final = 1024
Diagnosis = dict[str, Any]
PENDING: Final[Diagnosis] = {"cache_miss_reason": None}


class _Fingerprint(Struct, frozen=True, kw_only=True):
    model: tuple[str, str]
    tools: tuple[bytes, ...]
    system: tuple[bytes, ...]
    messages: tuple[bytes, ...]
    parameters: bytes
    tokens: tuple[int, ...]


class Diagnostics:
    """Remembers requests by the id of their answer, the oldest of 1024 being forgotten."""

    def __init__(self) -> None:
        self._known: Memory[_Fingerprint] = Memory(_REMEMBERED)

    def diagnose(self, account: str, request: Request, message_id: str) -> Diagnosis | None:
        """Compare a request with the one it names, and remember it.

        Args:
            account: whose requests are known.
            request: the request.
            message_id: id of its answer.

        Returns:
            The `diagnostics` of the answer; None where none were asked for, where the request is
            the first, and where it differs by what it appends alone.
        """
        if not request.diagnosed:
            return None
        now = _fingerprint(request)
        named = request.previous_message_id
        before = self._known.get(_key(account, named)) if named is not None else None
        self._known.put(_key(account, message_id), now)
        if named is None:
            return None
        if before is None:
            return _reason("previous_message_not_found")
        return _compared(before, now)


def _key(account: str, message_id: str) -> bytes:
    return f"{account}\n{message_id}".encode()


def _fingerprint(request: Request) -> _Fingerprint:
    sent = as_sent(request)
    parameters = request.parameters
    messages_at = sent.tools + sent.system
    return _Fingerprint(
        model=(request.model, parameters.speed),
        tools=tuple(sent.steps[: sent.tools]),
        system=tuple(sent.steps[sent.tools : messages_at]),
        messages=tuple(sent.steps[messages_at:]),
        parameters=msgspec.json.encode(
            (
                parameters.tool_choice,
                parameters.thinking,
                parameters.effort,
                parameters.task_budget,
            ),
            order="deterministic",
        ),
        tokens=tuple(block.tokens for block in sent.facts),
    )


def _compared(before: _Fingerprint, now: _Fingerprint) -> Diagnosis | None:
    if before.model != now.model:
        return _reason("model_changed", sum(before.tokens))
    if before.tools != now.tools:
        return _reason("tools_changed", _missed(before, 0, before.tools, now.tools))
    if before.system != now.system:
        at = len(before.tools)
        return _reason("system_changed", _missed(before, at, before.system, now.system))
    if before.parameters != now.parameters:
        return _reason("unavailable")
    if before.messages != now.messages[: len(before.messages)]:
        at = len(before.tools) + len(before.system)
        return _reason("messages_changed", _missed(before, at, before.messages, now.messages))
    return None


def _missed(before: _Fingerprint, at: int, one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    return sum(before.tokens[at + shared_length(one, other) :])


def _reason(kind: str, missed_tokens: int | None = None) -> Diagnosis:
    reason: dict[str, Any] = {"type": kind}
    if missed_tokens is not None:
        reason["cache_missed_input_tokens"] = missed_tokens
    return {"cache_miss_reason": reason}
