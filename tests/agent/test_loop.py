"""The loop: a real agent, with a model that reads the script instead of thinking."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from barograph.agent.coder import copy_sample, intended_errors, moves, prompts
from barograph.agent.loop import run_coder
from barograph.simulator import Simulator


class ScriptedModel(BaseChatModel):
    """Answers with the next move, and notes what it was sent."""

    seen: list[list[Any]] = []  # noqa: RUF012 - a pydantic field, copied for each model
    bound: list[Any] = []  # noqa: RUF012 - same

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_kwargs):
        self.bound.append([tool.name for tool in tools])
        return self

    def _generate(self, messages, *_args, **_kwargs):
        reply = moves()[len(self.seen)]
        self.seen.append(list(messages))
        blocks = [dict(block) for block in reply.content]
        calls = [
            {"type": "tool_call", "id": each["id"], "name": each["name"], "args": each["input"]}
            for each in blocks
            if each["type"] == "tool_use"
        ]
        message = AIMessage(content=blocks, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Watcher(AgentMiddleware):
    """Counts what passes, to show that middleware is in the way."""

    def __init__(self):
        self.model_calls = 0
        self.tool_calls = 0

    def wrap_model_call(self, request, handler):
        self.model_calls += 1
        return handler(request)

    def wrap_tool_call(self, request, handler):
        self.tool_calls += 1
        return handler(request)


def test_a_run_takes_both_turns_through_real_tools_and_middleware(tmp_path):
    model, watcher = ScriptedModel(), Watcher()
    run = run_coder(model=model, middleware=[watcher], workspace=copy_sample(tmp_path))
    calls = sum(block["type"] == "tool_use" for reply in moves() for block in reply.content)
    assert run.model_calls == watcher.model_calls == len(moves()) == len(model.seen)
    assert watcher.tool_calls == calls

    asked = [item.content for item in run.messages if isinstance(item, HumanMessage)]
    assert asked == list(prompts())
    results = [item for item in run.messages if isinstance(item, ToolMessage)]
    assert len(results) == calls
    assert {item.tool_call_id for item in results if item.status == "error"} == intended_errors()
    assert len(run.answers) == 2
    assert "70 tests" in run.answers[0]
    assert "78 tests" in run.answers[1]

    # every request begins with the one before it, across the turns as well
    for earlier, later in zip(model.seen, model.seen[1:], strict=False):
        assert later[: len(earlier)] == earlier


def test_a_run_without_a_workspace_says_so_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_coder(model=ScriptedModel(), middleware=[], workspace=tmp_path / "missing")


def test_two_runs_against_the_simulator_send_the_same_bytes(tmp_path):
    with Simulator() as simulator:

        def run(session):
            simulator.play(session, moves())
            model = ChatAnthropic(
                model="claude-opus-4-8",
                base_url=simulator.url,
                api_key="demo",
                default_headers={"x-sim-session": session},
                max_tokens=1024,
            )
            workspace = copy_sample(tmp_path / session)
            return run_coder(model=model, middleware=[], workspace=workspace, session=session)

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(run, ("one", "the-other"))
        bodies = {
            session: [each.request for each in simulator.exchanges if each.session == session]
            for session in ("one", "the-other")
        }
    assert first.model_calls == second.model_calls == len(moves())
    assert first.answers == second.answers
    assert len(bodies["one"]) == len(moves())
    assert bodies["one"] == bodies["the-other"]
