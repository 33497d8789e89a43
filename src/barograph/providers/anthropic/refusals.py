"""What an error of the provider, or of a gateway before it, is about."""

import re
from typing import Final

from barograph.core.model import MarkerFault

_MALFORMED: Final = frozenset({400, 422})
_MARKER: Final = re.compile(r"cache_control|cachePoint|cache point", re.IGNORECASE)
_TOO_MANY: Final = re.compile(r"maximum of (\d+)\b.*?\bfound (\d+)", re.IGNORECASE | re.DOTALL)
_UNKNOWN: Final = re.compile(
    r"extra inputs|not permitted|not support|unsupported|unknown|unrecognized|unexpected|"
    r"not allowed|additional propert",
    re.IGNORECASE,
)


def marker_fault(status: int | None, message: str) -> MarkerFault | None:
    """What a refusal says of the markers of a request; None where it is about something else.

    Too many is told from none at all: the first leaves the cache to those that remain. Wordings:
    the provider's own (prompt-caching page) and those of gateways that check requests against a
    schema without the field (deepagents issues 2957 and 2881).
    """
    if status not in _MALFORMED or not _MARKER.search(message):
        return None
    counted = _TOO_MANY.search(message)
    if counted is not None:
        most, found = int(counted[1]), int(counted[2])
        return MarkerFault(max(1, found - most))
    return MarkerFault(None) if _UNKNOWN.search(message) else None
