"""The provider's prompt cache: which entry a request reads, what it writes, what it pays.

Theory. A block is a position; a run of consecutive `tool_use` blocks is one position, and likewise
`tool_result`. A request writes one entry per marker, at the marker, and nothing elsewhere. It
reads the longest entry that lies within reach of one of its markers: from the last marker to the
first, each tests its own position and walks back, 20 positions in all, and the first hit wins. No
earlier marker can see further than that hit, because the walk passed every position above it.

With `A` the tokens of the hit, `B` the tokens up to the last 1h marker after it and `C` the tokens
up to the last marker: `A` are read, `B - A` written for an hour, `C - B` written for five minutes
and the rest is plain input. A prefix below the model's minimum is neither written nor billed as a
write, silently.

An entry can be read once the response of its writer begins. It lives for its TTL from the *start*
of the last request that wrote or read it, on the caller's clock.

Source: provider prompt-caching page ("How automatic prefix checking works", "Mixing different
TTLs", "Cache limitations", "Understanding cache lifetime"). Where it is silent, see `Switches`.
"""

from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final

from msgspec import Struct

from barograph.core.events import Ttl, Usage
from barograph.core.model import ModelFacts
from barograph.simulator.prefix import PromptBlock
from barograph.simulator.switches import Switches

TTL_SECONDS: Final[dict[Ttl, float]] = {"5m": 300.0, "1h": 3600.0}
_RUNS: Final = frozenset({"tool_use", "tool_result"})
_SWEEP_ENTRIES: Final = 65_536


class Entry(Struct, frozen=True, kw_only=True):
    """One cached prefix.

    Attributes:
        ttl: class that was paid for.
        used_at_seconds: start of the last request that wrote or read it.
        readable_at_seconds: when the response of its writer began.
        life_seconds: how long it lives without use.
    """

    ttl: Ttl
    used_at_seconds: float
    readable_at_seconds: float
    life_seconds: float

    def live(self, now_seconds: float) -> bool:
        """Whether a request that starts now can read it."""
        return self.readable_at_seconds <= now_seconds and not self.expired(now_seconds)

    def expired(self, now_seconds: float) -> bool:
        """Whether its life is over; it lives through the last instant of its TTL."""
        return now_seconds - self.used_at_seconds > self.life_seconds


class Lookup(Struct, frozen=True, kw_only=True):
    """What one request finds and pays, before anything is stored.

    Attributes:
        hit: index of the block at whose end the longest entry was found, None for a miss.
        writes: indices of the marked blocks that are long enough to be cached.
        usage: the parts of the prompt; no output yet.
    """

    hit: int | None
    writes: tuple[int, ...]
    usage: Usage


def reach_of(
    blocks: Sequence[PromptBlock], marker: int, *, positions: int, collapse_runs: bool
) -> range:
    """Indices of the blocks whose ends a marker tests, from itself backwards.

    Args:
        blocks: the prompt.
        marker: index of the marked block.
        positions: how many positions are tested, the marker's own included.
        collapse_runs: whether a run of tool calls, or of tool results, is one position.
    """
    left = positions
    index = marker
    while True:
        same_run = (
            collapse_runs
            and index < marker
            and blocks[index].kind in _RUNS
            and blocks[index].kind == blocks[index + 1].kind
        )
        left -= not same_run
        if left < 0:
            return range(marker, index, -1)
        if index == 0:
            return range(marker, -1, -1)
        index -= 1


class PromptCache:
    """Entries of one provider, scoped by account.

    Args:
        switches: undocumented behaviour.
        rng: where random misses come from; needed only if their rate is above 0.
    """

    def __init__(self, switches: Switches, rng: Random | None = None) -> None:
        self._switches = switches
        self._rng = rng or Random(0)  # noqa: S311 - simulated misses secure nothing
        self._entries: dict[tuple[str, bytes], Entry] = {}
        self._sweep_at = _SWEEP_ENTRIES

    def look_up(
        self, scope: str, blocks: Sequence[PromptBlock], facts: ModelFacts, now_seconds: float
    ) -> Lookup:
        """Find the longest hit and bill the prompt; stores nothing.

        Args:
            scope: whose entries are seen (an account).
            blocks: the prompt; the model is part of its keys.
            facts: minimum and lookback of the model.
            now_seconds: start of the request.
        """
        upto_tokens = list(accumulate(block.tokens for block in blocks))
        markers = [index for index, block in enumerate(blocks) if block.marked]
        writes = tuple(index for index in markers if upto_tokens[index] >= facts.minimum_tokens)
        hit = self._hit(scope, blocks, writes, facts, now_seconds)
        usage = _usage(blocks, upto_tokens, hit, writes)
        return Lookup(hit=hit, writes=writes, usage=usage)

    def store(
        self,
        scope: str,
        blocks: Sequence[PromptBlock],
        lookup: Lookup,
        now_seconds: float,
        *,
        slow_seconds: float = 0.0,
    ) -> None:
        """Renew what was read and write what was marked; the response begins.

        Args:
            scope: whose entries these are.
            blocks: the prompt.
            lookup: what `look_up` said of it.
            now_seconds: start of the request, the same as there.
            slow_seconds: how much later than usual the response begins.
        """
        readable_at_seconds = now_seconds + self._switches.first_token_seconds + slow_seconds
        hit = -1 if lookup.hit is None else lookup.hit
        most_seconds = TTL_SECONDS["1h"]
        if hit >= 0:
            if self._switches.long_needs_long:
                most_seconds = self._entries[scope, blocks[hit].prefix_key].life_seconds
            shortest = 0 if self._switches.reads_refresh_shorter else hit
            for block in blocks[shortest : hit + 1]:
                self._renew(scope, block, now_seconds)
        for index in lookup.writes:
            block = blocks[index]
            kept = index <= hit and (
                not self._switches.markers_refresh_shorter or self._renew(scope, block, now_seconds)
            )
            if not kept:
                self._write(scope, block, now_seconds, readable_at_seconds, most_seconds)
        self._sweep(now_seconds)

    def _hit(
        self,
        scope: str,
        blocks: Sequence[PromptBlock],
        markers: Sequence[int],
        facts: ModelFacts,
        now_seconds: float,
    ) -> int | None:
        for marker in reversed(markers):
            reach = reach_of(
                blocks,
                marker,
                positions=facts.lookback_positions,
                collapse_runs=self._switches.collapse_runs,
            )
            for index in reach:
                entry = self._entries.get((scope, blocks[index].prefix_key))
                if entry is not None and entry.live(now_seconds):
                    return None if self._missed_at_random() else index
        return None

    def _missed_at_random(self) -> bool:
        rate = self._switches.random_miss_rate
        return rate > 0.0 and self._rng.random() < rate

    def _renew(self, scope: str, block: PromptBlock, now_seconds: float) -> bool:
        """Start the life of a live entry anew; False if there is none."""
        entry = self._entries.get((scope, block.prefix_key))
        if entry is None or not entry.live(now_seconds):
            return False
        self._entries[scope, block.prefix_key] = Entry(
            ttl=entry.ttl,
            used_at_seconds=max(now_seconds, entry.used_at_seconds),
            readable_at_seconds=entry.readable_at_seconds,
            life_seconds=entry.life_seconds,
        )
        return True

    def _write(
        self,
        scope: str,
        block: PromptBlock,
        now_seconds: float,
        readable_at_seconds: float,
        most_seconds: float,
    ) -> None:
        if block.marker is None:
            return
        entry = self._entries.get((scope, block.prefix_key))
        if entry is not None and not entry.expired(now_seconds):
            readable_at_seconds = min(entry.readable_at_seconds, readable_at_seconds)
        self._entries[scope, block.prefix_key] = Entry(
            ttl=block.marker,
            used_at_seconds=now_seconds,
            readable_at_seconds=readable_at_seconds,
            life_seconds=min(self._life_seconds(block.marker), most_seconds),
        )

    def _life_seconds(self, ttl: Ttl) -> float:
        early = self._switches.early_eviction_seconds
        return TTL_SECONDS[ttl] if early is None else min(TTL_SECONDS[ttl], early)

    def _sweep(self, now_seconds: float) -> None:
        """Forget dead entries, seldom enough to cost nothing."""
        if len(self._entries) < self._sweep_at:
            return
        self._entries = {
            key: entry for key, entry in self._entries.items() if not entry.expired(now_seconds)
        }
        self._sweep_at = max(_SWEEP_ENTRIES, 2 * len(self._entries))


def _usage(
    blocks: Sequence[PromptBlock],
    upto_tokens: Sequence[int],
    hit: int | None,
    writes: Sequence[int],
) -> Usage:
    total = upto_tokens[-1] if upto_tokens else 0
    read = 0 if hit is None else upto_tokens[hit]
    long = [upto_tokens[index] for index in writes if blocks[index].marker == "1h"]
    upto_long = max([read, *long])
    upto_last = max([upto_long, *(upto_tokens[index] for index in writes)])
    return Usage(
        read_tokens=read,
        write_1h_tokens=upto_long - read,
        write_5m_tokens=upto_last - upto_long,
        uncached_tokens=total - upto_last,
        output_tokens=0,
    )
