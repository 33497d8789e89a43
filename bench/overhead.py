"""Our own time inside the wraps, at different lengths of history.

Timers count the CPU time of this thread, so that a busy machine matters little. Each call appends
one round to the history and asks the middleware for the request; the handler answers at once and is
timed apart. What looks at the bytes on the wire (splitting, comparing, hashing the body) is
reported on its own, beside what the stock client spends on building them; `share` is the time
inside the wraps as a part of the latter.

What planning relief costs is measured apart, where it has most to look at: in a history whose
results are nearly all stale, by the balanced policy with a price at which no pass runs.
"""

import json
import statistics
import time
from typing import Any

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from msgspec.structs import replace
from pydantic import SecretStr

from barograph.core.engine import Engine
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.relief import relieve
from barograph.core.work import Work
from barograph.langchain import Barograph
from barograph.langchain.wire import WATCH
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from barograph.store.session import Session

_ROUNDS_200 = 401
_LENGTHS = (50, _ROUNDS_200, 2000, 5000)
_CALLS = 200
_WARM_UP = 20
_LOOKS_EVERY = 50
_RESULT = "line of a tool result\n" * 40
_PRUNABLE = _RESULT * 3
_NEVER_RATIO = 1e9


class Bench:
    """One history of a given length, and what each part of a call costs in milliseconds."""

    def __init__(self, length: int) -> None:
        self.model = ChatAnthropic(
            model="claude-opus-4-8", api_key=SecretStr("none"), max_tokens=1024
        )
        self.middleware = Barograph(MemoryStore(), session="bench")
        self.history: list[AnyMessage] = [HumanMessage("begin", id="h")]
        while len(self.history) < length:
            self.history += [_answer(len(self.history)), _result(len(self.history) + 1)]
        self.ours: list[float] = []
        self.wire: list[float] = []
        self.payload: list[float] = []
        self._inner = 0.0
        self._looks = False

    def call(self, number: int) -> None:
        """Make one call."""
        self._looks = number % _LOOKS_EVERY == _LOOKS_EVERY - 1
        request: ModelRequest[Any] = ModelRequest(
            model=self.model,
            messages=list(self.history),
            system_message=SystemMessage("rules " * 500),
            tools=[],
        )
        began = time.thread_time()
        response = self.middleware.wrap_model_call(request, self._handle)
        self.ours.append((time.thread_time() - began - self._inner) * 1000)
        self.history += [response.result[0], _result(len(self.history) + 1)]

    def _handle(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        began = time.thread_time()
        if self._looks:
            self._look(request)
        answer = _answer(len(self.history))
        self._inner = time.thread_time() - began
        return ModelResponse(result=[answer])

    def _look(self, request: ModelRequest[Any]) -> None:
        """Build the body as the client does, and show it to the hook."""
        began = time.thread_time()
        messages = [request.system_message, *request.messages]
        settings = request.model_settings
        body = self.model._get_request_payload(messages, **settings)  # noqa: SLF001 - as the client
        self.payload.append((time.thread_time() - began) * 1000)
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        watch = WATCH.get()
        began = time.thread_time()
        if watch is not None:
            watch.on_body(data)
        self.wire.append((time.thread_time() - began) * 1000)


def main() -> None:
    """Print a row for each length, then what each further message costs."""
    print(
        f"{'messages':>9} {'ours p50 ms':>12} {'p99 ms':>8} {'wire ms':>9} {'payload ms':>11} "
        f"{'share':>7}"
    )
    medians, shares = {}, {}
    benches = {length: Bench(length) for length in _LENGTHS}
    for number in range(_CALLS):  # in turn, so that a slow minute of the machine strikes all alike
        for bench in benches.values():
            bench.call(number)
    for length, bench in benches.items():
        ours = sorted(bench.ours[_WARM_UP:])
        medians[length] = statistics.median(ours)
        wire, payload = statistics.median(bench.wire), statistics.median(bench.payload)
        shares[length] = medians[length] / payload
        print(
            f"{length:>9} {medians[length]:>12.3f} {ours[int(len(ours) * 0.99)]:>8.3f} "
            f"{wire:>9.2f} {payload:>11.1f} {shares[length]:>7.2%}"
        )
    first, last = _LENGTHS[0], _LENGTHS[-1]
    slope = (medians[last] - medians[first]) / (last - first) * 1e6
    print(
        f"each further message: {slope:.0f} ns (goal 20)\n"
        f"at 2 000 messages: {medians[2000]:.2f} ms (goal 0.3)\n"
        f"share at 200 rounds: {shares[_ROUNDS_200]:.2%} (goal 2 %)"
    )
    stale, look_ms, pass_ms = time_relief(2000)
    print(
        f"planning relief at 2 000 messages, {stale} results stale: "
        f"{look_ms:.3f} ms a call (goal 1)\n"
        f"the pass that takes them all: {pass_ms:.1f} ms, once"
    )


def time_relief(messages: int) -> tuple[int, float, float]:
    """Stale results, what a call pays to plan relief, and what the pass over them costs, in ms."""
    codec, policy = AnthropicCodec(), Policy(rent_ratio=_NEVER_RATIO)
    engine = Engine(codec, policy)
    session = Session.open(MemoryStore(), "relief", engine, at=0.0, made_by="bench")
    wanted = CallWanted(
        at=0.0,
        path="main",
        header=Header(model="claude-opus-4-8", system=(Text("rules " * 500),)),
        messages=(Incoming("user", (Text("begin"),)),),
    )
    for number in range(messages // 2):
        session.want(wanted)
        call = (ToolCall(f"c{number}", "read", f'{{"path":"f{number}"}}'),)
        session.take(
            Answered(at=wanted.at, path="main", parts=call, stop_reason="tool_use", usage=None)
        )
        result = (ToolResult(f"c{number}", (Text(_PRUNABLE),)),)
        new = (Incoming("assistant", call), Incoming("tool", result))
        wanted = replace(wanted, at=float(number), messages=new, known=1 + 2 * number)
    session.want(wanted)
    state = session.state
    pending = state.path("main").pending
    looks = [_relief_ms(Work(codec, state), wanted, policy) for _ in range(_CALLS)]
    taken_ms = _relief_ms(Work(codec, state), wanted, Policy())
    return pending.aged - pending.done, statistics.median(looks), taken_ms


def _relief_ms(work: Work, wanted: CallWanted, policy: Policy) -> float:
    began = time.thread_time()
    relieve(work, wanted, policy)
    return (time.thread_time() - began) * 1000


def _answer(number: int) -> AIMessage:
    call = {"name": "read", "args": {"path": f"f{number}"}, "id": f"c{number}", "type": "tool_call"}
    return AIMessage(content=f"Reading {number}.", tool_calls=[call], id=f"a{number}")


def _result(number: int) -> ToolMessage:
    return ToolMessage(_RESULT, tool_call_id=f"c{number - 1}", id=f"t{number}")


if __name__ == "__main__":
    main()
