"""Run the coder against a model: one agent, its turns in order, its history carried along."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from msgspec import Struct

from barograph.agent.coder import prompts, system_prompt
from barograph.agent.tools import build_tools


class CoderRun(Struct, frozen=True, kw_only=True):
    """What came of a run.

    Attributes:
        messages: the whole history at the end, as the agent's state holds it.
        model_calls: how often a model was asked, retries and summaries by middleware included.
        answers: the final answer of each turn.
    """

    messages: list[AnyMessage]
    model_calls: int
    answers: tuple[str, ...]


class _CallCounter(BaseCallbackHandler):
    """Counts requests where they are made: middleware may rewrite what the history shows."""

    def __init__(self) -> None:
        self.calls = 0

    def on_chat_model_start(self, *_args: Any, **_kwargs: Any) -> None:
        self.calls += 1


def run_coder(
    *,
    model: BaseChatModel,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]],
    workspace: Path,
    session: str = "demo",
) -> CoderRun:
    """Give the coder its tasks, one turn after the other.

    No checkpointer is involved: the state of one turn is passed on to the next as it is, which
    keeps the ids of its messages.

    Args:
        model: the chat model to ask.
        middleware: what sits between agent and model, in LangChain's order.
        workspace: the folder the tools are confined to; `copy_sample` fills one.
        session: becomes LangGraph's `thread_id`.
    """
    agent: Any = create_agent(
        model,
        build_tools(workspace),
        system_prompt=system_prompt(),
        middleware=middleware,
    )
    counter = _CallCounter()
    config = {"configurable": {"thread_id": session}, "callbacks": [counter]}
    messages: list[AnyMessage] = []
    answers: list[str] = []
    for prompt in prompts():
        state = agent.invoke({"messages": [*messages, HumanMessage(prompt)]}, config)
        messages = state["messages"]
        last = messages[-1]
        answers.append(str(last.text) if isinstance(last, AIMessage) else "")
    return CoderRun(messages=messages, model_calls=counter.calls, answers=tuple(answers))
