"""Leave out of account the tools that a client leaves out of its requests.

A provider takes no tool whose arguments are alternatives at the root of their schema, and refuses
the whole request for one of them. So the client drops such tools when it binds them. A model never
sees them: they have no place in the header, are not announced, and cannot be found by a search.
They are still bound, so that the client can refuse what cannot be without them, as a forced choice.
"""

import logging
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from barograph.langchain.header import Tool, definition_of, name_of
from barograph.store.session import Session

_REFUSED_AT_ROOT: Final = ("oneOf", "anyOf")
"""Keys of a schema that `ChatAnthropic.bind_tools` drops a tool for; it keeps `allOf`."""

_log = logging.getLogger("barograph")
_lock = Lock()
_told: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()
"""By session, the names that were spoken of. Subagents share a session, and often their tools."""


class Sieved(Struct, frozen=True):
    """Tools as they were given, apart: what a request has in the end, and what is dropped."""

    given: tuple[Tool, ...]
    kept: tuple[Tool, ...]
    dropped: tuple[Tool, ...]


def sieve(tools: Sequence[Tool], session: Session, path: str) -> Sieved:
    """Put apart the tools that will not reach the model, and say once of a session which and why.

    Args:
        tools: as the caller offers them.
        session: whose tools they are.
        path: agent path that has them.
    """
    causes = [_cause(tool) for tool in tools]
    for tool, cause in zip(tools, causes, strict=True):
        if cause and _is_news(session, name_of(tool)):
            _log.warning(
                "barograph: the tool %s of %s in session %s never reaches the model: its client "
                "leaves it out, as the provider takes no schema of arguments with %s at its root. "
                "Move that below `properties`, or offer a tool of your own that calls it.",
                name_of(tool),
                path,
                session.id,
                cause,
            )
    parted = list(zip(tools, causes, strict=True))
    return Sieved(
        given=tuple(tools),
        kept=tuple(tool for tool, cause in parted if not cause),
        dropped=tuple(tool for tool, cause in parted if cause),
    )


def _cause(tool: Tool) -> str:
    """Why the client drops a tool; empty where it does not."""
    schema = definition_of(tool).get("input_schema")  # what the provider runs itself has none
    if not isinstance(schema, Mapping):
        return ""
    return " and ".join(key for key in _REFUSED_AT_ROOT if key in schema)


def _is_news(session: Session, name: str) -> bool:
    with _lock:
        told = _told.setdefault(session, set())
        is_news = name not in told
        told.add(name)
    return is_news
