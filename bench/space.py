"""What a log takes on disk, against the text that it must hold.

The recorded sessions of `BAROGRAPH_CORPUS` are replayed into a SQLite store, without the stand-ins
for what recordings lack. Unique content is each distinct block of a message or tool result and each
system prompt, as the JSON of the recording; a log holds it once, beside all that happened. The file
is measured when it is closed, so nothing is left in the write-ahead log: as shipped; with nothing
compressed (`raw`); and, for comparison, with only the rows of events compressed (`rows`). A session
made up for the purpose shows how size grows with its rounds.
"""

import math
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

from barograph.audit.drivers import Agent, DirectDriver
from barograph.audit.nesting import Troupe
from barograph.audit.recorded import Recording, find_recordings, read_recording
from barograph.core.canonical import dump_json
from barograph.core.policy import Policy
from barograph.simulator import Reply, SimulatedProvider
from barograph.store import End, SqliteStore, packing
from synthetic import SESSION, synthetic_appends

GOAL_RAW: Final = 1.2
GOAL_SHIPPED: Final = 0.5
ROUNDS: Final = (50, 100, 200, 400, 700, 1000)
_MODEL: Final = "claude-opus-4-8"
_NO_SYSTEM: Final = "-"


class Sizes(NamedTuple):
    """Bytes of one recording: its content, and its log in three forms."""

    content: int
    raw: int
    rows: int
    shipped: int


def main() -> int:
    """Print a row for each recording, their total and the growth; 1 where a goal is missed."""
    exponent, each = growth()
    print(f"growth over {ROUNDS[0]} to {ROUNDS[-1]} rounds: exponent {exponent:.3f}, goal 1.00")
    print(f"bytes on disk of each further round of about 4.4 kB: {each:.0f}")
    missed = round(exponent, 2) > 1
    folder = os.environ.get("BAROGRAPH_CORPUS")
    if not folder:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: the ratios are skipped.")
        return int(missed)
    print(f"{'recording':<28} {'content':>10} {'raw':>8} {'rows':>8} {'shipped':>8}")
    every = []
    for path in find_recordings([Path(folder)]):
        recording = read_recording(path)
        every.append(
            Sizes(
                content=content_bytes(recording),
                raw=log_bytes(recording, "compressor", "event_compressor"),
                rows=log_bytes(recording, "compressor"),
                shipped=log_bytes(recording),
            )
        )
        _print_row(recording.name, every[-1])
    total = Sizes(*(sum(column) for column in zip(*every, strict=True)))
    _print_row("total", total)
    missed = missed or total.raw > GOAL_RAW * total.content
    missed = missed or total.shipped > GOAL_SHIPPED * total.content
    print(f"goal in total: {GOAL_RAW} raw, {GOAL_SHIPPED} shipped; {'missed' if missed else 'met'}")
    return int(missed)


def growth() -> tuple[float, float]:
    """The slope of log size over log rounds, and the bytes of one more round."""
    sizes = [_synthetic_bytes(rounds) for rounds in ROUNDS]
    fit = statistics.linear_regression(
        [math.log(one) for one in ROUNDS], [math.log(one) for one in sizes]
    )
    return fit.slope, statistics.linear_regression(ROUNDS, sizes).slope


def content_bytes(recording: Recording) -> int:
    """Bytes of the distinct blocks and system prompts of a recording."""
    distinct: set[bytes] = set()
    for call in recording.calls:
        if call.system:
            distinct.add(call.system.encode())
        for content in (*(message["content"] for message in call.append), call.response):
            blocks: Sequence[object] = [content] if isinstance(content, str) else content
            distinct.update(dump_json(block) for block in blocks)
    return sum(len(one) for one in distinct)


def log_bytes(recording: Recording, *without: str) -> int:
    """Size of the file that holds the recording's log, without some compressors."""
    with _without(*without), tempfile.TemporaryDirectory(prefix="barograph-space-") as folder:
        path = Path(folder) / "sessions.db"
        with closing(SqliteStore(path)) as store:
            _replay(recording, store)
        return path.stat().st_size


def _replay(recording: Recording, store: SqliteStore) -> None:
    provider = SimulatedProvider()
    agents = {
        track.agent: Agent(
            session=f"{recording.name}/{track.agent}",
            account=recording.name,
            model=_MODEL,
            system=track.system or _NO_SYSTEM,
            tools=(),
        )
        for track in recording.agents
    }
    for track in recording.agents:
        replies = [
            Reply(content=call.response, stop_reason=call.stop_reason) for call in track.calls
        ]
        provider.play(agents[track.agent].session, replies)
    troupe = Troupe(
        recording,
        agents,
        lambda agent: DirectDriver.open(agent, store, provider, Policy(name="off")),
    )
    with closing(troupe):
        for call in recording.calls:
            troupe.play(call, now=call.t_seconds or 0.0)


def _synthetic_bytes(rounds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="barograph-space-") as folder:
        path = Path(folder) / "sessions.db"
        with closing(SqliteStore(path)) as store:
            end = End(0, 0)
            for events, lease in synthetic_appends(rounds):
                end = store.append(SESSION, events, after=end, lease=lease)
        return path.stat().st_size


class _Same:
    """In the place of a compressor: gives back what it got, which is then stored plain."""

    def compress(self, data: bytes) -> bytes:
        return data


class _Without(packing._Contexts):  # noqa: SLF001 - no switch of the product turns them off
    """In the place of the contexts, which each thread has its own of: some compress nothing."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, _Same())


@contextmanager
def _without(*compressors: str) -> Iterator[None]:
    with patch.object(packing, "_contexts", _Without(compressors)):
        yield


def _print_row(name: str, sizes: Sizes) -> None:
    ratios = [size / sizes.content for size in (sizes.raw, sizes.rows, sizes.shipped)]
    print(f"{name:<28} {sizes.content:>10}" + "".join(f" {ratio:>8.3f}" for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
