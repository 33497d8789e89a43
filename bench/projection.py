"""How near the meter's projection is to what the provider then reports.

Recorded requests go straight into the engine, without a client, a provider or relief; each response
reports what the recording says. From an agent's second report on, the projected input of a call is
compared with the recorded one. `jumps` are the calls that add more than 5 % at once, where a
projection has most to say. Tools and system are not recorded: filler of the estimated size stands
for them. Files whose recorded tokens are no line of their characters hold text that was not
recorded, and are left out.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from barograph.audit.drivers import read_wire_message
from barograph.audit.filler import synthesise
from barograph.audit.recorded import (
    RecordedCall,
    RecordedUsage,
    Recording,
    find_recordings,
    read_recording,
)
from barograph.core.canonical import dump_json
from barograph.core.engine import Engine, Send
from barograph.core.events import HeaderSet, Usage
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, BodyLeft, CallWanted, Header
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.core.readback import derive_body
from barograph.core.state import State
from barograph.providers.anthropic.codec import AnthropicCodec

LEAST_R2: Final = 0.98
MEDIAN_BAR, P95_BAR = 0.03, 0.08
_JUMP: Final = 0.05
_ORDER: Final = ("model", "max_tokens", "system", "tools", "messages")


class Projected(NamedTuple):
    """One call: what was projected, what was reported, and what the agent's last call reported."""

    projected: int
    reported: int
    before: int

    @property
    def error(self) -> float:
        """Relative to what was reported."""
        return abs(self.projected - self.reported) / self.reported

    @property
    def is_jump(self) -> bool:
        """Whether the call added much at once."""
        return self.reported - self.before > _JUMP * self.reported


def main() -> int:
    """Print the errors of each file and of all; 1 where they are over the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.environ.get("BAROGRAPH_CORPUS"))
    folder = parser.parse_args().folder
    if folder is None:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: skipped.")
        return 0
    names = _fitting(Path(folder))
    every: list[Projected] = []
    print(f"{'':26} {'calls':>6} {'median':>8} {'p95':>8} {'worst':>8} {'jumps':>6} {'median':>8}")
    for path in find_recordings([Path(folder)]):
        recording = read_recording(path)
        if recording.name in names:
            calls = list(project(recording))
            every += calls
            _print(recording.name, calls)
    _print("all", every)
    errors = sorted(one.error for one in every)
    is_over = statistics.median(errors) > MEDIAN_BAR or _quantile(errors, 0.95) > P95_BAR
    print(f"bar: median {MEDIAN_BAR:.0%}, p95 {P95_BAR:.0%}: {'missed' if is_over else 'held'}")
    return int(is_over)


def project(recording: Recording) -> Iterator[Projected]:
    """Every call of every agent from its second report on."""
    furnishing = synthesise(recording)
    tools = dump_json(list(furnishing.tools)).decode() if furnishing.tools else ""
    engine, state = Engine(AnthropicCodec(), Policy(name="off")), State()
    histories: dict[str, list[tuple[Incoming, ...]]] = {}
    before: dict[str, int] = {}
    for call in recording.calls:
        history = histories.setdefault(call.agent, [])
        if call.cut is not None:
            del history[call.cut :]
        history.extend(read_wire_message(message) for message in call.append)
        header = Header(
            model=call.model or "unknown",
            system=(Text(furnishing.systems[call.agent]),),
            tools=tools,
        )
        state, projected = _send(engine, state, call, header, history)
        reported = _total(call.usage)
        if reported and call.agent in before:
            yield Projected(projected, reported, before[call.agent])
        if reported:
            before[call.agent] = reported
        answer = read_wire_message({"role": "assistant", "content": list(call.response)})
        usage = Usage(
            read_tokens=0,
            write_5m_tokens=0,
            write_1h_tokens=0,
            uncached_tokens=reported,
            output_tokens=1,
        )
        answered = Answered(
            at=0.0,
            path=call.agent,
            parts=answer[0].parts,
            stop_reason=None,
            usage=usage if reported else None,
        )
        state, _ = engine.step(state, answered)
        if call.response:
            history.append(answer)


def _send(
    engine: Engine,
    state: State,
    call: RecordedCall,
    header: Header,
    history: Sequence[tuple[Incoming, ...]],
) -> tuple[State, int]:
    """Want a call and let its body leave; what was projected."""
    messages = tuple(one for group in history for one in group)
    path = call.agent
    state, effects = engine.step(
        state, CallWanted(at=0.0, path=path, header=header, messages=messages)
    )
    plan = next(effect.plan for effect in effects if isinstance(effect, Send))
    assumed = HeaderSet(
        at=0.0,
        path=path,
        model=header.model,
        system=header.system,
        tools=header.tools,
        parameters=json.dumps({"model": header.model, "max_tokens": 1024}),
        changed=(),
    )
    surface = replace(state.surface(path), header=assumed)
    body = engine.codec.join_body(derive_body(engine.codec, surface, plan, _ORDER))
    left = BodyLeft(at=0.0, path=path, header=header, body=body, observed=True)
    state, _ = engine.step(state, left)
    return state, plan.projected_tokens


def _fitting(folder: Path) -> set[str]:
    """Names of the recordings whose tokens are a line of their characters."""
    rows = json.loads((folder / "index.json").read_text())["trajectories"]
    fits = {row["file"]: row.get("fit_recorded_tokens_vs_chars") or {} for row in rows}
    return {
        name.removesuffix(".jsonl") for name, fit in fits.items() if fit.get("r2", 0) >= LEAST_R2
    }


def _total(usage: RecordedUsage | None) -> int:
    if usage is None:
        return 0
    parts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return sum(part or 0 for part in parts)


def _print(name: str, calls: Sequence[Projected]) -> None:
    errors = sorted(one.error for one in calls)
    jumps = [one.error for one in calls if one.is_jump]
    print(
        f"{name:26} {len(errors):>6} {statistics.median(errors):>8.2%}"
        f" {_quantile(errors, 0.95):>8.2%} {errors[-1]:>8.2%} {len(jumps):>6}"
        f" {statistics.median(jumps) if jumps else 0:>8.2%}"
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    sys.exit(main())
