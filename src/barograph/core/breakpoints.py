"""The planner: where the cache breakpoints of a request go.

**Theory of operation.** A provider writes a cache entry only where a request carries a marker, and
finds one only where a *prior* marker stood, looking back a limited number of positions. Two
markers therefore reach the optimum for any number of blocks a round (provider-cache page 5.2): one
on the exact place of the entry written last (the *anchor*, found at distance zero), one on the new
end (the *tail*, written for the next call). Two more slots are free *insurance*, since a marker
itself costs nothing: the end of tools + system (*header*: shared by sessions and subagents, it
survives any rewrite of the history) and the place where a rewrite is most likely to begin: the
start of the turn, or, in a history that was just rewritten, the end of what changed, since whoever
rewrites old results goes on where it stopped.

To know the exact place, the ledger keeps every entry that a response confirmed (or, without a
report of usage, may have written): its prefix (a hash
chain, so equal keys mean equal prefixes), its place, lifetime and last use. After a rewrite the
anchor is the deepest entry that is still a prefix of the request.

Where pauses are expected, the tail lives for an hour whenever that pays (`lifetimes`). The last
such entry is what a pause leaves; up to it all markers are long, and from time to time one stands
on it in place of the insurance, since an entry that is not named dies an hour after it was written.

**Invariants.** At most four markers, the caller's reserved ones counted; only on blocks that may
carry one; long lifetime before short; none on a prefix that is surely below the model's minimum.

**Out of scope.** When a prefix changes at all: that is the log's business.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import Breakpoint, Level, Ttl
from barograph.core.lifetimes import TTL_SECONDS, Outlook, pays_to_last
from barograph.core.model import ModelFacts, Scope
from barograph.core.trail import Trail

SLOTS = 4


class Segment(Struct, frozen=True):
    """One message block of a surface, seen from the cache.

    Attributes:
        key: hash chain over all message blocks up to and including this one.
        end_chars: what all message blocks up to and including this one weigh, in characters.
        markable: whether it may carry a marker.
        entry: index of its surface entry.
        message: index of its wire message.
        block: index within that message.
    """

    key: bytes
    end_chars: int
    markable: bool
    entry: int
    message: int
    block: int


class Written(Struct, frozen=True, kw_only=True):
    """A cache entry that a response confirmed, or did not deny.

    Attributes:
        level: `header` for an entry that ends within tools or system.
        scope: what the entry depends on besides its blocks.
        key: chain key of its last block; empty for the header.
        position: number of message blocks in its prefix.
        ttl: lifetime it was written with.
        used_at: start of the last request that wrote or read it, seconds.
        tokens: its length as the provider reported it; None where it was not told apart.
        images: number of images in the request that wrote or read it.
    """

    level: Literal["header", "messages"]
    scope: bytes
    key: bytes
    position: int
    ttl: Ttl
    used_at: float
    tokens: int | None
    images: int = 0

    def is_live(self, at: float) -> bool:
        """Whether the entry has not expired at that time."""
        return at - self.used_at <= TTL_SECONDS[self.ttl]

    def is_readable(self, at: float, images: int) -> bool:
        """Whether a request with so many images can be expected to read it.

        One image more or less, anywhere, costs every entry that ends within the messages
        (prompt-caching page, table of what invalidates what).
        """
        return self.is_live(at) and (self.level == "header" or self.images == images)


class CacheView(Struct, frozen=True, kw_only=True):
    """All that a plan depends on.

    Attributes:
        header_level: where the end of tools + system is; None where there is neither.
        header_block: index of the block there.
        header_chars: what tools + system weigh.
        images: number of images in the request.
        ttl: lifetime of what is not made to last.
        outlook: what is to be expected of pauses; where none are, nothing is made to last.
        lasting: the last entry that was made to last; None where there is none.
        insured: number of message blocks up to the place where a rewrite is most likely to begin.
        reserved: slots that somebody else will use.
        end_ttl: lifetime that somebody else's marker at the end has, and ours there must have.
    """

    header_level: Level | None
    header_block: int
    header_chars: int
    segments: Trail[Segment]
    scope: Scope
    ledger: Trail[Written]
    at: float
    facts: ModelFacts
    ttl: Ttl
    tokens_per_char: float
    outlook: Outlook = Outlook()
    lasting: Written | None = None
    images: int = 0
    insured: int = 0
    reserved: int = 0
    end_ttl: Ttl | None = None

    def is_cacheable(self, chars: int) -> bool:
        """Whether a prefix of that length reaches the model's minimum, by the learned ratio."""
        return chars * self.tokens_per_char >= self.facts.minimum_tokens

    def chars_of(self, entry: Written | None) -> int:
        """What the prefix of an entry weighs, in characters; 0 for none."""
        if entry is None:
            return 0
        end = self.segments[entry.position - 1].end_chars if entry.position else 0
        return self.header_chars + end


class Plan(Struct, frozen=True):
    """Breakpoints in wire order, and the entry that the call should read."""

    breakpoints: tuple[Breakpoint, ...]
    anchor: Written | None


def plan_breakpoints(view: CacheView) -> Plan:
    """Place header, insurance, anchor and tail; the most valuable first when slots are short."""
    anchor = find_anchor(view.segments, view.ledger, view.scope, view.at, view.images)
    lasting = _lasting(view)
    places: dict[int, str] = {}
    free = SLOTS - view.reserved
    tail = last_markable(view.segments, len(view.segments))
    insured = last_markable(view.segments, view.insured)
    if lasting is not None and view.at - lasting.used_at > TTL_SECONDS["5m"]:
        insured = lasting.position
    wanted = [
        (tail, "tail"),
        (anchor.position if anchor and anchor.level == "messages" else 0, "anchor"),
        (0, "header"),
        (insured, "insurance"),
    ]
    header = False
    for position, slot in wanted:
        if free <= 0:
            break
        if slot == "header":
            header = view.header_level is not None and view.is_cacheable(view.header_chars)
            free -= header
        elif position and position not in places and _reaches_minimum(view, position):
            places[position] = slot
            free -= 1
    last_long = _last_long(view, anchor, lasting, tail)
    marks = [
        Breakpoint(
            level="messages",
            block=position - 1,
            ttl="1h" if position <= last_long else "5m",
            slot=slot,
        )
        for position, slot in sorted(places.items())
    ]
    if header and view.header_level is not None:
        first = Breakpoint(
            level=view.header_level,
            block=view.header_block,
            ttl="1h" if last_long >= 0 else "5m",
            slot="header",
        )
        marks.insert(0, first)
    return Plan(tuple(marks), anchor)


def _lasting(view: CacheView) -> Written | None:
    """The entry that a pause would leave, where it can be read now."""
    lasting = view.lasting
    if (
        not view.outlook.pause_ratio
        or lasting is None
        or not _is_prefix(lasting, view.segments, view.scope)
    ):
        return None
    return lasting if lasting.is_readable(view.at, view.images) else None


def _last_long(view: CacheView, anchor: Written | None, lasting: Written | None, tail: int) -> int:
    """The position up to which markers live for an hour; -1 for none of them.

    One place parts the long ones from the short, so no short one can stand before a long one.
    """
    most = tail - (view.end_ttl == "5m")
    if "1h" in (view.ttl, view.end_ttl):
        return most
    if tail and view.outlook.pause_ratio and _is_made_to_last(view, anchor, lasting):
        return most
    return -1 if lasting is None else min(lasting.position, most)


def _is_made_to_last(view: CacheView, anchor: Written | None, lasting: Written | None) -> bool:
    whole = view.header_chars + view.segments[-1].end_chars
    is_read = anchor is not None and anchor.is_readable(view.at, view.images)
    new = whole - view.chars_of(anchor if is_read else None)
    return pays_to_last(view.outlook, whole - view.chars_of(lasting), new, view.facts)


def find_anchor(
    segments: Trail[Segment], ledger: Trail[Written], scope: Scope, at: float, images: int = 0
) -> Written | None:
    """The deepest readable entry that is a prefix of the request; else one that may prove to be.

    The newest record is the tail written last. Where it still fits, the history only grew and the
    search ends at once; after a rewrite every record is looked at, since an older branch may have
    come back. An entry that is dead by our clock, or whose request had other images, is still
    better than none: a marker is free, and the provider may be kinder than its rules.
    """
    best: Written | None = None
    for index in range(len(ledger) - 1, -1, -1):
        entry = ledger[index]
        if _is_prefix(entry, segments, scope) and (
            best is None or _rank(entry, at, images) > _rank(best, at, images)
        ):
            best = entry
            is_tail = index == len(ledger) - 1 and entry.level == "messages"
            if is_tail and entry.is_readable(at, images):
                break
    return best


def last_markable(segments: Trail[Segment], position: int) -> int:
    """The last position at or before `position` whose block may carry a marker; 0 where none."""
    while position and not segments[position - 1].markable:
        position -= 1
    return position


def confirm_entries(
    breakpoints: Sequence[Breakpoint],
    segments: Trail[Segment],
    scope: Scope,
    *,
    at: float,
    cached_tokens: int | None,
    anchor_tokens: int | None,
    images: int = 0,
    known: Sequence[Written] = (),
) -> list[Written]:
    """What the ledger learns from a response.

    An entry of those that are `known`, the newest last, keeps what was paid for it while it lives,
    whatever its marker says now.

    `at` is the start of the request: the life of an entry runs from there, not from the response.
    `cached_tokens` is read + written, which is the length of the prefix at the last breakpoint, or
    None where usage was not reported: then the entries may be there, and a marker costs nothing.
    `anchor_tokens` is the length of the entry that the anchor points at, where known.
    """
    learned = []
    for mark in breakpoints:
        position = mark.block + 1 if mark.level == "messages" else 0
        tokens = anchor_tokens if mark.slot == "anchor" else None
        entry = Written(
            level="messages" if position else "header",
            scope=scope.messages if position else scope.header,
            key=segments[position - 1].key if position else b"",
            position=position,
            ttl=mark.ttl,
            used_at=at,
            tokens=cached_tokens if mark is breakpoints[-1] else tokens,
            images=images,
        )
        learned.append(_kept(entry, known))
    return learned


def last_made_to_last(
    lasting: Written | None, learned: Sequence[Written], segments: Trail[Segment], scope: Scope
) -> Written | None:
    """The last long entry after a response: the deepest, unless the history left it behind."""
    for entry in learned:
        if entry.level == "messages" and entry.ttl == "1h":
            holds = (
                lasting is not None
                and lasting.position > entry.position
                and lasting.is_live(entry.used_at)
                and _is_prefix(lasting, segments, scope)
            )
            lasting = lasting if holds else entry
    return lasting


def _kept(entry: Written, known: Sequence[Written]) -> Written:
    for one in reversed(known):
        is_same = (one.level, one.scope, one.key) == (entry.level, entry.scope, entry.key)
        if is_same and one.is_live(entry.used_at):
            tokens = one.tokens if entry.tokens is None else entry.tokens
            return replace(entry, ttl=one.ttl, tokens=tokens)
    return entry


def _is_prefix(entry: Written, segments: Trail[Segment], scope: Scope) -> bool:
    if entry.level == "header":
        return entry.scope == scope.header
    return (
        entry.scope == scope.messages
        and entry.position <= len(segments)
        and segments[entry.position - 1].key == entry.key
    )


def _rank(entry: Written, at: float, images: int) -> tuple[bool, bool, int]:
    has_images = entry.level == "messages" and entry.images == images
    return entry.is_live(at), has_images, entry.position


def _reaches_minimum(view: CacheView, position: int) -> bool:
    return view.is_cacheable(view.header_chars + view.segments[position - 1].end_chars)
