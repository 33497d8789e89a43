"""Tools of MCP servers, as an agent with a stable prefix needs them.

The tools come first in every request, so their list is a promise: the same servers give the same
bytes in every process, whichever of them answered first and however they spell a schema. In
mid-session the list only widens. A tool that its server no longer has stays in it, and a call of it
gets the server's own answer; a server that went away is connected to again by the next call of one
of its tools. A definition stays as it was first listed, until the servers are opened anew.

The connections live in a thread of their own, with one event loop for all: agents may be sync or
async, and in any loop. What goes wrong at a server is the result of the call, never an exception.
Results are bounded as those of all tools are (`Policy.mcp_max_result_chars`).
"""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from threading import RLock, get_ident
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool, StructuredTool
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from mcp.types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, Tool

from barograph.core.errors import ServerUnreachable, UsageError
from barograph.core.texts import failed, server_failed, server_lost
from barograph.core.tooling import ToolOfServer, name_server_tools, settled_schema
from barograph.langchain.calls import SERVER
from barograph.langchain.header import name_of
from barograph.langchain.mcp_link import Link, Lost, NotAsked
from barograph.langchain.mcp_names import Namesakes

_T = TypeVar("_T")
_Coroutine: TypeAlias = Callable[..., Awaitable[Any]]

_SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
_NO_KIND: Final = "unknown kind"

_GIVEN: Final = "given"
"""By this name a tool of the adapters gets all arguments in one."""


class McpServers(AgentMiddleware[Any, Any, Any]):
    """The tools of some MCP servers, while it is open; a middleware ahead of `Barograph`.

    ```python
    with McpServers({"files": {"command": "files-server"}}) as servers:
        agent = create_agent(model, tools, middleware=[servers, Barograph()])
    ```

    Args:
        servers: by name, what `langchain-mcp-adapters` connects with: `command`, `args` and `env`,
            or `url` and `headers`; `transport` where these do not tell it.
        connect_seconds: how long a connection may take, its list of tools included.
        call_seconds: how long a call of a tool may take.
    """

    def __init__(
        self,
        servers: Mapping[str, Mapping[str, Any]],
        *,
        connect_seconds: float = 30.0,
        call_seconds: float = 300.0,
    ) -> None:
        self._links = {
            name: Link(
                name,
                servers[name],
                connect_seconds=connect_seconds,
                call_seconds=call_seconds,
            )
            for name in sorted(servers)
        }
        self._portal: BlockingPortal | None = None
        self._thread = 0
        self._stack = ExitStack()
        self._tools: dict[ToolOfServer, BaseTool] = {}
        self._first: frozenset[str] = frozenset()
        self._namesakes = Namesakes()
        self._lock = RLock()

    @property
    def tools(self) -> Sequence[BaseTool]:  # type: ignore[override]  # a value in the base class
        """All tools by server and name, then those that came later; `create_agent` takes them.

        Raises:
            UsageError: the servers are not open.
        """
        self._opened()
        return list(self._tools.values())

    def __enter__(self) -> Self:
        """Connect to all servers.

        Raises:
            ServerUnreachable: one of them does not answer. A session that began without its tools
                would have to change them later.
        """
        self._portal = self._stack.enter_context(start_blocking_portal(name="barograph-mcp"))
        try:
            self._thread = self._portal.call(get_ident)
            self._portal.call(self._open_all)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._widen()
        self._first = frozenset(tool.name for tool in self._tools.values())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of all servers."""
        portal, self._portal = self._portal, None
        if portal is not None:
            portal.call(self._close_all)
            self._stack.close()

    async def __aenter__(self) -> Self:
        """Connect to all servers; the loop that waits is not the one they live in."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of all servers."""
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Offer what is new since the agent was built."""
        self._opened().call(self._refresh_all)
        return handler(self._with_new_tools(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        await self.there(self._refresh_all)
        return await handler(self._with_new_tools(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a tool that the agent was built without."""
        return handler(self._with_tool(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        return await handler(self._with_tool(request))

    async def there(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """What a coroutine gives in the loop of the servers; it is cancelled with who waits."""
        portal = self._opened()
        if get_ident() == self._thread:
            return await work()
        return await asyncio.wrap_future(portal.start_task_soon(work))

    def _with_new_tools(self, request: Any) -> Any:
        self._widen()
        ours = list(self._tools.values())
        self._namesakes.look(ours, request.tools)
        there = set(map(name_of, request.tools))
        new = [tool for tool in ours if tool.name not in self._first and tool.name not in there]
        return request.override(tools=[*request.tools, *new]) if new else request

    def _with_tool(self, request: Any) -> Any:
        if request.tool is not None:
            return request
        called = request.tool_call["name"]
        found = (tool for tool in self._tools.values() if tool.name == called)
        tool = next(found, None)
        return request if tool is None else request.override(tool=tool)

    def _widen(self) -> None:
        """Take in the tools that servers list and that are not known yet."""
        with self._lock:
            listed = {
                (link.name, name): tool
                for link in self._links.values()
                for name, tool in list(link.tools.items())
            }
            taken = {one: tool.name for one, tool in self._tools.items()}
            names = name_server_tools(listed, taken)
            for one in sorted(listed.keys() - taken.keys()):
                self._tools[one] = self._tool_of(self._links[one[0]], listed[one], names[one])

    def _tool_of(self, link: Link, listed: Tool, name: str) -> BaseTool:
        """A tool of LangChain that asks the server."""
        proxy: Any = _Asked(self, link)
        tool = cast(
            "StructuredTool",
            convert_mcp_tool_to_langchain_tool(proxy, listed, server_name=link.name),
        )
        return _ServerTool(
            name=name,
            description=tool.description,
            args_schema=settled_schema({"type": "object", **listed.inputSchema}),
            metadata={**(tool.metadata or {}), SERVER: link.name},
            response_format=tool.response_format,
            handle_tool_error=tool.handle_tool_error,
            func=self._in_threads(cast("_Coroutine", tool.coroutine)),
            coroutine=tool.coroutine,
        )

    def _in_threads(self, coroutine: _Coroutine) -> Callable[..., Any]:
        """A tool as agents run it that are sync."""

        def run(**arguments: Any) -> Any:
            return self._opened().call(partial(coroutine, **arguments))

        return run

    async def _open_all(self) -> None:
        opened = await asyncio.gather(
            *(link.open() for link in self._links.values()), return_exceptions=True
        )
        for link, error in zip(self._links.values(), opened, strict=True):
            if isinstance(error, NotAsked):
                raise ServerUnreachable(
                    f"The tool server {link.name!r} cannot be connected to. {error}",
                    next_step="Start it, correct how it is connected to, or leave it out.",
                    server=link.name,
                ) from error
            if error is not None:
                raise error

    async def _close_all(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def _refresh_all(self) -> None:
        await asyncio.gather(*(link.refresh() for link in self._links.values()))

    def _opened(self) -> BlockingPortal:
        if self._portal is None:
            raise UsageError(
                f"The tool servers {', '.join(self._links)} are not open.",
                next_step="Use their tools inside `with McpServers(...) as servers:`.",
            )
        return self._portal


class _ServerTool(StructuredTool):
    """A tool whose arguments have any name: LangChain takes some of them for its own."""

    def _run(self, /, *_: Any, **arguments: Any) -> Any:
        return cast("_Coroutine", self.func)(**{_GIVEN: arguments})

    async def _arun(self, /, *_: Any, **arguments: Any) -> Any:
        return await cast("_Coroutine", self.coroutine)(**{_GIVEN: arguments})


class _Asked:
    """What a tool takes for its session: each call goes to the link, wherever the agent runs."""

    def __init__(self, servers: McpServers, link: Link) -> None:
        self._servers, self._link = servers, link

    async def call_tool(
        self, name: str, arguments: dict[str, Any], **_more: object
    ) -> CallToolResult:
        """The result; what went wrong is one too."""
        server, given = self._link.name, arguments[_GIVEN]
        try:
            result = await self._servers.there(partial(self._link.call, name, given))
        except (NotAsked, UsageError) as error:
            return _error(server_failed(server, str(error)))
        except Lost as error:
            return _error(server_lost(server, str(error)))
        except Exception as error:  # noqa: BLE001 - the model is told, and the agent goes on
            return _error(failed(f"{type(error).__name__}: {error}"))
        return result.model_copy(update={"content": list(_readable(result.content))})


def _error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], isError=True)


def _readable(blocks: Iterable[Any]) -> Iterable[Any]:
    """Content that a provider takes: one block that it refuses would end the whole session."""
    for block in blocks:
        left_out = _left_out(block)
        if left_out is None:
            yield block
        else:
            yield TextContent(type="text", text=f"[Left out: {left_out}.]")


def _left_out(block: Any) -> str | None:
    """What a block is that a note stands for: sound, files of most kinds, and links to any."""
    if isinstance(block, ResourceLink):
        return f"{block.mimeType or _NO_KIND} at {block.uri}"
    if isinstance(block, EmbeddedResource):
        block = block.resource
    data = getattr(block, "data", getattr(block, "blob", None))
    if data is None:
        return None
    if data and block.mimeType in _SHOWN and _is_base64(data):
        return None
    return f"{block.mimeType or _NO_KIND}, {len(data):,} characters of base64"


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except ValueError:
        return False
    return True
