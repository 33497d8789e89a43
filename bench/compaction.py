"""When to compact, and how far down: what the choices cost on recorded sessions.

Every recording is replayed without client and HTTP in a window that holds a share of its largest
history, once under each choice. The cost is that of the whole input at the provider's prices; no
model sums up, so what a summary call would cost is not in it. The last column is how many of the
hidden characters the summaries took.

    BAROGRAPH_CORPUS=... python bench/compaction.py --share 0.35
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from barograph.audit.folds import list_folds
from barograph.audit.recorded import find_recordings
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.core.policy import Policy
from barograph.store import SqliteStore

BASE: Final = Policy(name="balanced")
CHOICES: Final = {
    "as it is": BASE,
    "at 0.8": replace(BASE, prune_at_ratio=0.8, compact_at_ratio=0.8),
    "to 0.15": replace(BASE, compact_to_ratio=0.15),
    "to 0.5": replace(BASE, compact_to_ratio=0.5),
    "to 0.7": replace(BASE, compact_to_ratio=0.7),
    "summaries 0.05": replace(BASE, summary_ratio=0.05),
    "summaries 0.2": replace(BASE, summary_ratio=0.2),
    "fixed": Policy(name="fixed"),
    "bound-once": Policy(name="bound-once"),
}


class Sum(NamedTuple):
    """All recordings under one choice."""

    cost_usd: float
    passes: int
    compactions: int
    refused: int
    unplanned: int


def main() -> int:
    """Print one row for each choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.35)
    parser.add_argument("--only", help="part of a recording's name")
    given = parser.parse_args()
    corpus = os.environ.get("BAROGRAPH_CORPUS")
    if not corpus:
        sys.stderr.write("BAROGRAPH_CORPUS names no folder of recordings: nothing to measure.\n")
        return 0
    files = [p for p in find_recordings([Path(corpus)]) if (given.only or "") in p.name]
    sys.stdout.write("| choice | cost | passes | compactions | refused | unplanned |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    first = None
    for name, policy in CHOICES.items():
        found = add_up(files, policy, given.share)
        first = first or found
        ratio = found.cost_usd / first.cost_usd
        sys.stdout.write(
            f"| {name} | {ratio:.3f} | {found.passes} | {found.compactions} | {found.refused} | "
            f"{found.unplanned} |\n"
        )
        sys.stdout.flush()
    return 0


def add_up(files: list[Path], policy: Policy, share: float) -> Sum:
    """Replay all recordings under one policy."""
    cost, refused, unplanned, kinds = 0.0, 0, 0, []
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "sessions.db"
            options = ReplayOptions(
                policy=policy, window_share=share, mode="direct", rewrites="ignore", store=place
            )
            found = replay_file(file, options)
            kinds += folds_in(place)
        cost += found.costs[0].cost_usd
        refused += found.rejected
        unplanned += found.unplanned_breaks
    return Sum(cost, kinds.count("prune"), kinds.count("compact"), refused, unplanned)


def folds_in(place: Path) -> Iterator[str]:
    """The kind of every fold in a store."""
    with closing(SqliteStore(place)) as store:
        for info in store.sessions():
            yield from (fold.kind for fold in list_folds(store, info.session))


if __name__ == "__main__":
    sys.exit(main())
