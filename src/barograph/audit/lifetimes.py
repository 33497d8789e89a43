"""What a session would have cost with other lifetimes of its cache entries.

**Theory of operation.** The log has every request and its time. Each call is planned anew by the
planner that plans live ones, on a ledger of its own for each lifetime, and billed as the provider
bills: what the deepest live entry under a marker covers is read, what follows up to the last long
marker is written for an hour, the rest up to the last marker for five minutes. Requests, times and
answers are those of the log. A request has the tokens that were reported, and so has a prefix that
was the end of one; other parts share them by their characters, so costs are estimates. How good
they are, the recorded cost beside that of the recorded lifetimes shows.

Refreshes (`core.warming`) are part of what was paid. The choices stand for sessions without any.

**Out of scope.** Folds that another price would have moved, entries of other sessions, misses for
no reason. Calls whose usage is unknown renew what they would have read, and cost nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.reading import LoggedCall, LoggedSession, read_session
from barograph.core.breakpoints import (
    CacheView,
    Plan,
    Written,
    confirm_entries,
    last_made_to_last,
    plan_breakpoints,
)
from barograph.core.engine import end_of_header
from barograph.core.events import Usage
from barograph.core.inputs import Header
from barograph.core.lifetimes import TTL_SECONDS, Outlook, Pauses, is_pause
from barograph.core.model import Codec, ModelFacts
from barograph.core.parts import Text
from barograph.core.policy import Lifetime
from barograph.core.state import count_header_chars
from barograph.core.trail import Trail
from barograph.core.warming import KEEP_WARM
from barograph.simulator.prices import cost_usd
from barograph.store.protocol import Store

_LEAST_SAVING: Final = 0.01
"""Of what was paid; less is not worth a change."""


class Step(Struct, frozen=True, kw_only=True):
    """One call of a session, seen from the cache: all but the entries it would find.

    Attributes:
        path: agent path.
        begins: whether a turn begins with it.
        view: what a plan depends on.
        usage: tokens as reported; None where none were.
        cached: key of the prefix that the provider had in its cache afterwards; None for none.
    """

    path: str
    begins: bool
    view: CacheView
    usage: Usage | None
    cached: bytes | None = None

    @property
    def chars(self) -> int:
        """What the whole request weighs."""
        segments = self.view.segments
        return self.view.header_chars + (segments[-1].end_chars if len(segments) else 0)


class Choice(Struct, frozen=True, kw_only=True):
    """A way to choose lifetimes, and what the session would have cost with it.

    Attributes:
        ttl: `5m`, `1h`, `auto`, or `as recorded` for what was paid.
        pause_ratio: share of calls that a pause was expected to follow from the start.
        cost_usd: at list price.
        read_tokens: read from the cache.
        write_5m_tokens: written for five minutes.
        write_1h_tokens: written for an hour.
        expiries: calls that found an entry dead that they could have read; None where not known.
    """

    ttl: Lifetime | Literal["as recorded"]
    pause_ratio: float = 0.0
    cost_usd: float
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    expiries: int | None = None


class TtlAdvice(Struct, frozen=True, kw_only=True):
    """Which lifetime a session should have had.

    Attributes:
        session: id of the session.
        calls: calls whose usage is known; the figures are theirs.
        gaps: calls that another one of their path followed.
        pauses: gaps of more than 5 minutes and at most 60.
        longer: gaps that no entry outlives.
        pause_ratio: pauses / gaps.
        recorded: what was paid.
        choices: what other lifetimes would have cost, by the same estimate.
        best: index of the cheapest of them.
        saved_usd: what it would have saved against what was paid.
        is_worth_it: whether that is at least a hundredth.
        is_guess: whether a model in it is not known, and with it the prices.
    """

    session: str
    calls: int
    gaps: int
    pauses: int
    longer: int
    pause_ratio: float
    recorded: Choice
    choices: tuple[Choice, ...]
    best: int
    saved_usd: float
    is_worth_it: bool
    is_guess: bool


def advise_ttl(store: Store, session: str) -> TtlAdvice:
    """Compare the lifetimes that a session could have had.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    logged = read_session(store, session)
    steps = steps_of(logged)
    gaps = gaps_of(steps)
    slow = sum(map(is_pause, gaps))
    ratio = slow / len(gaps) if gaps else 0.0
    choices = [simulate(steps, "5m"), simulate(steps, "1h"), simulate(steps, "auto")]
    if ratio:
        choices.append(simulate(steps, "auto", pause_ratio=ratio))
    recorded = _recorded(logged)
    best = min(range(len(choices)), key=lambda index: choices[index].cost_usd)
    saved = recorded.cost_usd - choices[best].cost_usd
    return TtlAdvice(
        session=session,
        calls=sum(step.usage is not None for step in steps),
        gaps=len(gaps),
        pauses=slow,
        longer=sum(gap > TTL_SECONDS["1h"] for gap in gaps),
        pause_ratio=ratio,
        recorded=recorded,
        choices=tuple(choices),
        best=best,
        saved_usd=saved,
        is_worth_it=saved > 0 and saved >= _LEAST_SAVING * recorded.cost_usd,
        is_guess=any(step.view.facts.name == "unknown" for step in steps),
    )


def steps_of(logged: LoggedSession) -> list[Step]:
    """The calls of agents that left, in the order of their plans; refreshes are no such calls."""
    identity = _identity_of(logged.calls)
    agents = (call for call in logged.calls if not call.plan.path.endswith(KEEP_WARM))
    steps = (_step(logged.codec, call, identity) for call in agents)
    return [step for step in steps if step is not None]


def gaps_of(steps: Iterable[Step]) -> list[float]:
    """Seconds from the start of each call to that of the next on its path."""
    starts: dict[str, list[float]] = {}
    for step in steps:
        starts.setdefault(step.path, []).append(step.view.at)
    return [after - before for path in starts.values() for before, after in pairwise(path)]


def simulate(steps: Sequence[Step], ttl: Lifetime, *, pause_ratio: float = 0.0) -> Choice:
    """What the calls would have cost with that lifetime."""
    cache = _Cache(ttl, pause_ratio, _sizes_of(steps))
    bills = [(step.view.facts, cache.send(step)) for step in steps]
    told = [(facts, usage) for facts, usage in bills if usage is not None]
    return _sum_up(told, ttl, pause_ratio, cache.expiries)


class _Cache:
    """The entries of a session under one lifetime, and what a ledger knows of them."""

    def __init__(self, ttl: Lifetime, pause_ratio: float, sizes: Mapping[bytes, int]) -> None:
        self.expiries = 0
        self._sizes = sizes
        self._ttl, self._expected = ttl, pause_ratio
        self._entries: dict[tuple[str, bytes, bytes], Written] = {}
        self._written: dict[tuple[bytes, bytes], dict[int, Written]] = {}
        self._lasting: dict[str, Written | None] = {}
        self._pauses: dict[str, Pauses] = {}
        self._began: dict[str, float] = {}
        self._tails: dict[str, Written] = {}

    def send(self, step: Step) -> Usage | None:
        """Plan a call, bill it, and keep what it leaves."""
        view = self._view(step)
        plan = plan_breakpoints(view)
        self._count_expiry(step.path, view)
        usage = None if step.usage is None else _bill(step.usage, plan, view, self._sizes)
        self._keep(step.path, plan, view)
        return usage

    def _view(self, step: Step) -> CacheView:
        path, at = step.path, step.view.at
        outlook = self._pauses.get(path, Pauses()).outlook(self._expected)
        if path in self._began:
            gap = at - self._began[path]
            self._pauses[path] = self._pauses.get(path, Pauses()).after(gap)
        self._began[path] = at
        return replace(
            step.view,
            ledger=Trail(self._fitting(step.view)),
            ttl="1h" if self._ttl == "1h" else "5m",
            outlook=outlook if self._ttl == "auto" else Outlook(),
            lasting=self._lasting.get(path),
        )

    def _fitting(self, view: CacheView) -> list[Written]:
        """Entries of all paths that are a prefix of the request, down to the deepest readable one.

        Each is looked up by its key: to search them all at each call would cost O(calls) for each.
        """
        fitting = list(self._written.get((view.scope.header, b""), {}).values())
        for position in range(len(view.segments), 0, -1):
            key = view.scope.messages, view.segments[position - 1].key
            there = self._written.get(key, {}).values()
            fitting += there
            if any(entry.is_readable(view.at, view.images) for entry in there):
                break
        return fitting

    def _count_expiry(self, path: str, view: CacheView) -> None:
        tail, segments = self._tails.get(path), view.segments
        if tail is None or tail.position > len(segments):
            return
        is_there = tail.scope == view.scope.messages
        is_there = is_there and segments[tail.position - 1].key == tail.key
        self.expiries += is_there and not tail.is_live(view.at)

    def _keep(self, path: str, plan: Plan, view: CacheView) -> None:
        learned = confirm_entries(
            plan.breakpoints,
            view.segments,
            view.scope,
            at=view.at,
            cached_tokens=None,
            anchor_tokens=None,
            images=view.images,
            known=[*self._known(plan, view)],
        )
        for entry in learned:
            self._entries[entry.level, entry.scope, entry.key] = entry
            self._written.setdefault((entry.scope, entry.key), {})[entry.images] = entry
        before = self._lasting.get(path)
        self._lasting[path] = last_made_to_last(before, learned, view.segments, view.scope)
        if learned and learned[-1].level == "messages":
            self._tails[path] = learned[-1]

    def _known(self, plan: Plan, view: CacheView) -> Iterable[Written]:
        for mark in plan.breakpoints:
            key = ("header", view.scope.header, b"")
            if mark.level == "messages":
                key = ("messages", view.scope.messages, view.segments[mark.block].key)
            if key in self._entries:
                yield self._entries[key]


def _identity_of(calls: Iterable[LoggedCall]) -> str | None:
    """Text of the block before which the header ended, though the system is nothing else."""
    for call in calls:
        header = call.sent.header if call.sent else None
        is_before = any(
            mark.level == "tools" and mark.slot == "header" for mark in call.plan.breakpoints
        )
        if header is not None and header.system and is_before:
            first = header.system[0]
            return first.text if isinstance(first, Text) else None
    return None


def _step(codec: Codec, call: LoggedCall, identity: str | None) -> Step | None:
    sent = call.sent
    if sent is None or sent.header is None:
        return None
    header, surface = sent.header, sent.surface
    level, block = end_of_header(
        Header(model=header.model, system=header.system, tools=header.tools), identity
    )
    view = CacheView(
        header_level=level,
        header_block=block,
        header_chars=count_header_chars(codec, header.system, header.tools),
        segments=surface.segments,
        scope=sent.scope,
        ledger=Trail(),
        at=call.plan.at,
        facts=codec.facts_of(header.model),
        ttl="5m",
        tokens_per_char=0.25,
        images=surface.images,
        insured=min(call.plan.insured, len(surface.segments)),
        reserved=call.plan.reserved,
    )
    marked = sent.marked_blocks if sent.cached_tokens else 0
    step = Step(
        path=call.plan.path,
        begins=call.plan.round == 1,
        view=view,
        usage=sent.usage,
        cached=surface.segments[marked - 1].key if marked else None,
    )
    if sent.usage is None or not step.chars:
        return step
    ratio = sent.usage.input_total_tokens / step.chars
    return replace(step, view=replace(view, tokens_per_char=ratio))


def _sizes_of(steps: Sequence[Step]) -> dict[bytes, int]:
    """Tokens of prefixes, by key: the ends of requests as reported, headers by the shortest one."""
    sizes: dict[bytes, int] = {}
    for step in sorted(steps, key=lambda step: -step.chars):
        if step.usage is not None:
            view = step.view
            sizes[view.scope.header] = round(view.header_chars * view.tokens_per_char)
            if step.cached is not None:
                sizes[step.cached] = step.usage.read_tokens + step.usage.write_tokens
    return sizes


def _bill(usage: Usage, plan: Plan, view: CacheView, sizes: Mapping[bytes, int]) -> Usage:
    """A, B and C of the provider's page on mixed lifetimes, in the tokens of the request."""

    def tokens_to(position: int) -> int:
        last = view.segments[position - 1] if position else None
        key = last.key if last else view.scope.header
        chars = view.header_chars + (last.end_chars if last else 0)
        return min(sizes.get(key, round(chars * view.tokens_per_char)), total)

    total, read, upto_long, upto_last = usage.input_total_tokens, 0, 0, 0
    if plan.anchor is not None and plan.anchor.is_readable(view.at, view.images):
        read = tokens_to(plan.anchor.position)
    for mark in plan.breakpoints:
        end = tokens_to(mark.block + 1 if mark.level == "messages" else 0)
        upto_last = max(upto_last, end)
        if mark.ttl == "1h":
            upto_long = max(upto_long, end)
    upto_long = max(upto_long, read)
    upto_last = max(upto_last, upto_long)
    return Usage(
        read_tokens=read,
        write_1h_tokens=upto_long - read,
        write_5m_tokens=upto_last - upto_long,
        uncached_tokens=total - upto_last,
        output_tokens=usage.output_tokens,
    )


def _recorded(logged: LoggedSession) -> Choice:
    """What was paid, refreshes included."""
    sent = (call.sent for call in logged.calls if call.sent is not None)
    told = [
        (logged.codec.facts_of(one.header.model), one.usage)
        for one in sent
        if one.header is not None and one.usage is not None
    ]
    return _sum_up(told, "as recorded", 0.0, None)


def _sum_up(
    told: Sequence[tuple[ModelFacts, Usage]],
    ttl: Lifetime | Literal["as recorded"],
    pause_ratio: float,
    expiries: int | None,
) -> Choice:
    return Choice(
        ttl=ttl,
        pause_ratio=pause_ratio,
        cost_usd=sum(cost_usd(usage, facts) for facts, usage in told),
        read_tokens=sum(usage.read_tokens for _, usage in told),
        write_5m_tokens=sum(usage.write_5m_tokens for _, usage in told),
        write_1h_tokens=sum(usage.write_1h_tokens for _, usage in told),
        expiries=expiries,
    )
