"""What requests cost: in plain input tokens, at the ratios of their model, and in money."""

from barograph.core.events import Usage
from barograph.core.model import ModelFacts

_TOKENS_PER_PRICE = 1_000_000


def cost_tokens(usage: Usage, facts: ModelFacts) -> float:
    """What a request cost, in plain input tokens."""
    return (
        usage.uncached_tokens
        + facts.read_ratio * usage.read_tokens
        + facts.write_5m_ratio * usage.write_5m_tokens
        + facts.write_1h_ratio * usage.write_1h_tokens
        + output_ratio(facts) * usage.output_tokens
    )


def output_ratio(facts: ModelFacts) -> float:
    """Price of a token of an answer, relative to plain input."""
    return facts.output_usd / facts.input_usd


def usd_of(tokens: float, facts: ModelFacts) -> float:
    """List price of so many plain input tokens, in US dollars."""
    return tokens * facts.input_usd / _TOKENS_PER_PRICE
