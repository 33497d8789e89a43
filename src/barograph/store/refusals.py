"""What every backend refuses, in the same words."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Final

from barograph.core.errors import LogCorrupt, SequenceConflict, UnknownSession, UsageError

RESTORE_COPY: Final = "Restore the store from a copy, or delete the session; nothing was changed."
"""What to do about a log that is damaged."""


def check_session_id(session: object) -> None:
    """Refuse an id that cannot name exactly one session.

    Any non-empty text is an id, kept exactly as given: no case folding, no normal form, no
    character with a meaning of its own.

    Raises:
        UsageError: not text, empty, or text that is not valid Unicode (a lone surrogate).
    """
    if not isinstance(session, str):
        what = f"A session id is text, not {type(session).__name__}."
    elif not session:
        what = "A session id may not be empty: unnamed sessions would be pooled into one log."
    elif not is_storable(session):
        what = f"The session id {session!r} holds a lone surrogate and cannot be stored exactly."
    else:
        return
    raise UsageError(what, next_step="Give the session a non-empty id of its own.", session=session)


def names_aside(name: str) -> Iterator[str]:
    """Names for what is set aside because it is damaged, the first free one to be taken."""
    return (f"{name}.damaged-{number}" for number in count(1))


def is_storable(session: object) -> bool:
    """Whether a session of this id can exist."""
    if not isinstance(session, str) or not session:
        return False
    try:
        session.encode()
    except UnicodeEncodeError:
        return False
    return True


def unknown_session(session: str) -> UnknownSession:
    """No session of exactly that id."""
    return UnknownSession(
        f"No session {session!r} in this store.",
        next_step="Ids are exact; `barograph sessions` lists them.",
        session=session,
    )


def conflict(session: str, *, after: int, last: int) -> SequenceConflict:
    """Another writer was first, or the writer is mistaken about the end of the log."""
    return SequenceConflict(
        f"Session {session!r} ends at seq {last}, the writer expected {after}: "
        "another writer appended to it, or it was deleted.",
        next_step="Nothing was written; read the log again and let one writer own the session.",
        session=session,
        expected=after,
        last=last,
    )


def another_log(session: str, *, after: int, last: int) -> SequenceConflict:
    """The log that the writer knows is gone, and another one has its id."""
    return SequenceConflict(
        f"Session {session!r} was deleted and begun anew: its log is another one than the writer "
        f"read up to seq {after}.",
        next_step="Nothing was written; read the log again, the next turn goes on with it.",
        session=session,
        expected=after,
        last=last,
    )


def held_elsewhere(session: str, *, host: str, pid: int, until: float) -> SequenceConflict:
    """Another writer is in the middle of a turn."""
    moment = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return SequenceConflict(
        f"Session {session!r} is held by another writer, process {pid} on {host}, until {moment}: "
        "a turn is under way there.",
        next_step=(
            "Nothing was written; call again when that turn has ended, or end that process. "
            "It is held for longer if the turn goes on. Agents of one process must share one "
            "`Barograph` object."
        ),
        session=session,
        host=host,
        pid=pid,
        until=until,
    )


def gap(session: str, *, expected: int, found: int | None) -> LogCorrupt:
    """The numbering has a hole, or ends before the last event that was acknowledged."""
    then = "the log ends there" if found is None else f"{found} follows"
    return LogCorrupt(
        f"Event {expected} of session {session!r} is missing: {then}.",
        next_step=RESTORE_COPY,
        session=session,
        seq=expected,
    )


def undecodable(session: str, seq: int, error: Exception) -> LogCorrupt:
    """What is stored under that number is not an event."""
    return LogCorrupt(
        f"Event {seq} of session {session!r} does not decode: {error}.",
        next_step=RESTORE_COPY,
        session=session,
        seq=seq,
    )
