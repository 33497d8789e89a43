"""What a digest keeps, measured by the public compaction-conformance-kit.

    pip install compaction-conformance-kit==0.8.0
    python bench/digest.py

The kit plants statements of a user in scripted sessions, compacts five times at 10, 20 and 30 % of
the characters, and counts which statements are still there, which corrected values are, and whether
statements that only look alike are kept apart. It needs no model. By itself:
`compaction-kit check bench/digest.py:Digest --budgets 10%,20%,30%`.

First, without the kit, what it costs to keep what must be kept: a session of ten compactions in a
window of 200 000 tokens, in which a user states rules and pins messages. The share is that of the
characters of all requests; every rule and every pin is looked for in every request.
"""

import argparse
import sys
from typing import Any, Final

from barograph.audit.drivers import without_stops
from barograph.core.digest import write_digest
from barograph.core.engine import Engine
from barograph.core.events import Compacted
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header, PinWanted
from barograph.core.notes import Note, take_notes
from barograph.core.parts import Text, ToolCall, ToolResult, texts_in
from barograph.core.pins import MOST_CHARS
from barograph.core.policy import Policy
from barograph.core.texts import DIGEST_OPENS
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from barograph.store.session import Session

DEFAULT_CHARS: Final = 20_000
_ORIGINS: Final = {"user": "caller", "assistant": "model"}


RULES: Final = tuple(
    f"Never write to /srv/tenant-{n}/data without ticket OPS-{4471 + n}." for n in range(12)
)
_RESULT: Final = "\n".join(f"src/part/file_{n}.py:{n}: value {n * n}" for n in range(600))
_COMPACTIONS: Final = 10


class Kept:
    """A session that goes on until so many compactions have run."""

    def __init__(self, pinned_chars: int) -> None:
        policy = Policy(name="bound-once", summary="digest", window_tokens=200_000)
        engine = Engine(AnthropicCodec(), without_stops(policy))
        self._store = MemoryStore()
        self._session = Session.open(self._store, "s", engine, at=0.0, made_by="bench")
        self._history: list[Incoming] = []
        self._at = 0.0
        self._pin = "".join(f"Host {n} answers on port {n * 7}.\n" for n in range(MOST_CHARS))
        self._pin = self._pin[:pinned_chars]
        self.lost = 0
        self.chars = 0
        self.kept_chars = 0

    def run(self) -> "Kept":
        """Say and pin what is to be kept, then work."""
        for said in ("\n".join(RULES), self._pin):
            self._round("user", Text(said))
        spoken = self._session.state.path("main").spoken
        self._session.take(PinWanted(at=self._at, message=spoken[-1].seq))
        self._round("user", Text("Go through all parts."))
        number = folds = 0
        while folds < _COMPACTIONS:
            number += 1
            call = ToolCall(f"c{number}", "scan", f'{{"n":{number}}}')
            self._history.append(Incoming("assistant", (call,)))
            self._round("tool", ToolResult(call.id, (Text(_RESULT),)), answers=False)
            folds = sum(isinstance(one.event, Compacted) for one in self._store.read("s"))
        return self

    def _round(self, role: Any, part: Any, *, answers: bool = True) -> None:
        self._at += 10.0
        self._history.append(Incoming(role, (part,)))
        header = Header(model="claude-opus-4-8")
        wanted = CallWanted(at=self._at, path="main", header=header, messages=tuple(self._history))
        self._session.want(wanted)
        texts = [t for e in self._session.state.surface("main").entries for t in texts_in(e.parts)]
        shown = "\n".join(texts)
        kept = (*RULES, self._pin) if len(self._history) > 3 else ()
        self.lost += sum(one not in shown for one in kept)
        self.kept_chars += sum(map(len, kept))
        self.chars += len(shown)
        body = b'{"model":"claude-opus-4-8","messages":[]}'
        self._session.leave(at=self._at, path="main", header=header, body=body, observed=True)
        said = (Text("Noted."),) if answers else ()
        if answers:
            self._history.append(Incoming("assistant", said))
        self._session.take(
            Answered(at=self._at, path="main", parts=said, stop_reason="end_turn", usage=None)
        )


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
    print("| pinned characters | rules | share of all requests | not found |")
    print("|---|---|---|---|")
    for pinned_chars in (MOST_CHARS // 2, MOST_CHARS):
        kept = Kept(pinned_chars).run()
        share = 100 * kept.kept_chars / kept.chars
        print(f"| {pinned_chars} | {len(RULES)} | {share:.2f} % | {kept.lost} |")
    print()
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
