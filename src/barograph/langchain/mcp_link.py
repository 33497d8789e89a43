"""The connection to one tool server, opened again where it is lost.

All of it runs in one event loop. A connection is held by a task of its own, because it must be
closed where it was opened. Calls wait for their answer or for the end of the connection, whichever
comes first: the client does not always tell them.

A call that never left is made once more on a new connection. A call that left is not: nobody knows
whether the tool ran.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

import httpx
from anyio import BrokenResourceError, ClosedResourceError
from langchain_mcp_adapters.sessions import create_session
from mcp import ClientSession, McpError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    PaginatedRequestParams,
    ServerNotification,
    Tool,
    ToolListChangedNotification,
)

_log = logging.getLogger("barograph")
_T = TypeVar("_T")

_SESSION_GONE: Final = "Session terminated"
_MOST_PAGES: Final = 1_000


class NotAsked(Exception):
    """The server cannot be reached: the call did not leave."""


class Lost(Exception):
    """The server was asked and did not answer."""


class _Held:
    """An open connection, or one that is being opened.

    `is_one_call` says that a single call waited for an answer when it ended.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.is_one_call = False
        self.session: ClientSession | None = None
        self.closing = asyncio.Event()
        self.over = asyncio.Event()
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None


class Link:
    """The connection to one tool server.

    Args:
        name: of the server.
        connection: what `langchain-mcp-adapters` connects with.
        connect_seconds: how long a connection may take, its list of tools included.
        call_seconds: how long a call may take.

    Attributes:
        tools: every tool that it ever listed, by name, as it was first.
    """

    def __init__(
        self,
        name: str,
        connection: Mapping[str, Any],
        *,
        connect_seconds: float,
        call_seconds: float,
    ) -> None:
        self.name = name
        self.tools: dict[str, Tool] = {}
        self._connect_seconds = connect_seconds
        self._call_time = timedelta(seconds=call_seconds)
        given = dict(connection)
        # as desktop clients write it, where what is given tells the transport
        if "command" in given:
            given = {"transport": "stdio", "args": [], **given}
        else:
            given = {"transport": "streamable_http", **given}
        given["session_kwargs"] = {
            **(given.get("session_kwargs") or {}),
            "message_handler": self._hear,
        }
        self._connection: Any = given
        self._held: _Held | None = None
        self._opening: asyncio.Task[_Held] | None = None
        self._has_news = False

    async def open(self) -> None:
        """Connect, unless that is so.

        Raises:
            NotAsked: the server cannot be reached.
        """
        await self._connected()

    async def close(self) -> None:
        """Let go of the server."""
        if self._opening is not None:
            self._opening.cancel()
        held, self._held = self._held, None
        if held is not None:
            await _let_go(held)

    async def call(self, tool: str, arguments: dict[str, Any] | None) -> CallToolResult:
        """Call a tool.

        Raises:
            NotAsked: the server cannot be reached.
            Lost: it was asked and did not answer.
        """
        for is_last in (False, True):
            held = await self._connected()
            session = held.session
            if session is None:
                raise AssertionError(self.name)  # it is connected
            try:
                return await _ask(held, session.call_tool(tool, arguments, self._call_time))
            except Exception as error:
                never_left = _never_left(held, error)
                if held.over.is_set() or never_left or _is_gone(error):
                    await self._drop(held)
                if never_left and not is_last:
                    continue
                if never_left:
                    raise NotAsked(_words(error, held.error)) from error
                if held.over.is_set() or isinstance(error, McpError):
                    raise Lost(_words(error, held.error)) from error
                raise
        raise AssertionError(self.name)  # the second try returns or raises

    async def refresh(self) -> None:
        """Learn of new tools, if the server said that there are any; a failure waits for later."""
        held = self._held
        if not self._has_news or held is None or held.session is None:
            return
        try:
            async with asyncio.timeout(self._connect_seconds):
                await _ask(held, self._list(held.session))
        except Exception as error:  # noqa: BLE001 - whatever it is, the tools stay as they are
            self._has_news = True
            _log.warning("barograph: the tools of server %r stay as they are: %r", self.name, error)

    async def _connected(self) -> _Held:
        if self._held is not None:
            return self._held
        if self._opening is None:
            self._opening = asyncio.create_task(self._connect())
        return await asyncio.shield(self._opening)

    async def _connect(self) -> _Held:
        """Open a connection; all who wait for one share the try."""
        held = _Held()
        ready = asyncio.get_running_loop().create_future()
        held.task = asyncio.create_task(self._hold(held, ready))
        try:
            async with asyncio.timeout(self._connect_seconds):
                await asyncio.shield(ready)
        except TimeoutError as error:
            held.task.cancel()
            raise NotAsked(f"It took more than {self._connect_seconds:g} seconds.") from error
        except asyncio.CancelledError:
            held.task.cancel()
            raise
        except Exception as error:
            raise NotAsked(_words(error)) from error
        finally:
            self._opening = None
        self._held = held
        return held

    async def _hold(self, held: _Held, ready: asyncio.Future[None]) -> None:
        """Keep a connection open until it is to be closed, or breaks."""
        try:
            async with create_session(self._connection) as session:
                await session.initialize()
                await self._list(session)
                held.session = session
                ready.set_result(None)
                await held.closing.wait()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - told to who waits
            held.error = error
            if not ready.done():
                ready.set_exception(NotAsked(_words(error)))
                ready.exception()  # it may be that nobody waits any more
        finally:
            held.is_one_call = held.waiting == 1
            held.over.set()

    async def _list(self, session: ClientSession) -> None:
        """Learn what tools there are; those known before stay as they were."""
        self._has_news = False
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            for tool in page.tools:
                self.tools.setdefault(tool.name, tool)
            cursor = page.nextCursor
            if not cursor:
                return

    async def _drop(self, held: _Held) -> None:
        """Connect anew for the next call."""
        if self._held is held:
            self._held = None
        await _let_go(held)

    async def _hear(self, message: Any) -> None:
        if isinstance(message, ServerNotification):
            self._has_news |= isinstance(message.root, ToolListChangedNotification)


async def _ask(held: _Held, asking: Awaitable[_T]) -> _T:
    """The answer, or what ended the connection."""
    answer = asyncio.ensure_future(asking)
    over = asyncio.ensure_future(held.over.wait())
    held.waiting += 1
    try:
        await asyncio.wait((answer, over), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise Lost("The connection ended.")
    finally:
        held.waiting -= 1
        for one in (answer, over):
            one.cancel()
        await asyncio.gather(answer, over, return_exceptions=True)


async def _let_go(held: _Held) -> None:
    held.closing.set()
    if held.task is not None:
        await asyncio.wait((held.task,))


def _never_left(held: _Held, error: Exception) -> bool:
    """Whether the server cannot have seen a call that ended so."""
    if isinstance(error, ClosedResourceError | BrokenResourceError):
        return True  # the way to the client's own writer was closed
    if isinstance(error, McpError):
        told = error.error
        return told.code == INVALID_REQUEST and told.message == _SESSION_GONE
    # which of several calls could not connect is not said, and the others did leave
    is_refused = any(isinstance(one, httpx.ConnectError) for one in _leaves(held.error))
    return is_refused and held.is_one_call


def _is_gone(error: Exception) -> bool:
    return isinstance(error, McpError) and error.error.code == CONNECTION_CLOSED


def _words(*errors: BaseException | None) -> str:
    """What errors say, without the groups that they come in."""
    said = [
        str(one) if isinstance(one, NotAsked | Lost) else f"{type(one).__name__}: {one}"
        for error in errors
        for one in _leaves(error)
    ]
    return "; ".join(dict.fromkeys(one.rstrip(":. ") for one in said)) + "."


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    elif error is not None:
        yield error
