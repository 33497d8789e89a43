"""One agent for each defect, and some without."""

import itertools
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, dynamic_prompt
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from barograph.frame import Source
from barograph.langchain import Barograph
from barograph.store import open_store

STORE = Path(os.environ.get("LINTABLE_STORE", "sessions.db"))
KEPT = open_store(STORE)
PROSE = "Be kind. Orders since 2024-01-15 count; hours are 09:00 to 17:00, as of release 1.2.3."
COLOURS = {"red", "green", "blue", "yellow", "white", "black"}


@tool
def look(path: str) -> str:
    """Look at a file."""
    return path


@tool
def act(what: str) -> str:
    """Do something."""
    return what


def model():
    return ChatAnthropic(model="claude-opus-4-8", base_url="http://127.0.0.1:9", max_retries=0)


def made(system=PROSE, tools=(look, act), before=(), *, ours=True, **more):
    middleware = [*before, *([Barograph(STORE)] if ours else [])]
    return create_agent(model(), list(tools), system_prompt=system, middleware=middleware, **more)


def prompted(text):
    """An agent whose prompt is made at every call."""
    return made(before=[dynamic_prompt(lambda _: f"{PROSE} {text()}")])


clean = made()
bare = made(ours=False)
remembering = made(checkpointer=InMemorySaver())
framed = create_agent(
    model(),
    [look],
    system_prompt=PROSE,
    middleware=[Barograph(STORE, frame=[Source(name="clock", compose=lambda _: 1 / 0)])],
)

clock = prompted(lambda: f"It is {datetime.now(UTC):%H:%M:%S}.")
session_id = prompted(lambda: f"Request {uuid.uuid4()}.")
counts = itertools.count()
counter = prompted(lambda: f"You were called {next(counts)} times.")
retried = made(
    before=[ModelRetryMiddleware(), dynamic_prompt(lambda _: f"It is {datetime.now(UTC):%c}.")]
)


@dynamic_prompt
async def later(_):
    return f"It is {datetime.now(UTC):%c}."


async_only = made(before=[later])

colours = made(f"{PROSE} Colours: {', '.join(COLOURS)}.")
shown = made(f"{PROSE} Ask {look.func!r}.")


def make():
    return made()


async def make_later():
    return made()


def make_with(shop):
    return made(shop)


def make_nothing():
    return 7


def fails():
    @dynamic_prompt
    def prompt(request):
        return request.runtime.context["user"]

    return made(before=[prompt])


anything = "no agent"
