"""Physical limits of prompt caching: what a sequence of requests must cost at least.

The limits know only which prompts were sent, in which order; not where anybody put a marker.
Costs are in base-input-token equivalents: a plain input token costs 1, a written one the write
ratio, a read one the read ratio.

Theory. A prefix can be cached only at a **checkpoint**: an eligible block whose prefix, itself
included, has at least the model's minimum of tokens. A call reads up to one checkpoint, writes up
to another, and pays plainly for the rest, so the blocks from one checkpoint to the next (a
**stretch**) are always read, written or paid as a whole, and blocks behind a call's last checkpoint
are always plain: so is a whole prompt below the minimum. A stretch is identified by the prefix that
it ends, and by nothing less: a short shared prefix behind which two calls part before any common
checkpoint is not shared for the cache either. A stretch that m calls contain costs per token

    min(m, w + r * (m - 1))

since with r <= 1 <= w the first sight is the best time to write, and writing pays only against
enough later reads. Calls that contain a stretch contain those before it, so m never grows along a
prompt, what is worth writing is a prefix of every prompt, and a marker at every checkpoint attains
the bound: it is the exact optimum of unlimited markers and entries that never expire, hence a true
lower bound for four markers, a lookback and a TTL. Prompts of all agents share one tree.

Out of scope: thinking that the provider strips, answers that are cached without being sent (as some
other providers do), and entries of several models. Those never share an entry: give each model its
own sequence, or mix the model into the keys.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from barograph.core.errors import PolicyError

Level = Literal["tools", "system", "messages"]


class Block(Struct, frozen=True, kw_only=True, gc=False):
    """One wire-level block of a prompt.

    Attributes:
        key: hash of the whole prefix that ends with this block; equal keys mean equal prefixes,
            so tokens, level and eligibility of equal keys are equal too.
        tokens: the block's own tokens.
        level: the part of the request that holds it.
        eligible: whether a marker may stand on it (thinking and empty text are not eligible).
    """

    key: bytes
    tokens: int
    level: Level
    eligible: bool


class CacheTerms(Struct, frozen=True, kw_only=True):
    """What the provider asks of a cached prefix.

    Attributes:
        minimum_tokens: smallest cacheable prefix.
        write_ratio: price of a written token relative to plain input, at least 1.
        read_ratio: price of a read token relative to plain input, from 0 to 1.
    """

    minimum_tokens: int
    write_ratio: float = 1.25
    read_ratio: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.read_ratio <= 1 <= self.write_ratio:
            raise PolicyError(
                f"Cache prices out of range: read {self.read_ratio}, write {self.write_ratio}.",
                next_step="Give ratios to plain input with 0 <= read <= 1 <= write.",
            )


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one sequence of requests, in base-input-token equivalents.

    Attributes:
        uncached_tokens: the cost without any caching: all tokens of all prompts.
        offline_tokens: the least possible cost, with all later calls known beforehand.
        online_tokens: the least possible cost of a policy that must expect every prompt to go on:
            each call reads all it can and writes the rest up to its last checkpoint.
        ceiling_tokens: for each call the tokens that an entry of an earlier request could have
            served; see `reuse_ceilings`.
    """

    uncached_tokens: int
    offline_tokens: float
    online_tokens: float
    ceiling_tokens: tuple[int, ...]


def measure_limits(prompts: Sequence[Sequence[Block]], terms: CacheTerms) -> Limits:
    """The limits of prompts in the order they were sent, over all agents that share a cache.

    Each prompt costs O(its new blocks + log of its length), beside the memory of the distinct
    blocks; only after a rewrite does the ceiling look through the shared prefix.
    """
    tree = _Tree(terms.minimum_tokens)
    ceilings = tuple(tree.add(prompt) for prompt in prompts)
    stretches, plain_tokens = tree.stretches()
    read, write = terms.read_ratio, terms.write_ratio
    return Limits(
        uncached_tokens=sum(tokens * calls for tokens, calls in stretches) + plain_tokens,
        offline_tokens=plain_tokens
        + sum(tokens * min(calls, write + read * (calls - 1)) for tokens, calls in stretches),
        online_tokens=plain_tokens
        + sum(tokens * (write + read * (calls - 1)) for tokens, calls in stretches),
        ceiling_tokens=ceilings,
    )


def reuse_ceilings(prompts: Sequence[Sequence[Block]], *, minimum_tokens: int) -> tuple[int, ...]:
    """For each call the tokens of the longest prefix that an earlier entry could have served.

    Entries are counted where a careful client puts them: at the last checkpoint of every earlier
    request and at the last checkpoint of its tools and system. Reads over the sum of these are the
    reuse ratio, whose best value is 1.
    """
    tree = _Tree(minimum_tokens)
    return tuple(tree.add(prompt) for prompt in prompts)


class _Node(Struct, kw_only=True):
    """The end of a prefix.

    Attributes:
        depth_tokens: tokens of the prefix.
        checkpoint: number of the last checkpoint in it; 0, the root, for none.
        system_end: key of the last checkpoint in its tools and system; None for none.
    """

    depth_tokens: int
    checkpoint: int
    system_end: bytes | None


class _Checkpoint(Struct, kw_only=True):
    """A cacheable prefix; `calls` counts the prompts whose last checkpoint this is."""

    parent: int
    key: bytes
    depth_tokens: int
    calls: int = 0


class _Tree:
    """The distinct prefixes of all prompts so far, and the entries that they could have left."""

    def __init__(self, minimum_tokens: int) -> None:
        self._minimum_tokens = minimum_tokens
        self._nodes: dict[bytes, _Node] = {}
        self._checkpoints = [_Checkpoint(parent=0, key=b"", depth_tokens=0)]
        self._entries: set[bytes] = set()
        self._plain_tokens = 0

    def add(self, prompt: Sequence[Block]) -> int:
        """Take in the next prompt; the tokens of it that an earlier entry could have served."""
        # Every prefix of a known prefix is known, so the first new block can be bisected.
        known = bisect_left(prompt, x=True, key=lambda block: block.key not in self._nodes)
        served_tokens = self._served_tokens(prompt, known)
        node = self._nodes[prompt[known - 1].key] if known else _ROOT
        for block in prompt[known:]:
            node = self._grow(node, block)
        last = self._checkpoints[node.checkpoint]
        last.calls += 1
        self._plain_tokens += node.depth_tokens - last.depth_tokens
        self._entries.add(last.key)
        if node.system_end is not None:
            self._entries.add(node.system_end)
        return served_tokens

    def stretches(self) -> tuple[list[tuple[int, int]], int]:
        """(tokens, calls that contain it) of every stretch; the tokens that are always plain."""
        calls = [checkpoint.calls for checkpoint in self._checkpoints]
        stretches = []
        for number in range(len(calls) - 1, 0, -1):  # a child is always younger than its parent
            checkpoint = self._checkpoints[number]
            calls[checkpoint.parent] += calls[number]
            parent = self._checkpoints[checkpoint.parent]
            stretches.append((checkpoint.depth_tokens - parent.depth_tokens, calls[number]))
        return stretches, self._plain_tokens

    def _served_tokens(self, prompt: Sequence[Block], known: int) -> int:
        for index in range(known - 1, -1, -1):
            if prompt[index].key in self._entries:
                return self._nodes[prompt[index].key].depth_tokens
        return 0

    def _grow(self, parent: _Node, block: Block) -> _Node:
        node = _Node(
            depth_tokens=parent.depth_tokens + block.tokens,
            checkpoint=parent.checkpoint,
            system_end=parent.system_end,
        )
        if block.eligible and node.depth_tokens >= self._minimum_tokens:
            node.checkpoint = len(self._checkpoints)
            self._checkpoints.append(
                _Checkpoint(parent=parent.checkpoint, key=block.key, depth_tokens=node.depth_tokens)
            )
            if block.level != "messages":
                node.system_end = block.key
        self._nodes[block.key] = node
        return node


_ROOT = _Node(depth_tokens=0, checkpoint=0, system_end=None)
