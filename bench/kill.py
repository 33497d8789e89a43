"""Kill an agent at random moments, and see that nothing was lost and that it goes on as before.

A victim plays a scripted agent through a session on disk. It says which events the store has
acknowledged and which steps its framework has kept, and is killed at a random moment. A fresh one
then goes on from the last kept step, as a framework with a checkpointer would, or is given a new
message by its user instead. Checked after each kill: no acknowledged event is missing, `verify` is
clean, and the next request is the one that a twin sends which nobody killed, markers aside, or that
one and repairs that the log names.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from barograph.audit.verify import verify_session
from barograph.core.engine import Engine
from barograph.core.events import Event, HeaderSet, MessageSeen, Usage
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header, ToolReturned, ToolStarted
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.readback import derive_body
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import End, MemoryStore, SqliteStore, Store
from barograph.store.session import Session

ROUNDS: Final = 120
KILLS_A_SESSION: Final = 8
LONGEST_SECONDS: Final = 0.06
_HEADER: Final = Header(
    model="claude-opus-4-8",
    system=(Text("Work with care. " * 300),),
    tools='[{"name":"look","input_schema":{"type":"object"}}]',
)
_ORDER: Final = ("model", "system", "tools", "messages")
_TOOL_SECONDS: Final = 0.003
_GO_ON: Final = "Never mind, go on."


class Agent:
    """A scripted agent whose every step is known beforehand.

    Step 2n is the answer of round n, step 2n + 1 the results of its tools.
    """

    def __init__(
        self, store: Store, say: Callable[[dict[str, Any]], None], tool_seconds: float = 0.0
    ) -> None:
        self.codec = AnthropicCodec()
        self.session = Session.open(
            store, "s", Engine(self.codec, Policy(name="off")), at=1e6, made_by="bench"
        )
        self._say = say
        self._tool_seconds = tool_seconds

    def play(self, steps: int, history: list[Incoming], rounds: int) -> None:
        """Go on after so many steps."""
        for step in range(steps, 2 * rounds):
            if step % 2:
                history += self._run_tools(step // 2)
            else:
                history += self._call(step // 2, history)
            self._say({"kept": step + 1})

    def _call(self, number: int, history: Sequence[Incoming]) -> list[Incoming]:
        at = 1e6 + number
        wanted = CallWanted(at=at, path="main", header=_HEADER, messages=tuple(history))
        send, _ = self.session.want(wanted)
        header = HeaderSet(
            at=at,
            path="main",
            model=_HEADER.model,
            system=_HEADER.system,
            tools=_HEADER.tools,
            parameters='{"model":"claude-opus-4-8"}',
            changed=(),
        )
        surface = type(send.surface)(
            header=header,
            entries=send.surface.entries,
            segments=send.surface.segments,
            messages=send.surface.messages,
        )
        body = self.codec.join_body(derive_body(self.codec, surface, send.plan, _ORDER))
        self.session.leave(at=at, path="main", header=_HEADER, body=body, observed=True)
        self._say({"round": number, "messages": _bare(json.loads(body)["messages"])})
        parts = (Text(f"Round {number}."), *_calls(number))
        usage = Usage(
            read_tokens=0,
            write_5m_tokens=len(body) // 4,
            write_1h_tokens=0,
            uncached_tokens=1,
            output_tokens=9,
        )
        answered = Answered(
            at=at, path="main", parts=parts, stop_reason="tool_use", usage=usage, provider_id="m"
        )
        self.session.take(answered)
        return [Incoming("assistant", parts)]

    def _run_tools(self, number: int) -> list[Incoming]:
        results = []
        for call in _calls(number):
            at = 1e6 + number + 0.5
            self.session.take(
                ToolStarted(
                    at=at, path="main", call_id=call.id, name=call.name, arguments=call.arguments
                )
            )
            parts = (_result(call),)
            time.sleep(self._tool_seconds)
            self.session.take(
                ToolReturned(
                    at=at, path="main", call_id=call.id, name=call.name, parts=parts, is_error=False
                )
            )
            results.append(Incoming("tool", parts))
        return results


class Telling(SqliteStore):
    """A store that says what it has acknowledged."""

    def append(self, session: str, events: Sequence[Event], **more: Any) -> End:
        """Commit, then say so."""
        end = super().append(session, events, **more)
        _tell({"stored": end.seq})
        return end


def history_after(steps: int) -> list[Incoming]:
    """What the framework holds after so many steps."""
    history = [Incoming("user", (Text("Find it."),))]
    for step in range(steps):
        if step % 2:
            history += [Incoming("tool", (_result(call),)) for call in _calls(step // 2)]
        else:
            number = step // 2
            history.append(Incoming("assistant", (Text(f"Round {number}."), *_calls(number))))
    return history


def _calls(number: int) -> list[ToolCall]:
    return [ToolCall(f"c{number}_{k}", "look", f'{{"n":{number}}}') for k in range(1 + number % 3)]


def _result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, (Text(f"what {call.id} found\n" * 60),))


def _bare(value: Any) -> Any:
    """JSON without cache markers."""
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _tell(word: dict[str, Any]) -> None:
    os.write(_tell_to, (json.dumps(word) + "\n").encode())


_tell_to = -1


def main() -> int:
    """Kill so many times; 1 where something was lost or went on otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    twin: list[Any] = []
    twin_agent = Agent(
        MemoryStore(), lambda word: twin.append(word["messages"]) if "round" in word else None
    )
    twin_agent.play(0, history_after(0), ROUNDS)
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="barograph-kill-") as folder:
        trial = Trial(Path(folder), twin, chance)
        for number in range(given.kills):
            faults += [f"kill {number}: {fault}" for fault in trial.kill_once()]
    print(
        f"{given.kills} kills (seed {seed}): {trial.stored} events acknowledged, "
        f"{trial.compared} next requests compared, {trial.repaired} with repairs, "
        f"{len(faults)} faults"
    )
    for fault in faults:
        print(fault)
    return int(bool(faults))


class Trial:
    """Victims of one session after another."""

    def __init__(self, folder: Path, twin: list[Any], chance: random.Random) -> None:
        self._folder, self._twin, self._chance = folder, twin, chance
        self._number = 0
        self.stored = self.compared = self.repaired = 0
        self._begin()

    def kill_once(self) -> list[str]:
        """Let a victim go on, kill it, and look at what it left."""
        if self._kills == KILLS_A_SESSION or self._kept > ROUNDS:
            self._begin()
        self._kills += 1
        told = self._run(self._kept, history_after(self._kept), kill=True)
        acknowledged = max([word["stored"] for word in told if "stored" in word], default=0)
        self.stored += sum("stored" in word for word in told)
        faults = self._compare(told)
        self._kept = max([self._kept, *(word["kept"] for word in told if "kept" in word)])
        with closing(SqliteStore(self._path)) as store:
            if store.last_seq("s") < acknowledged:
                faults.append(f"event {acknowledged} was acknowledged and is not there")
            if acknowledged or store.last_seq("s"):
                faults += [finding.what for finding in verify_session(store, "s").findings]
        if self._chance.random() < 0.25:
            faults += self._say_something_new()
            self._begin()
        return faults

    def _begin(self) -> None:
        self._number += 1
        self._path = self._folder / f"{self._number}.db"
        self._kept = self._kills = 0

    def _compare(self, told: list[dict[str, Any]]) -> list[str]:
        faults = [word["fault"] for word in told if "fault" in word]
        for word in told:
            if "round" in word:
                self.compared += 1
                if word["messages"] != self._twin[word["round"]]:
                    faults.append(f"the request of round {word['round']} is not its twin's")
        return faults

    def _say_something_new(self) -> list[str]:
        """The user does not wait for the tools: what they left open is closed by repairs."""
        history = [*history_after(self._kept), Incoming("user", (Text(_GO_ON),))]
        told = self._run(2 * (self._kept // 2 + 1), history, kill=False)
        faults = [word["fault"] for word in told if "fault" in word]
        if faults:
            return faults
        (sent,) = [word["messages"] for word in told if "round" in word][:1]
        known = self._twin[(self._kept - 1) // 2] if self._kept else []
        if sent[: max(0, len(known) - 1)] != known[:-1]:
            faults.append("the request after a new message does not begin as the last one did")
        open_calls = [c.id for c in _calls((self._kept - 1) // 2)] if self._kept % 2 else []
        with closing(SqliteStore(self._path)) as store:
            repairs = [
                event
                for _, event in store.read("s")
                if isinstance(event, MessageSeen) and event.origin == "repair"
            ]
            faults += [finding.what for finding in verify_session(store, "s").findings]
        if len(repairs) != len(open_calls):
            faults.append(f"{len(open_calls)} calls were open, {len(repairs)} repairs are logged")
        self.compared += 1
        self.repaired += bool(repairs)
        return faults

    def _run(self, steps: int, history: list[Incoming], *, kill: bool) -> list[dict[str, Any]]:
        """Fork a victim; what it said until it ended."""
        reading, writing = os.pipe()
        victim = os.fork()
        if victim == 0:
            os.close(reading)
            _live(self._path, writing, steps, history, 10**6 if kill else 1)
        os.close(writing)
        if kill:
            time.sleep(self._chance.random() * LONGEST_SECONDS)
            os.kill(victim, signal.SIGKILL)
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().split(b"\n")[:-1]
        os.waitpid(victim, 0)
        return [json.loads(line) for line in lines]


def _live(path: Path, pipe: int, steps: int, history: list[Incoming], rounds: int) -> None:
    """The life of a victim, which never returns."""
    global _tell_to  # noqa: PLW0603 - a forked process has one pipe
    _tell_to = pipe
    try:
        agent = Agent(Telling(path), _tell, _TOOL_SECONDS)
        last = min(ROUNDS, steps // 2 + rounds)
        agent.play(steps, history, last)
    except Exception as error:  # noqa: BLE001 - whatever it was, the parent must hear of it
        _tell({"fault": f"the victim failed: {type(error).__name__}: {error}"})
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
