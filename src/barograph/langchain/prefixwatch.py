"""Say once of an agent that what precedes its messages changes from call to call."""

import logging
from typing import Final

from barograph.core.inputs import Header
from barograph.core.prefixlint import Finding, Reading, compare
from barograph.core.sent import text_of

_log = logging.getLogger("barograph")

_BY_NATURE: Final = frozenset({"moment", "id", "address", "order"})
"""What is of these kinds changes again. Other text may have been changed once, and on purpose."""


class PrefixWatch:
    """Looks at the headers of one agent path, one after the other.

    It warns of a clock, an id or another order at their first change, and of other text when the
    same piece changes for the second time; once for the whole path, since one changed byte costs
    all that follows. Of a private session it quotes nothing: what hears a logger may keep it.
    """

    def __init__(self, session: str, path: str, *, quotes: bool = True) -> None:
        self._session, self._path, self._quotes = session, path, quotes
        self._last: Header | None = None
        self._changed: set[str] = set()
        self._is_told = False

    def look(self, header: Header) -> None:
        """Look at the header of the next call."""
        last, self._last = self._last, header
        if self._is_told or last is None or header is last:
            return
        if header.system == last.system and header.tools == last.tools:
            return
        for finding in compare(_reading(last), _reading(header)):
            if finding.kind in _BY_NATURE or finding.label in self._changed:
                self._tell(finding)
                return
            self._changed.add(finding.label)

    def _tell(self, finding: Finding) -> None:
        self._is_told = True
        _log.warning(
            "barograph: what precedes the messages of %s in session %s changes from call to call, "
            "so nothing is read from the cache: %s, %s. %s `barograph lint` finds the rest.",
            self._path,
            self._session,
            finding.label,
            f"{finding.after!r} was {finding.before!r}" if self._quotes else finding.kind,
            finding.fix,
        )


def _reading(header: Header) -> Reading:
    return Reading(system=tuple(map(text_of, header.system)), tools=header.tools)
