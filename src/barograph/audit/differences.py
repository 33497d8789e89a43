"""How two requests differ, segment by segment, as they left.

Unchanged runs are collapsed, and the text of changed segments is compared line by line. Markers
are listed apart: moving one changes nothing that a cache depends on.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from barograph.audit.reading import LoggedCall, LoggedSession
from barograph.audit.segments import BlockView, SegmentView, read_request, view_request
from barograph.core.divergence import shared_chars
from barograph.core.errors import UnknownCall
from barograph.core.model import Codec
from barograph.core.sent import Sent, object_items
from barograph.store.protocol import Store

Kind: TypeAlias = Literal["same", "changed", "added", "removed"]

_EXCERPT_BEFORE: Final = 30
_EXCERPT_AFTER: Final = 90


class BlockChange(Struct, frozen=True, kw_only=True):
    """One block of a changed segment.

    Attributes:
        index: index of the block in the segment.
        label: kind and name of the block.
        offset: characters that both sides share.
        before: excerpt of the earlier text around the offset.
        after: excerpt of the later text around the offset.
        lines: unified diff of the texts, without its header.
    """

    index: int
    label: str
    offset: int
    before: str
    after: str
    lines: tuple[str, ...]


class SegmentChange(Struct, frozen=True, kw_only=True):
    """A changed, added or removed segment, or a run of unchanged ones.

    Attributes:
        kind: what happened.
        name: the segment; of a run, its first.
        last: of a run, its last.
        count: number of segments.
        chars: characters of text, of the later side where there is one.
        before: the earlier side; None for a run and for what was added.
        after: the later side; None for a run and for what was removed.
        blocks: the blocks that differ, for a changed segment.
    """

    kind: Kind
    name: str
    last: str
    count: int = 1
    chars: int
    before: SegmentView | None = None
    after: SegmentView | None = None
    blocks: tuple[BlockChange, ...] = ()


class ParameterChange(Struct, frozen=True, kw_only=True):
    """A parameter that differs, as JSON text; empty where absent."""

    key: str
    before: str
    after: str


class Mark(Struct, frozen=True, kw_only=True):
    """A marker: the segment and block it stands on, its lifetime and why it is there."""

    segment: str
    block: int
    ttl: str
    slot: str | None


class Difference(Struct, frozen=True, kw_only=True):
    """How the request of one call differs from that of another.

    Attributes:
        before: number of the earlier call.
        after: number of the later call.
        paths: agent paths of the two.
        is_continuation: whether the later request begins with the whole earlier one, markers and
            parameters that no cache entry depends on aside.
        parameters: those that differ.
        changes: segments in the order of the later request.
        marks_before: markers of the earlier request.
        marks_after: markers of the later request.
    """

    before: int
    after: int
    paths: tuple[str, str]
    is_continuation: bool
    parameters: tuple[ParameterChange, ...]
    changes: tuple[SegmentChange, ...]
    marks_before: tuple[Mark, ...]
    marks_after: tuple[Mark, ...]


def diff_calls(store: Store, session: LoggedSession, before: int, after: int) -> Difference:
    """Compare the requests of two calls.

    Raises:
        UnknownCall: there is no such call, or it never left.
        LogError: the log is damaged.
        StoreError: the store cannot be read.
    """
    calls = session.call(before), session.call(after)
    sides = [view_request(session, read_request(store, session, call)) for call in calls]
    changes = tuple(compare_segments(*sides))
    sent = [call.sent for call in calls]
    return Difference(
        before=before,
        after=after,
        paths=(calls[0].plan.path, calls[1].plan.path),
        is_continuation=_begins_with(changes) and _same_scope(session.codec, sent[0], sent[1]),
        parameters=tuple(_parameters(sent[0], sent[1])),
        changes=changes,
        marks_before=_marks(sides[0]),
        marks_after=_marks(sides[1]),
    )


def call_before(session: LoggedSession, call: LoggedCall) -> int:
    """Number of the last call of the same agent path that left before this one.

    Raises:
        UnknownCall: this is the first.
    """
    number, path = call.plan.call, call.plan.path
    earlier = [n for _, n in session.showings(path) if n < number]
    if earlier:
        return earlier[-1]
    raise UnknownCall(
        f"Call {number} is the first of {path} in session {session.session!r}: nothing to compare.",
        next_step="`barograph show` prints the whole request; or name two calls.",
        session=session.session,
        call=number,
    )


def compare_segments(
    before: Sequence[SegmentView], after: Sequence[SegmentView]
) -> Iterator[SegmentChange]:
    """Segments in the order of the later request; unchanged runs as one."""
    one, other = [view.key for view in before], [view.key for view in after]
    head = _shared(one, other)
    tail = _shared(one[head:][::-1], other[head:][::-1])
    if head:
        yield _run(after[:head])
    middle = slice(head, len(one) - tail), slice(head, len(other) - tail)
    yield from _middle(before[middle[0]], after[middle[1]])
    if tail:
        yield _run(after[len(after) - tail :])


def _middle(before: Sequence[SegmentView], after: Sequence[SegmentView]) -> Iterator[SegmentChange]:
    matcher = SequenceMatcher(
        None, [view.key for view in before], [view.key for view in after], autojunk=False
    )
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield _run(after[right:right_end])
            continue
        yield from _replaced(before[left:left_end], after[right:right_end])


def _replaced(
    before: Sequence[SegmentView], after: Sequence[SegmentView]
) -> Iterator[SegmentChange]:
    """Pair what stands in the same place and is of the same kind; the rest went or came."""
    shared = min(len(before), len(after))
    for one, other in zip(before, after, strict=False):
        if (one.level, one.role) == (other.level, other.role):
            yield SegmentChange(
                kind="changed",
                name=other.name,
                last=other.name,
                chars=other.chars,
                before=one,
                after=other,
                blocks=tuple(_block_changes(one.blocks, other.blocks)),
            )
        else:
            yield _gone(one)
            yield _new(other)
    yield from map(_gone, before[shared:])
    yield from map(_new, after[shared:])


def _block_changes(
    before: Sequence[BlockView], after: Sequence[BlockView]
) -> Iterator[BlockChange]:
    for index in range(max(len(before), len(after))):
        one = before[index] if index < len(before) else None
        other = after[index] if index < len(after) else None
        shown = other or one
        if shown is None or (one and other and one.raw == other.raw):
            continue
        left, right = one.text if one else "", other.text if other else ""
        if one and other and left == right:  # the same to a reader, spelled differently
            left, right = one.raw, other.raw
        offset = shared_chars(left, right)
        excerpt = slice(max(0, offset - _EXCERPT_BEFORE), offset + _EXCERPT_AFTER)
        lines = unified_diff(left.split("\n"), right.split("\n"), lineterm="", n=2)
        yield BlockChange(
            index=index,
            label=f"{shown.kind} {shown.label}".strip(),
            offset=offset,
            before=left[excerpt],
            after=right[excerpt],
            lines=tuple(lines)[2:],
        )


def _run(views: Sequence[SegmentView]) -> SegmentChange:
    return SegmentChange(
        kind="same",
        name=views[0].name,
        last=views[-1].name,
        count=len(views),
        chars=sum(view.chars for view in views),
    )


def _gone(view: SegmentView) -> SegmentChange:
    return SegmentChange(
        kind="removed", name=view.name, last=view.name, chars=view.chars, before=view
    )


def _new(view: SegmentView) -> SegmentChange:
    return SegmentChange(kind="added", name=view.name, last=view.name, chars=view.chars, after=view)


def _begins_with(changes: Sequence[SegmentChange]) -> bool:
    kinds = [change.kind for change in changes]
    return kinds in (["same"], ["added"], []) or (
        kinds[:1] == ["same"] and set(kinds[1:]) <= {"added"}
    )


def _same_scope(codec: Codec, before: Sent | None, after: Sent | None) -> bool:
    one, other = (sent.header if sent else None for sent in (before, after))
    if one is None or other is None:
        return one is other
    return codec.scope_of((), "", one.parameters) == codec.scope_of((), "", other.parameters)


def _parameters(before: Sent | None, after: Sent | None) -> Iterator[ParameterChange]:
    left, right = (
        object_items(sent.header.parameters) if sent and sent.header else {}
        for sent in (before, after)
    )
    for key in dict.fromkeys((*left, *right)):
        if left.get(key) != right.get(key):
            yield ParameterChange(key=key, before=left.get(key, ""), after=right.get(key, ""))


def _marks(views: Sequence[SegmentView]) -> tuple[Mark, ...]:
    return tuple(
        Mark(segment=view.name, block=index, ttl=block.ttl, slot=block.slot)
        for view in views
        for index, block in enumerate(view.blocks)
        if block.ttl is not None
    )


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
