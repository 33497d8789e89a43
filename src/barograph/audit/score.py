"""What a replay cost, what it could have cost, and where its prefix broke.

The limits hold for any planner behind the stock client: entries may end wherever a marker can get
through to the provider. The API would take one on an assistant's tool call as well; the client
drops it (langchain-anthropic 1.7.10), so no entry can end there and no limit may count on one.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from barograph.audit.limits import Block, CacheTerms, measure_limits
from barograph.core.costs import usd_of
from barograph.core.model import ModelFacts
from barograph.simulator.exchange import Exchange

_OK: Final = 200
_DROPPED_BY_CLIENT: Final = frozenset({"tool_use"})


class Price(Struct, frozen=True, kw_only=True):
    """Cost ratios: a written and a read token against a plain one."""

    write_ratio: float
    read_ratio: float

    @property
    def name(self) -> str:
        """As given on the command line: `w,r`."""
        return f"{self.write_ratio:g},{self.read_ratio:g}"


class Cost(Struct, frozen=True, kw_only=True):
    """Input cost under one price, in USD, and the limits it is measured against.

    Attributes:
        limit_usd: the offline optimum: all later calls known, unlimited markers, no expiry.
        online_limit_usd: the best of a planner that must expect every prompt to go on.
    """

    price: str
    cost_usd: float
    limit_usd: float
    online_limit_usd: float
    cost_over_limit: float
    cost_over_online_limit: float


class Tokens(Struct, frozen=True, kw_only=True):
    """Input tokens of a replay, as the provider billed them.

    `ceiling_tokens` is what live entries could have served: those that a careful client has at the
    end of every earlier request, or the deeper one that was in fact read.
    """

    input_total_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    uncached_tokens: int
    ceiling_tokens: int

    @property
    def hit_ratio(self) -> float:
        """Read tokens over all input tokens."""
        return self.read_tokens / self.input_total_tokens if self.input_total_tokens else 0.0

    @property
    def reuse_ratio(self) -> float:
        """Read tokens over those that could have been read; 1 where nothing could."""
        return self.read_tokens / self.ceiling_tokens if self.ceiling_tokens else 1.0


def count_tokens(exchanges: Sequence[Exchange], minimum_tokens: int) -> Tokens:
    """Sum the bills of the answered requests."""
    usages = [exchange.usage for exchange in exchanges if exchange.usage is not None]
    limits = measure_limits(_prompts(exchanges), CacheTerms(minimum_tokens=minimum_tokens))
    return Tokens(
        input_total_tokens=sum(bill.input_total_tokens for bill in usages),
        read_tokens=sum(bill.read_tokens for bill in usages),
        write_5m_tokens=sum(bill.write_5m_tokens for bill in usages),
        write_1h_tokens=sum(bill.write_1h_tokens for bill in usages),
        uncached_tokens=sum(bill.uncached_tokens for bill in usages),
        ceiling_tokens=sum(
            max(ceiling, usage.read_tokens)
            for ceiling, usage in zip(limits.ceiling_tokens, usages, strict=True)
        ),
    )


def price_exchanges(exchanges: Sequence[Exchange], price: Price, facts: ModelFacts) -> Cost:
    """Input cost of the answered requests under a price, and its limits."""
    tokens = count_tokens(exchanges, facts.minimum_tokens)
    terms = CacheTerms(
        minimum_tokens=facts.minimum_tokens,
        write_ratio=price.write_ratio,
        read_ratio=price.read_ratio,
    )
    limits = measure_limits(_prompts(exchanges), terms)
    paid = (
        tokens.uncached_tokens
        + price.read_ratio * tokens.read_tokens
        + price.write_ratio * tokens.write_5m_tokens
        + facts.write_1h_ratio * tokens.write_1h_tokens
    )
    return cost_of(
        price.name,
        *(usd_of(amount, facts) for amount in (paid, limits.offline_tokens, limits.online_tokens)),
    )


def cost_of(price: str, cost_usd: float, limit_usd: float, online_limit_usd: float) -> Cost:
    """A cost with its ratios."""
    return Cost(
        price=price,
        cost_usd=cost_usd,
        limit_usd=limit_usd,
        online_limit_usd=online_limit_usd,
        cost_over_limit=cost_usd / limit_usd if limit_usd else 1.0,
        cost_over_online_limit=cost_usd / online_limit_usd if online_limit_usd else 1.0,
    )


def most_breakpoints(exchanges: Sequence[Exchange]) -> int:
    """The largest number of markers that any request carried."""
    return max((sum(block.marked for block in ex.blocks) for ex in exchanges), default=0)


def broken_requests(exchanges: Sequence[Exchange]) -> list[int]:
    """Indices of the requests that do not begin with all of their session's previous one."""
    last: dict[str, Exchange] = {}
    broken = []
    for index, exchange in enumerate(exchanges):
        before = last.get(exchange.session)
        if before is not None and before.blocks and not _extends(before, exchange):
            broken.append(index)
        last[exchange.session] = exchange
    return broken


def _extends(before: Exchange, after: Exchange) -> bool:
    count = len(before.blocks)
    return (
        len(after.blocks) >= count
        and after.blocks[count - 1].prefix_key == before.blocks[-1].prefix_key
    )


def _prompts(exchanges: Sequence[Exchange]) -> list[list[Block]]:
    return [
        [
            Block(
                key=block.prefix_key,
                tokens=block.tokens,
                level=block.level,
                eligible=block.eligible and block.kind not in _DROPPED_BY_CLIENT,
            )
            for block in exchange.blocks
        ]
        for exchange in exchanges
        if exchange.status == _OK
    ]
