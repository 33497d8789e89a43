"""What a digest keeps, measured by the public compaction-conformance-kit.

    pip install compaction-conformance-kit==0.8.0
    python bench/digest.py

The kit plants statements of a user in scripted sessions, compacts five times at 10, 20 and 30 % of
the characters, and counts which statements are still there, which corrected values are, and whether
statements that only look alike are kept apart. It needs no model. By itself:
`compaction-kit check bench/digest.py:Digest --budgets 10%,20%,30%`.
"""

import argparse
import sys
from typing import Any, Final

from barograph.core.digest import write_digest
from barograph.core.notes import Note, take_notes
from barograph.core.parts import Text
from barograph.core.texts import DIGEST_OPENS

DEFAULT_CHARS: Final = 20_000
_ORIGINS: Final = {"user": "caller", "assistant": "model"}


class Digest:
    """A digest, in the shape that the kit asks for."""

    name = "barograph-digest"

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def compact(self, turns: list[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        """Compact turns; a digest among them stands for what it was made of, which the log has."""
        from compaction_kit.compacted import CompactedContext  # noqa: PLC0415 - may be missing

        is_again = bool(turns) and turns[0].text.startswith(DIGEST_OPENS)
        new = turns[1:] if is_again else turns
        if not is_again:
            self._notes = []
        start = self._notes[-1].seq if self._notes else 0
        for seq, turn in enumerate(new, start=start + 1):
            if turn.role in _ORIGINS:
                origin: Any = _ORIGINS[turn.role]
                self._notes += take_notes(seq, turn.role, origin, (Text(turn.text),))
        text = write_digest(self._notes, budget_chars=budget_chars or DEFAULT_CHARS)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def main(arguments: list[str] | None = None) -> int:
    """Print the kit's table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=4, help="sessions of each kind")
    given = parser.parse_args(arguments)
    try:
        from compaction_kit.benchmark import (  # noqa: PLC0415 - may be missing
            budget_benchmark_to_markdown,
            run_budget_benchmark,
        )
    except ImportError:
        print("compaction-conformance-kit is not installed: digest skipped.", file=sys.stderr)
        return 0
    found = run_budget_benchmark({Digest.name: Digest}, seeds=range(1, given.seeds + 1))
    print(budget_benchmark_to_markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
