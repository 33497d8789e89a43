"""The demo: the same scripted coder three times, on the same moves.

Once as bare LangChain, once with LangChain's own caching middleware, once with Barograph. Each lane
has an API key of its own, so none reads what another wrote; the simulator bills all by one rule.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr

from barograph.agent.coder import copy_sample, moves
from barograph.agent.loop import run_coder
from barograph.audit.folds import list_folds
from barograph.audit.score import (
    Cost,
    Price,
    Tokens,
    broken_requests,
    count_tokens,
    price_exchanges,
)
from barograph.langchain import Barograph
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Simulator, input_equivalents
from barograph.simulator.exchange import Exchange
from barograph.store import Store

MODEL: Final = "claude-opus-4-8"
MAX_TOKENS: Final = 1024

Middleware = AgentMiddleware[Any, Any, Any]


class Lane(Struct, frozen=True, kw_only=True):
    """One run of the coder.

    Attributes:
        calls: requests that were answered.
        refused: requests that were not.
        planned_breaks: requests that do not begin with all of the one before, because of a fold.
        unplanned_breaks: those for no such reason.
        cost: of the input; the output is the same in all lanes and left out.
        per_call: what each call cost, in plain input tokens.
    """

    name: str
    calls: int
    refused: int
    planned_breaks: int
    unplanned_breaks: int
    tokens: Tokens
    cost: Cost
    per_call: tuple[float, ...]
    seconds: float


def run_race(
    store: Store, session: str, *, begin: Callable[[str], None] = lambda _: None
) -> list[Lane]:
    """Run the three lanes; Barograph's goes into the store under that session id.

    Args:
        store: where the log of the last lane goes.
        session: a new session id.
        begin: called with the name of each lane before it runs.
    """
    lanes: list[tuple[str, Sequence[Middleware]]] = [
        ("bare LangChain", ()),
        ("LangChain's caching middleware", (AnthropicPromptCachingMiddleware(),)),
        ("Barograph", (Barograph(store, session=session),)),
    ]
    results = []
    with Simulator() as simulator:
        for name, middleware in lanes:
            begin(name)
            results.append(_run(simulator, name, middleware))
    folded = {fold.call for fold in list_folds(store, session)}
    return [*results[:-1], _with_planned(results[-1], simulator.exchanges, folded)]


def run_live(store: Store, session: str) -> None:
    """Run the coder with Barograph on the real provider; the key comes from the environment."""
    model = ChatAnthropic(model=MODEL, max_tokens=8 * MAX_TOKENS)  # type: ignore[call-arg]
    with tempfile.TemporaryDirectory(prefix="barograph-demo-") as folder:
        workspace = copy_sample(Path(folder) / "daybook")
        run_coder(model=model, middleware=[Barograph(store, session=session)], workspace=workspace)


def _run(simulator: Simulator, name: str, middleware: Sequence[Middleware]) -> Lane:
    simulator.play(name, moves())
    before = len(simulator.exchanges)
    model = ChatAnthropic(  # type: ignore[call-arg]
        model=MODEL,
        base_url=simulator.url,
        api_key=SecretStr(name),
        max_tokens=MAX_TOKENS,
        default_headers={"x-sim-session": name},
    )
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="barograph-demo-") as folder:
        run_coder(model=model, middleware=middleware, workspace=copy_sample(Path(folder) / "work"))
    seconds = time.perf_counter() - began
    return _lane(name, simulator.exchanges[before:], seconds)


def _lane(name: str, exchanges: Sequence[Exchange], seconds: float) -> Lane:
    facts = facts_of(MODEL)
    price = Price(write_ratio=facts.write_5m_ratio, read_ratio=facts.read_ratio)
    answered = [exchange.usage for exchange in exchanges if exchange.usage is not None]
    return Lane(
        name=name,
        calls=len(answered),
        refused=len(exchanges) - len(answered),
        planned_breaks=0,
        unplanned_breaks=len(broken_requests(exchanges)),
        tokens=count_tokens(exchanges, facts.minimum_tokens),
        cost=price_exchanges(exchanges, price, facts),
        per_call=tuple(input_equivalents(usage, facts) for usage in answered),
        seconds=seconds,
    )


def _with_planned(lane: Lane, exchanges: Sequence[Exchange], folded: set[int | None]) -> Lane:
    """The lane with its breaks told apart; the n-th request of the last lane is call n."""
    own = [exchange for exchange in exchanges if exchange.session == lane.name]
    planned = sum(index + 1 in folded for index in broken_requests(own))
    return replace(lane, planned_breaks=planned, unplanned_breaks=lane.unplanned_breaks - planned)
