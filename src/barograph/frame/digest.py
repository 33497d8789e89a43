"""The digest of other sessions: what each is about, in a line, and a tool that reads more of one.

A session is known by the first words of its user; nothing that an agent, a tool or a document said
stands in the digest. It names the sessions that began last. What goes on in them does not change
it, so that it is sent again only when one begins or is deleted.

**Out of scope.** Whose sessions these are: a store does not know. Where several people share one,
`shows` must tell them apart.
"""

from collections.abc import Callable
from heapq import nsmallest
from typing import Annotated, Final

from barograph.core.errors import LogError, UnknownSession
from barograph.core.events import Mode
from barograph.core.recalltexts import (
    NOT_ANOTHER_SESSION,
    OTHER_SESSION,
    no_session,
    session_said,
    session_unreadable,
    topic,
)
from barograph.core.texts import attribute
from barograph.core.tooling import RECALL_SESSION
from barograph.core.trust import Item
from barograph.frame.sessions import Logs, Opening, Row, moment, opening_of, sayings
from barograph.frame.source import Ask, Caller, Source, SourceTool

MOST_SESSIONS: Final = 10

_LOOKED_AT: Final = 200
"""Of so many sessions it is found out how they began: there may be a crowd of goal runs."""

_MODES: Final[frozenset[Mode]] = frozenset(("normal",))
_UNREADABLE: Final = (UnknownSession, LogError)


def session_digest(
    logs: Logs,
    *,
    name: str = "sessions",
    budget_chars: int = 8_000,
    shows: Callable[[str], bool] = lambda _: True,
) -> Source:
    """A source that tells of other sessions, and the tool `recall_session` with it.

    What it tells is untrusted: a first message may hold anything that was pasted into it. Goal runs
    are not told, and not told of; of private runs, whose store may be shared in memory, nothing is
    told or read.

    Args:
        logs: where the sessions are: the store of the middleware, or another one.
        name: of its section.
        budget_chars: the most that the section may hold; the oldest sessions are left out first.
        shows: whether a session of that id may be told of and read. It must be quick.
    """
    digest = _Digest(logs, shows)
    return Source(
        name=name,
        compose=digest.compose,
        budget_chars=budget_chars,
        modes=_MODES,
        tools=(SourceTool(name=RECALL_SESSION, run=digest.recall),),
    )


class _Digest:
    """Knows how the sessions that it last told of began. Safe in any thread."""

    def __init__(self, logs: Logs, shows: Callable[[str], bool]) -> None:
        self._logs, self._shows = logs, shows
        self._known: dict[tuple[float, str], Opening] = {}

    def compose(self, ask: Ask) -> list[Item]:
        """An item for each session, the one that began last first."""
        known, told = self._known, dict[tuple[float, str], Opening]()
        items = list[Item]()
        for one in nsmallest(_LOOKED_AT, self._others(ask.session), key=_age):
            opening = known.get(_age(one)) or self._opening(one.session)
            if opening is None or not opening.said:
                continue
            told[_age(one)] = opening
            if opening.mode == "normal":
                items.append(_item(one, opening))
            if len(items) == MOST_SESSIONS:
                break
        self._known = told
        return items

    def recall(
        self,
        caller: Caller,
        id: Annotated[str, "The id of the session, or the beginning of one."],  # noqa: A002
        start: Annotated[int, "Where to begin, in characters."] = 0,
    ) -> str:
        """Read what was said in another session: the user's messages, then the answers."""
        if id == caller.session:
            return NOT_ANOTHER_SESSION
        found = _named(id, [one.session for one in self._others(caller.session)])
        if len(found) != 1:
            return no_session(id, found)
        try:
            if opening_of(self._logs.read(found[0])).mode == "private":
                return no_session(id, ())
            said = sayings(self._logs.read(found[0]))
        except UnknownSession:
            return no_session(id, ())
        except LogError:
            return session_unreadable(found[0])
        return session_said(found[0], said, start)

    def _others(self, session: str) -> list[Row]:
        return [
            one
            for one in self._logs.sessions()
            if one.session != session and self._shows(one.session)
        ]

    def _opening(self, session: str) -> Opening | None:
        try:
            return opening_of(self._logs.read(session))
        except _UNREADABLE:  # deleted this moment, or damaged: the others can be told of
            return None


def _age(one: Row) -> tuple[float, str]:
    """Tells a session from another of the same id; the youngest sorts first."""
    return -one.opened_at, one.session


def _item(one: Row, opening: Opening) -> Item:
    return Item(
        id=one.session,
        text=topic(opening.said),
        origin=OTHER_SESSION,
        date=moment(one.opened_at),
        trust="external",
    )


def _named(wanted: str, sessions: list[str]) -> list[str]:
    """The session of that id, as it is or as a model is shown it; else those that begin with it."""
    shown = attribute(wanted)
    return [one for one in sessions if wanted in (one, attribute(one))] or [
        one for one in sessions if shown and attribute(one).startswith(shown)
    ]
