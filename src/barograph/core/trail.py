"""An append-only sequence that shares its storage between versions.

The engine's states are values: a step returns a new one and leaves the old one as it was. Copying
a history of thousands of entries at each step would make a call cost O(history). A trail instead
holds a length over shared storage: extending the newest version appends in place, where no older
version can look; extending an older version copies first.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Trail(Generic[T]):
    """An immutable sequence with O(new) extension and O(1) indexing."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for index in range(self._length):
            yield self._items[index]

    def __reversed__(self) -> Iterator[T]:
        for index in range(self._length - 1, -1, -1):
            yield self._items[index]

    def __getitem__(self, index: int) -> T:
        length = self._length
        if 0 <= index < length:
            return self._items[index]
        if -length <= index < 0:
            return self._items[index + length]
        raise IndexError(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and self.span() == other.span()

    __hash__ = None  # type: ignore[assignment]  # equal by content, so not hashable by identity

    def __repr__(self) -> str:
        return f"Trail({self.span()!r})"

    @property
    def last(self) -> T | None:
        """Its last item; None where it is empty."""
        return self._items[self._length - 1] if self._length else None

    def span(self, start: int = 0, stop: int | None = None) -> list[T]:
        """A copied slice of this version."""
        return self._items[start : self._length if stop is None else min(stop, self._length)]

    def extended(self, items: Iterable[T]) -> "Trail[T]":
        """This sequence with more at the end."""
        new = list(items)
        if not new:
            return self
        storage = self._storage()
        storage.extend(new)
        return _over(storage, self._length + len(new))

    def appended(self, item: T) -> "Trail[T]":
        """This sequence with one more at the end."""
        storage = self._storage()
        storage.append(item)
        return _over(storage, self._length + 1)

    def cut(self, length: int) -> "Trail[T]":
        """The first `length` items."""
        if not 0 <= length <= self._length:
            raise IndexError(length)
        return _over(self._items, length)

    def _storage(self) -> list[T]:
        """Where a longer version goes on: the storage shared, or a copy of this version."""
        items = self._items
        # an empty one may be anybody's default, and lends nothing
        return items if self._length and len(items) == self._length else self.span()


def _over(items: list[T], length: int) -> Trail[T]:
    trail: Trail[T] = Trail.__new__(Trail)
    trail._items = items  # noqa: SLF001 - its own
    trail._length = length  # noqa: SLF001
    return trail
