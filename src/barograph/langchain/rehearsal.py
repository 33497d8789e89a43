"""Let an agent come to its first model call, read what it would send, and send nothing.

A callback hears of each call of a chat model before it leaves, whatever model and middleware it is.
Ours reads the system message and the tools, and ends the run there: nothing is sent, no answer is
needed, and no key. While an agent is rehearsed, Barograph keeps its log in memory and asks no
source of the frame, and the agent has no checkpointer: nothing is left anywhere.

The agent's own code runs, up to that call: its middlewares, its prompt.
"""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.pregel import Pregel

from barograph.core.canonical import dump_json
from barograph.core.errors import UsageError
from barograph.core.prefixlint import Reading
from barograph.core.sent import text_of
from barograph.langchain.messages import read_system
from barograph.store import without_files

_FIRST_WORDS: Final = "Hello."
_rehearsing: ContextVar[bool] = ContextVar("barograph_rehearsing", default=False)


def is_rehearsing() -> bool:
    """Whether agents are made to be rehearsed."""
    return _rehearsing.get()


@contextmanager
def rehearsing() -> Iterator[None]:
    """Make agents, and import modules that make them, without touching a store."""
    token = _rehearsing.set(True)
    try:
        with without_files():
            yield
    finally:
        _rehearsing.reset(token)


def agent_of(given: Any) -> Any:
    """The agent that was named, or that the callable which was named makes; without its memory.

    Raises:
        UsageError: it is neither.
    """
    made = given
    if not isinstance(given, Pregel) and callable(given):
        if not _takes_nothing(given):
            raise UsageError(
                f"{_name(given)} needs arguments, so nobody here can make its agent.",
                next_step="Name a callable without arguments, such as a function that calls it.",
            )
        made = given()
        if inspect.isawaitable(made):
            made = asyncio.run(_awaited(made))
    if not isinstance(made, Pregel):
        raise UsageError(
            f"{_name(given)} is no agent, and makes none: it is of {type(made).__name__}.",
            next_step="Name what create_agent returned, or a callable without arguments that "
            "returns it.",
        )
    return made.copy({"checkpointer": None})


def rehearse(agent: Any) -> Reading:
    """What the first call of a new run would put before its messages.

    Raises:
        UsageError: the agent failed, or ended, before it came to call a model.
    """
    listener = _Listener()
    given = {"messages": [HumanMessage(_FIRST_WORDS)]}
    config = {"callbacks": [listener], "configurable": {"thread_id": "rehearsal"}}
    try:
        with rehearsing():
            try:
                agent.invoke(given, config)
            except NotImplementedError:  # some of its middlewares are async only
                asyncio.run(agent.ainvoke(given, config))
    except _HeardError:
        pass
    except Exception as error:
        raise UsageError(
            f"The agent failed before its first model call: {type(error).__name__}: {error}",
            next_step="Name a callable that makes an agent which can be run with one message, "
            "and nothing else.",
        ) from error
    if listener.heard is None:
        raise UsageError(
            "The agent ended without a call of a chat model.",
            next_step="Name an agent that calls its model when it is given a message.",
        )
    return listener.heard


class _HeardError(BaseException):
    """Ends a run at its first model call; no retry and no fallback takes it for a failure."""


class _Listener(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self.heard: Reading | None = None

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        **kwargs: Any,
    ) -> Any:
        """Read the request that is about to be sent, and end the run."""
        del serialized
        if self.heard is None:
            self.heard = _read(messages[0], kwargs.get("invocation_params") or {})
        raise _HeardError


def _read(messages: list[BaseMessage], parameters: dict[str, Any]) -> Reading:
    system = [
        text_of(part)
        for message in messages
        if isinstance(message, SystemMessage)
        for part in read_system(message)[0]
    ]
    tools = [_without_marker(tool) for tool in parameters.get("tools") or ()]
    return Reading(system=tuple(system), tools=dump_json(tools).decode() if tools else "")


def _without_marker(tool: Any) -> Any:
    """A definition in the form of its provider, with its name where all can find it."""
    if not isinstance(tool, dict):
        return {"name": str(tool)}
    function = tool.get("function")
    bare = {**tool, **function} if isinstance(function, dict) else tool
    return {key: value for key, value in bare.items() if key not in {"cache_control", "function"}}


def _takes_nothing(given: Any) -> bool:
    try:
        inspect.signature(given).bind()
    except TypeError:
        return False
    except ValueError:  # a builtin that tells nothing of its arguments
        return True
    return True


def _name(given: Any) -> str:
    return str(getattr(given, "__name__", None) or f"A {type(given).__name__}")


async def _awaited(made: Any) -> Any:
    return await made
