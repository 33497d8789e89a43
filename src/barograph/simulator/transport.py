"""The HTTP skin: exchanges as responses, and the failures that only a connection can show.

Nothing here knows a rule of the provider.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from barograph.simulator.exchange import Exchange
from barograph.simulator.faulty import refusal_of_event
from barograph.simulator.provider import SimulatedProvider
from barograph.simulator.refusal import NOT_FOUND, Refused
from barograph.simulator.wire import error_event, stream_of

try:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError(
        "The simulator's server needs starlette and uvicorn: pip install 'barograph[simulator]'"
    ) from error

_DEFAULT_EVENTS: Final = 2
_POLL_SECONDS: Final = 0.02
_STREAM: Final = "text/event-stream"
_JSON: Final = "application/json"

# Open connections by the client's address.
Connections = dict[tuple[str, int], asyncio.Transport]


def protocol_of(connections: Connections) -> type[asyncio.Protocol]:
    """The server's protocol, which notes its connections so that they can be closed."""

    class NotedProtocol(H11Protocol):
        """HTTP/1.1, with its connection noted."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Note the connection."""
            connections[transport.get_extra_info("peername")[:2]] = transport
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the connection."""
            connections.pop(self.transport.get_extra_info("peername")[:2], None)
            super().connection_lost(exc)

    return NotedProtocol


def application_of(
    provider: SimulatedProvider, connections: Connections, is_stopping: Callable[[], bool]
) -> Starlette:
    """The application that answers for a provider.

    Args:
        provider: who answers.
        connections: where the server notes its connections.
        is_stopping: whether the server is to end, so that nothing may hang on.
    """

    async def create_message(request: Request) -> Response:
        exchange = provider.handle(await request.body(), request.headers)
        fault = exchange.fault
        if fault is None:
            return _response(exchange)
        if fault.delay_seconds:
            await _unless(is_stopping, asyncio.sleep(fault.delay_seconds))
        if not fault.is_silent and not (exchange.status == 200 and fault.loses_answer):
            return _response(exchange)
        return _Broken(exchange, connections, is_stopping)

    async def count_tokens(request: Request) -> Response:
        return _response(provider.count(await request.body(), request.headers))

    async def unknown(request: Request, error: Exception) -> Response:
        refusal = Refused(
            f"{request.method} {request.url.path} is not simulated: {error}",
            status=404,
            kind=NOT_FOUND,
        )
        return _refused(refusal)

    async def crashed(_request: Request, error: Exception) -> Response:
        refusal = Refused(f"the simulator failed: {error!r}", status=500, kind="api_error")
        return _refused(refusal)

    return Starlette(
        routes=[
            Route("/v1/messages", create_message, methods=["POST"]),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
        ],
        exception_handlers={404: unknown, 405: unknown, Exception: crashed},
    )


class _Broken(Response):
    """An answer that the client does not get, or not whole."""

    def __init__(
        self, exchange: Exchange, connections: Connections, is_stopping: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._exchange, self._connections = exchange, connections
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what the fault lets through, and close the connection where it says so."""
        fault = self._exchange.fault
        if fault is None or fault.kind == "hang":
            await _unless(self._is_stopping, _gone(receive))
        elif fault.kind == "error_event":
            await _stream(self._exchange, _beginning(self._exchange), send)
            await send({"type": "http.response.body", "body": b""})
            return
        elif fault.kind == "cut" and self._exchange.streamed:
            await _stream(self._exchange, _beginning(self._exchange), send)
        elif fault.kind == "cut":
            await _half(self._exchange, send)
        await self._close(scope, receive)

    async def _close(self, scope: Scope, receive: Receive) -> None:
        transport = self._connections.get(tuple(scope["client"][:2]))
        if transport is not None:
            transport.close()
        await _gone(receive)


async def _gone(receive: Receive) -> None:
    """Wait until the connection is closed."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless(is_stopping: Callable[[], bool], work: Any) -> None:
    """Wait for something, but no longer than the server runs."""
    task = asyncio.ensure_future(work)
    while not task.done() and not is_stopping():
        await asyncio.wait({task}, timeout=_POLL_SECONDS)
    task.cancel()


def _beginning(exchange: Exchange) -> bytes:
    """The part of a stream that comes before its fault, and the fault if it is an event."""
    fault = exchange.fault
    events = _DEFAULT_EVENTS if fault is None or fault.after_events is None else fault.after_events
    body = b"".join(list(stream_of(exchange.response))[:events])
    if fault is not None and fault.kind == "error_event":
        body += error_event(refusal_of_event(fault).body(exchange.request_id))
    return body


async def _stream(exchange: Exchange, body: bytes, send: Send) -> None:
    headers = [(b"content-type", _STREAM.encode()), (b"request-id", exchange.request_id.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _half(exchange: Exchange, send: Send) -> None:
    """The first half of an answer whose header promises the whole."""
    whole = exchange.response
    headers = [(b"content-type", _JSON.encode()), (b"content-length", str(len(whole)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    body = whole[: len(whole) // 2]
    await send({"type": "http.response.body", "body": body, "more_body": True})


def _refused(refusal: Refused) -> Response:
    return Response(refusal.body("req_sim_none"), refusal.status, media_type=_JSON)


def _response(exchange: Exchange) -> Response:
    headers = {"request-id": exchange.request_id, **exchange.response_headers}
    if exchange.streamed and exchange.status == 200:
        body = b"".join(stream_of(exchange.response))
        return Response(body, headers=headers, media_type=_STREAM)
    return Response(exchange.response, exchange.status, headers=headers, media_type=_JSON)
