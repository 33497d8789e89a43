"""A program that runs an agent in the mode it is told, with all that may leave something behind.

Arguments: mode, address of the simulator, folder for its log file. It writes what it did as JSON.
"""

import json
import logging
import sys
from pathlib import Path

from anthropic import APIError
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.embeddings import Embeddings
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from barograph.core.events import FrameComposed
from barograph.core.policy import Policy
from barograph.frame import (
    Knowledge,
    Source,
    SourceTool,
    hot_memory,
    knowledge_source,
    session_digest,
)
from barograph.langchain import Barograph
from barograph.langchain.embeddings import LangChainEmbedder
from barograph.settings import current_settings
from barograph.store import open_store
from barograph.store.knowledge import NewDocument

USER, MODEL, TOOL = "osprey4711user", "osprey4711model", "osprey4711tool"
SECRETS = {"user": USER, "model": MODEL, "tool": TOOL}
ALL = frozenset(("normal", "goal", "private"))


class Down(Embeddings):
    """Fails, and says in its error what it was asked for."""

    def embed_documents(self, texts):
        raise ConnectionError(texts)

    def embed_query(self, text):
        raise ConnectionError(text)


@tool
def read(path: str) -> str:
    """Read a long file."""
    return f"{TOOL} stands in {path}, line by line\n" * 1_600


@tool
def break_down(path: str) -> str:
    """Fail on a file."""
    raise ValueError(f"{TOOL} of {path}")


def jot(caller, what: str) -> str:
    """Write something down."""
    caller.keep({"note": what})
    return f"Noted: {what}"


def tell(ask):
    """Say what was noted, and fail in its words once."""
    if "fail" in ask.text:
        raise OSError(ask.text)
    return ask.kept("pad").get("note")


def sources_over(path):
    store = open_store(path)
    fact = NewDocument(text="The office is in Oslo.", domain="hot", trust="operator")
    store.index.documents.add(fact, at=1.0)
    store.index.documents.add(NewDocument(text="Files are read by line."), at=1.0)
    passages = store.index.passages
    pad = Source(name="pad", compose=tell, modes=ALL, tools=(SourceTool(name="jot", run=jot),))
    recalling = Knowledge(passages, LangChainEmbedder(Down(), name="far-away"))
    return store, [
        session_digest(store),
        hot_memory(passages),
        knowledge_source(recalling),
        pad,
    ]


def main(mode, url, home):
    logging.basicConfig(filename=Path(home) / "agent.log", level=logging.INFO)
    logging.captureWarnings(capture=True)
    path = current_settings().store.path
    kept, sources = sources_over(path)
    policy = Policy(name="bound-once", window_tokens=24_000, fanout_wait_seconds=0)
    given = {} if mode == "private" else {"store": kept}
    ours = Barograph(frame=sources, policy=policy, mode=mode, **given)
    agent = create_agent(
        ChatAnthropic(
            model="claude-opus-4-8", base_url=url, api_key="key", max_tokens=512, max_retries=0
        ),
        [read, break_down],
        system_prompt="Work with care. " * 100,
        middleware=[ours],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "thread"}}
    failed = []
    for asked in ("read", "jot", "history_search", "read", "fail", "break_down", "refuse", "read"):
        said = {"messages": [("user", f"{asked}: {USER} reads files by line")]}
        try:
            agent.invoke(said, config)
        except (ValueError, APIError) as error:
            failed.append("provider" if isinstance(error, APIError) else "tool")
    events = [event for _, event in ours.store.read("thread")]
    frames = [event for event in events if isinstance(event, FrameComposed)]
    done = {
        "events": sorted({type(event).__name__ for event in events}),
        "failed": failed,
        "missed": [one.source for frame in frames for one in frame.missed],
        "told": [one.source for frame in frames for one in frame.sections],
    }
    sys.stdout.write(json.dumps(done))
    ours.close()
    kept.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
