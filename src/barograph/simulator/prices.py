"""What a call costs, from the dated facts of its model."""

from typing import Final

from barograph.core.events import Usage
from barograph.core.model import ModelFacts

_TOKENS_PER_PRICE: Final = 1_000_000


def input_equivalents(usage: Usage, facts: ModelFacts) -> float:
    """Cost of a prompt in plain input tokens: each part times its ratio."""
    return (
        usage.uncached_tokens
        + facts.read_ratio * usage.read_tokens
        + facts.write_5m_ratio * usage.write_5m_tokens
        + facts.write_1h_ratio * usage.write_1h_tokens
    )


def cost_usd(usage: Usage, facts: ModelFacts) -> float:
    """Cost of a call in USD at list price."""
    input_usd = input_equivalents(usage, facts) * facts.input_usd
    price_ratio = facts.price_ratio(usage.input_total_tokens)
    return price_ratio * (input_usd + usage.output_tokens * facts.output_usd) / _TOKENS_PER_PRICE
