"""Our own time inside the wraps, at different lengths of history, by in-process timers of this thread (so that a busy
machine counts for little).

Each call appends one round to the history and asks the middleware for the request; the handler is
timed apart and answers at once. What looks at the bytes on the wire (splitting, comparing, hashing
the body) is reported on its own, beside what the stock client spends on building them.
"""

import json
import statistics
import time
from typing import Any

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import SecretStr

from barograph.langchain import Barograph
from barograph.langchain.wire import WATCH
from barograph.store import MemoryStore

_LENGTHS = (50, 500, 2000, 5000)
_CALLS = 60
_RESULT = "line of a tool result\n" * 40


def main() -> None:
    """Print a row for each length, then what each further message costs."""
    print(f"{'messages':>9} {'ours p50 ms':>12} {'p99 ms':>8} {'wire p50 ms':>12} {'payload ms':>11}")
    medians = {}
    for length in _LENGTHS:
        ours, wire, payload = _measure(length)
        medians[length] = statistics.median(ours)
        p99 = sorted(ours)[int(len(ours) * 0.99)]
        print(
            f"{length:>9} {medians[length]:>12.3f} {p99:>8.3f} "
            f"{statistics.median(wire):>12.3f} {payload:>11.1f}"
        )
    first, last = _LENGTHS[0], _LENGTHS[-1]
    slope = (medians[last] - medians[first]) / (last - first) * 1e6
    print(f"each further message: {slope:.0f} ns (goal 20); at 2 000: goal 0.3 ms")


def _measure(length: int) -> tuple[list[float], list[float], float]:
    model = ChatAnthropic(  # type: ignore[call-arg]
        model="claude-opus-4-8", api_key=SecretStr("none"), max_tokens=1024
    )
    middleware = Barograph(MemoryStore(), session="bench")
    history: list[AnyMessage] = [HumanMessage("begin", id="h")]
    while len(history) < length:
        history += _round(len(history))
    ours: list[float] = []
    wire: list[float] = []
    payload = 0.0
    for call in range(_CALLS):
        inner = 0.0

        def handle(request: ModelRequest[Any]) -> ModelResponse[Any]:
            nonlocal inner, payload
            began = time.thread_time()
            if call % 20 == 0:
                messages = [request.system_message, *request.messages]
                body = model._get_request_payload(messages)  # noqa: SLF001 - what is compared with
                payload = (time.thread_time() - began) * 1000
                data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
                watch = WATCH.get()
                if watch is not None:
                    at = time.thread_time()
                    watch.on_body(data)
                    wire.append((time.thread_time() - at) * 1000)
            answer = _answer(len(history))
            inner = time.thread_time() - began
            return ModelResponse(result=[answer])

        request: ModelRequest[Any] = ModelRequest(
            model=model,
            messages=list(history),
            system_message=SystemMessage("rules " * 500),
            tools=[],
        )
        began = time.thread_time()
        response = middleware.wrap_model_call(request, handle)
        ours.append((time.thread_time() - began - inner) * 1000)
        history.append(response.result[0])
        history.append(_result(len(history)))
    return ours[5:], wire[1:] or wire, payload


def _round(number: int) -> list[AnyMessage]:
    return [_answer(number), _result(number + 1)]


def _answer(number: int) -> AIMessage:
    call = {"name": "read", "args": {"path": f"f{number}"}, "id": f"c{number}", "type": "tool_call"}
    return AIMessage(content=f"Reading {number}.", tool_calls=[call], id=f"a{number}")


def _result(number: int) -> ToolMessage:
    return ToolMessage(_RESULT, tool_call_id=f"c{number - 1}", id=f"t{number}")


if __name__ == "__main__":
    main()
