"""A session that no recording holds: an agent that reads files, one tool call a round.

Its events are made by the engine from what the simulator answers, so they are those of a real
session of that shape: messages, tool results of about 4 kB, plans, request records, answers. The
texts are pseudo-random and the same in every run.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from barograph.audit.drivers import Agent, DirectDriver
from barograph.audit.recorded import RecordedCall
from barograph.core.events import Event
from barograph.core.policy import Policy
from barograph.simulator import Reply, SimulatedProvider, TokenRule
from barograph.store import End, MemoryStore
from barograph.store.lease import Lease

SESSION: Final = "synthetic"
RESULT_BYTES: Final = 4096
_SECONDS_A_ROUND: Final = 7.25
_WORDS: Final = tuple(
    """
    return value index buffer parse request session token cache read write block error path
    result count limit offset header message event store append state model tool call system
    config client server handle update remove create check valid missing found expected actual
    """.split()  # noqa: SIM905 - a list of so many strings is not read
)


class Appended(NamedTuple):
    """One transaction: its events, and the lease it was written under."""

    events: tuple[Event, ...]
    lease: Lease | None


class _Tape(MemoryStore):
    """Remembers each append."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[Appended] = []

    def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        after: End | int,
        lease: Lease | None = None,
    ) -> End:
        end = super().append(session, events, after=after, lease=lease)
        self.appends.append(Appended(tuple(events), lease))
        return end


def synthetic_appends(rounds: int) -> list[Appended]:
    """What a session of so many rounds appends: one entry for each transaction."""
    calls = list(_calls(rounds))
    tape = _Tape()
    # Few tokens a character: the longest session must fit into a window.
    provider = SimulatedProvider(rule=TokenRule(tokens_per_1000_chars=100))
    provider.play(
        SESSION, [Reply(content=call.response, stop_reason=call.stop_reason) for call in calls]
    )
    system = "\n".join(_lines(random.Random(0), 4 * RESULT_BYTES))  # noqa: S311 - the same text in every run
    agent = Agent(
        session=SESSION, account=SESSION, model="claude-opus-4-8", system=system, tools=(_TOOL,)
    )
    driver = DirectDriver.open(agent, tape, provider, Policy(name="off"))
    for number, call in enumerate(calls):
        driver.play(call, now=1.7e9 + number * _SECONDS_A_ROUND)
        result = calls[number + 1].append[0]["content"][0] if number + 1 < rounds else None
        if result is not None:
            driver.run_tool(call.response[-1], result, lambda: None)
    return tape.appends


_TOOL: Final = {
    "name": "read_file",
    "description": "Reads part of a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def _calls(rounds: int) -> Iterator[RecordedCall]:
    chance = random.Random(rounds)  # noqa: S311 - the same texts in every run
    pending: list[dict[str, Any]] = [{"type": "text", "text": "Find out why the cache breaks."}]
    for number in range(1, rounds + 1):
        call_id = f"toolu_{chance.getrandbits(128):032x}"
        words = chance.choices(_WORDS, k=12)
        path = "/".join(words[:3]) + ".py"
        yield RecordedCall(
            number=number,
            agent="main",
            t_seconds=None,
            model=None,
            system=None,
            cut=None,
            append=({"role": "user", "content": pending},),
            response=(
                {"type": "text", "text": f"Now {' '.join(words)}."},
                {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": path}},
            ),
            stop_reason="tool_use",
            usage=None,
            events=(),
        )
        text = "\n".join(_lines(chance, RESULT_BYTES))
        pending = [{"type": "tool_result", "tool_use_id": call_id, "content": text}]


def _lines(chance: random.Random, size: int) -> Iterator[str]:
    """Lines of something like source code."""
    number = 0
    while size > 0:
        number += 1
        names = chance.choices(_WORDS, k=5)
        line = (
            f"{number:>6}\t{' ' * 4 * chance.randrange(4)}{names[0]}_{names[1]} = "
            f"self.{names[2]}({names[3]}, {names[4]}={chance.randrange(10_000)})"
        )
        size -= len(line) + 1
        yield line
