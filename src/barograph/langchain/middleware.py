"""The middleware: every model call and every tool call of an agent, logged and governed.

It sees the request that all other middleware left, if it is the last in the list. It has wraps
only: a node hook would double the checkpoints of every round.
"""

import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic

from barograph.core.engine import Engine
from barograph.core.policy import Policy
from barograph.langchain.calls import ModelCall, ToolRun
from barograph.langchain.places import Places
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.settings import default_store_path
from barograph.store import Store, open_store


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
        engine = Engine(AnthropicCodec(respell_arguments=True), self.policy)
        self._places = Places(self.store, engine, session=session, clock=clock)
        self._clock = clock
        self._left_alone: set[str] = set()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the surface instead of the history; log the request, its bytes and the answer."""
        if not self._governs(request.model):
            return handler(request)
        track = self._places.of_call(request.messages)
        call = ModelCall(track, request, clock=self._clock, is_async=False)
        with call.watched():
            response = handler(call.request)
        call.finish(response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        if not self._governs(request.model):
            return await handler(request)
        track = self._places.of_call(request.messages)
        call = ModelCall(track, request, clock=self._clock, is_async=True)
        with call.watched():
            response = await handler(call.request)
        call.finish(response)
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Log that a tool runs, and what it gave back."""
        track = self._places.of_tool(str(request.tool_call.get("id") or ""))
        run = ToolRun(track, request, clock=self._clock)
        with run.watched():
            result = handler(request)
            run.finish(result)
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        track = self._places.of_tool(str(request.tool_call.get("id") or ""))
        run = ToolRun(track, request, clock=self._clock)
        with run.watched():
            result = await handler(request)
            run.finish(result)
        return result

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def _governs(self, model: Any) -> bool:
        """Whether requests of this model can be derived; says once of each kind what cannot."""
        if isinstance(model, ChatAnthropic):
            return True
        kind = type(model).__name__
        if kind not in self._left_alone:
            self._left_alone.add(kind)
            warnings.warn(
                f"Barograph leaves calls of {kind} as they are: it knows the Anthropic Messages "
                "format only, so far.",
                stacklevel=3,
            )
        return False
