"""Recalled text: where to look for it, how rankings are joined, how much of it fits."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.trust import Item, Trust

_RANK_DAMPING: Final = 60
"""The constant of reciprocal rank fusion, as its authors measured it (Cormack et al., 2009)."""


class Scope(Struct, frozen=True, kw_only=True):
    """What may be recalled. Nothing outside it is ever given.

    Attributes:
        floor: the least trust.
        namespaces: those to look into; None for all, empty for none.
        domains: those to look into; None for all, empty for none.
    """

    floor: Trust = "external"
    namespaces: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None


def fuse_rankings(rankings: Iterable[Sequence[Item]]) -> tuple[Item, ...]:
    """One ranking of several, by the places alone: their scores have different measures.

    An item of several rankings is there once. Of equals, the one that came first stays first.
    """
    scores: dict[str, float] = {}
    items: dict[str, Item] = {}
    for ranking in rankings:
        for place, item in enumerate(ranking, 1):
            items.setdefault(item.id, item)
            scores[item.id] = scores.get(item.id, 0.0) + 1 / (_RANK_DAMPING + place)
    best = sorted(items.values(), key=lambda item: -scores[item.id])
    return tuple(replace(item, score=scores[item.id]) for item in best)


def fit_items(items: Iterable[Item], budget_chars: int) -> tuple[Item, ...]:
    """Those items whose texts fit a budget together, the best first; one too long is left out."""
    kept: list[Item] = []
    room_chars = budget_chars
    for item in items:
        if len(item.text) <= room_chars:
            kept.append(item)
            room_chars -= len(item.text)
    return tuple(kept)
