"""What agents have spent since the user asked for something, in tokens and in money.

A call is charged to its agent path and to every path above it: who starts others pays for them, and
so for the calls that sum up or keep warm. Where a provider reports no usage, what was projected is
charged as plain input, for absent usage is not nothing.

**Out of scope.** When a turn has spent enough (`rounds`), and what is shown of costs (`audit`).
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.costs import cost_tokens, usd_of
from barograph.core.events import CallPlanned, ResponseCame
from barograph.core.model import ModelFacts


class Spent(Struct, frozen=True):
    """Tokens of input and output, and their list price in US dollars."""

    tokens: int = 0
    usd: float = 0.0


class Account(Struct, frozen=True):
    """What an agent path and those below it have spent: in all, and by when the user spoke last.

    Attributes:
        spent: in all.
        at_request: of it, what was spent when the user last asked for something.
        at_message: of it, what was spent when the user last said anything.
    """

    spent: Spent = Spent()
    at_request: Spent = Spent()
    at_message: Spent = Spent()

    def charged(self, more: Spent) -> "Account":
        """With what one more call cost."""
        before = self.spent
        return replace(self, spent=Spent(before.tokens + more.tokens, before.usd + more.usd))

    def asked(self) -> "Account":
        """After the user asked for something."""
        return replace(self, at_request=self.spent, at_message=self.spent)

    def spoken(self) -> "Account":
        """After the user said something that asks for nothing new."""
        return replace(self, at_message=self.spent)

    def since(self, start: Literal["request", "message"]) -> Spent:
        """What was spent since then."""
        before = self.at_request if start == "request" else self.at_message
        return Spent(self.spent.tokens - before.tokens, self.spent.usd - before.usd)


def cost_of(response: ResponseCame, plan: CallPlanned | None, facts: ModelFacts) -> Spent:
    """What a call cost, by its usage or else by its plan."""
    usage = response.usage
    if usage is None:
        tokens = plan.projected_tokens if plan is not None else 0
        return Spent(tokens, usd_of(tokens, facts))
    tokens = usage.input_total_tokens + usage.output_tokens
    return Spent(tokens, usd_of(cost_tokens(usage, facts), facts))


def paths_above(path: str) -> Iterator[str]:
    """The agent paths above one, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
