"""Long turns of large results: how many folds they take, and whether each pays.

A turn of many rounds, each with one result, is played through the engine against the simulator in a
window of 200 000 tokens, and the same turn under a policy that folds only when it must. Rent
against rewriting prunes before it must, where that is cheaper: the cost beside says so. A warm pass
has paid when as many calls as its event foretold came before the next compaction or the end. Of
those that have not, some ran for room (`safety` or `forced`).

The second table is about the calls before the first compaction, where pruning alone sufficed: the
passes that were made, those of the cheapest schedule known afterwards, and the fewest of any, both
by the dynamic program of `relief.py`. It may fill the whole window, or the share of it from which
the policy compacts; what a character weighs is what the simulator counted.
"""

import random
import sys
from typing import Final, NamedTuple

from msgspec.structs import replace

from barograph.audit.drivers import MAX_TOKENS
from barograph.audit.folds import Fold, list_folds
from barograph.core.model import ModelFacts
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import input_equivalents
from barograph.store import MemoryStore
from relief import TOKENS_PER_CHAR, Game, Prices, threads_in
from rounds import MODEL, SESSION, play_rounds

ROUNDS: Final = 300
WINDOW_TOKENS: Final = 200_000
SYSTEM: Final = "Scan. " * 5_000
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
    print("| results | policy | passes | compactions | refused | cost | paid | for room | others |")
    print("|---|---|---|---|---|---|---|---|---|")
    folds = {}
    for name, sizes in SIZES.items():
        runs = {policy: play(sizes, POLICIES[policy]) for policy in POLICIES}
        folds[name] = runs["balanced"].folds
        least = min(run.cost for run in runs.values())
        for policy, run in runs.items():
            passes = [fold for fold in run.folds if fold.kind == "prune"]
            warm = [fold for fold in passes if fold.break_even_calls is not None]
            unpaid = [fold for fold in warm if not has_paid(fold, run.folds)]
            for_room = sum(fold.cause in ("safety", "forced") for fold in unpaid)
            print(
                f"| {name} | {policy} | {len(passes)} | {len(run.folds) - len(passes)} | "
                f"{run.refused} | {run.cost / least:.3f} | {len(warm) - len(unpaid)} | "
                f"{for_room} | {len(unpaid) - for_room} |"
            )
    print("\n| results | calls | passes | within | of the cheapest | fewest | cost of the fewest |")
    print("|---|---|---|---|---|---|---|")
    for name, sizes in SIZES.items():
        print_schedules(sizes, name, folds[name])
    return 0


def play(sizes: tuple[int, ...], policy: Policy) -> Run:
    """Play the turn."""
    store = MemoryStore()
    provider = play_rounds(store, policy, results_of(sizes), system=SYSTEM)
    facts = facts_of(MODEL)
    usages = [each.usage for each in provider.exchanges if each.usage is not None]
    return Run(
        list_folds(store, SESSION),
        sum(each.status != 200 for each in provider.exchanges),
        sum(input_equivalents(usage, facts) for usage in usages),
    )


def has_paid(fold: Fold, folds: list[Fold]) -> bool:
    """Whether what a pass took off was spared so often before a compaction hid it, or the end."""
    ends = (one.call for one in folds if one.kind == "compact" and one.seq > fold.seq)
    end = next(ends, None) or ROUNDS + 1
    return end - (fold.call or 0) >= (fold.break_even_calls or 0.0)


def print_schedules(sizes: tuple[int, ...], name: str, folds: list[Fold]) -> None:
    """The rows of the second table for one turn."""
    balanced = POLICIES["balanced"]
    calls = next((fold.call for fold in folds if fold.kind == "compact"), None) or ROUNDS + 1
    before = [fold for fold in folds if fold.kind == "prune" and (fold.call or 0) < calls]
    store = MemoryStore()
    provider = play_rounds(
        store, Policy(name="off"), results_of(sizes), system=SYSTEM, facts=boundless
    )
    (trace,) = threads_in(store, SESSION)
    *_, last = (each.usage for each in provider.exchanges if each.usage is not None)
    tokens_per_char = last.input_total_tokens / (trace.fixed + trace.sizes[-1])
    trace = trace._replace(sizes=trace.sizes[: calls - 1])
    facts = facts_of(MODEL)
    prices = Prices(facts.write_5m_ratio, facts.read_ratio)
    for share in (1.0, balanced.hard_ratio):
        window = share * (WINDOW_TOKENS - MAX_TOKENS) * TOKENS_PER_CHAR / tokens_per_char
        game = Game(trace, prices, balanced.prune_after_rounds, window)
        cheapest, fewest = game.best(), game.best(passes_first=True)
        print(
            f"| {name} | {calls - 1} | {len(before)} | {100 * share:.0f} % | {cheapest.passes} | "
            f"{fewest.passes} | {fewest.cost / cheapest.cost:.3f} |"
        )


def boundless(model: str) -> ModelFacts:
    """A model that takes all of it."""
    return replace(facts_of(model), window_tokens=10**9)


def results_of(sizes: tuple[int, ...]) -> list[str]:
    """What each round finds, the same in every run."""
    chance = random.Random(7)  # noqa: S311 - the same turn in every run
    return [lines(chance, chance.choice(sizes)) for _ in range(ROUNDS - 1)]


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
