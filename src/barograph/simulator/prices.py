"""What a call costs, from the dated facts of its model."""

from typing import Final

from barograph.core.model import ModelFacts
from barograph.simulator.cache import Bill

_TOKENS_PER_PRICE: Final = 1_000_000


def input_equivalents(bill: Bill, facts: ModelFacts) -> float:
    """Cost of a prompt in plain input tokens: each part times its ratio."""
    return (
        bill.uncached_tokens
        + facts.read_ratio * bill.read_tokens
        + facts.write_5m_ratio * bill.write_5m_tokens
        + facts.write_1h_ratio * bill.write_1h_tokens
    )


def cost_usd(bill: Bill, output_tokens: int, facts: ModelFacts) -> float:
    """Cost of a call in USD at list price."""
    input_usd = input_equivalents(bill, facts) * facts.input_usd
    return (input_usd + output_tokens * facts.output_usd) / _TOKENS_PER_PRICE
