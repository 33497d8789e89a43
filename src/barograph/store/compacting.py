"""Compaction by hand: all of it, or a reason why not and nothing changed.

An agent that must go on takes what it can get: where the archive fails it compacts all the same.
Somebody who asks for a compaction is under no such need, so here anything in the way is a refusal.
"""

import json

from msgspec import Struct

from barograph.core.errors import ArchiveError, ArchiveRefused, SequenceConflict, StoreError
from barograph.core.events import Compacted, HeaderSet
from barograph.core.inputs import CallWanted, CompactWanted, Header
from barograph.core.parts import texts_in
from barograph.store.session import Session


class Compaction(Struct, frozen=True, kw_only=True):
    """What a compaction hides, or would hide.

    Attributes:
        path: agent path.
        entries: how many give way.
        handles: what reads their originals back.
        tokens_before: estimated tokens of the next request without it.
        tokens_after: the same with it.
        rewritten_tokens: tokens that the next call writes to the cache once more.
        texts: what stands in their place.
    """

    path: str
    entries: int
    handles: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    rewritten_tokens: int
    texts: tuple[str, ...]


def compact_session(
    session: Session, path: str, *, at: float, dry_run: bool = False
) -> Compaction | None:
    """Compact an agent path, or tell what that would do; None where nothing is worth hiding.

    Raises:
        ArchiveRefused: it cannot be done now; `reason` is `no_call`, `under_way`, `held`,
            `store_down` or `archive_failed`.
    """
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
    given = CompactWanted(wanted=_wanted(header, path, len(session.state.path(path).seen), at))
    state, events = session.propose(given)
    folds = [event for event in events if isinstance(event, Compacted)]
    if folds and not dry_run:
        try:
            session.commit_strictly(events, state)
        except (SequenceConflict, StoreError, ArchiveError) as error:
            raise _refused(session, path, _reason_of(error), str(error)) from error
    return _compaction(path, folds) if folds else None


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


def _compaction(path: str, folds: list[Compacted]) -> Compaction:
    return Compaction(
        path=path,
        entries=sum(len(fold.shadows) for fold in folds),
        handles=tuple(f"#{seq}" for fold in folds for seq in fold.shadows),
        tokens_before=folds[0].tokens_before,
        tokens_after=folds[-1].tokens_after,
        rewritten_tokens=max(fold.rewritten_tokens for fold in folds),
        texts=tuple(text for fold in folds for text in texts_in(fold.parts)),
    )


def _reason_of(error: Exception) -> str:
    if isinstance(error, ArchiveError):
        return "archive_failed"
    return "held" if isinstance(error, SequenceConflict) else "store_down"


def _refused(session: Session, path: str, reason: str, why: str) -> ArchiveRefused:
    return ArchiveRefused(
        f"Session {session.id} is not compacted, and nothing changed. {why}",
        next_step="Try again when that is over; `--dry-run` shows what it would do.",
        session=session.id,
        path=path,
        reason=reason,
    )
