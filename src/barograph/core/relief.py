"""When relief pays, and in which order it is given.

**Theory of operation.** Before every call the meter projects its prompt. Old content that could be
pruned is carried at the price of a cache read with each call; taking it off makes what follows it
be written once more. Like skis that may be rented or bought without knowing how long one stays, the
best without foresight is to buy when the rent that was paid comes near the price: the pass runs
when the stale tokens have cost `rent_ratio` times what the pass costs. On recorded sessions that
stays within 3 % of the cheapest schedule known afterwards, on average, where a share of 60 % of
the window costs 13 to 19 % more than it (bench/relief.py).

Four things change that. A *cold* cache, since then the pass is free. A price *cliff*, above which
each token of a request costs more, where a pass brings it below. The *safety* share of the window,
since relief must come before the window ends: such a pass must take off enough, or it would nibble
at every call; so must one at a cliff, unless the very next call pays for it. And what does *not
fit* at all.

On models that bind their thinking to what comes before it, a pass invalidates the thinking after
its first change, so it waits for the end of a turn unless the window forces it, and takes that
thinking off too.

Where the provider refuses a request as too long, our measure was wrong: `force` takes what has
aged, cheap or not, and younger content as far as it must.

**Invariants.** A pass is logged before the request that shows it. It takes off tokens by the
measure that triggered it, or does not run (8). The newest rounds are not touched unless by force,
the very newest one never.

**Out of scope.** What may be pruned (`prune`); summaries.
"""

from barograph.core.breakpoints import find_anchor
from barograph.core.events import PruneCause, Pruned, Stub
from barograph.core.inputs import CallWanted
from barograph.core.parts import Parts
from barograph.core.policy import Policy
from barograph.core.pressure import Gauge, project_tokens, ratio_of
from barograph.core.prune import Pending, has_thinking_after, make_stubs
from barograph.core.state import PathState, count_header_chars
from barograph.core.surface import Surface
from barograph.core.tooling import SEARCH
from barograph.core.work import Work


def relieve(work: Work, given: CallWanted, policy: Policy) -> Gauge:
    """Measure the request that is wanted and give the relief that is due; the gauge after it."""
    look = _Look(work, given, policy)
    if not policy.prunes or not given.folds:
        return look.gauge
    cause = look.due()
    stubs = look.stubs(cause) if cause else ()
    if cause is None or not stubs:
        return look.gauge
    work.log(look.as_pass(cause, stubs))
    return measure(work, given, policy)


def force(work: Work, given: CallWanted, policy: Policy) -> Gauge:
    """Shorten a request that was refused as too long; the gauge after it."""
    if not policy.prunes:
        return measure(work, given, policy)
    replies = work.state.path(given.path).replies
    for kept in range(min(policy.prune_after_rounds, replies), 0, -1):
        look = _Look(work, given, policy, kept)
        stubs = look.stubs("forced") if look.is_enough or kept == 1 else ()
        if stubs:
            work.log(look.as_pass("forced", stubs))
            break
    return measure(work, given, policy)


def prune(work: Work, given: CallWanted, policy: Policy) -> None:
    """Take off all that has aged, since somebody asks for it; nothing where nothing has."""
    look = _Look(work, given, policy)
    stubs = look.stubs("manual")
    if stubs:
        work.log(look.as_pass("manual", stubs))


def measure(work: Work, given: CallWanted, policy: Policy) -> Gauge:
    """The gauge of a request as it stands."""
    return _Look(work, given, policy).gauge


def oldest_kept(path: PathState, policy: Policy, kept: int | None = None) -> int:
    """The reply of the path before which content has aged, for the call that is wanted now.

    Replies and not calls, so that a history that somebody brings along has its age.
    """
    return path.replies + 1 - (kept or policy.prune_after_rounds)


def pending_of(path: PathState, policy: Policy, aged_before: int) -> Pending:
    """What a pass would take of what came before that reply, if any may.

    What tools a model may call stays in its sight, and so does what the policy names.
    """
    aged = path.pending.at_round(aged_before)
    return aged.keeping((SEARCH, *policy.keep_results))


class _Look:
    """A request before it is planned: what it weighs, and what a pass would change.

    The newest `kept` rounds have not aged; None takes the policy's number.
    """

    def __init__(
        self, work: Work, given: CallWanted, policy: Policy, kept: int | None = None
    ) -> None:
        self._given, self._policy = given, policy
        self._weigh = work.codec.weigh
        self._facts = work.codec.facts_of(given.header.model)
        self._path: PathState = work.state.path(given.path)
        self._surface: Surface = work.state.surface(given.path)
        self._aged_before = oldest_kept(self._path, policy, kept)
        self._pending: Pending = pending_of(self._path, policy, self._aged_before)
        header = given.header
        header_chars = count_header_chars(work.codec, header.system, header.tools)
        segments = self._surface.segments
        chars = header_chars + (segments[-1].end_chars if len(segments) else 0)
        meter, factors, start = self._path.meter, work.state.factors, policy.start_tokens_per_char
        ratio = ratio_of(factors, header.model, start)
        anchor = meter.anchor(chars, segments)
        window = policy.window_tokens or given.window_tokens or self._facts.window_tokens
        window = min(window, work.state.windows.get(header.model, window))
        self.gauge = Gauge(
            projected_tokens=project_tokens(chars, anchor, factors, header.model, start),
            fixed_tokens=project_tokens(header_chars, meter.fixed, factors, header.model, start),
            window_tokens=window,
            reserve_tokens=given.reserve_tokens,
            tokens_per_char=ratio,
        )

    def due(self) -> PruneCause | None:
        """Why a pass is due now; None where none is."""
        first, gauge = self._pending.first_stale, self.gauge
        if first is None:
            return None
        if not gauge.fits:
            return "forced"
        is_bound = self._path.round and self._facts.binds_thinking
        if is_bound and has_thinking_after(self._surface, first.entry):
            return None
        enough = self._policy.relief_ratio * gauge.usable_tokens
        if gauge.pressure >= self._policy.safety_ratio and self._stale_tokens >= enough:
            return "safety"
        return self._cheap() if self._policy.name == "balanced" else None

    @property
    def is_enough(self) -> bool:
        """Whether a pass leaves a request that fits with something to spare.

        One that should have fit and did not is shortened by as much.
        """
        gauge, usable = self.gauge, self.gauge.usable_tokens
        least = min(gauge.projected_tokens, usable) - self._policy.relief_ratio * usable
        return gauge.projected_tokens - self._stale_tokens <= least

    def stubs(self, cause: PruneCause) -> tuple[Stub, ...]:
        """What a pass puts into the places of the stale entries, and of frames with them."""
        return make_stubs(
            self._surface,
            self._pending,
            drops_thinking=self._facts.binds_thinking,
            collapses=self._policy.collapse_repeats,
            retired=self._retired(anywhere=cause in {"cold", "forced"}),
        )

    def _retired(self, *, anywhere: bool) -> dict[int, Parts]:
        """What is left, by entry, of the frames that go with a pass.

        Behind its first change that costs nothing. One before it moves that change to the front,
        so it goes where that costs no more, for what it takes off, than the pass itself does.
        """
        frames, first = self._path.frames, self._pending.first_stale
        left = frames.retired(turn=self._path.turn, aged_before=self._aged_before)
        if not left or first is None:
            return {}
        surface, saved, begin = self._surface, 0, first.entry
        start = surface.chars_before(first.entry)
        price = self._rewritten_tokens / max(1.0, self._stale_tokens)
        found = [(i, one) for i, one in enumerate(surface.entries) if one.seq in left]
        for index, entry in reversed(found):
            if index > first.entry:
                continue
            saved += sum(map(self._weigh, entry.parts)) - sum(map(self._weigh, left[entry.seq]))
            if anywhere or start - surface.chars_before(index) <= price * saved:
                begin = index
        return {index: left[entry.seq] for index, entry in found if index >= begin}

    def as_pass(self, cause: PruneCause, stubs: tuple[Stub, ...]) -> Pruned:
        """The pass, with what it costs and when that is paid back."""
        is_free = cause == "cold" or (cause == "manual" and not self._is_warm)
        paid = 0.0 if is_free else self._price
        saved = self._saved_below if cause == "cliff" else self._read_ratio * self._stale_tokens
        return Pruned(
            at=self._given.at,
            path=self._given.path,
            cause=cause,
            stubs=stubs,
            aged_before=self._aged_before,
            tokens_before=self.gauge.projected_tokens,
            tokens_after=max(0, self.gauge.projected_tokens - round(self._stale_tokens)),
            rewritten_tokens=0 if is_free else round(self._rewritten_tokens),
            break_even_calls=round(paid / saved, 2) if paid and saved else None,
        )

    def _cheap(self) -> PruneCause | None:
        if not self._is_warm:
            return "cold"
        if self._clears_cliff:
            return "cliff"
        rent = self._read_ratio * (self._pending.rent_tokens + self._stale_tokens)
        return "rent" if rent >= self._policy.rent_ratio * self._price else None

    @property
    def _clears_cliff(self) -> bool:
        cliff, tokens = self._facts.cliff_tokens, self.gauge.projected_tokens
        if cliff is None or tokens <= cliff:
            return False
        is_enough = self._stale_tokens >= self._policy.relief_ratio * cliff
        pays = self._saved_below >= self._price
        return self._stale_tokens >= tokens - cliff and (is_enough or pays)

    @property
    def _saved_below(self) -> float:
        """What each call costs less below the cliff, in plain input tokens."""
        spared = (self._facts.cliff_ratio - 1) * self.gauge.projected_tokens
        return self._read_ratio * (self._stale_tokens + spared)

    @property
    def _is_warm(self) -> bool:
        surface, path, at = self._surface, self._path, self._given.at
        anchor = find_anchor(surface.segments, path.ledger, path.scope, at, surface.images)
        return anchor is not None and anchor.is_readable(at, surface.images)

    @property
    def _stale_tokens(self) -> float:
        return self._pending.stale_chars * self.gauge.tokens_per_char

    @property
    def _rewritten_tokens(self) -> float:
        """Tokens after the first change that are left when the stale ones are off."""
        first = self._pending.first_stale
        if first is None:
            return 0.0
        whole = self._surface.segments[-1].end_chars
        after = whole - self._surface.chars_before(first.entry)
        return (after - self._pending.stale_chars) * self.gauge.tokens_per_char

    @property
    def _price(self) -> float:
        """What a pass costs more than going on, in plain input tokens."""
        by_ttl = {"5m": self._facts.write_5m_ratio, "1h": self._facts.write_1h_ratio}
        write = self._policy.write_ratio or by_ttl[self._policy.entry_ttl]
        return (write - self._read_ratio) * self._rewritten_tokens

    @property
    def _read_ratio(self) -> float:
        return self._policy.read_ratio or self._facts.read_ratio
