"""The messages of a surface as LangChain's objects: written once, and marked in copies."""

from langchain_core.messages import BaseMessage

from barograph.core.engine import Send
from barograph.core.events import Ttl
from barograph.core.surface import Entry
from barograph.langchain.messages import write_message


class Lines:
    """The canonical messages of an agent path.

    They are ours alone: the framework's objects are never touched. Those that carry a marker are
    kept for one call: a marker often stays where it was.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._written: list[BaseMessage] = []
        self._marked: dict[int, tuple[Entry, dict[int, Ttl], BaseMessage]] = {}

    def forget(self) -> None:
        """Write all of them anew: the surface is not what it was, and more."""
        self._written = []

    def marked(self, send: Send) -> list[BaseMessage]:
        """The messages of a request, with copies where a marker stands."""
        lines = self._lines_of(send)
        marks: dict[int, dict[int, Ttl]] = {}
        surface = send.surface
        for mark in send.breakpoints:
            if mark.level == "messages":
                part, entry = mark.block, surface.segments[mark.block].entry
                while part and surface.segments[part - 1].entry == entry:
                    part -= 1
                marks.setdefault(entry, {})[mark.block - part] = mark.ttl
        marked = {}
        for entry, on_parts in marks.items():
            said = surface.entries[entry]
            before = self._marked.get(entry)
            if before is None or before[0] is not said or before[1] != on_parts:
                before = (said, on_parts, write_message(said, on_parts))
            marked[entry] = before
            lines[entry] = before[2]
        self._marked = marked
        return lines

    def _lines_of(self, send: Send) -> list[BaseMessage]:
        """The canonical messages of a surface: a new list, of messages that are kept."""
        if send.plan.path != self._path:  # shown once, to sum it up
            return [write_message(entry, {}) for entry in send.surface.entries]
        entries = send.surface.entries.span(len(self._written))
        self._written.extend(write_message(entry, {}) for entry in entries)
        return list(self._written)
