"""Find tools by what they do: terms of a query against names and descriptions (BM25).

A few hundred tools at most are searched now and then, so there is no index. Equal scores go by the
alphabet: the same tools and the same query give the same answer everywhere.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from typing import Final

from msgspec import Struct

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.75
_NAME_WEIGHT: Final = 3
_LEAST_PLURAL: Final = 4
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ToolCard(Struct, frozen=True):
    """What is searched of a tool."""

    name: str
    description: str


def find_tools(cards: Iterable[ToolCard], query: str, most: int) -> tuple[ToolCard, ...]:
    """The tools that fit a query, best first; one that is named exactly comes first of all.

    Args:
        cards: the tools.
        query: words, or the name of a tool.
        most: how many to give.
    """
    every = sorted(cards, key=lambda card: card.name)
    counts = [_terms_of(card) for card in every]
    scores = _scores(counts, dict.fromkeys(_terms(query)))
    named = query.strip().casefold()
    ranked = sorted(
        (card.name.casefold() != named, -score, index)
        for index, (card, score) in enumerate(zip(every, scores, strict=True))
        if score > 0 or card.name.casefold() == named
    )
    return tuple(every[index] for _, _, index in ranked[: max(0, most)])


def _scores(counts: Sequence[Counter[str]], terms: Iterable[str]) -> list[float]:
    lengths = [count.total() for count in counts]
    usual = sum(lengths) / len(lengths) if lengths else 1.0
    scores = [0.0] * len(counts)
    for term in terms:
        holding = sum(term in count for count in counts)
        rarity = log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for index, count in enumerate(counts):
            share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * lengths[index] / max(usual, 1.0)
            often = count[term]
            scores[index] += rarity * often * (_SATURATION + 1) / (often + _SATURATION * share)
    return scores


def _terms_of(card: ToolCard) -> Counter[str]:
    return Counter([*_terms(card.name) * _NAME_WEIGHT, *_terms(card.description)])


def _terms(text: str) -> list[str]:
    words = _WORD.findall(_HUMP.sub(" ", text).casefold())
    return [word.removesuffix("s") if len(word) >= _LEAST_PLURAL else word for word in words]
