"""A window for a recording: as small as a share of what the recording needs without relief."""

from collections.abc import Iterable, Sequence
from typing import Final

from barograph.audit.filler import Furnishing
from barograph.audit.lines import WireBlock, WireMessage
from barograph.audit.recorded import RecordedCall, Recording
from barograph.simulator import TokenRule
from barograph.simulator.tokens import size_of_block, size_of_tool

ROUND_SHARE: Final = 1.25
"""A window holds at least so many times the largest round: what a model has not seen yet stays."""


def window_of(
    recording: Recording,
    furnishing: Furnishing,
    rule: TokenRule,
    *,
    share: float,
    reserve_tokens: int,
) -> int:
    """Tokens of a window: fixed part + share of the largest history + reserve.

    The share gives way to 1.25 times the largest single round where that is more. A round is what
    one call adds and the answer to it.

    Args:
        recording: whose histories are measured, as they grow without relief.
        furnishing: what goes in front of them.
        rule: how the provider counts.
        share: of the largest history of any agent, above 0.
        reserve_tokens: room that an answer may take.
    """
    fixed, largest, widest = 0, 0, 0
    tools = sum(rule.tokens_of(size_of_tool(tool)) for tool in furnishing.tools)
    for track in recording.agents:
        system = {"type": "text", "text": furnishing.systems[track.agent]}
        fixed = max(fixed, tools + rule.tokens_of(size_of_block(system)))
        history, round_tokens = _measure(track.calls, rule)
        largest, widest = max(largest, history), max(widest, round_tokens)
    return fixed + round(max(share * largest, ROUND_SHARE * widest)) + reserve_tokens


def _measure(calls: Sequence[RecordedCall], rule: TokenRule) -> tuple[int, int]:
    """Tokens of the largest history and of the largest round."""
    sizes: list[int] = []
    largest = widest = 0
    for call in calls:
        if call.cut is not None:
            del sizes[call.cut :]
        new = [_tokens(_blocks(message), rule) for message in call.append]
        answer = _tokens(call.response, rule)
        sizes += new
        largest = max(largest, sum(sizes))
        widest = max(widest, sum(new) + answer)
        if call.response:
            sizes.append(answer)
    return largest, widest


def _tokens(blocks: Iterable[WireBlock], rule: TokenRule) -> int:
    return sum(rule.tokens_of(size_of_block(block)) for block in blocks)


def _blocks(message: WireMessage) -> Sequence[WireBlock]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
