"""Whose word a text is, and how far it may be trusted."""

from typing import Final, Literal, TypeAlias

from msgspec import Struct

Trust: TypeAlias = Literal["operator", "derived", "external"]
"""`operator`: whoever runs the agent wrote it; `derived`: an agent or a tool made it from what it
was given; `external`: anybody may have written it."""

_ORDER: Final[tuple[Trust, ...]] = ("external", "derived", "operator")


def reaches(trust: Trust, floor: Trust) -> bool:
    """Whether a text of that trust is trusted as much as the floor asks."""
    return _ORDER.index(trust) >= _ORDER.index(floor)


def lower(one: Trust, other: Trust) -> Trust:
    """The lower of the two: what is made of both, or said by both, has no more."""
    return min(one, other, key=_ORDER.index)


class Item(Struct, frozen=True, kw_only=True):
    """A piece of recalled text, with where it is from.

    Attributes:
        id: names it; the same id with another text is another item.
        text: the piece itself.
        origin: what it was taken from: a file, an address, a session.
        domain: the field it belongs to; empty where none was given.
        date: of the text, as its source gives it; empty where it gives none.
        trust: how far it may be trusted.
        score: how well it fits what was asked; higher is better, 0 where nothing was ranked.
    """

    id: str
    text: str
    origin: str = ""
    domain: str = ""
    date: str = ""
    trust: Trust = "external"
    score: float = 0.0
