"""How long cache entries should live: `auto` against both fixed lifetimes, on recorded sessions.

Each recording that has times is replayed at these times, against the simulator, with entries of
five minutes, of an hour, and as `auto` chooses. Beside what that costs stands the regret: the cost
over the least that any choice of the tail's lifetime, call by call, would have reached knowing all
that was to come. It is found by dynamic programming over the place of the last long entry.

`--doubtful` makes the provider let a long entry die with a short prefix, which its documentation
does not rule out in so many words. Regret is not shown then: hindsight has the usual terms.

`--rules` plays other ways to choose on the same calls, in the terms of that program: a request's
tokens are shared by its characters, and entries are found wherever they are.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from barograph.audit.lifetimes import Step, steps_of
from barograph.audit.reading import read_session
from barograph.audit.recorded import find_recordings, read_recording
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.core.breakpoints import last_markable
from barograph.core.lifetimes import (
    TTL_SECONDS,
    Outlook,
    Pauses,
    break_even_pauses,
    is_pause,
    pays_to_last,
)
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.switches import Switches
from barograph.store import SqliteStore

MODEL: Final = "claude-opus-4-8"
FACTS: Final = facts_of(MODEL)
LEAST_CALLS: Final = 30
MOST_OVER_FIXED: Final = 1.03
_NEVER: Final = 1e12
POLICIES: Final = {
    "5m": Policy(name="off", ttl="5m"),
    "1h": Policy(name="off", ttl="1h"),
    "auto": Policy(name="off", ttl="auto"),
    "auto .001": Policy(name="off", ttl="auto", pause_ratio=0.001),
}


class Call(NamedTuple):
    """One call of an agent: when, and what of it the cache could hold.

    Attributes:
        gap: seconds since the call before it; None for the first.
        begins: whether a turn begins with it.
        ends: tokens up to the end of each block, the header first.
        keys: what each of these prefixes is known by.
        tail: the last of them that may carry a marker.
        whole: tokens of the request.
    """

    at: float
    gap: float | None
    begins: bool
    ends: list[float]
    keys: list[bytes]
    tail: int
    whole: float


class Hit(NamedTuple):
    """What short entries give a call, in tokens; and which long ones would give more."""

    short: float
    prefixes: dict[bytes, float]


Thread = list[Call]


class Scene(NamedTuple):
    """All that a rule may look at."""

    exposed: float
    new: float
    gaps: Sequence[tuple[float, bool]]


Rule = Callable[[Scene], bool]
"""Whether the tail of this call lives for an hour."""


def expecting(ratio: float) -> Rule:
    """The rule of `core.lifetimes`, under a policy that expects so many pauses."""

    def rule(scene: Scene) -> bool:
        pauses = Pauses()
        for gap, _ in scene.gaps:
            pauses = pauses.after(gap)
        return pays_to_last(pauses.outlook(ratio), scene.exposed, scene.new, FACTS)

    return rule


def next_pause_only(scene: Scene) -> bool:
    """Buy where the very next gap alone pays for it."""
    ratio = _share(scene.gaps, 0.1, 30)
    return ratio * scene.exposed > break_even_pauses(FACTS) * scene.new


def whole_life(scene: Scene) -> bool:
    """Buy for each token by itself, for as many calls again as there were."""
    calls = max(len(scene.gaps), 10)
    return _share(scene.gaps, 0.5, 30) * calls > break_even_pauses(FACTS)


def by_turns(scene: Scene) -> bool:
    """Count pauses at the ends of turns and within them apart."""
    ends = [one for one in scene.gaps if one[1]]
    inside = [one for one in scene.gaps if not one[1]]
    ending = (1 + len(ends)) / (6 + len(scene.gaps))
    ratio = ending * _share(ends, 0.45, 3) + (1 - ending) * _share(inside, 0.1, 30)
    return pays_to_last(Outlook(ratio), scene.exposed, scene.new, FACTS)


def _share(gaps: Sequence[tuple[float, bool]], seen: float, weight: float) -> float:
    return (seen + sum(is_pause(gap) for gap, _ in gaps)) / (weight + len(gaps))


RULES: Final[dict[str, Rule]] = {
    "5m": lambda _: False,
    "1h": lambda _: True,
    "each token for its life": whole_life,
    "the next gap only": next_pause_only,
    "pauses by turns": by_turns,
    "auto": expecting(0.0),
    "auto, expecting .001": expecting(0.001),
    "auto, expecting .003": expecting(0.1 / 30),
    "auto, expecting .017": expecting(0.5 / 30),
    "auto, expecting .1": expecting(0.1),
}


def main() -> int:
    """Print the table, and say whether `auto` kept what is asked of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doubtful", action="store_true", help="long entries need long prefixes")
    parser.add_argument("--rules", action="store_true", help="play other rules instead")
    given = parser.parse_args()
    folder = os.environ.get("BAROGRAPH_CORPUS")
    if not folder:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: lifetimes skipped.")
        return 0
    recordings = [path for path in find_recordings([Path(folder)]) if _is_timed(path)]
    if given.rules:
        print_rules(recordings)
        return 0
    return print_costs(recordings, Switches(long_needs_long=given.doubtful))


def _is_timed(path: Path) -> bool:
    calls = read_recording(path).calls
    return len(calls) >= LEAST_CALLS and all(call.t_seconds is not None for call in calls)


def print_costs(recordings: Sequence[Path], switches: Switches) -> int:
    """Cost of each lifetime, over the better fixed one and over hindsight."""
    print(f"{'recording':>22} {'calls':>5} {'pauses':>6} {'5m':>8} {'1h':>8} {'auto':>8}", end="")
    print(f" {'/fixed':>7} {'regret':>7} {'.001':>7} {'regret':>7}")
    totals = dict.fromkeys(POLICIES, 0.0)
    missed = []
    for path in recordings:
        costs, threads = {}, []
        for name, policy in POLICIES.items():
            costs[name], threads = replayed(path, policy, switches)
            totals[name] += costs[name]
        fixed = min(costs["5m"], costs["1h"])
        if costs["auto"] > MOST_OVER_FIXED * fixed:
            missed.append(path.name)
        floor = sum(map(hindsight, threads))
        calls = sum(map(len, threads))
        pauses = sum(call.gap is not None and is_pause(call.gap) for t in threads for call in t)
        regrets = [
            "" if switches.long_needs_long else f"{_played(threads, rule) / floor:.3f}"
            for rule in _PLAYED
        ]
        print(
            f"{path.name.partition('.')[0]:>22} {calls:>5} {pauses:>6}"
            f" {costs['5m']:>8.2f} {costs['1h']:>8.2f} {costs['auto']:>8.2f}"
            f" {costs['auto'] / fixed:>7.3f} {regrets[0]:>7}"
            f" {costs['auto .001'] / fixed:>7.3f} {regrets[1]:>7}",
            flush=True,
        )
    fixed = min(totals["5m"], totals["1h"])
    shown = " ".join(f"{name} ${cost:.2f}" for name, cost in totals.items())
    print(f"\nin total: {shown}; auto over the better fixed one {totals['auto'] / fixed:.3f}")
    is_met = not missed and totals["auto"] <= fixed
    print(
        f"within {MOST_OVER_FIXED} of the better fixed one on each, and no dearer in total: ",
        end="",
    )
    print("yes" if is_met else f"NO ({', '.join(missed) or 'in total'})")
    return 0 if is_met else 1


_PLAYED: Final = ("auto", "auto, expecting .001")


def _played(threads: Sequence[Thread], rule: str) -> float:
    return sum(play(thread, RULES[rule]) for thread in threads)


def print_rules(recordings: Sequence[Path]) -> None:
    """Cost of each rule over hindsight and over the better fixed lifetime."""
    played = [replayed(path, POLICIES["5m"], Switches())[1] for path in recordings]
    floors = [sum(map(hindsight, threads)) for threads in played]
    costs = {
        name: [sum(play(thread, rule) for thread in threads) for threads in played]
        for name, rule in RULES.items()
    }
    fixed = [min(pair) for pair in zip(costs["5m"], costs["1h"], strict=True)]
    print(f"{len(played)} recordings; cost over hindsight, and over the better fixed lifetime")
    print(f"{'rule':>24} {'total':>7} {'worst':>7} {'/fixed':>7} {'worst':>7}")
    for name, own in costs.items():
        regret = max(cost / floor for cost, floor in zip(own, floors, strict=True))
        over = max(cost / least for cost, least in zip(own, fixed, strict=True))
        print(
            f"{name:>24} {sum(own) / sum(floors):>7.3f} {regret:>7.3f}"
            f" {sum(own) / sum(fixed):>7.3f} {over:>7.3f}"
        )


def replayed(path: Path, policy: Policy, switches: Switches) -> tuple[float, list[Thread]]:
    """What a recording costs under a policy, and its calls by agent."""
    with tempfile.TemporaryDirectory(prefix="barograph-ttl-") as folder:
        place = Path(folder) / "sessions.db"
        options = ReplayOptions(
            model=MODEL,
            mode="direct",
            clock="recorded",
            policy=policy,
            switches=switches,
            store=place,
        )
        cost = replay_file(path, options).costs[0].cost_usd
        with closing(SqliteStore(place)) as store:
            threads: dict[tuple[str, str], list[Step]] = {}
            for info in store.sessions():
                for step in steps_of(read_session(store, info.session)):
                    threads.setdefault((info.session, step.path), []).append(step)
    return cost, [thread_of(steps) for steps in threads.values()]


def thread_of(steps: Sequence[Step]) -> Thread:
    """The calls of one agent."""
    gaps = [None, *(after.view.at - before.view.at for before, after in pairwise(steps))]
    return [_call(step, gap) for step, gap in zip(steps, gaps, strict=True)]


def _call(step: Step, gap: float | None) -> Call:
    view, scope = step.view, step.view.scope
    ratio = view.tokens_per_char
    header = view.header_chars
    segments = view.segments.span()
    return Call(
        at=view.at,
        gap=gap,
        begins=step.begins,
        ends=[ratio * header, *(ratio * (header + one.end_chars) for one in segments)],
        keys=[scope.header, *(scope.messages + one.key for one in segments)],
        tail=last_markable(view.segments, len(segments)),
        whole=ratio * step.chars,
    )


def hits_of(thread: Thread) -> list[Hit]:
    """What short entries give each call: they are written and renewed whatever lives long."""
    used: dict[bytes, float] = {}
    hits = []
    for call in thread:
        prefixes = dict(zip(call.keys[: call.tail + 1], call.ends, strict=False))
        alive = [key for key in prefixes if call.at - used.get(key, -_NEVER) <= TTL_SECONDS["5m"]]
        hits.append(Hit(prefixes[alive[-1]] if alive else 0.0, prefixes))
        for key in (call.keys[0], *alive[-1:], call.keys[call.tail]):
            used[key] = call.at
    return hits


def cost_of(call: Call, read: float, *, lasts: bool) -> float:
    """Input cost of a call that reads so many tokens, in USD."""
    written = call.ends[call.tail] - read
    write = FACTS.write_1h_ratio if lasts else FACTS.write_5m_ratio
    plain = call.whole - call.ends[call.tail]
    return (FACTS.read_ratio * read + write * written + plain) * FACTS.input_usd / 1_000_000


def play(thread: Thread, rule: Rule) -> float:
    """The cost of a thread under a rule, in USD."""
    total, lasting, gaps = 0.0, None, []
    for call, hit in zip(thread, hits_of(thread), strict=True):
        lasting = _still(lasting, call, hit)
        kept = hit.prefixes[lasting] if lasting else 0.0
        read = max(hit.short, kept)
        end = call.ends[call.tail]
        lasts = rule(Scene(end - kept, end - read, gaps))
        total += cost_of(call, read, lasts=lasts)
        lasting = call.keys[call.tail] if lasts else lasting
        if call.gap is not None:
            gaps.append((call.gap, call.begins))
    return total


def hindsight(thread: Thread) -> float:
    """The least that any choice of lifetimes costs, in USD."""
    costs: dict[bytes | None, float] = {None: 0.0}
    for call, hit in zip(thread, hits_of(thread), strict=True):
        now: dict[bytes | None, float] = {}
        for before, paid in costs.items():
            lasting = _still(before, call, hit)
            read = max(hit.short, hit.prefixes[lasting] if lasting else 0.0)
            for lasts in (False, True):
                after = call.keys[call.tail] if lasts else lasting
                cost = paid + cost_of(call, read, lasts=lasts)
                now[after] = min(cost, now.get(after, cost))
        costs = now
    return min(costs.values())


def _still(lasting: bytes | None, call: Call, hit: Hit) -> bytes | None:
    """The long entry, if it is alive and a beginning of this request."""
    if lasting not in hit.prefixes or (call.gap or 0.0) > TTL_SECONDS["1h"]:
        return None
    return lasting


if __name__ == "__main__":
    sys.exit(main())
