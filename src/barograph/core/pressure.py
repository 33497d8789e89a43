"""The meter: how full the window is, and how full the next request will make it.

The provider's own count of the last request is the anchor; what was added or taken off since is
estimated from its characters, by the ratio that the session's own reports have shown. Before the
first report the estimate stands alone. Everything counts: tools, system, arguments, results,
pictures by their size.
"""

from msgspec import Struct


class Gauge(Struct, frozen=True, kw_only=True):
    """A request measured before it leaves.

    Attributes:
        projected_tokens: its whole prompt.
        fixed_tokens: of it, tools and system, which no fold can take off.
        window_tokens: what the model takes.
        reserve_tokens: room that is kept for its answer.
        tokens_per_char: the ratio used.
    """

    projected_tokens: int
    fixed_tokens: int
    window_tokens: int
    reserve_tokens: int
    tokens_per_char: float

    @property
    def usable_tokens(self) -> int:
        """The window less the reserve; at least 1, so that a ratio can be given."""
        return max(1, self.window_tokens - self.reserve_tokens)

    @property
    def pressure(self) -> float:
        """Projected prompt / usable."""
        return self.projected_tokens / self.usable_tokens


class Measured(Struct, frozen=True):
    """The provider's count of a request: all its input tokens, and the characters it had."""

    tokens: int
    chars: int


def project_tokens(chars: int, measured: Measured | None, tokens_per_char: float) -> int:
    """Tokens of a request of so many characters: the last count plus a signed estimate."""
    if measured is None:
        return round(chars * tokens_per_char)
    return max(0, measured.tokens + round((chars - measured.chars) * tokens_per_char))
