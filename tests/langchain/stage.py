"""A real agent on a real client, over HTTP, with a scripted model; and what its log must prove."""

import json
from collections import Counter

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from barograph.audit.limits import reuse_ceilings
from barograph.audit.score import _prompts, broken_requests, most_breakpoints
from barograph.audit.verify import verify_session
from barograph.core.canonical import canonical_json
from barograph.core.events import Replaced, RequestSent, SessionOpened
from barograph.core.readback import read_requests
from barograph.langchain import Barograph
from barograph.providers.registry import codec_named
from barograph.simulator import Reply

SYSTEM = "Work with care and say what you did. " * 220
MODEL = "claude-opus-4-8"


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"contents of {path}\n" * 20


@tool
def act(what: str) -> str:
    """Do something."""
    return f"did {what}"


def scanner(lines):
    """A tool that finds so many lines in any folder."""

    @tool
    def scan(path: str) -> str:
        """Scan a folder."""
        found = (f"{path}/module_{n}.py:{n}: def handler_{n}(event): ..." for n in range(lines))
        return "\n".join(found)

    return scan


def model_at(url, session, **more):
    return ChatAnthropic(
        model=more.pop("model", MODEL),
        base_url=url,
        api_key=more.pop("account", session),
        max_tokens=more.pop("max_tokens", 512),
        max_retries=more.pop("max_retries", 0),
        default_headers={"x-sim-session": session},
        **more,
    )


def agent_at(url, session, store, tools=(look, act), *, middleware=None, **more):
    model = more.pop("model", None) or model_at(url, session)
    ours = middleware or [Barograph(store, **more.pop("barograph", {}))]
    system = more.pop("system_prompt", SYSTEM)
    return create_agent(model, list(tools), system_prompt=system, middleware=ours, **more)


def calling(*calls, say=""):
    """A reply that asks for tools: pairs of id, name and input."""
    blocks = [{"type": "text", "text": say}] if say else []
    blocks += [
        {"type": "tool_use", "id": call_id, "name": name, "input": given}
        for call_id, name, given in calls
    ]
    return Reply(content=blocks)


def scanning(number):
    return calling((f"s{number}", "scan", {"path": f"src/part{number}"}), say="Scanning.")


def looking(*ids, say="Let me look."):
    return calling(*((each, "look", {"path": f"{each}.txt"}) for each in ids), say=say)


def config(session):
    return {"configurable": {"thread_id": session}}


def ask(text):
    return {"messages": [HumanMessage(text)]}


class Run:
    """An agent with a memory of its own, and what its provider saw. `ours` goes to Barograph."""

    def __init__(self, simulator, session, store, ours, **more):
        self.simulator, self.session, self.store = simulator, session, store
        self.ours, self.more = ours, more
        self.saver = InMemorySaver()
        self.restart()

    def restart(self):
        """A new process: the store and the framework's state are what is left."""
        self.agent = agent_at(
            self.simulator.url,
            self.session,
            self.store,
            barograph=dict(self.ours),
            checkpointer=self.saver,
            **self.more,
        )

    def say(self, text, *replies):
        self.simulator.play(self.session, list(replies))
        return self.agent.invoke(ask(text), config(self.session))["messages"]

    def of(self, kind):
        return [event for event in logged(self.store, self.session) if isinstance(event, kind)]

    @property
    def exchanges(self):
        return exchanges_of(self.simulator, self.session)


def exchanges_of(simulator, session):
    return [each for each in simulator.exchanges if each.session == session]


def logged(store, session):
    return [event for _, event in store.read(session)]


def kinds(store, session):
    return Counter(type(event).__name__ for event in logged(store, session))


def prove(store, session, exchanges, *, breaks=0):
    """Every request received is in the log: exact, derived, legal, and read as far as possible."""
    events = list(store.read(session))
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    opened = events[0].event
    assert isinstance(opened, SessionOpened)
    requests = list(read_requests(codec_named(opened.renderer), events))
    assert [request.exact for request in requests] == [each.request for each in exchanges]
    for request, exchange in zip(requests, exchanges, strict=True):
        assert request.is_exact
        assert request.record.observed
        assert request.record.mismatches == ()
        assert canonical_json(json.loads(request.derived)) == canonical_json(
            json.loads(exchange.request)
        )
    assert all(each.status == 200 for each in exchanges)
    assert most_breakpoints(exchanges) <= 4
    assert len(broken_requests(exchanges)) == breaks
    ceilings = reuse_ceilings(_prompts(exchanges), minimum_tokens=1024)
    assert [each.usage.read_tokens for each in exchanges] == list(ceilings)
    return requests


def prove_sound(store, session, exchanges):
    """The provider took every request, and the log holds each: exact, derived, nothing found."""
    assert [each.status for each in exchanges] == [200] * len(exchanges)
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.requests == report.exact == report.derived == len(exchanges)
    assert most_breakpoints(exchanges) <= 4


def records(store, session):
    return [event for event in logged(store, session) if isinstance(event, RequestSent)]


def turns(count, first=0):
    """Replies of whole turns, each with a tool call and an answer of its own."""
    return [
        reply
        for turn in range(first, first + count)
        for reply in (looking(f"t{turn}"), Reply(content=f"Answer {turn}."))
    ]


def replaced(store, session):
    return [(e.cause, e.planned) for e in logged(store, session) if isinstance(e, Replaced)]


def sent_texts(exchange):
    """What a request says, in order: texts, calls and results in short."""
    return [
        block.get("text") or block.get("id") or block.get("tool_use_id")
        for message in json.loads(exchange.request)["messages"]
        for block in message["content"]
    ]
