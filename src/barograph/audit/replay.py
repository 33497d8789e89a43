"""Replay recorded sessions under a policy, and say what it cost against the limits.

Each file is played against a simulator of its own; a subagent runs inside the tool call that began
it, and all agents of a file share one cache, as one user's agents do. Afterwards a fresh process
reads every request back from the log, and the result is compared with what the simulator received.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.drivers import MAX_TOKENS, Agent, DirectDriver, Driver, Mode
from barograph.audit.filler import synthesise
from barograph.audit.nesting import Troupe
from barograph.audit.readback import ReadRequest, hash_canonical, read_back_elsewhere
from barograph.audit.recorded import RecordedCall, Recording, Rewrites, read_recording
from barograph.audit.score import (
    Cost,
    Price,
    Tokens,
    broken_requests,
    cost_of,
    count_tokens,
    most_breakpoints,
    price_exchanges,
)
from barograph.audit.windows import window_of
from barograph.core.canonical import hash_body
from barograph.core.model import ModelFacts
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, SimulatedProvider, Simulator, TokenRule
from barograph.simulator.exchange import Exchange
from barograph.simulator.switches import Switches
from barograph.store import Store, open_store

_OK: Final = 200


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """How recordings are replayed.

    Attributes:
        model: the model every call names, whatever the recording says.
        policy: how the sessions are governed. No model is there to sum up: where it compacts, the
            summaries are computed from the log alone.
        window_tokens: the model's window, for the policy and for the provider; None for its own.
        window_share: instead of that, a share of each recording's largest history (`windows`).
        mode: how the client is called; `direct` leaves client and HTTP out.
        rewrites: whether the recorded harness's rewrites are applied or undone.
        clock: `frozen`, so that nothing expires, or `recorded`.
        switches: what the provider does where its documentation is silent.
        prices: cost ratios; the model's own where empty.
        recorded_tokens: count with the tokens per character that the recording shows.
        record_dir: where to write every request and response; None for nowhere.
        store: where to keep the logs; None for a temporary place.
    """

    model: str = "claude-opus-4-8"
    policy: Policy = Policy(name="off")
    window_tokens: int | None = None
    window_share: float | None = None
    mode: Mode = "invoke"
    rewrites: Rewrites = "apply"
    clock: Literal["frozen", "recorded"] = "frozen"
    switches: Switches = Switches()
    prices: tuple[Price, ...] = ()
    recorded_tokens: bool = False
    record_dir: Path | None = None
    store: Path | None = None


class Replayed(Struct, frozen=True, kw_only=True):
    """One file, replayed.

    Attributes:
        calls: calls of the recording.
        window_tokens: the window that was kept to; None for the model's own.
        rejected: requests that the provider refused.
        planned_breaks: requests that do not begin with the previous one where the recording
            rewrote its history and the log names it.
        unplanned_breaks: all others that do not.
        exact_calls: calls whose bytes a fresh process reads back as they were received.
        derived_calls: calls whose request it derives from events alone with the same meaning.
        synthesised: what the recording lacks and was made up, and what was changed in it.
    """

    file: str
    calls: int
    window_tokens: int | None
    rejected: int
    tokens: Tokens
    costs: tuple[Cost, ...]
    max_breakpoints: int
    planned_breaks: int
    unplanned_breaks: int
    exact_calls: int
    derived_calls: int
    folds: int
    wall_seconds: float
    synthesised: dict[str, int]


def replay_file(
    path: Path, options: ReplayOptions, *, advance: Callable[[], None] = lambda: None
) -> Replayed:
    """Replay one recording; `advance` is called after each call.

    Raises:
        UsageError: the file is not a recorded session.
    """
    recording = read_recording(path, rewrites=options.rewrites)
    options = _with_window(options, recording)
    began = time.perf_counter()
    with _place(options.store) as place:
        store = open_store(place)
        try:
            agents = _agents(recording, options, store)
            played = _play(recording, agents, options, store, advance)
        finally:
            store.close()
        read = read_back_elsewhere(place)
    return _result(recording, options, played, read, time.perf_counter() - began)


def total_of(replayed: Sequence[Replayed]) -> Replayed:
    """All files as one row: sums, and ratios of sums."""

    def added(name: str) -> int:
        return sum(getattr(one, name) for one in replayed)

    tokens = Tokens(
        **{
            name: sum(getattr(one.tokens, name) for one in replayed)
            for name in Tokens.__struct_fields__
        }
    )
    columns = zip(*(one.costs for one in replayed), strict=True)
    costs = tuple(
        cost_of(
            column[0].price,
            sum(cost.cost_usd for cost in column),
            sum(cost.limit_usd for cost in column),
            sum(cost.online_limit_usd for cost in column),
        )
        for column in columns
    )
    return Replayed(
        file="total",
        calls=added("calls"),
        window_tokens=None,
        rejected=added("rejected"),
        tokens=tokens,
        costs=costs,
        max_breakpoints=max((one.max_breakpoints for one in replayed), default=0),
        planned_breaks=added("planned_breaks"),
        unplanned_breaks=added("unplanned_breaks"),
        exact_calls=added("exact_calls"),
        derived_calls=added("derived_calls"),
        folds=added("folds"),
        wall_seconds=sum(one.wall_seconds for one in replayed),
        synthesised={},
    )


def _with_window(options: ReplayOptions, recording: Recording) -> ReplayOptions:
    """The options for one recording: its window known, and kept to by the policy."""
    window = options.window_tokens
    if options.window_share is not None:
        window = window_of(
            recording,
            synthesise(recording),
            _rule(recording, options),
            share=options.window_share,
            reserve_tokens=MAX_TOKENS,
        )
    policy = replace(options.policy, window_tokens=window, summary="digest")
    return replace(options, window_tokens=window, policy=policy)


def _rule(recording: Recording, options: ReplayOptions) -> TokenRule:
    if options.recorded_tokens and recording.tokens_per_char:
        return TokenRule(tokens_per_1000_chars=round(recording.tokens_per_char * 1000))
    return TokenRule()


@contextmanager
def _place(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="barograph-replay-") as folder:
        yield Path(folder) / "sessions.db"


def _play(
    recording: Recording,
    agents: dict[str, Agent],
    options: ReplayOptions,
    store: Store,
    advance: Callable[[], None],
) -> "Played":
    """Send every call of every agent, in the order recorded."""
    with _provider(recording, options) as (provider, url):
        for track in recording.agents:
            replies = [_reply(call) for call in track.calls]
            provider.play(agents[track.agent].session, replies)
        troupe = Troupe(
            recording, agents, lambda agent: _driver(agent, options, store, provider, url)
        )
        try:
            for call in recording.calls:
                now = (call.t_seconds or 0.0) if options.clock == "recorded" else 0.0
                troupe.play(call, now=now)
                advance()
        finally:
            troupe.close()
        return Played(provider.exchanges, troupe.places)


class Played(NamedTuple):
    """What the provider received, and where the log has it: simulator session -> place."""

    exchanges: list[Exchange]
    places: dict[str, tuple[str, str]]


@contextmanager
def _provider(
    recording: Recording, options: ReplayOptions
) -> Iterator[tuple[SimulatedProvider, str]]:
    rule = _rule(recording, options)

    def facts(model: str) -> ModelFacts:
        window = options.window_tokens
        known = facts_of(model)
        return known if window is None else replace(known, window_tokens=window)

    folder = options.record_dir / recording.name if options.record_dir else None
    if options.mode == "direct":
        yield (
            SimulatedProvider(rule=rule, record_dir=folder, facts=facts, switches=options.switches),
            "",
        )
        return
    with Simulator(
        rule=rule, record_dir=folder, facts=facts, switches=options.switches
    ) as simulator:
        yield simulator.provider, simulator.url


def _driver(
    agent: Agent, options: ReplayOptions, store: Store, provider: SimulatedProvider, url: str
) -> Driver:
    if options.mode == "direct":
        return DirectDriver.open(agent, store, provider, options.policy)
    from barograph.audit.langchain_driver import LangChainDriver  # noqa: PLC0415 - an extra

    return LangChainDriver.open(agent, store, options.policy, url=url, mode=options.mode)


def _agents(recording: Recording, options: ReplayOptions, store: Store) -> dict[str, Agent]:
    furnishing = synthesise(recording)
    taken = {info.session for info in store.sessions()}
    return {
        track.agent: Agent(
            session=_free_name(f"{recording.name}/{track.agent}", taken),
            account=recording.name,
            model=options.model,
            system=furnishing.systems[track.agent],
            tools=furnishing.tools,
        )
        for track in recording.agents
    }


def _free_name(name: str, taken: set[str]) -> str:
    """The name, or the first of its numbered variants that a kept store has not yet."""
    candidates = (name, *(f"{name}~{number}" for number in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _reply(call: RecordedCall) -> Reply:
    return Reply(content=call.response, stop_reason=call.stop_reason)


def _result(
    recording: Recording,
    options: ReplayOptions,
    played: Played,
    read: Sequence[ReadRequest],
    wall_seconds: float,
) -> Replayed:
    exchanges = played.exchanges
    facts = facts_of(options.model)
    prices = options.prices or (
        Price(write_ratio=facts.write_5m_ratio, read_ratio=facts.read_ratio),
    )
    pairs = _paired(played, read)
    broken = broken_requests(exchanges)
    rewritten = _rewritten(recording, exchanges)
    named = {index for index, one in enumerate(pairs) if one is not None and one.named}
    folded = {index for index, one in enumerate(pairs) if one is not None and one.folds}
    planned = ((rewritten & named) | folded) & set(broken)
    return Replayed(
        file=recording.name,
        calls=len(recording.calls),
        window_tokens=options.window_tokens,
        rejected=sum(exchange.status != _OK for exchange in exchanges),
        tokens=count_tokens(exchanges, facts.minimum_tokens),
        costs=tuple(price_exchanges(exchanges, price, facts) for price in prices),
        max_breakpoints=most_breakpoints(exchanges),
        planned_breaks=len(planned),
        unplanned_breaks=len(broken) - len(planned),
        exact_calls=sum(
            one is not None and one.exact == hash_body(exchange.request)
            for exchange, one in zip(exchanges, pairs, strict=True)
        ),
        derived_calls=sum(
            one is not None and one.derived == hash_canonical(exchange.request)
            for exchange, one in zip(exchanges, pairs, strict=True)
        ),
        folds=sum(one.folds for one in pairs if one is not None),
        wall_seconds=wall_seconds,
        synthesised=dict(recording.notes),
    )


def _paired(played: Played, read: Sequence[ReadRequest]) -> list[ReadRequest | None]:
    """The log's request for each one received: the k-th of an agent is the k-th of its path."""
    queues: dict[tuple[str, str], Iterator[ReadRequest]] = {
        place: iter([one for one in read if (one.session, one.path) == place])
        for place in played.places.values()
    }
    return [next(queues[played.places[exchange.session]], None) for exchange in played.exchanges]


def _rewritten(recording: Recording, exchanges: Sequence[Exchange]) -> set[int]:
    """Indices of the requests whose recorded call rewrites its history."""
    in_order = zip(recording.calls, range(len(exchanges)), strict=False)
    return {index for call, index in in_order if call.cut is not None}
