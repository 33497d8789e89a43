"""The archive: every message of a session as a document of the full-text index.

A compaction archives before it hides, and a search brings the archive up to date from the log
before it looks, so an archive that failed hides nothing. The index remembers up to which event of a
session it was filled, in the transaction that wrote the documents.

A document has the text of one message as it was before any bound or stub, without thinking. What a
recall tool returned is in the log and not in the archive: it would be found in place of its source.
"""

import json
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from barograph.core.canonical import parse_json
from barograph.core.errors import ArchiveFailed, BarographError
from barograph.core.events import Event, MessageSeen, ResponseCame, ToolBegan, ToolEnded
from barograph.core.parts import Opaque, Part, Parts, Text, ToolCall, ToolResult, results_in
from barograph.store.originals import parts_of, source_of
from barograph.store.protocol import Store
from barograph.store.search import Document, archive_of

RECALL_TOOLS: Final = frozenset({"read_original", "history_search", "history_read"})
"""Tools that repeat what the log already holds."""

_BATCH_EVENTS: Final = 256
"""What so many events brought is written at once: the file is not locked for long."""


def archive_messages(store: Store, session: str, seqs: Collection[int]) -> int:
    """Put messages of a session into its archive; how many documents are new.

    Whatever else is new in the log goes with them. Doing it twice changes nothing.

    Args:
        store: where the log and the index live.
        session: whose messages.
        seqs: of their `MessageSeen` events.

    Raises:
        ArchiveFailed: the log or the index cannot be read or written, or the log does not have
            some of these events yet; the cause is chained.
    """
    try:
        added = fill_archive(store, session)
        last = store.index.position(archive_of(session))
    except BarographError as error:
        raise ArchiveFailed(
            f"Session {session!r} could not be archived: {error.what}",
            next_step=error.next_step,
            session=session,
        ) from error
    missing = sorted(seq for seq in seqs if seq > last)
    if missing:
        raise ArchiveFailed(
            f"The log of session {session!r} ends at event {last}; {len(missing)} messages from "
            f"{missing[0]} on are not in it.",
            next_step="Archive again when the store has taken what waits for it.",
            session=session,
            seqs=tuple(missing),
        )
    return added


def fill_archive(store: Store, session: str, *, anew: bool = False) -> int:
    """Bring the archive of a session up to the end of its log; how many documents are new.

    With `anew` the log is read from its beginning, and what the archive lost comes back.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the log cannot be read, or the index cannot be written.
    """
    name, added = archive_of(session), 0
    after = 0 if anew else store.index.position(name)
    if after >= store.last_seq(session) > 0:
        return 0
    reader = Messages(store, session)
    read = reader.documents(after=after)
    while some := list(islice(read, _BATCH_EVENTS)):
        documents = [one for _, one in some if one is not None]
        added += store.index.add(documents, read_to={name: some[-1][0]})
    if not store.last_seq(session):  # it was deleted meanwhile, with all that belongs to it
        store.index.forget(name)
    return added


class Messages:
    """Messages of a log as documents. Reads forward; what came before is looked up where needed."""

    def __init__(self, store: Store, session: str) -> None:
        self._store, self._session = store, session
        self._names: dict[str, str] = {}
        self._knows_names = False
        self._sources: dict[int, Parts] = {}

    def documents(self, *, after: int) -> Iterator[tuple[int, Document | None]]:
        """Every event behind a seq, with the document of those that are messages to archive."""
        self._knows_names = not after
        for seq, event in self._store.read(self._session, after=after):
            self._learn(seq, event)
            is_archived = isinstance(event, MessageSeen) and self._tool(event) not in RECALL_TOOLS
            yield seq, self.document(seq, event) if is_archived else None

    def document(self, seq: int, event: Event) -> Document | None:
        """A message as a document; None for another event."""
        if not isinstance(event, MessageSeen):
            return None
        parts = self._parts(seq, event)
        return Document(
            namespace=archive_of(self._session),
            key=str(seq),
            text="\n".join(_texts(parts)),
            at=event.at,
            kind=" ".join(filter(None, (event.role, self._tool(event)))),
            source=event.path,
        )

    def _learn(self, seq: int, event: Event) -> None:
        self._learn_names(event)
        if isinstance(event, ToolEnded | ResponseCame):
            self._sources[seq] = event.parts

    def _learn_names(self, event: Event) -> None:
        if isinstance(event, ToolBegan | ToolEnded):
            self._names[event.call_id] = event.name
        if isinstance(event, ResponseCame | MessageSeen):
            self._names.update((p.id, p.name) for p in event.parts if isinstance(p, ToolCall))

    def _parts(self, seq: int, event: MessageSeen) -> Parts:
        source = source_of(event)
        if source is not None:
            # A source is taken once as a rule; another time it is read again.
            known = self._sources.pop(source, None)
            return parts_of(self._store, self._session, seq) if known is None else known
        return event.original or event.parts

    def _tool(self, event: MessageSeen) -> str:
        """Name of the tool that a message is the result of; empty where it is of none."""
        if event.role != "tool":
            return ""
        for call_id in results_in(event.parts or self._parts_again(event)):
            if call_id not in self._names and not self._knows_names:
                self._knows_names = True
                for _, before in self._store.read(self._session, bodies=False):
                    self._learn_names(before)
            if call_id in self._names:
                return self._names[call_id]
        return ""

    def _parts_again(self, event: MessageSeen) -> Parts:
        source = source_of(event)
        if source is None:
            return event.original
        if source not in self._sources:
            self._sources[source] = parts_of(self._store, self._session, source)
        return self._sources[source]


def _texts(parts: Parts) -> Iterator[str]:
    """What is said in these parts. Arguments are spelled out: JSON would hide words in escapes."""
    part: Part
    for part in parts:
        if isinstance(part, ToolResult):
            yield from _texts(part.content)
        elif isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall) and part.name not in RECALL_TOOLS:
            yield f"{part.name}: {_spelled(part.arguments)}"
        elif isinstance(part, Opaque) and part.kind == "tool_use":
            yield _spelled(part.block)


def _spelled(arguments: str) -> str:
    """The names and values of a JSON text, one after the other."""
    rest, said = [parse_json(arguments)], []
    if rest == [None]:
        return arguments
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            rest.extend(value for pair in reversed(one.items()) for value in reversed(pair))
        elif isinstance(one, list):
            rest.extend(reversed(one))
        else:
            said.append(one if isinstance(one, str) else json.dumps(one))
    return " ".join(said)
