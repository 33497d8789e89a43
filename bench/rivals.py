"""What relief costs in the simulator, beside that of LangChain's own middlewares.

Every thread of at least 30 calls is played alone against the simulator: under our policies through
the engine, under LangChain's `ContextEditingMiddleware` and `SummarizationMiddleware` through the
stock client, with the caching middleware of `langchain-anthropic` in front of it. Costs are input
tokens at the model's prices as the simulator billed them, and the whole of each call that a
summariser makes. Three tables: threads that pruning alone can keep in a window of 200 000 tokens,
against the optimum of `relief.py`; those that it cannot keep in half of that; and the first once
more with a model that binds its thinking to what comes before it.

*Hidden* is the share of the characters of tool results that the last request does not show whole;
*back* the share of those that the model can read again, each read with `read_original` and
compared. LangChain's middlewares name nothing by which to do that.
"""

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph.message import add_messages
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr

from barograph.audit.drivers import Agent, DirectDriver, Driver
from barograph.audit.filler import synthesise
from barograph.audit.langchain_driver import Clock, LangChainDriver
from barograph.audit.recorded import AgentTrack, find_recordings, read_recording
from barograph.core.events import MessageSeen
from barograph.core.model import ModelFacts
from barograph.core.parts import ToolResult
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, SimulatedProvider, Simulator, TokenRule, input_equivalents
from barograph.simulator.exchange import Exchange
from barograph.store import MemoryStore
from barograph.store.originals import parts_of, read_original
from relief import TOKENS_PER_CHAR, Game, Prices, threads_in

LEAST_CALLS: Final = 30
WINDOW_TOKENS: Final = 200_000
MODEL: Final = "claude-opus-4-8"
THINKING_MODEL: Final = "claude-opus-5-5"
RULE: Final = TokenRule(
    tokens_per_1000_chars=round(1_000 * TOKENS_PER_CHAR), block_overhead_tokens=0
)
"""As `relief.py` counts, so that its optimum is in the same tokens."""

SUMMARIES: Final = "summaries"
SUMMARY: Final = "The agent read files, ran commands and changed what it was asked to. " * 58
"""About 1 000 tokens: what a summariser answers here."""

_OK: Final = 200


class Thread(Struct, frozen=True, eq=False):
    """An agent of a recording, alone."""

    agent: Agent
    track: AgentTrack


class Run(NamedTuple):
    """A thread under a rule.

    Attributes:
        cost: in plain input tokens.
        refused: requests that the provider did not take.
        too_long: of those, the ones that did not fit.
        hidden: of the characters of tool results, how many its last request does not show whole.
        back: of those, how many the model can read again.
        shown: characters of tool results that it had seen by then.
    """

    cost: float
    refused: int
    too_long: int
    hidden: int
    back: int
    shown: int


Rule = Callable[[Thread, int], Run]


def main() -> int:
    """Print the tables."""
    folder = os.environ.get("BAROGRAPH_CORPUS")
    if not folder:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: rivals skipped.")
        return 0
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    threads = [one for one in threads_of(Path(folder), MODEL) if wanted in one.agent.session]
    half = WINDOW_TOKENS // 2
    fit = {one: best for one in threads if (best := optimum(one, WINDOW_TOKENS))}
    print_table(f"{WINDOW_TOKENS} tokens, pruning alone suffices", fit, WINDOW_TOKENS)
    tight: dict[Thread, float] = dict.fromkeys(one for one in threads if not optimum(one, half))
    print_table(f"{half} tokens, pruning alone does not suffice", tight, half)
    thinking = [
        one
        for one in threads_of(Path(folder), THINKING_MODEL)
        if wanted in one.agent.session and thinks(one)
    ]
    print_table(f"{THINKING_MODEL}, {WINDOW_TOKENS} tokens", dict.fromkeys(thinking), WINDOW_TOKENS)
    return 0


def threads_of(folder: Path, model: str) -> Iterator[Thread]:
    """Every agent that makes enough calls."""
    for path in find_recordings([folder]):
        recording = read_recording(path, rewrites="ignore")
        furnishing = synthesise(recording)
        for track in recording.agents:
            name = f"{recording.name}/{track.agent}"
            if len(track.calls) >= LEAST_CALLS:
                yield Thread(
                    Agent(
                        session=name,
                        account=name,
                        model=model,
                        system=furnishing.systems[track.agent],
                        tools=furnishing.tools,
                    ),
                    track,
                )


def thinks(thread: Thread) -> bool:
    """Whether its model's thinking was recorded."""
    return any(
        block["type"] == "thinking" for call in thread.track.calls for block in call.response
    )


def optimum(thread: Thread, window: int) -> float | None:
    """The least that any schedule of passes costs; None where none fits.

    It is found in characters, and scaled by what the thread costs when it only grows, here and
    there.
    """
    store = MemoryStore()
    grown = by_policy(Policy(name="off"), thread, 10**9, store)
    facts, rounds = facts_of(thread.agent.model), Policy().prune_after_rounds
    prices = Prices(facts.write_5m_ratio, facts.read_ratio)
    (trace,) = threads_in(store, thread.agent.session)
    best = Game(trace, prices, rounds, window).best().cost
    if best == float("inf"):
        return None
    return best * grown.cost / Game(trace, prices, rounds, 10**9).play(lambda _game, _call: False)


def print_table(title: str, threads: dict[Thread, float | None], window: int) -> None:
    """A row for each rule: mean and worst, over the optimum or, where there is none, `balanced`."""
    print(f"\n{title}: {len(threads)} threads, {sum(len(t.track.calls) for t in threads)} calls")
    print("| rule | cost | worst | threads refused | refused | too long | hidden | back |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    base: dict[Thread, float] = {one: best for one, best in threads.items() if best}
    for name, rule in RULES.items():
        runs = {one: rule(one, window) for one in threads}
        base = base or {one: run.cost for one, run in runs.items()}
        ratios = [run.cost / base[one] for one, run in runs.items() if not run.refused]
        hidden = sum(run.hidden for run in runs.values())
        back = f"{sum(run.back for run in runs.values()) / hidden:.0%}" if hidden else ""
        print(
            f"| {name} | {statistics.mean(ratios):.3f} | {max(ratios):.3f} | "
            if ratios
            else f"| {name} | | | ",
            f"{sum(bool(run.refused) for run in runs.values())} | "
            f"{sum(run.refused for run in runs.values())} | "
            f"{sum(run.too_long for run in runs.values())} | "
            f"{hidden / (sum(run.shown for run in runs.values()) or 1):.0%} | {back} |",
            sep="",
            flush=True,
        )


def by_policy(policy: Policy, thread: Thread, window: int, store: MemoryStore | None = None) -> Run:
    """Through our engine."""
    store = store or MemoryStore()
    provider = SimulatedProvider(rule=RULE, facts=partial(_facts, window))
    policy = replace(policy, window_tokens=window, summary="digest")
    driver = DirectDriver.open(thread.agent, store, provider, policy)
    _play(thread, driver, provider)
    return _run(thread, provider.exchanges, _originals(store, thread.agent.session))


def by_langchain(stock: Callable[[str, int], "Stock"], thread: Thread, window: int) -> Run:
    """Through the stock client and a stock middleware."""
    with Simulator(rule=RULE, facts=partial(_facts, window)) as simulator:
        simulator.provider.play(SUMMARIES, lambda _request, _index: Reply(content=SUMMARY))
        clock, middleware = Clock(), stock(simulator.url, window)
        driver = LangChainDriver(
            thread.agent,
            middleware,
            clock,
            url=simulator.url,
            mode="invoke",  # type: ignore[arg-type]
        )
        try:
            _play(thread, driver, simulator.provider)
        finally:
            driver.close()
        return _run(thread, simulator.provider.exchanges, {})


class Stock:
    """LangChain's middlewares in the order in which an agent runs them, for one thread.

    Some recordings hold results without a call, and calls without a result. Nothing in LangChain
    mends that and a provider refuses it, so they get a history that is mended.
    """

    def __init__(
        self,
        *,
        before: SummarizationMiddleware | None = None,
        around: ContextEditingMiddleware | None = None,
    ) -> None:
        self._before, self._around = before, around
        self._caching = AnthropicPromptCachingMiddleware()
        self._state: list[AnyMessage] = []
        self._taken = 0
        self._open: dict[str, None] = {}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """What a graph does: reduce the state, then call through what is wrapped around."""
        self._add(list(self._mended(request.messages[self._taken :])))
        self._taken = len(request.messages)
        if self._before is not None:
            update = self._before.before_model({"messages": self._state}, None)  # type: ignore[arg-type, typeddict-item]
            self._add(update["messages"] if update else [])
        request = request.override(messages=self._state)
        cached = partial(self._cached, handler)
        return self._around.wrap_model_call(request, cached) if self._around else cached(request)

    def _cached(
        self, handler: Callable[[ModelRequest[Any]], ModelResponse[Any]], request: ModelRequest[Any]
    ) -> Any:
        return self._caching.wrap_model_call(request, handler)

    def _mended(self, messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
        for message in messages:
            if isinstance(message, ToolMessage):
                if message.tool_call_id in self._open:
                    del self._open[message.tool_call_id]
                    yield message
                continue
            for call in self._open:
                yield ToolMessage("[no result]", tool_call_id=call)
            calls = message.tool_calls if isinstance(message, AIMessage) else []
            self._open = {str(call["id"]): None for call in calls}
            yield message

    def _add(self, messages: Sequence[AnyMessage]) -> None:
        self._state = add_messages(self._state, list(messages))  # type: ignore[assignment, arg-type]


def clearing(_url: str, window: int) -> Stock:
    """`ClearToolUsesEdit`; its trigger of 100 000 tokens is half of the usual window."""
    return Stock(around=ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=window // 2)]))


def summing_up(url: str, window: int) -> Stock:
    """`SummarizationMiddleware`, which has no trigger by default: at 0.8 of the window."""
    model = ChatAnthropic(  # type: ignore[call-arg]
        model=MODEL,
        base_url=url,
        api_key=SecretStr(SUMMARIES),
        max_tokens=4_096,
        max_retries=0,
        default_headers={"x-sim-session": SUMMARIES},
        profile={"max_input_tokens": window},
    )
    return Stock(before=SummarizationMiddleware(model, trigger=("fraction", 0.8)))


RULES: Final[dict[str, Rule]] = {
    "balanced": partial(by_policy, Policy(name="balanced")),
    "fixed": partial(by_policy, Policy(name="fixed")),
    "pruned in batches at 60 %": partial(by_policy, Policy(name="fixed", compact_at_ratio=1.0)),
    "bound-once": partial(by_policy, Policy(name="bound-once")),
    "append only": partial(by_policy, Policy(name="off")),
    "LangChain, append only": partial(by_langchain, lambda _url, _window: Stock()),
    "ContextEditingMiddleware": partial(by_langchain, clearing),
    "SummarizationMiddleware": partial(by_langchain, summing_up),
}


def _facts(window: int, model: str) -> ModelFacts:
    return replace(facts_of(model), window_tokens=window)


def _play(thread: Thread, driver: Driver, provider: SimulatedProvider) -> None:
    replies = [Reply(content=c.response, stop_reason=c.stop_reason) for c in thread.track.calls]
    provider.play(thread.agent.session, replies)
    for call in thread.track.calls:
        driver.play(call, now=0.0)


def _run(thread: Thread, exchanges: Sequence[Exchange], originals: dict[str, str]) -> Run:
    facts = facts_of(thread.agent.model)
    cost, last = 0.0, b'{"messages": []}'
    for each in exchanges:
        if each.usage is None:
            continue
        cost += input_equivalents(each.usage, facts)
        if each.session == SUMMARIES:
            cost += each.usage.output_tokens * facts.output_usd / facts.input_usd
        else:
            last = each.request
    shown = dict(_results(json.loads(last)["messages"]))
    recorded = dict(_results([message for call in thread.track.calls for message in call.append]))
    hidden = {call: text for call, text in recorded.items() if shown.get(call) != text}
    return Run(
        cost,
        sum(each.status != _OK for each in exchanges),
        sum(each.status != _OK and b"too long" in each.response for each in exchanges),
        sum(map(len, hidden.values())),
        sum(len(text) for call, text in hidden.items() if originals.get(call) == text),
        sum(map(len, recorded.values())),
    )


def _originals(store: MemoryStore, session: str) -> dict[str, str]:
    """Every tool result of a session, read back by its handle."""
    found = {}
    for seq, event in store.read(session):
        if isinstance(event, MessageSeen) and event.role == "tool":
            (part, *_) = parts_of(store, session, seq)
            if isinstance(part, ToolResult):
                found[part.call_id] = read_original(store, session, f"#{seq}")
    return found


def _results(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result":
                content = block.get("content") or ""
                if not isinstance(content, str):
                    content = "\n".join(one["text"] for one in content if one["type"] == "text")
                yield block["tool_use_id"], content


if __name__ == "__main__":
    sys.exit(main())
