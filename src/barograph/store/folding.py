"""Folds by hand: all that was asked for, or a reason why not and nothing changed.

An agent that must go on takes what it can get: where the archive fails it compacts all the same.
Somebody who asks for a fold is under no such need, so here anything in the way is a refusal.
"""

import json
from collections.abc import Sequence

from msgspec import Struct

from barograph.core.errors import ArchiveError, ArchiveRefused, SequenceConflict, StoreError
from barograph.core.events import Compacted, Event, HeaderSet, Pruned
from barograph.core.inputs import CallWanted, CompactWanted, Header, PruneWanted
from barograph.core.parts import texts_in
from barograph.store.session import Session


class FoldByHand(Struct, frozen=True, kw_only=True):
    """What a fold hides, or would hide.

    Attributes:
        path: agent path.
        entries: how many give way.
        handles: what reads their originals back.
        tokens_before: estimated tokens of the next request without it.
        tokens_after: the same with it.
        rewritten_tokens: tokens that the next call writes to the cache once more.
        break_even_calls: calls after which a pass is paid back; None for a compaction, or where it
            costs nothing.
        texts: what stands in their place.
    """

    path: str
    entries: int
    handles: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    rewritten_tokens: int
    break_even_calls: float | None = None
    texts: tuple[str, ...]


def compact_session(
    session: Session, path: str, *, at: float, dry_run: bool = False
) -> FoldByHand | None:
    """Compact an agent path, or tell what that would do; None where nothing is worth hiding.

    Raises:
        ArchiveRefused: it cannot be done now; `reason` is `no_call`, `under_way`, `held`,
            `store_down` or `archive_failed`.
    """
    events = _fold(session, path, CompactWanted, at=at, dry_run=dry_run)
    folds = [event for event in events if isinstance(event, Compacted)]
    return _compaction(path, folds) if folds else None


def prune_session(
    session: Session, path: str, *, at: float, dry_run: bool = False
) -> FoldByHand | None:
    """Take all that has aged out of an agent path, or tell what that would do; None for nothing.

    Raises:
        ArchiveRefused: it cannot be done now; `reason` is that of `compact_session`.
    """
    events = _fold(session, path, PruneWanted, at=at, dry_run=dry_run)
    passes = [event for event in events if isinstance(event, Pruned)]
    return _pass(path, passes[0]) if passes else None


def _fold(
    session: Session,
    path: str,
    wish: type[CompactWanted | PruneWanted],
    *,
    at: float,
    dry_run: bool,
) -> Sequence[Event]:
    """The events of a fold, which are in the log unless this only tells of it."""
    try:
        session.catch_up(at=at)
    except (SequenceConflict, StoreError) as error:
        raise _refused(session, path, _reason_of(error), str(error)) from error
    if session.waiting_events:
        raise _refused(session, path, "store_down", "Events of it wait for the store.")
    header = session.state.surface(path).header
    if header is None:
        raise _refused(session, path, "no_call", f"{path} has made no call yet.")
    if session.is_running:
        raise _refused(session, path, "under_way", "A call or a tool of it is under way.")
    wanted = _wanted(header, path, len(session.state.path(path).seen), at)
    state, events = session.propose(wish(wanted=wanted))
    if events and not dry_run:
        try:
            session.commit_strictly(events, state)
        except (SequenceConflict, StoreError, ArchiveError) as error:
            raise _refused(session, path, _reason_of(error), str(error)) from error
    return events


def _wanted(header: HeaderSet, path: str, seen: int, at: float) -> CallWanted:
    """The call that would follow, under the header of the last one."""
    most = json.loads(header.parameters).get("max_tokens")
    return CallWanted(
        at=at,
        path=path,
        header=Header(model=header.model, system=header.system, tools=header.tools),
        messages=(),
        known=seen,
        reserve_tokens=most if isinstance(most, int) else 0,
    )


def _compaction(path: str, folds: list[Compacted]) -> FoldByHand:
    return FoldByHand(
        path=path,
        entries=sum(len(fold.shadows) for fold in folds),
        handles=tuple(f"#{seq}" for fold in folds for seq in fold.shadows),
        tokens_before=folds[0].tokens_before,
        tokens_after=folds[-1].tokens_after,
        rewritten_tokens=max(fold.rewritten_tokens for fold in folds),
        texts=tuple(text for fold in folds for text in texts_in(fold.parts)),
    )


def _pass(path: str, fold: Pruned) -> FoldByHand:
    return FoldByHand(
        path=path,
        entries=len(fold.stubs),
        handles=tuple(f"#{stub.seq}" for stub in fold.stubs),
        tokens_before=fold.tokens_before,
        tokens_after=fold.tokens_after,
        rewritten_tokens=fold.rewritten_tokens,
        break_even_calls=fold.break_even_calls,
        texts=tuple(text for stub in fold.stubs for text in texts_in(stub.parts)),
    )


def _reason_of(error: Exception) -> str:
    if isinstance(error, ArchiveError):
        return "archive_failed"
    return "held" if isinstance(error, SequenceConflict) else "store_down"


def _refused(session: Session, path: str, reason: str, why: str) -> ArchiveRefused:
    return ArchiveRefused(
        f"Nothing of session {session.id} is folded, and nothing changed. {why}",
        next_step="Try again when that is over; `--dry-run` shows what it would do.",
        session=session.id,
        path=path,
        reason=reason,
    )
