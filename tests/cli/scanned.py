"""A session whose every round finds much."""

from barograph.audit.drivers import Agent, DirectDriver
from barograph.audit.recorded import RecordedCall
from barograph.core.policy import Policy
from barograph.simulator import Reply, SimulatedProvider
from barograph.store import SqliteStore

ROUNDS = 16
BALANCED = Policy(name="balanced", prune_after_rounds=2)


def found(number):
    return "\n".join(f"src/part{number}/file_{line}.py:{line}: hit" for line in range(200))


def play(path, policy):
    """A session whose every round finds much."""
    store, provider = SqliteStore(path), SimulatedProvider()
    calls = [
        [{"type": "tool_use", "id": f"c{n}", "name": "scan", "input": {"n": n}}]
        for n in range(ROUNDS)
    ]
    provider.play("scan", [Reply(content=content) for content in calls])
    agent = Agent(
        session="scan", account="a", model="claude-opus-4-8", system="Scan. " * 900, tools=()
    )
    driver = DirectDriver.open(agent, store, provider, policy)
    pending = [{"type": "text", "text": "Find it."}]
    for number, content in enumerate(calls):
        call = RecordedCall(
            number=number + 1,
            agent="main",
            t_seconds=None,
            model=None,
            system=None,
            cut=None,
            append=({"role": "user", "content": pending},),
            response=tuple(content),
            stop_reason="tool_use",
            usage=None,
            events=(),
        )
        driver.play(call, now=float(number))
        pending = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": found(number)}]
    store.close()
