"""One owner of the surface: refuse middleware that rewrites the same request.

Two middlewares that both summarise, clear or mark a history undo each other: the prefix breaks, and
nobody can say what the model saw. Others are looked for in three places: when `create_agent`
collects the list that holds ours, at the first call of an agent that was built some other way, and
whenever `check` is asked. LangChain hands a middleware neither the list nor the agent, so the first
two look at the frames of the callers. A call of an async agent begins in a task of its own and has
no such callers; there, and for whatever stands behind ours, the comparison of every body that
leaves with the surface is what speaks.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware

from barograph.core.errors import SecondOwner, UsageError

_REWRITERS: Final = {
    "SummarizationMiddleware": "summarises the history",
    "_DeepAgentsSummarizationMiddleware": "summarises the history",
    "ContextEditingMiddleware": "clears old tool results",
    "AnthropicPromptCachingMiddleware": "places cache breakpoints",
    "_LazyAnthropicPromptCachingMiddleware": "places cache breakpoints",
    "BedrockPromptCachingMiddleware": "places cache breakpoints",
}
"""Middlewares that own what we own, by the name of their class or of a class they derive from."""

_WRITERS: Final = {
    "MemoryMiddleware": "writes its text into the system message after Barograph has seen it",
    "SkillsMiddleware": "writes its text into the system message after Barograph has seen it",
}
"""Those that are harmless ahead of ours and second owners behind it."""

_TAME: Final = frozenset({"UnsupportedContentMiddleware", "_ToolExclusionMiddleware"})
"""Those of `deepagents` that come last and act by fixed rules of the model: taken as part of it."""

_MOST_FRAMES: Final = 400
_DEEPEST: Final = 40


def check(agent: Any) -> None:
    """Refuse an agent in which another middleware owns the surface too.

    Args:
        agent: what `create_agent` or `create_deep_agent` returned.

    Raises:
        SecondOwner: names what to remove, and how.
        UsageError: it is no such agent, or Barograph is not in it.
    """
    nodes = getattr(agent, "nodes", None)
    if not isinstance(nodes, dict):
        raise UsageError(
            f"A {type(agent).__name__} is not an agent that can be looked into.",
            next_step="Pass what create_agent returned.",
        )
    found = list(_middlewares_in(nodes.values()))
    if not any(_is_ours(one) for one in found):
        raise UsageError(
            "Barograph is not among the middlewares of this agent.",
            next_step="Add it as the last one: create_agent(..., middleware=[..., Barograph()]).",
        )
    _refuse(_owners(found, ()))


def check_stack(ours: AgentMiddleware[Any, Any, Any]) -> None:
    """Refuse second owners in the list that `create_agent` is collecting, if it is.

    Warns of a middleware behind ours that sees each request after us.

    Raises:
        SecondOwner: names what to remove, and how.
    """
    stack = _stack_around(ours)
    if stack is None:
        return
    behind = stack[stack.index(ours) + 1 :]
    _refuse(_owners(stack, behind))
    late = [one.name for one in behind if _changes_requests(one)]
    if late:
        warnings.warn(
            f"Barograph is not the last middleware: {', '.join(late)} may change each request "
            "after it. Put Barograph() at the end of the list.",
            stacklevel=2,
        )


def check_callers() -> None:
    """Refuse second owners among the middlewares that this model call came through.

    Raises:
        SecondOwner: names what to remove, and how.
    """
    _refuse(_owners(_calling(), ()))


def _owners(
    stack: Iterable[AgentMiddleware[Any, Any, Any]],
    behind: Sequence[AgentMiddleware[Any, Any, Any]],
) -> dict[str, str]:
    """What each second owner does, by its name."""
    found: dict[str, str] = {}
    for one in stack:
        kinds = [kind.__name__ for kind in type(one).__mro__]
        told = _REWRITERS | (_WRITERS if one in behind else {})
        does = next((told[kind] for kind in kinds if kind in told), None)
        if does is not None:
            found[one.name] = does
    return found


def _refuse(owners: dict[str, str]) -> None:
    if not owners:
        return
    told = "; ".join(f"{name} {does}" for name, does in owners.items())
    writes = all(does in _WRITERS.values() for does in owners.values())
    raise SecondOwner(
        f"Barograph does not share the surface of an agent: {told}.",
        next_step=(
            "Leave out memory= and skills=, and give Barograph sources of the frame instead: "
            "`barograph.langchain.deep_agent_memory()` and `barograph.frame.skills()`."
            if writes
            else "Remove it from the list of middlewares. In deepagents, register the profile of "
            "`barograph.langchain.deep_agent_profile()`, which takes it out."
        ),
        middlewares=tuple(owners),
    )


def _is_ours(one: AgentMiddleware[Any, Any, Any]) -> bool:
    return any(kind.__module__ == "barograph.langchain.middleware" for kind in type(one).__mro__)


def _changes_requests(one: AgentMiddleware[Any, Any, Any]) -> bool:
    kind = type(one)
    wraps = (
        kind.wrap_model_call is not AgentMiddleware.wrap_model_call
        or kind.awrap_model_call is not AgentMiddleware.awrap_model_call
    )
    return wraps and kind.__name__ not in _TAME


def _stack_around(
    ours: AgentMiddleware[Any, Any, Any],
) -> list[AgentMiddleware[Any, Any, Any]] | None:
    """The list that a `create_agent` among our callers was given, if it holds ours."""
    for frame in _frames():
        if frame.f_code.co_name == "create_agent":
            stack = frame.f_locals.get("middleware")
            if isinstance(stack, Sequence) and any(one is ours for one in stack):
                return list(stack)
    return None


def _calling() -> Iterator[AgentMiddleware[Any, Any, Any]]:
    """The middlewares whose wraps are among our callers, ours included."""
    for frame in _frames():
        if frame.f_code.co_name in {"wrap_model_call", "awrap_model_call"}:
            one = frame.f_locals.get("self")
            if isinstance(one, AgentMiddleware):
                yield one


def _frames() -> Iterator[FrameType]:
    # An implementation of Python without frames has nothing to look at, and loses a convenience.
    frame: FrameType | None = sys._getframe(1) if hasattr(sys, "_getframe") else None  # noqa: SLF001
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _middlewares_in(roots: Iterable[Any]) -> Iterator[AgentMiddleware[Any, Any, Any]]:
    """Middlewares whose hooks the nodes of a graph call, found through their closures."""
    waiting = [(root, 0) for root in roots]
    met: set[int] = set()
    while waiting:
        item, depth = waiting.pop()
        if id(item) in met or depth > _DEEPEST:
            continue
        met.add(id(item))
        if isinstance(item, AgentMiddleware):
            yield item
            continue
        waiting.extend((inner, depth + 1) for inner in _held_by(item))


def _held_by(item: Any) -> Iterator[Any]:
    if isinstance(item, MethodType):
        yield from (item.__self__, item.__func__)
    elif isinstance(item, partial):
        yield from (item.func, *item.args, *item.keywords.values())
    elif isinstance(item, list | tuple):
        yield from item
    elif isinstance(item, FunctionType):
        yield from (cell.cell_contents for cell in item.__closure__ or () if _is_filled(cell))
        yield getattr(item, "__wrapped__", None)
    else:
        # a node of the graph, and the runnable that it is bound to
        yield from (getattr(item, name, None) for name in ("bound", "func", "afunc", "steps"))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
