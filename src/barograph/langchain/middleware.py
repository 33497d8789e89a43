"""The middleware: every model call and every tool call of an agent, logged and governed.

It sees the request that all other middleware left, if it is the last in the list. It has wraps
only: a node hook would double the checkpoints of every round.
"""

import time
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langgraph.config import get_config

import barograph
from barograph.core.engine import Engine
from barograph.core.policy import Policy
from barograph.langchain.calls import ModelCall, ToolRun
from barograph.langchain.track import Track
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.settings import default_store_path
from barograph.store import Store, open_store
from barograph.store.session import Session

_OPEN_SESSIONS = 256


class Barograph(AgentMiddleware[Any, Any, Any]):
    """Logs every call, sends byte-stable requests, and places the cache breakpoints.

    Put it last in the list: it must see what all others did to the request.

    Args:
        store: path of the store, a store object, or `memory`; by default the user's own store.
        policy: how sessions are governed.
        session: id of the session; by default LangGraph's `thread_id`, and without one a session
            of its own for each history.
        clock: seconds since the epoch.

    Raises:
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        store: str | Path | Store | None = None,
        *,
        policy: Policy | None = None,
        session: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.store = open_store(default_store_path() if store is None else store)
        self.policy = policy or Policy()
        self._engine = Engine(AnthropicCodec(respell_arguments=True), self.policy)
        self._session = session
        self._clock = clock
        self._tracks: OrderedDict[tuple[str, str], Track] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._nameless = f"session-{uuid4()}"
        self._lock = RLock()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the surface instead of the history; log the request, its bytes and the answer."""
        if not _is_governed(request.model):
            return handler(request)
        call = self._begin(request, is_async=False)
        with call.watched():
            response = handler(call.request)
        call.finish(response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        if not _is_governed(request.model):
            return await handler(request)
        call = self._begin(request, is_async=True)
        with call.watched():
            response = await handler(call.request)
        call.finish(response)
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Log that a tool runs, and what it gave back."""
        run = self._run(request)
        with run.watched():
            result = handler(request)
            run.finish(result)
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        run = self._run(request)
        with run.watched():
            result = await handler(request)
            run.finish(result)
        return result

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def _begin(self, request: Any, *, is_async: bool) -> ModelCall:
        with self._lock:
            session, path = self._place()
            track = self._track(session, path)
            if self._is_nameless(session) and not track.continues(request.messages):
                self._nameless = f"session-{uuid4()}"
                track = self._track(self._nameless, path)
        return ModelCall(track, request, clock=self._clock, is_async=is_async)

    def _run(self, request: Any) -> ToolRun:
        with self._lock:
            session, path = self._place()
            return ToolRun(self._track(session, path), request, clock=self._clock)

    def _place(self) -> tuple[str, str]:
        """Session and agent path of what runs now."""
        try:
            configurable = get_config().get("configurable", {})
        except RuntimeError:  # outside of a graph
            configurable = {}
        session = self._session or configurable.get("thread_id") or self._nameless
        return str(session), agent_path(configurable.get("checkpoint_ns", ""))

    def _is_nameless(self, session: str) -> bool:
        return session == self._nameless

    def _track(self, session: str, path: str) -> Track:
        key = (session, path)
        track = self._tracks.get(key)
        if track is None:
            track = self._tracks[key] = Track(self._open(session), path)
        self._tracks.move_to_end(key)
        while len(self._tracks) > _OPEN_SESSIONS:
            self._tracks.popitem(last=False)
        return track

    def _open(self, name: str) -> Session:
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session.open(
                self.store,
                name,
                self._engine,
                at=self._clock(),
                made_by=f"barograph {barograph.__version__}",
            )
        self._sessions.move_to_end(name)
        while len(self._sessions) > _OPEN_SESSIONS:
            self._sessions.popitem(last=False)
        return session


def agent_path(namespace: str) -> str:
    """The agent path of a checkpoint namespace: names of the nodes above, without their ids."""
    above = namespace.split("|")[:-1]
    return "/".join(["main", *(part.split(":")[0] for part in above)])


def _is_governed(model: Any) -> bool:
    """Whether requests of this model can be derived; says once what cannot."""
    if isinstance(model, ChatAnthropic):
        return True
    warnings.warn(
        f"Barograph leaves calls of {type(model).__name__} as they are: it knows the Anthropic "
        "Messages format only, so far.",
        stacklevel=3,
    )
    return False
