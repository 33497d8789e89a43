"""When to prune: the rule, other rules, and the cheapest schedule known afterwards.

Each recording is replayed without relief, which gives the size of every request and of all that
could be pruned. On these sizes every rule is played, and the optimum is found by dynamic
programming over the moments of a pass: a pass at call k takes all that has aged by then, and makes
what follows its first change be written once more. Costs are input tokens at the given price
ratios, the answers being the same under every rule.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from barograph.audit.recorded import find_recordings
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.core.events import CallPlanned
from barograph.core.learning import learn
from barograph.core.policy import Policy
from barograph.core.prune import Candidate
from barograph.core.state import State, count_header_chars
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import SqliteStore, Store

PRICES: Final = ((1.25, 0.1), (2.0, 0.1), (1.0, 0.1), (1.0, 0.5))
LEAST_CALLS: Final = 30
TOKENS_PER_CHAR: Final = 0.25
WINDOW_TOKENS: Final = 200_000
POLICY: Final = Policy(name="balanced")
_INFINITE: Final = float("inf")


class Trace(NamedTuple):
    """One thread, in characters: its fixed part, the size of each request, what may be pruned.

    `starts` has, for each candidate, what stands before it.
    """

    name: str
    fixed: int
    sizes: list[int]
    candidates: list[Candidate]
    starts: list[int]

    def aged(self, call: int, rounds: int) -> int:
        """How many candidates have aged at that call, from 1."""
        count = 0
        while count < len(self.candidates) and self.candidates[count].round < call - rounds:
            count += 1
        return count


class Prices(NamedTuple):
    """Of a written and of a read token."""

    write: float
    read: float


Rule = Callable[["Game", int], bool]
"""Whether a pass runs now."""


class Game:
    """A trace under a rule: what is pruned, and what was paid."""

    def __init__(self, trace: Trace, prices: Prices, rounds: int, window: float) -> None:
        self.trace, self.prices, self.rounds, self.window = trace, prices, rounds, window
        saved = [one.saved_chars for one in trace.candidates]
        self.sums = [0]
        for one in saved:
            self.sums.append(self.sums[-1] + one)
        self.done = 0
        self.rent = 0.0
        self.passes = 0

    def size(self, call: int, done: int) -> int:
        """Of the request of that call, with so many candidates pruned."""
        return self.trace.fixed + self.trace.sizes[call - 1] - self.sums[done]

    def keep(self, call: int, done: int) -> float:
        """What the call costs if nothing changes."""
        before = self.size(call - 1, done) if call > 1 else 0
        return self.prices.read * before + self.prices.write * (self.size(call, done) - before)

    def change(self, call: int, done: int, aged: int) -> float:
        """What it costs with a pass."""
        kept = self.trace.fixed + self.trace.starts[done] - self.sums[done]
        return self.prices.read * kept + self.prices.write * (self.size(call, aged) - kept)

    def fits(self, call: int, done: int) -> bool:
        """Whether the request is no larger than the window."""
        return self.size(call, done) * TOKENS_PER_CHAR <= self.window

    def play(self, rule: Rule) -> float:
        """The cost of the thread under a rule; infinite where a request does not fit."""
        total = 0.0
        for call in range(1, len(self.trace.sizes) + 1):
            aged = self.trace.aged(call, self.rounds)
            if aged > self.done and rule(self, call):
                total += self.change(call, self.done, aged)
                self.done, self.rent = aged, 0.0
                self.passes += 1
            else:
                total += self.keep(call, self.done)
                self.rent += self.stale(call)
            if not self.fits(call, self.done):
                return _INFINITE
        return total

    def stale(self, call: int) -> int:
        """Characters that a pass would take off at that call."""
        return self.sums[self.trace.aged(call, self.rounds)] - self.sums[self.done]

    def rewritten(self, call: int) -> int:
        """Characters after the first change that are left."""
        first = self.trace.starts[self.done]
        return self.trace.sizes[call - 1] - first - self.stale(call)

    def optimum(self) -> float:
        """The least that any schedule of passes costs; infinite where none fits."""
        return self.best().cost

    def best(self, *, passes_first: bool = False) -> "Schedule":
        """The cheapest schedule, or of those with the fewest passes the cheapest."""
        order = _by_passes if passes_first else _by_cost
        known = {0: Schedule(0.0, 0)}
        for call in range(1, len(self.trace.sizes) + 1):
            aged = self.trace.aged(call, self.rounds)
            now: dict[int, Schedule] = {}
            for done, (cost, passes) in known.items():
                kept = Schedule(cost + self.keep(call, done), passes)
                now[done] = min(kept, now.get(done, kept), key=order)
                if aged > done:
                    pruned = Schedule(cost + self.change(call, done, aged), passes + 1)
                    now[aged] = min(pruned, now.get(aged, pruned), key=order)
            known = {done: one for done, one in now.items() if self.fits(call, done)}
            if not known:
                return Schedule(_INFINITE, 0)
        return min(known.values(), key=order)


class Schedule(NamedTuple):
    """What a schedule of passes costs, and how many they are."""

    cost: float
    passes: int


def _by_cost(one: Schedule) -> tuple[float, int]:
    return one.cost, one.passes


def _by_passes(one: Schedule) -> tuple[float, int]:
    return one.passes, one.cost


def rent_rule(ratio: float, safety: float = POLICY.safety_ratio) -> Rule:
    """The rule of `core.relief`."""

    def rule(game: Game, call: int) -> bool:
        write, read = game.prices
        rent = read * (game.rent + game.stale(call))
        if rent >= ratio * (write - read) * game.rewritten(call):
            return True
        return _presses(game, call, safety)

    return rule


def _presses(game: Game, call: int, share: float) -> bool:
    used = game.size(call, game.done) * TOKENS_PER_CHAR
    enough = game.stale(call) * TOKENS_PER_CHAR >= POLICY.relief_ratio * game.window
    return used > game.window or (used >= share * game.window and enough)


RULES: Final[dict[str, Rule]] = {
    "append only": lambda _game, _call: False,
    "every round": lambda _game, _call: True,
    "at 60 % of the window": lambda game, call: _presses(game, call, 0.60),
    "every 20 rounds": lambda _game, call: call % 20 == 0,
    "balanced": rent_rule(POLICY.rent_ratio),
    "balanced, safety 0.8": rent_rule(POLICY.rent_ratio, 0.8),
    "balanced, safety 0.6": rent_rule(POLICY.rent_ratio, 0.6),
    "balanced, rent 0.5": rent_rule(0.5),
    "balanced, rent 0.8": rent_rule(0.8),
    "balanced, rent 1.0": rent_rule(1.0),
}


def main() -> int:
    """Print the table of each price."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=POLICY.prune_after_rounds)
    given = parser.parse_args()
    folder = os.environ.get("BAROGRAPH_CORPUS")
    if not folder:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: relief skipped.")
        return 0
    traces = [trace for trace in traces_of(Path(folder)) if len(trace.sizes) >= LEAST_CALLS]
    for price in PRICES:
        print_table(traces, Prices(*price), given.rounds)
    return 0


def print_table(traces: Sequence[Trace], prices: Prices, rounds: int) -> None:
    """Cost over the optimum, mean and worst, over the threads that can be kept in the window."""
    optima = {t.name: Game(t, prices, rounds, WINDOW_TOKENS).optimum() for t in traces}
    fit = [trace for trace in traces if optima[trace.name] < _INFINITE]
    print(
        f"\nwrite {prices.write:g}, read {prices.read:g}: {len(fit)} of {len(traces)} threads of "
        f"at least {LEAST_CALLS} calls fit {WINDOW_TOKENS} tokens by pruning alone"
    )
    print(f"{'rule':>24} {'mean':>7} {'worst':>7} {'passes':>7}  does not fit")
    for name, rule in RULES.items():
        ratios, passes, misfits = [], 0, 0
        for trace in fit:
            game = Game(trace, prices, rounds, WINDOW_TOKENS)
            cost = game.play(rule)
            if cost == _INFINITE:
                misfits += 1
                continue
            passes += game.passes
            ratios.append(cost / optima[trace.name])
        print(
            f"{name:>24} {statistics.mean(ratios):>7.3f} {max(ratios):>7.3f} {passes:>7}"
            f"  {misfits or ''}"
        )


def traces_of(folder: Path) -> Iterator[Trace]:
    """Every thread of every recording, replayed without relief."""
    with tempfile.TemporaryDirectory(prefix="barograph-relief-") as place:
        for path in find_recordings([folder]):
            kept = Path(place) / f"{path.name}.db"
            replay_file(path, ReplayOptions(mode="direct", rewrites="ignore", store=kept))
            with closing(SqliteStore(kept)) as store:
                for info in store.sessions():
                    yield from threads_in(store, info.session)


def threads_in(store: Store, session: str) -> Iterator[Trace]:
    """Every thread of a session that was played without relief."""
    codec, state = AnthropicCodec(), State()
    sizes: dict[str, list[int]] = {}
    for seq, event in store.read(session):
        state = learn(codec, state, seq, event)
        if isinstance(event, CallPlanned):
            segments = state.surface(event.path).segments
            sizes.setdefault(event.path, []).append(segments[-1].end_chars)
    for path, values in sizes.items():
        surface = state.surface(path)
        header = surface.header
        fixed = 0 if header is None else count_header_chars(codec, header.system, header.tools)
        candidates = state.path(path).pending.candidates.span()
        starts = [surface.chars_before(one.entry) for one in candidates]
        yield Trace(f"{session} {path}", fixed, values, candidates, starts)


if __name__ == "__main__":
    sys.exit(main())
