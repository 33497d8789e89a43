"""Recalled text: where to look for it, how rankings are joined, how much of it fits."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.trust import Item, Trust

_RANK_DAMPING: Final = 60
"""The constant of reciprocal rank fusion, as its authors measured it (Cormack et al., 2009)."""


HOT: Final = "hot"
"""Domain of what an agent is told in every turn, so that it need not be recalled."""

# fmt: off
_FILLERS: Final = frozenset({
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "but", "by", "can", "can't", "could", "did", "do",
    "does", "doesn't", "doing", "don't", "each", "for", "from", "get", "had", "has", "have", "he",
    "hello", "her", "here", "hi", "him", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if",
    "in", "into", "is", "isn't", "it", "it's", "its", "just", "know", "let", "let's", "like", "me",
    "more", "most", "much", "my", "no", "not", "now", "of", "off", "ok", "okay", "on", "once",
    "only", "or", "other", "our", "out", "over", "please", "she", "should", "so", "some", "such",
    "than", "thank", "thanks", "that", "that's", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "up", "us", "very", "want", "was", "we", "were", "what",
    "what's", "when", "where", "which", "while", "who", "why", "will", "with", "would", "yes",
    "you", "your",
})
# fmt: on
_EDGES: Final = re.compile(r"^[\W_]+|[\W_]+$")


class Scope(Struct, frozen=True, kw_only=True):
    """What may be recalled. Nothing outside it is ever given.

    Attributes:
        floor: the least trust.
        namespaces: those to look into; None for all, empty for none.
        domains: those to look into; None for all, empty for none.
        but_domains: those not to look into.
    """

    floor: Trust = "external"
    namespaces: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    but_domains: tuple[str, ...] = ()


def telling_words(query: str) -> str:
    """A query without the words that any English text has: to share those tells nothing.

    It may be empty. Words of other languages all stay.
    """
    words = query.replace("\u2019", "'").split()
    return " ".join(one for one in words if _EDGES.sub("", one.casefold()) not in _FILLERS)


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
