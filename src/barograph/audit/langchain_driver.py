"""Replay through the real middleware and the real client, over HTTP.

The driver stands where LangChain's model node stands: it hands the middleware a `ModelRequest` with
the framework's message objects, and a handler that binds the tools and calls the model. The graph
around it is left out because recordings contain what a graph would not do again: rewinds, aborted
answers, text in the middle of a round.
"""

import asyncio
from collections.abc import Mapping
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
from pydantic import SecretStr

from barograph.audit.drivers import MAX_TOKENS, Agent, Mode
from barograph.audit.recorded import RecordedCall, WireMessage
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.store import Store


class LangChainDriver:
    """Plays one agent through the middleware.

    Args:
        agent: who calls.
        store: where its log goes.
        url: base URL of the simulator.
        policy: how the session is governed.
        mode: whether the client is called sync or async, streaming or not.
    """

    def __init__(self, agent: Agent, store: Store, *, url: str, policy: Policy, mode: Mode) -> None:
        self._agent, self._mode, self._now = agent, mode, 0.0
        self._middleware = Barograph(
            store, policy=policy, session=agent.session, clock=lambda: self._now
        )
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
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the client's connections and the event loop."""
        if self._mode in ("ainvoke", "astream"):
            self._runner.run(self._model._async_client.close())  # noqa: SLF001 - no public way
        self._runner.close()

    def play(self, call: RecordedCall, *, now: float) -> bool:
        """Send one call; the message that comes back becomes history."""
        self._now = now
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
            response = self._runner.run(self._middleware.awrap_model_call(request, self._ahandle))
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
