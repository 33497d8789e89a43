"""Old content that may give way to stubs: what is pending, and what a pass makes of it.

**Theory of operation.** A tool result matters most right after it came. When it is some rounds
old, head, tail and an index of what lies between serve nearly as well, and the original can be read
back by its handle. But the first change of a history makes all that follows it be written to the
cache once more, so stubs are not made one by one. What has aged is *pending*; `core.relief` decides
when a pass pays, and a pass then takes all of it at once.

The pending set is kept up to date as events are learned, in O(new): candidates in the order of the
surface, a mark up to where they have aged, and the sum of what they would save.

**Invariants.** A stub keeps the ids that pair calls with results (5). Errors, pinned content,
results of tools that the policy names or of a search for tools, the current plan and the newest
rounds stay whole (9). Nothing is lost: the content stays in the event that brought it (6).

**Out of scope.** When a pass pays (`relief`); what a stub says (`stubs`).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import CallPlanned, Stub
from barograph.core.model import Codec
from barograph.core.notes import sets_plan
from barograph.core.parts import (
    Leaf,
    Part,
    Parts,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    results_in,
)
from barograph.core.stubs import DEFAULT, stub_json, stub_text
from barograph.core.surface import Entry, Surface
from barograph.core.texts import same_again
from barograph.core.trail import Trail

LEAST_CHARS: Final = 1000
"""Shorter content stays as it is: a stub would hardly be shorter."""

_MARKER_CHARS: Final = 150
"""About what the words of a stub take besides the text and the facts that it keeps."""


class Candidate(Struct, frozen=True, kw_only=True):
    """An entry that may be pruned once it has aged.

    Attributes:
        entry: its index in the surface.
        saved_chars: what a stub of it would take off, estimated, as the meter weighs it.
        round: number of the model's messages in its path up to where it came.
        pinned: whether somebody wants it kept.
        tools: names of the tools that it calls, or whose results it holds.
        is_call: whether it calls them.
    """

    entry: int
    saved_chars: int
    round: int
    pinned: bool = False
    tools: tuple[str, ...] = ()
    is_call: bool = False


_NOWHERE: Final[Trail[int]] = Trail()


class Pending(Struct, frozen=True, kw_only=True):
    """What a pass would take.

    Attributes:
        candidates: all that were added, in the order of the surface.
        done: how many of them earlier passes have taken.
        aged: how many have aged; those from `done` to here are stale.
        stale_chars: what they would save.
        rent_tokens: stale tokens, summed over the calls since the last pass.
        places: by tool, which of the candidates call it or hold a result of it.
        kept: which of those that are stale stay all the same, pins aside.
    """

    candidates: Trail[Candidate] = Trail()
    done: int = 0
    aged: int = 0
    stale_chars: int = 0
    rent_tokens: float = 0.0
    places: Mapping[str, Trail[int]] = {}
    kept: frozenset[int] = frozenset()

    @property
    def stale(self) -> Iterator[Candidate]:
        """What a pass would take, in the order of the surface."""
        for index in range(self.done, self.aged):
            candidate = self.candidates[index]
            if not candidate.pinned and index not in self.kept:
                yield candidate

    @property
    def first_stale(self) -> Candidate | None:
        """Where a pass would change the surface first."""
        return next(self.stale, None)

    def with_candidate(self, candidate: Candidate) -> "Pending":
        """One more, at the end."""
        index, places = len(self.candidates), dict(self.places)
        for tool in set(candidate.tools):
            places[tool] = places.get(tool, _NOWHERE).appended(index)
        return replace(self, candidates=self.candidates.appended(candidate), places=places)

    def at_round(self, oldest_kept: int) -> "Pending":
        """With everything aged that came before the reply of that number."""
        aged, stale_chars = self.aged, self.stale_chars
        while aged < len(self.candidates) and self.candidates[aged].round < oldest_kept:
            stale_chars += _saved(self.candidates[aged])
            aged += 1
        return self if aged == self.aged else replace(self, aged=aged, stale_chars=stale_chars)

    def rented(self, plan: CallPlanned) -> "Pending":
        """After one more call that carried what was stale."""
        aged = self.at_round(plan.aged_before)
        return replace(aged, rent_tokens=aged.rent_tokens + plan.stale_tokens)

    def after_pass(self) -> "Pending":
        """With all that was stale taken."""
        return replace(self, done=self.aged, stale_chars=0, rent_tokens=0.0)

    def compacted(self, start: int, count: int) -> "Pending":
        """With one entry, which is no candidate, in the place of so many from there on."""
        stop = start + count
        left = [
            (index, one)
            for index, one in enumerate(self.candidates)
            if not start <= one.entry < stop
        ]
        moved = [
            one if one.entry < start else replace(one, entry=one.entry - count + 1)
            for _, one in left
        ]
        done = sum(index < self.done for index, _ in left)
        aged = sum(index < self.aged for index, _ in left)
        return replace(
            self,
            candidates=Trail(moved),
            done=done,
            aged=aged,
            stale_chars=sum(map(_saved, moved[done:aged])),
            places=_places_of(moved),
        )

    def cut(self, entries: int) -> "Pending":
        """What is left of it in the first so many entries."""
        kept = len(self.candidates)
        while kept and self.candidates[kept - 1].entry >= entries:
            kept -= 1
        if kept == len(self.candidates):
            return self
        done, aged = min(self.done, kept), min(self.aged, kept)
        stale = self.candidates.span(done, aged)
        candidates = self.candidates.cut(kept)
        return replace(
            self,
            candidates=candidates,
            done=done,
            aged=aged,
            stale_chars=sum(map(_saved, stale)),
            places=_places_of(candidates),
        )

    def keeping(self, tools: Collection[str]) -> "Pending":
        """Without stale results of these tools, and without the plan that was set last."""
        named = (index for tool in tools for index in self._places(tool, self.aged))
        results = (index for index in named if not self.candidates[index].is_call)
        kept = frozenset((*self._plan, *results))
        if not kept:
            return self
        saved_chars = sum(_saved(self.candidates[index]) for index in kept)
        return replace(self, kept=kept, stale_chars=self.stale_chars - saved_chars)

    @property
    def _plan(self) -> Sequence[int]:
        """Where the plan stands that was set last, if it is stale: its call and what that gave."""
        setting = [tool for tool in self.places if sets_plan(tool)]
        places = sorted({index for tool in setting for index in self._places(tool)})
        if not places or places[-1] >= self.aged:
            return ()
        calls = [at for at, index in enumerate(places) if self.candidates[index].is_call]
        return places[calls[-1] if calls else -1 :]

    def _places(self, tool: str, stop: int | None = None) -> list[int]:
        """Candidates of that tool that no pass has taken, before `stop` if it is given."""
        places = self.places.get(tool, _NOWHERE)
        first = bisect_left(places, self.done)
        return places.span(first, None if stop is None else bisect_left(places, stop))

    def with_pin(self, entry: int, *, pinned: bool) -> "Pending":
        """With that entry pinned, or let go. One that passes went by stays as it is."""
        marked = [
            replace(one, pinned=pinned) if one.entry == entry else one for one in self.candidates
        ]
        stale_chars = sum(map(_saved, marked[self.done : self.aged]))
        return replace(self, candidates=Trail(marked), stale_chars=stale_chars)


def _places_of(candidates: Iterable[Candidate]) -> dict[str, Trail[int]]:
    found: dict[str, list[int]] = {}
    for index, candidate in enumerate(candidates):
        for tool in set(candidate.tools):
            found.setdefault(tool, []).append(index)
    return {tool: Trail(places) for tool, places in found.items()}


def _saved(candidate: Candidate) -> int:
    return 0 if candidate.pinned else candidate.saved_chars


def candidate_of(codec: Codec, surface: Surface, round_number: int) -> Candidate | None:
    """The last entry of a surface as a candidate; None where it is short."""
    index = len(surface.entries) - 1
    entry = surface.entries[index]
    chars = sum(map(_prunable_chars, entry.parts))
    if chars < LEAST_CHARS:
        return None
    weight = sum(_prunable_weight(codec, part) for part in entry.parts)
    share = 1 - min(chars, _stub_chars(chars)) / chars
    return Candidate(
        entry=index,
        saved_chars=round(weight * share),
        round=round_number,
        tools=_tools_of(surface, index),
        is_call=entry.role == "assistant",
    )


def _tools_of(surface: Surface, index: int) -> tuple[str, ...]:
    """The tools that an entry calls, or whose results it holds: they were called just before."""
    entries, wanted = surface.entries, set(results_in(surface.entries[index].parts))
    if not wanted:
        return tuple(p.name for p in entries[index].parts if isinstance(p, ToolCall))
    asking = next((i for i in range(index, -1, -1) if entries[i].role == "assistant"), index)
    calls = (part for part in entries[asking].parts if isinstance(part, ToolCall))
    return tuple(call.name for call in calls if call.id in wanted)


def make_stubs(
    surface: Surface,
    pending: Pending,
    *,
    drops_thinking: bool,
    collapses: bool = False,
    retired: Mapping[int, Parts] = {},
) -> tuple[Stub, ...]:
    """Stubs of all that is stale, with what is left of the frames that are `retired`, by entry.

    With `drops_thinking`, thinking after the first of them goes. With `collapses`, what a newer
    result says word for word gives way to a reference.
    """
    stubs: dict[int, Parts] = {}
    newest = _newest_results(surface) if collapses else {}
    for candidate in pending.stale:
        entry = surface.entries[candidate.entry]
        parts = tuple(_stub_of(part, entry.seq, newest) for part in entry.parts)
        if parts != entry.parts:
            stubs[candidate.entry] = parts
    if not stubs:
        return ()
    stubs |= retired
    if drops_thinking:
        stubs |= dict(_without_thinking(surface, min(stubs), stubs))
    return tuple(
        Stub(seq=surface.entries[index].seq, parts=stubs[index]) for index in sorted(stubs)
    )


def drop_thinking(surface: Surface, entry: int) -> tuple[Stub, ...]:
    """Stubs of that entry and those after it, without the thinking that is replayed in them."""
    return tuple(
        Stub(seq=surface.entries[index].seq, parts=parts)
        for index, parts in _without_thinking(surface, entry, {})
    )


def has_thinking_after(surface: Surface, entry: int) -> bool:
    """Whether the model's thinking is replayed after that entry."""
    return any(map(_thinks, reversed(surface.entries.span(entry))))


def _thinks(entry: Entry) -> bool:
    return any(isinstance(part, Thinking) or _is_sealed(part) for part in entry.parts)


def _is_sealed(part: Part) -> bool:
    return getattr(part, "kind", "") == "redacted_thinking"


def _without_thinking(
    surface: Surface, first: int, stubs: dict[int, Parts]
) -> Iterator[tuple[int, Parts]]:
    for index, entry in enumerate(surface.entries.span(first), start=first):
        if not _thinks(entry):
            continue
        parts = stubs.get(index, entry.parts)
        kept = tuple(
            part for part in parts if not isinstance(part, Thinking) and not _is_sealed(part)
        )
        if kept:
            yield index, kept


def _stub_chars(chars: int) -> int:
    """About the length of a stub: when it is estimated, the facts need not be looked for."""
    ends = DEFAULT.head_chars + DEFAULT.tail_chars
    return ends + DEFAULT.room_chars(chars) + _MARKER_CHARS


def _prunable_chars(part: Part) -> int:
    if isinstance(part, ToolResult):
        texts = sum(len(leaf.text) for leaf in part.content if isinstance(leaf, Text))
        return 0 if part.is_error else texts
    return len(part.arguments) if isinstance(part, ToolCall) else 0


def _prunable_weight(codec: Codec, part: Part) -> int:
    if isinstance(part, ToolResult) and _prunable_chars(part):
        return sum(codec.weigh(leaf) for leaf in part.content if isinstance(leaf, Text))
    return codec.weigh(part) if isinstance(part, ToolCall) else 0


def _newest_results(surface: Surface) -> dict[str, int]:
    """Each text that tool results say, by the event of the newest that says it."""
    return {
        _said(part): entry.seq
        for entry in surface.entries
        for part in entry.parts
        if isinstance(part, ToolResult) and _prunable_chars(part) >= LEAST_CHARS
    }


def _said(result: ToolResult) -> str:
    return "\n".join(leaf.text for leaf in result.content if isinstance(leaf, Text))


def _stub_of(part: Part, seq: int, newest: Mapping[str, int]) -> Part:
    handle = f"#{seq}"
    if isinstance(part, ToolCall) and len(part.arguments) >= LEAST_CHARS:
        shorter = stub_json(part.arguments, handle=handle)
        return part if shorter is None else replace(part, arguments=shorter)
    if not isinstance(part, ToolResult) or _prunable_chars(part) < LEAST_CHARS:
        return part
    text = _said(part)
    holder = newest.get(text, seq)
    stub = stub_text(text, handle=handle)
    if holder != seq:
        stub = same_again(len(text), f"#{holder}", handle)
    if stub is None:
        return part
    # pictures stay: one fewer, anywhere, would cost the whole cache of the messages
    others: tuple[Leaf, ...] = tuple(leaf for leaf in part.content if not isinstance(leaf, Text))
    return replace(part, content=(Text(stub), *others))
