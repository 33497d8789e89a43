"""Replay through the real middleware and the real client, over HTTP.

The driver stands where LangChain's model node stands: it hands the middleware a `ModelRequest` with
the framework's message objects, and a handler that binds the tools and calls the model. The graph
around it is left out because recordings contain what a graph would not do again: rewinds, aborted
answers, text in the middle of a round.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

import anthropic
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import Runnable
from langgraph.prebuilt.tool_node import ToolCallRequest
from pydantic import SecretStr

from barograph.audit.drivers import MAX_TOKENS, Agent, Mode, without_stops
from barograph.audit.recorded import RecordedCall, WireBlock, WireMessage
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.langchain.places import PARENT
from barograph.store import Store


class LangChainDriver:
    """Plays one agent through the middleware.

    Args:
        agent: who calls.
        middleware: the middleware, with the session of the outermost agent.
        clock: the virtual clock that the middleware reads.
        url: base URL of the simulator.
        mode: whether the client is called sync or async, streaming or not.
    """

    def __init__(
        self, agent: Agent, middleware: Barograph, clock: "Clock", *, url: str, mode: Mode
    ) -> None:
        self._agent, self._middleware, self._clock = agent, middleware, clock
        self._url, self._mode = url, mode
        parent = PARENT.get()
        self.place = (parent.session.id, parent.path) if parent else (agent.session, "main")
        self._model = ChatAnthropic(  # type: ignore[call-arg]
            model=agent.model,
            base_url=url,
            api_key=SecretStr(agent.account),
            max_tokens=MAX_TOKENS,
            max_retries=0,
            default_headers={"x-sim-session": agent.session},
        )
        self._tools: list[Any] = [dict(tool) for tool in agent.tools]
        self._history: list[list[BaseMessage]] = []

    @classmethod
    def open(
        cls, agent: Agent, store: Store, policy: Policy, *, url: str, mode: Mode
    ) -> "LangChainDriver":
        """A driver for an agent with a session of its own."""
        clock = Clock()
        policy = without_stops(policy)
        middleware = Barograph(store, policy=policy, session=agent.session, clock=clock)
        return cls(agent, middleware, clock, url=url, mode=mode)

    def close(self) -> None:
        """Close the client's connections and the event loop."""
        self._clock.close(self._model)

    def run_tool(self, call: WireBlock, result: WireBlock, body: Callable[[], None]) -> None:
        """Send the tool call through the middleware."""

        def handle(_request: ToolCallRequest) -> ToolMessage:
            body()
            return _tool(result)

        asked = {"name": call["name"], "args": call["input"], "id": call["id"], "type": "tool_call"}
        request = ToolCallRequest(tool_call=asked, tool=None, state={}, runtime=None)  # type: ignore[arg-type]
        self._middleware.wrap_tool_call(request, handle)

    def child(self, agent: Agent) -> "LangChainDriver":
        """A driver for an agent inside the tool call that runs now."""
        return LangChainDriver(agent, self._middleware, self._clock, url=self._url, mode=self._mode)

    def play(self, call: RecordedCall, *, now: float) -> bool:
        """Send one call; the message that comes back becomes history."""
        self._clock.now = now
        if call.cut is not None:
            del self._history[call.cut :]
        self._history.extend(read_langchain(message) for message in call.append)
        request: ModelRequest[Any] = ModelRequest(
            model=self._model,
            messages=self._flat_history(),
            system_message=SystemMessage(self._agent.system),
            tools=self._tools,
            model_settings={"extra_headers": {"x-sim-now": repr(now)}},
        )
        try:
            response = self._call(request)
        except anthropic.APIStatusError:
            return False
        if call.response:
            self._history.append([response.result[0]])
        return True

    def _flat_history(self) -> list[Any]:
        return [message for group in self._history for message in group]

    def _call(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        response: ModelResponse[Any]
        if self._mode in ("invoke", "stream"):
            response = self._middleware.wrap_model_call(request, self._handle)
        else:
            coroutine = self._middleware.awrap_model_call(request, self._ahandle)
            response = self._clock.runner.run(coroutine, context=copy_context())
        return response

    def _handle(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        bound, messages = _bound(request)
        if self._mode == "stream":
            return _gathered(list(bound.stream(messages)))
        return ModelResponse(result=[bound.invoke(messages)])

    async def _ahandle(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        bound, messages = _bound(request)
        if self._mode == "astream":
            return _gathered([chunk async for chunk in bound.astream(messages)])
        return ModelResponse(result=[await bound.ainvoke(messages)])


class Clock:
    """The virtual clock of a replay, and the event loop that its async calls share."""

    def __init__(self) -> None:
        self.now = 0.0
        self.runner = asyncio.Runner()

    def __call__(self) -> float:
        """Seconds since the recording began."""
        return self.now

    def close(self, model: ChatAnthropic) -> None:
        """Close the async client, if it was used, and the loop."""
        if "_async_client" in model.__dict__:
            self.runner.run(model._async_client.close())  # noqa: SLF001 - no public way
        self.runner.close()


def read_langchain(message: WireMessage) -> list[BaseMessage]:
    """A recorded message as LangChain would hold it: results apart from what a person says."""
    content = message["content"]
    if message["role"] == "assistant":
        return [_ai(content)]
    if isinstance(content, str):
        return [HumanMessage(content)]
    said: list[BaseMessage] = [_tool(block) for block in content if block["type"] == "tool_result"]
    rest = [block for block in content if block["type"] != "tool_result"]
    return [*said, HumanMessage(content=rest)] if rest else said


def _ai(content: Any) -> AIMessage:
    if isinstance(content, str):
        return AIMessage(content)
    calls = [
        {"name": b["name"], "args": b["input"], "id": b["id"], "type": "tool_call"}
        for b in content
        if b["type"] == "tool_use"
    ]
    return AIMessage(content=content, tool_calls=calls)


def _tool(block: Mapping[str, Any]) -> ToolMessage:
    status = "error" if block.get("is_error") else "success"
    return ToolMessage(
        content=block.get("content") or "", tool_call_id=block["tool_use_id"], status=status
    )


def _bound(request: ModelRequest[Any]) -> tuple[Runnable[Any, Any], list[BaseMessage]]:
    system = [request.system_message] if request.system_message else []
    bound = request.model.bind_tools(request.tools, **request.model_settings)
    return bound, [*system, *request.messages]


def _gathered(chunks: list[Any]) -> ModelResponse[Any]:
    whole: AIMessageChunk = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    message = AIMessage(
        content=whole.content,
        tool_calls=whole.tool_calls,
        invalid_tool_calls=whole.invalid_tool_calls,
        usage_metadata=whole.usage_metadata,
        response_metadata=whole.response_metadata,
        id=whole.id,
    )
    return ModelResponse(result=[message])
