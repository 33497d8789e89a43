"""What has been spent to keep the cache entries of an agent path alive; when is in `warming`."""

from msgspec import Struct
from msgspec.structs import replace


class Warmth(Struct, frozen=True):
    """Refreshes of one agent path. Costs are in plain input tokens, at the model's ratios.

    Attributes:
        refreshes: requests that were repeated since its last call.
        spent_tokens: what they cost.
        before_tokens: what all earlier ones of the session cost.
        is_given_up: whether the provider refused one since then, or had nothing in its cache.
    """

    refreshes: int = 0
    spent_tokens: float = 0.0
    before_tokens: float = 0.0
    is_given_up: bool = False

    @property
    def total_tokens(self) -> float:
        """What all refreshes of the path cost."""
        return self.before_tokens + self.spent_tokens

    def called(self) -> "Warmth":
        """After a call of the path: its entries are new, and a refusal is of the past."""
        return Warmth(before_tokens=self.total_tokens)

    def began(self, cost_tokens: float) -> "Warmth":
        """With one more refresh, at what it is expected to cost."""
        return replace(
            self, refreshes=self.refreshes + 1, spent_tokens=self.spent_tokens + cost_tokens
        )

    def billed(self, expected_tokens: float, cost_tokens: float) -> "Warmth":
        """With what a refresh did cost in the place of what was expected."""
        return replace(self, spent_tokens=self.spent_tokens - expected_tokens + cost_tokens)

    def given_up(self) -> "Warmth":
        """With nothing more to come."""
        return replace(self, is_given_up=True)
