"""Whose call is it? Session and agent path of what runs now.

A main agent is `main`; where it is a node of a user's graph, the names of the nodes above follow,
without the ids that change every turn. An agent that runs inside a tool call is a child: its path
is the parent's, then the tool's name and the number of the call among the calls of that tool, in
the order in which the model asked for them. The number comes from the log and reaches the child in
a `ContextVar` set around the tool body, so it does not matter which child starts first. Children
write into the parent's session, whatever store their own middleware names.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langgraph.config import get_config
from msgspec import Struct

import barograph
from barograph.core.canonical import digest
from barograph.core.engine import Engine
from barograph.core.errors import UsageError
from barograph.core.events import Mode
from barograph.core.parts import encode_parts
from barograph.core.state import State
from barograph.langchain.messages import read_message
from barograph.langchain.track import Track
from barograph.store import Store
from barograph.store.session import Session
from barograph.store.tail import peek

_KEPT_OPEN = 256


class Parent(Struct, frozen=True):
    """The tool call that an agent runs in: where it logs, its path, and the tool's namespace."""

    session: Session
    path: str
    namespace: str


PARENT: ContextVar[Parent | None] = ContextVar("barograph_parent", default=None)


class Places:
    """The open tracks of one middleware.

    Args:
        store: where the logs of main agents live.
        engine: the rules they follow.
        session: id of the one session to use; None for LangGraph's `thread_id`.
        clock: seconds since the epoch.
        mode: the kind of run that sessions begin as.
        summariser: the model that sums up; None for each agent's own.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        *,
        session: str | None,
        clock: Callable[[], float],
        mode: Mode = "normal",
        summariser: Any = None,
    ) -> None:
        self._store, self._engine, self._clock = store, engine, clock
        self._only, self._mode = session, mode
        self._summariser = summariser
        self._nameless: deque[Track] = deque(maxlen=_KEPT_OPEN)
        self._tracks: OrderedDict[tuple[str, str], Track] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._failed_before = 0
        self._lock = RLock()

    @property
    def failed_appends(self) -> int:
        """How often the store did not take events."""
        return self._failed_before + sum(one.failed_appends for one in self._sessions.values())

    def close(self) -> None:
        """Write what waits for the store, or say that it is lost."""
        with self._lock:
            for session in self._sessions.values():
                session.close(at=self._clock())

    def session_of(self, name: str | None) -> Session:
        """The open session of that id; without one, the one that runs now.

        Raises:
            UsageError: no id was given, and nothing runs here that has one.
        """
        with self._lock:
            return self._open(self._meant(name))

    def peek(self, name: str | None) -> tuple[str, State]:
        """The id of the session that is meant, and its state; it is neither begun nor held.

        Raises:
            UsageError: no id was given, and nothing runs here that has one.
            StoreError: the store cannot be read.
            LogError: the log is damaged, or of a newer version.
        """
        chosen = self._meant(name)
        with self._lock:
            session = self._sessions.get(chosen)
        return chosen, session.peek() if session else peek(self._store, chosen, self._engine)

    def _meant(self, name: str | None) -> str:
        chosen = name or self._only or _here()[0]
        if chosen is None:
            raise UsageError(
                "It is not known which session is meant.",
                next_step="Name it: the thread_id of its runs, or its id in the log.",
            )
        return chosen

    @contextmanager
    def of_call(self, messages: Sequence[BaseMessage]) -> Iterator[Track]:
        """The track of a model call that shows this history, its own until the call is over.

        A path has one call at a time: of two that overlap, the second is another conversation.
        """
        with self._lock:
            track = self._calling(messages)
            track.is_taken = True
        try:
            yield track
        finally:
            track.is_taken = False

    def of_tool(self, call_id: str) -> Track:
        """The track of the agent that asked for this tool call."""
        thread, namespace = _here()
        with self._lock:
            parent = _parent_of(thread)
            if parent is not None:
                return self._asking(parent.session, _child_path(parent, namespace), call_id)
            path = node_path("main", namespace)
            if thread is None and self._only is None:
                for track in reversed(self._nameless):
                    if call_id in track.session.state.path(track.path).numbers:
                        return track
                return self._nameless_track(path, ())
            return self._asking(self._open(self._only or thread or ""), path, call_id)

    def _calling(self, messages: Sequence[BaseMessage]) -> Track:
        thread, namespace = _here()
        parent = _parent_of(thread)
        if parent is not None:
            track = self._track(parent.session, _child_path(parent, namespace))
            is_other = not track.continues(messages)
        else:
            path = node_path("main", namespace)
            if thread is None and self._only is None:
                return self._nameless_track(path, messages)
            track = self._track(self._open(self._only or thread or ""), path)
            is_other = False  # a thread that says something else is a rewind
        return self._other(track, messages) if is_other or track.is_taken else track

    def _other(self, track: Track, messages: Sequence[BaseMessage]) -> Track:
        """A conversation of its own beside that of a track."""
        name = f"{track.path}~{_tag(messages)}"
        other, number = self._track(track.session, name), 1
        while other.is_taken:
            number += 1
            other = self._track(track.session, f"{name}.{number}")
        return other

    def _asking(self, session: Session, base: str, call_id: str) -> Track:
        """The conversation under a path that asked for a tool call."""
        asking = [
            name
            for name, path in session.state.paths.items()
            if name.partition("~")[0] == base and call_id in path.numbers
        ]
        return self._track(session, asking[0] if asking else base)

    def _nameless_track(self, path: str, messages: Sequence[BaseMessage]) -> Track:
        """The track of a history that comes without a thread: known by what it says."""
        for track in reversed(self._nameless):
            if track.path == path and not track.is_taken and track.extends(messages):
                return track
        track = self._track(self._open(f"session-{uuid4()}"), path)
        self._nameless.append(track)
        return track

    def _track(self, session: Session, path: str) -> Track:
        key = (session.id, path)
        track = self._tracks.get(key)
        if track is None or track.session is not session:
            order = self._engine.policy.tool_order
            track = self._tracks[key] = Track(session, path, order, self._summariser)
        _keep(self._tracks, key)
        return track

    def _open(self, name: str) -> Session:
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session.open(
                self._store,
                name,
                self._engine,
                at=self._clock(),
                made_by=f"barograph {barograph.__version__}",
                mode=self._mode,
            )
        else:
            session.catch_up(at=self._clock())
        self._sessions.move_to_end(name)
        self._drop_idle()
        return session

    def _drop_idle(self) -> None:
        """Forget the sessions used longest ago, unless something of them is only here."""
        surplus = len(self._sessions) - _KEPT_OPEN
        if surplus > 0:
            now = self._clock()
            idle = [name for name, one in self._sessions.items() if one.is_idle(now)]
            for name in idle[:surplus]:
                self._failed_before += self._sessions.pop(name).failed_appends


@contextmanager
def inside_tool(track: Track, call_id: str, tool: str) -> Iterator[None]:
    """While it lasts, agents that run are children of this tool call."""
    path = track.session.state.path(track.path)
    number = path.numbers.get(call_id) or path.counted.get(tool, 0) + 1
    child = Parent(track.session, f"{track.path}/{tool}#{number}", _here()[1])
    token = PARENT.set(child)
    try:
        yield
    finally:
        PARENT.reset(token)


def node_path(base: str, namespace: str) -> str:
    """A path, and below it the nodes above the running one, without their ids."""
    above = namespace.split("|")[:-1]
    return "/".join([base, *(part.split(":")[0] for part in above)])


def _child_path(parent: Parent, namespace: str) -> str:
    return node_path(parent.path, namespace.removeprefix(f"{parent.namespace}|"))


def _parent_of(thread: str | None) -> Parent | None:
    """The tool call around, unless the agent was given a thread of its own."""
    parent = PARENT.get()
    if parent is None or thread not in (None, parent.session.id):
        return None
    return parent


def _here() -> tuple[str | None, str]:
    """Thread and checkpoint namespace of what runs now; none outside of a graph."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:
        return None, ""
    thread = configurable.get("thread_id")
    return None if thread is None else str(thread), configurable.get("checkpoint_ns", "")


def _tag(messages: Sequence[BaseMessage]) -> str:
    """Four hex digits that tell conversations of one path apart by how they begin."""
    first = read_message(messages[0]).incoming.parts if messages else ()
    return digest(encode_parts(first)).hex()[:4]


def _keep(held: OrderedDict[Any, Any], key: object) -> None:
    held.move_to_end(key)
    while len(held) > _KEPT_OPEN:
        held.popitem(last=False)
