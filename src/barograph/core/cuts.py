"""Legal places to cut a history. Each invariant is an object that yields the cuts that keep it.

A *cut* at `k` separates the first `k` entries from the rest. An operation that hides the entries
between two cuts is legal when both are legal for every invariant.
"""

from collections.abc import Reversible, Sequence
from typing import Protocol

from barograph.core.parts import Parts, Role, calls_in, results_in


class EntryLike(Protocol):
    """What a cut must know of an entry."""

    @property
    def role(self) -> Role:
        """Who speaks."""
        ...

    @property
    def parts(self) -> Parts:
        """What is said."""
        ...


class Pairing:
    """Each tool call has its result right after it (invariant 5)."""

    def cuts(self, entries: Sequence[EntryLike]) -> list[int]:
        """Every `k` that leaves no call without its result and no result without its call."""
        legal = [0]
        pending: set[str] = set()
        for index, entry in enumerate(entries):
            pending -= set(results_in(entry.parts))
            pending |= set(calls_in(entry.parts))
            if not pending:
                legal.append(index + 1)
        return legal

    def faults(self, entries: Sequence[EntryLike]) -> list[str]:
        """What breaks the pairing, in words; empty where it holds."""
        found: list[str] = []
        pending: list[str] = []
        for index, entry in enumerate(entries):
            results = results_in(entry.parts)
            if pending and not results:
                found.append(f"entry {index}: no result for {', '.join(pending)}")
                pending = []
            for call in results:
                if call in pending:
                    pending.remove(call)
                else:
                    found.append(f"entry {index}: a result for {call}, which was not called")
            pending.extend(calls_in(entry.parts))
        if pending:
            found.append(f"at the end: no result for {', '.join(pending)}")
        return found


def last_calls(entries: Reversible[EntryLike]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Calls of the last assistant entry: those that nothing after it answers, and the others."""
    answered: set[str] = set()
    for entry in reversed(entries):
        if entry.role == "assistant":
            calls = calls_in(entry.parts)
            if not answered:
                return calls, ()
            still_open = tuple(call for call in calls if call not in answered)
            return still_open, tuple(call for call in calls if call in answered)
        answered |= set(results_in(entry.parts))
    return (), ()
