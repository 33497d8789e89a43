"""What the core must know of a model and of a wire format; both are passed in."""

from msgspec import Struct


class ModelFacts(Struct, frozen=True, kw_only=True):
    """Dated facts of one model.

    Attributes:
        name: the family name the facts were looked up by.
        window_tokens: input limit.
        minimum_tokens: smallest cacheable prefix; anything shorter is silently not cached.
        lookback_positions: how many positions, its own included, a breakpoint looks back.
        read_ratio: price of a token read from the cache, relative to plain input.
        write_5m_ratio: price of a token written with the short TTL.
        write_1h_ratio: price of a token written with the long TTL.
        input_usd: list price of a million plain input tokens.
        output_usd: list price of a million output tokens.
        as_of: ISO date the facts were read on.
    """

    name: str
    window_tokens: int
    minimum_tokens: int
    lookback_positions: int = 20
    read_ratio: float = 0.1
    write_5m_ratio: float = 1.25
    write_1h_ratio: float = 2.0
    input_usd: float
    output_usd: float
    as_of: str
