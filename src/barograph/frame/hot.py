"""Hot memory: what whoever runs the agent wants it to know in every turn.

Facts are documents of the domain `hot` that have the operator's trust. The newest come first, and
the oldest give way where the budget ends. They are sent once, and again when one of them changes.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from barograph.core.recall import HOT, Scope
from barograph.core.trust import Item
from barograph.frame.source import Source

_MOST_FACTS: Final = 100


class Facts(Protocol):
    """Where facts are kept. `Store.index.passages` is one."""

    def newest(self, scope: Scope, limit: int) -> Sequence[Item]:
        """Whole documents, the one that was added last first."""
        ...


def hot_memory(
    facts: Facts,
    *,
    name: str = "hot memory",
    budget_chars: int = 6_000,
    namespaces: tuple[str, ...] | None = None,
) -> Source:
    """A source that tells all facts of the domain `hot` that the operator stands for.

    Args:
        facts: where they are kept, as in `open_store(path).index.passages`.
        name: of its section.
        budget_chars: the most that the section may hold; the oldest facts are left out first.
        namespaces: those to look into; None for all.
    """
    scope = Scope(floor="operator", namespaces=namespaces, domains=(HOT,))
    return Source(
        name=name,
        compose=lambda _: facts.newest(scope, _MOST_FACTS),
        budget_chars=budget_chars,
    )
