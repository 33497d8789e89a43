"""Long turns of large results: how many folds they take, and whether each pays.

A turn of many rounds, each with one result, is played through the engine against the simulator in a
window of 200 000 tokens, and the same turn under a policy that folds only when it must, which needs
the fewest folds. Rent against rewriting prunes before it must, where that is cheaper: the cost
beside says so. A warm pass has paid when as many calls followed as its event foretold; one that has
not is followed by fewer calls than that, or by a pass that was forced.
"""

import random
import sys
from typing import Any, Final, NamedTuple

from barograph.audit.drivers import Agent, DirectDriver
from barograph.audit.folds import Fold, list_folds
from barograph.audit.recorded import RecordedCall
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, SimulatedProvider, input_equivalents
from barograph.store import MemoryStore

ROUNDS: Final = 300
WINDOW_TOKENS: Final = 200_000
MODEL: Final = "claude-opus-4-8"
SIZES: Final = {"9 kB": (9_000,), "50 kB": (50_000,), "mixed": (500, 2_000, 9_000, 50_000)}
POLICIES: Final = {
    "balanced": Policy(name="balanced", window_tokens=WINDOW_TOKENS, summary="digest"),
    "only when it must": Policy(
        name="fixed",
        window_tokens=WINDOW_TOKENS,
        summary="digest",
        prune_at_ratio=0.97,
        compact_at_ratio=0.97,
        relief_ratio=0.0001,
    ),
}


class Run(NamedTuple):
    """One turn under one policy."""

    folds: list[Fold]
    refused: int
    cost: float


def main() -> int:
    """Print the table."""
    print("| results | policy | passes | compactions | refused | cost | warm, paid | not yet |")
    print("|---|---|---|---|---|---|---|---|")
    for name, sizes in SIZES.items():
        runs = {policy: play(sizes, POLICIES[policy]) for policy in POLICIES}
        least = min(run.cost for run in runs.values())
        for policy, run in runs.items():
            passes = [fold for fold in run.folds if fold.kind == "prune"]
            warm = [fold for fold in passes if fold.break_even_calls is not None]
            paid = sum(fold.has_paid for fold in warm)
            print(
                f"| {name} | {policy} | {len(passes)} | {len(run.folds) - len(passes)} | "
                f"{run.refused} | {run.cost / least:.3f} | {paid} | {len(warm) - paid} |"
            )
    return 0


def play(sizes: tuple[int, ...], policy: Policy) -> Run:
    """Play the turn."""
    chance = random.Random(7)  # noqa: S311 - the same turn in every run
    store, provider = MemoryStore(), SimulatedProvider()
    replies = [
        [{"type": "tool_use", "id": f"c{n}", "name": "scan", "input": {"n": n}}]
        for n in range(ROUNDS)
    ]
    provider.play("s", [Reply(content=content) for content in replies])
    agent = Agent(session="s", account="a", model=MODEL, system="Scan. " * 5_000, tools=())
    driver = DirectDriver.open(agent, store, provider, policy)
    pending: list[dict[str, Any]] = [{"type": "text", "text": "Find it."}]
    for number, content in enumerate(replies):
        driver.play(call_of(number, pending, content), now=float(number))
        text = lines(chance, chance.choice(sizes))
        pending = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]
    facts = facts_of(MODEL)
    usages = [each.usage for each in provider.exchanges if each.usage is not None]
    return Run(
        list_folds(store, "s"),
        sum(each.status != 200 for each in provider.exchanges),
        sum(input_equivalents(usage, facts) for usage in usages),
    )


def call_of(
    number: int, pending: list[dict[str, Any]], content: list[dict[str, Any]]
) -> RecordedCall:
    """A round as a recording has it."""
    return RecordedCall(
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


def lines(chance: random.Random, size: int) -> str:
    """What a search prints."""
    found = []
    while size > 0:
        line = f"src/part{chance.randrange(90)}/file_{chance.randrange(900)}.py:{size}: hit"
        found.append(line)
        size -= len(line) + 1
    return "\n".join(found)


if __name__ == "__main__":
    sys.exit(main())
