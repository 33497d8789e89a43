"""A turn that no recording holds: so many rounds, each with one tool call that finds something.

It is played through the engine against the simulator, without a client, and is the same in every
run.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from barograph.audit.drivers import Agent, DirectDriver
from barograph.audit.recorded import RecordedCall
from barograph.core.model import ModelFacts
from barograph.core.policy import Policy
from barograph.simulator import Reply, SimulatedProvider
from barograph.store import Store

SESSION: Final = "scan"
MODEL: Final = "claude-opus-4-8"


def play_rounds(
    store: Store,
    policy: Policy,
    results: Sequence[str],
    *,
    system: str,
    facts: Callable[[str], ModelFacts] | None = None,
) -> SimulatedProvider:
    """Play a call for each result, and one that shows the last; who answered them."""
    provider = SimulatedProvider(facts=facts)
    replies = [
        [{"type": "tool_use", "id": f"c{number}", "name": "scan", "input": {"n": number}}]
        for number in range(len(results) + 1)
    ]
    provider.play(SESSION, [Reply(content=content) for content in replies])
    agent = Agent(session=SESSION, account="a", model=MODEL, system=system, tools=())
    driver = DirectDriver.open(agent, store, provider, policy)
    shown: list[dict[str, Any]] = [{"type": "text", "text": "Find it."}]
    for number, content in enumerate(replies):
        driver.play(_call(number + 1, shown, content), now=float(number))
        if number < len(results):
            found = results[number]
            shown = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": found}]
    return provider


def _call(number: int, shown: list[dict[str, Any]], reply: list[dict[str, Any]]) -> RecordedCall:
    """A round as a recording has it."""
    return RecordedCall(
        number=number,
        agent="main",
        t_seconds=None,
        model=None,
        system=None,
        cut=None,
        append=({"role": "user", "content": shown},),
        response=tuple(reply),
        stop_reason="tool_use",
        usage=None,
        events=(),
    )
