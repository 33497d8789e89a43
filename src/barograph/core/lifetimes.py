"""How long cache entries should live: five minutes, or an hour for more money.

**Theory of operation.** A session that pauses for five minutes to an hour between two calls loses
every short entry and keeps every long one. With `w5`, `w1` and `r` the prices of a token written
for five minutes, written for an hour and read, the long life costs `w1 - w5` more for each token
that is written, and saves `w5 - r` for each that outlives a pause. A token that must pay for its
own long life earns it when more than

    (w1 - w5) / (w5 - r)

pauses are expected in its remaining life: 0.65 at 1.25, 2 and 0.1.

An entry is a whole prefix, though, and is billed from the hit to the marker. So a long marker on
the new tail keeps all that stands before it, and is paid for what is new alone. Let `exposed` be
the tokens behind the last long entry, the new ones included, and `new` the tokens that this call
writes: a history that grows by `new` tokens a call takes `m = exposed / new` calls to expose as
many, and they stand for `m (m + 1) / 2` calls' worth of tokens that a pause would have taken. The
tail goes long when that times the share of calls that a pause follows exceeds the number above.
With nothing exposed but the new tokens, `m` is 1 and this is the rule for a single token. Since
what was short until now comes along for nothing, no token is ever written twice for its lifetime:
a cold prefix is written short, unless pauses are so frequent that it pays for itself, and the next
small tail makes all of it long.

The share is counted in the session, on the path's own calls, and begins at what the policy expects.

The documentation bills so, and does not say in so many words that a long entry keeps a short
prefix alive. A provider that lets it die is found out at the first pause: less is read than the
long entry holds. From then on each token pays for itself, over as many calls as there were so far.

**Invariants.** The decision depends on the log and the policy alone. A session that has shown no
pause, under a policy that expects none, has short entries.

**Out of scope.** Pauses of more than an hour, which no entry outlives.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import Ttl
from barograph.core.model import ModelFacts

TTL_SECONDS: Final[dict[Ttl, float]] = {"5m": 300.0, "1h": 3600.0}

PRIOR_CALLS: Final = 30
"""So many calls of its own weigh as much as what the policy expects (bench/ttl.py)."""

_ENOUGH: Final = 0.9
"""Share of an entry that must be read to say that it was found."""


class Pauses(Struct, frozen=True):
    """What an agent path has shown of its pauses.

    Attributes:
        gaps: calls that another one followed.
        slow: those with a pause between, that a short entry does not outlive and a long one does.
        is_after: whether the call that is under way came after one.
        is_doubted: whether a long entry did not keep what stands before it.
    """

    gaps: int = 0
    slow: int = 0
    is_after: bool = False
    is_doubted: bool = False

    def after(self, gap_seconds: float) -> "Pauses":
        """With one more gap, from the start of a call to the start of the next."""
        paused = is_pause(gap_seconds)
        return replace(self, gaps=self.gaps + 1, slow=self.slow + paused, is_after=paused)

    def judged(self, expected_tokens: int, read_tokens: int) -> "Pauses":
        """With what a call read, that should have found a long entry."""
        is_lost = self.is_after and read_tokens < _ENOUGH * expected_tokens
        return replace(self, is_doubted=True) if is_lost else self

    def outlook(self, expected_ratio: float) -> "Outlook":
        """What is to be expected, as far as can be told."""
        ratio = (PRIOR_CALLS * expected_ratio + self.slow) / (PRIOR_CALLS + self.gaps)
        return Outlook(ratio, self.gaps if self.is_doubted else None)


def is_pause(gap_seconds: float) -> bool:
    """Whether a long entry outlives it and a short one does not."""
    return TTL_SECONDS["5m"] < gap_seconds <= TTL_SECONDS["1h"]


def break_even_pauses(facts: ModelFacts) -> float:
    """Pauses in the remaining life of a token that pay for a long one; 0.65 at most prices."""
    return (facts.write_1h_ratio - facts.write_5m_ratio) / (facts.write_5m_ratio - facts.read_ratio)


class Outlook(Struct, frozen=True):
    """What is to be expected of pauses.

    Attributes:
        pause_ratio: share of calls that a pause follows.
        own_calls: calls over which a token must pay for its own long life; None where a long tail
            keeps all that stands before it.
    """

    pause_ratio: float = 0.0
    own_calls: int | None = None


def pays_to_last(outlook: Outlook, exposed: float, new: float, facts: ModelFacts) -> bool:
    """Whether the new tail should live for an hour.

    Args:
        outlook: what is to be expected of pauses.
        exposed: what stands behind the last long entry, the new part included.
        new: what this call writes, in the same unit.
        facts: prices of the model.
    """
    if outlook.own_calls is not None:
        return outlook.pause_ratio * outlook.own_calls > break_even_pauses(facts)
    lost = outlook.pause_ratio * exposed * (exposed + new)
    return lost > 2 * new * new * break_even_pauses(facts)
