"""The real thing on a small stage: agent, middleware and client, against the simulator over HTTP.

Nothing of the product is replaced. The tools answer what the case says, the model is the simulator,
and one small middleware in front offers the tools of each request. History between turns is what
the framework's state holds; after a restart it comes from the log alone.
"""

import json
import logging
from contextlib import contextmanager
from functools import cache
from typing import get_args
from unittest.mock import patch

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import content as langchain_content
from langchain_core.tools import BaseTool

from barograph import Policy
from barograph.audit.langchain_driver import read_langchain
from barograph.core.events import HandBackCause
from barograph.core.learning import restore
from barograph.core.surface import Entry
from barograph.frame import Source
from barograph.langchain import Barograph
from barograph.langchain.messages import write_message
from barograph.langchain.tools import RECALL
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import open_store
from cases.observed import Observed, read_log
from cases.provider import MODEL, ScriptedProvider
from cases.registry import UnknownWordError
from cases.watched import WatchedStore

# The client asks for this constant once a block and works it out anew each time: half of a run.
DATA_BLOCKS = "_get_data_content_block_types"
START = 1_000_000.0
SUMMARISER = "claude-haiku-4-5"
SETTINGS = (
    "cache_ttl",
    "max_tokens",
    "window",
    "soft",
    "hard",
    "prune",
    "keep_rounds",
    "prune_keep_rounds",
    "max_result_chars",
    "aggregate_result_chars",
    "round_nudge_at",
    "round_hard_cap",
)
STEPS = 10_000


def policy_of(settings):
    """The policy that is nearest to what a case sets; what it does not name is as it comes.

    A trigger at a share of the window is what `fixed` is. Nothing caps all results together: passes
    take the oldest away.
    """
    soft = settings.get("soft")
    name = "balanced" if soft is None else "fixed"
    keep = settings.get("prune_keep_rounds", settings.get("keep_rounds"))
    hard = settings.get("hard")
    named = {
        "ttl": settings.get("cache_ttl"),
        "window_tokens": settings.get("window"),
        "prune_at_ratio": hard if soft is None and hard is not None else soft,
        "compact_at_ratio": hard,
        "prune_after_rounds": keep and max(1, keep),
        "max_result_chars": settings.get("max_result_chars"),
        "nudge_at_rounds": settings.get("round_nudge_at"),
        "cap_rounds": settings.get("round_hard_cap"),
    }
    return Policy(
        name="bound-once" if settings.get("prune") is False else name,
        **{knob: value for knob, value in named.items() if value is not None},
    )


class Killed(BaseException):
    """The process is gone: no handler of the product may see this and tidy up."""


class ScriptedTool(BaseTool):
    """A tool whose body is the case's."""

    body: object

    def _run(self, **_arguments):
        raise AssertionError("tools are called with the id of their call")

    def invoke(self, call, _config=None, **_more):
        content = self.body(call)
        if isinstance(content, ToolMessage):
            return content
        return ToolMessage(content=content, tool_call_id=call["id"], name=self.name)


class OfferedTools(AgentMiddleware):
    """Gives each request the tools that the case offers there, and lets a second pass.

    The product's own tool, which `create_agent` put into the request, stays.
    """

    def __init__(self, stage, offered):
        super().__init__()
        self._stage, self._offered = stage, offered

    def wrap_model_call(self, request, handler):
        self._stage.now += 1
        own = [tool for tool in request.tools if tool in RECALL]
        return handler(request.override(tools=[*self._offered(), *own]))


class Stage:
    """One session from its beginning, restarts included."""

    def __init__(self, case, folder, *, session="case", policy=None):
        self.case = case
        self.policy = policy or policy_of(case.settings)
        self.session = session
        self.path = folder / "log.db"
        self.now = START
        self.seen = Observed(case, store=self.path)
        self.mode = "private" if case.settings.get("private") else "normal"
        models = case.given.get("models") or []
        self.windows = {one["name"]: one["window"] for one in models}
        of_summariser = case.settings.get("summariser_window")
        sizes = {**self.windows, **({SUMMARISER: of_summariser} if of_summariser else {})}
        counted = {}
        if "true_tokens_per_char" in case.given:
            counted["tokens_per_char"] = case.given["true_tokens_per_char"]
        self.provider = ScriptedProvider(lambda: self.now, sizes, **counted)
        if of_summariser:
            self.provider.expect(f"main@{SUMMARISER}", ())
        self.seen.sent, self.seen.asked = self.provider.sent, self.provider.asked
        self.seen.moments = self.provider.moments
        self.archive_fails = False
        self.provider.summaries.extend(case.given.get("summariser") or ())
        self.models = [one["name"] for one in models] or [MODEL]
        self.replies = {}
        self.history = []
        self.children = {}
        self._sources = [self._source(one) for one in case.given.get("volatile_sources", ())]
        self._tools = {}
        self._calls = 0

    @contextmanager
    def open(self):
        """Run with the provider up, and gather what the log and the loggers say."""
        gather = _Gather(self.seen.said)
        logging.getLogger().addHandler(gather)
        data_blocks = cache(getattr(langchain_content, DATA_BLOCKS))
        try:
            with self.provider.simulator, patch.object(langchain_content, DATA_BLOCKS, data_blocks):
                self._start()
                try:
                    yield self
                finally:
                    self._stop()
        finally:
            logging.getLogger().removeHandler(gather)

    def restart(self):
        """Drop all memory; what the log holds is the history."""
        self._stop()
        self._start()
        self.history = self.history_in_log()

    def govern(self, policy):
        """Go on under another policy, as a process that is started anew with it does."""
        self._stop()
        self.policy = policy
        self._start()

    def answer(self, call_id, content):
        """Let a call that waited have its result, where the framework's state keeps it."""
        places = (i for i, one in enumerate(self.history) if call_id in _calls_of(one))
        message = ToolMessage(content=content, tool_call_id=call_id)
        self.history.insert(next(places) + 1, message)
        self.seen.results[call_id] = content

    def history_in_log(self, path="main"):
        """The messages of the surface as the log has them, and the answer that came last."""
        log = read_log(self.path, self.session)
        state = restore(AnthropicCodec(respell_arguments=True), log)
        answer = state.path(path).answer
        entries = list(state.surface(path).entries)
        if answer is not None and answer.parts:
            entries.append(Entry(answer.seq, "assistant", answer.parts))
        return [write_message(entry, {}) for entry in entries]

    def snapshot(self):
        """Keep the log as it is now."""
        self.seen.logs.append(read_log(self.path, self.session))

    def load(self, messages):
        """Let these messages be the history so far."""
        for message in messages:
            self.history.extend(read_langchain(message))
            self._accept(message)

    def turn(self, turn, *, agent="main"):
        """One user input, until the model's last word; an error is kept as callers see it."""
        content = turn.get("user")
        new = [] if content is None else [HumanMessage(content)]
        if new:
            self._accept({"role": "user", "content": content})
        self._script(turn, agent)
        self._run([*self.history, *new], agent)
        for name in list(self.provider.queues):
            self.provider.forget_rest(name)

    def child(self, call_id, kind, turn):
        """Let a tool call be a subagent of that type."""
        alike = sum(one[0] == kind for one in self.children.values())
        label = f"{kind}#{alike + 1}" if alike else kind
        self.children[call_id] = (kind, label, turn)

    def _run(self, messages, agent):
        config = {"configurable": {"thread_id": self.session}, "recursion_limit": STEPS}
        try:
            state = self._agent(agent).invoke({"messages": messages}, config)
        except Killed:
            return
        except Exception as error:  # noqa: BLE001 - whatever a caller would see is observed
            self.seen.errors.append(error)
            self.seen.unfinished_turns += 1
            self.history = self.history_in_log()
            return
        self.history = state["messages"]
        last = self.history[-1]
        done = isinstance(last, AIMessage) and not last.tool_calls
        reason = last.response_metadata.get("stop_reason") if done else None
        self.seen.stopped_by = reason if reason in get_args(HandBackCause) else None
        self.seen.unfinished_turns += not done or self.seen.stopped_by is not None
        self.seen.answers.append(str(last.text))

    def _start(self):
        self.middleware = Barograph(
            None if self.mode == "private" else self.store(),
            policy=self.policy,
            frame=self._sources,
            mode=self.mode,
            summariser=self._summariser(),
            clock=lambda: self.now,
        )

    def store(self):
        """The store as the product gets it."""
        return WatchedStore(
            open_store(self.path), self.seen.moments, archive_fails=self.archive_fails
        )

    def _summariser(self):
        """A model of its own for summaries, where the case says how much it takes."""
        window = self.case.settings.get("summariser_window")
        if window is None:
            return None
        return ChatAnthropic(
            model=SUMMARISER,
            base_url=self.provider.simulator.url,
            api_key="any",
            max_tokens=1024,
            profile={"max_input_tokens": window},
            max_retries=0,
            default_headers={"x-sim-session": f"main@{SUMMARISER}"},
        )

    def _stop(self):
        self.middleware.close()

    def _script(self, turn, agent, kind=None):
        for key in ("model", "model_by_name"):
            if key not in turn:
                continue
            scripts = turn[key] if key == "model_by_name" else {self.models[0]: turn[key]}
            for model, items in scripts.items():
                said = [one for one in items if one.get("role") != "user"]
                self._answers_of(items)
                self.provider.expect(f"{agent}@{model}", said, kind=kind)
        for call_id, content in (turn.get("tool_results") or {}).items():
            self.replies[call_id] = self.filled(content)

    def filled(self, content):
        """A text of the case with its own placeholders filled in."""
        if isinstance(content, str) and content.startswith("{secrets joined by"):
            return "\n".join(self.case.given["secrets"])
        return content

    def _answers_of(self, items):
        for one in items:
            if one.get("role") == "user":
                self.replies.update({b["tool_use_id"]: b["content"] for b in one["content"]})

    def _agent(self, label):
        chats = [self._chat(label, model) for model in self.models]
        middleware = [OfferedTools(self, self._offered), self.middleware]
        if len(chats) > 1:
            middleware.insert(0, ModelFallbackMiddleware(*chats[1:]))
        tools = {tool.name: tool for tool in self._known_tools()}
        return create_agent(
            chats[0], list(tools.values()), system_prompt=self._system(), middleware=middleware
        )

    def _chat(self, label, model):
        self.provider.expect(f"{label}@{model}", (), kind=self._kind_of(label))
        return ChatAnthropic(
            model=model,
            base_url=self.provider.simulator.url,
            api_key="any",
            max_tokens=self.case.settings.get("max_tokens", 1024),
            profile={"max_input_tokens": self.windows[model]} if self.windows else None,
            max_retries=0,
            streaming=self._is_streaming(),
            default_headers={"x-sim-session": f"{label}@{model}"},
        )

    def _is_streaming(self):
        transport = self.case.given.get("transport", "http")
        if transport not in ("http", "stream", "sse"):
            raise UnknownWordError(f"transport {transport!r}")
        return transport != "http"

    def _kind_of(self, label):
        return next((kind for kind, one, _ in self.children.values() if one == label), label)

    def _source(self, one):
        """A source of the frame that gives its values one a read; the last one repeats."""
        name, values = one["name"], one["values"]
        self.seen.reads[name] = 0

        def read(_):
            self.seen.reads[name] += 1
            return values[min(self.seen.reads[name], len(values)) - 1]

        return Source(name=name, compose=read)

    def _system(self):
        given = self.case.given.get("system")
        return SystemMessage(given) if given else None

    def _offered(self):
        lists = self.case.given.get("tools_per_request")
        if lists is None:
            return [self._tool(one) for one in self.case.given.get("tools") or ()]
        number, self._calls = self._calls, self._calls + 1
        return [self._tool(one) for one in lists[min(number, len(lists) - 1)]]

    def _known_tools(self):
        """All that may run: what is offered at some time, and what the model will ask for."""
        given = self.case.given
        for offered in (given.get("tools") or (), *given.get("tools_per_request", ())):
            yield from map(self._tool, offered)
        for queue in self.provider.queues.values():
            for block in (b for one in queue for b in _blocks(one.get("content"))):
                if block.get("type") == "tool_use":
                    yield self._tool({"name": block["name"]})

    def _tool(self, one):
        """The same object each time, as an agent keeps its tools."""
        key = json.dumps(one)
        if key not in self._tools:
            self._tools[key] = ScriptedTool(
                name=one["name"],
                description=one.get("description", one["name"]),
                args_schema=one.get("input_schema") or {"type": "object", "properties": {}},
                body=self._body,
            )
        return self._tools[key]

    def _body(self, call):
        self.seen.tools_run.append(call["id"])
        if call["id"] in self.children:
            content = self._run_child(call)
        else:
            content = self.replies.get(call["id"], "ok")
        if content is Killed:
            raise Killed
        self.seen.results[call["id"]] = content
        self.seen.accepted.append(("tool", _text(content)))
        return content

    def _run_child(self, call):
        kind, label, turn = self.children[call["id"]]
        arguments = [value for value in call["args"].values() if isinstance(value, str)]
        self._script(turn, label, kind)
        state = self._agent(label).invoke(
            {"messages": [HumanMessage(turn.get("user") or " ".join(arguments) or "go")]},
            {"recursion_limit": STEPS},
        )
        return str(state["messages"][-1].text)

    def _accept(self, message):
        content = message["content"]
        for block in _blocks(content):
            if block.get("type") == "tool_result":
                self.seen.results.setdefault(block["tool_use_id"], block.get("content") or "")
                self.seen.accepted.append(("tool", _text(block.get("content") or "")))
            elif block.get("type") == "text":
                self.seen.accepted.append((message["role"], block["text"]))


class _Gather(logging.Handler):
    def __init__(self, said):
        super().__init__()
        self._said = said

    def emit(self, record):
        self._said.append(f"{record.levelname} {record.getMessage()}")


def _calls_of(message):
    return [call["id"] for call in getattr(message, "tool_calls", ())]


def _blocks(content):
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


def _text(content):
    """What a content says in words."""
    return "".join(block.get("text", "") for block in _blocks(content))
