"""The tools of the sources of the frame, as LangChain has tools."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, create_schema_from_function

from barograph.core.errors import BarographError, UsageError
from barograph.core.inputs import KeepWanted
from barograph.core.state import is_main
from barograph.core.texts import SOURCE_TOOL_BELOW, SOURCE_TOOL_OUTSIDE
from barograph.frame import Caller, Source, SourceTool
from barograph.langchain.asking import ASKING, Asking
from barograph.langchain.deferred import SEARCH_TOOLS
from barograph.langchain.header import ALWAYS_OFFERED, MAIN_ONLY
from barograph.langchain.tools import RECALL


def tools_of(sources: Iterable[Source]) -> tuple[BaseTool, ...]:
    """The tools of these sources, in their order.

    Raises:
        UsageError: two of them have one name, or one that a tool of ours has. An agent would
            offer one of the two, and say nothing of the other.
    """
    given = [(source, one) for source in sources for one in source.tools]
    names = Counter(
        [*(one.name for _, one in given), *(one.name for one in (*RECALL, SEARCH_TOOLS))]
    )
    twice = [one.name for _, one in given if names[one.name] > 1]
    if twice:
        raise UsageError(
            f"More than one tool has the name {twice[0]}.",
            next_step="Give each tool of the sources of the frame a name of its own.",
            tools=tuple(twice),
        )
    return tuple(_tool(source, one) for source, one in given)


def _tool(source: Source, given: SourceTool) -> BaseTool:
    main_only = not (source.subagents or given.subagents)
    first = next(iter(inspect.signature(given.run).parameters))
    return StructuredTool(
        name=given.name,
        description=inspect.getdoc(given.run) or "",
        args_schema=create_schema_from_function(given.name, given.run, filter_args=(first,)),
        func=_body(source.name, given.run, main_only=main_only),
        metadata={ALWAYS_OFFERED: True, MAIN_ONLY: main_only},
    )


def _body(source: str, run: Callable[..., str], *, main_only: bool) -> Callable[..., str]:
    def body(**arguments: Any) -> str:
        asking = ASKING.get()
        if asking is None:
            return SOURCE_TOOL_OUTSIDE
        if main_only and not is_main(asking.track.path):
            return SOURCE_TOOL_BELOW
        try:
            # A round asks for several at once: each is to see what the one before has kept.
            with asking.track.keeping:
                return run(_caller(source, asking), **arguments)
        except BarographError as error:
            return str(error)

    return body


def _caller(source: str, asking: Asking) -> Caller:
    track, at = asking.track, asking.clock()

    def keep(texts: Mapping[str, str]) -> None:
        track.session.take(KeepWanted(at=at, path=track.path, source=source, texts=texts))

    return Caller(
        session=track.session.id, path=track.path, at=at, state=track.session.state, keep=keep
    )
