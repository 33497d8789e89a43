"""See the bytes that leave, and the bytes that come back.

The stock client builds the body far below the middleware, and shares its HTTP client between
models. One pair of hooks is installed on that HTTP client, once; a `ContextVar` set around the call
says whose bytes they are, in threads and tasks alike. Requests that nobody watches pass untouched.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import httpx2
from msgspec import Struct

from barograph.core.errors import SurfaceError
from barograph.core.events import Ttl
from barograph.providers.anthropic.response import Answer, read_response

_OK = 200
_OF_ONE_BODY = frozenset({"content-length", "transfer-encoding", "host", "idempotency-key"})
_RESEND_SECONDS = 30.0
"""Nobody waits for it, and its entry dies soon."""


class Envelope(Struct, frozen=True):
    """Where a request went, and its headers: keys and beta features are in them. Never stored."""

    url: str
    headers: tuple[tuple[str, str], ...]


class Watch:
    """One call under way.

    Args:
        on_body: told each body before its bytes leave; what it raises stops the request.
        on_begin: told when a response that is no error begins.
        ttl: lifetime to book a cache write under that the provider does not split.
    """

    def __init__(
        self, on_body: Callable[[bytes], None], on_begin: Callable[[], None], ttl: Ttl
    ) -> None:
        self.on_body = on_body
        self.on_begin = on_begin
        self.bodies = 0
        self.stopped_by: Exception | None = None
        self.request_id: str | None = None
        self.envelope: Envelope | None = None
        self._ttl = ttl
        self._chunks: list[bytes] = []
        self._is_stream = False
        self._is_readable = False

    def leave(self, request: httpx2.Request) -> None:
        """A request is about to be sent."""
        # What comes back must be readable as it passes; an event stream gains nothing from zipping.
        request.headers["accept-encoding"] = "identity"
        self.bodies += 1
        self.envelope = Envelope(str(request.url), tuple(request.headers.items()))
        if isinstance(self.stopped_by, SurfaceError):
            raise self.stopped_by  # the client tries again, with the same bytes
        self.stopped_by = None
        try:
            self.on_body(request.content)
        except Exception as error:
            # the client will take it for a failed connection; the caller must see what it was
            self.stopped_by = error
            raise

    def arrive(self, response: httpx2.Response) -> bool:
        """A response begins; whether its bytes are wanted."""
        self._chunks = []
        self.request_id = response.headers.get("request-id")
        self._is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if response.status_code == _OK:
            self.on_begin()
        encoding = response.headers.get("content-encoding", "identity")
        self._is_readable = response.status_code == _OK and encoding == "identity"
        return self._is_readable

    def collect(self, chunk: bytes) -> None:
        """Bytes of the response passed by."""
        self._chunks.append(chunk)

    def answer(self) -> Answer | None:
        """What the response said; None where it could not be seen or read."""
        if not self._is_readable:
            return None
        return read_response(b"".join(self._chunks), streamed=self._is_stream, ttl=self._ttl)


WATCH: ContextVar[Watch | None] = ContextVar("barograph_watch", default=None)


def resend(model: Any, envelope: Envelope, body: bytes, watch: Watch) -> httpx2.Response | None:
    """Send a body as an earlier one was sent, by the model's own client and watched, in a thread.

    None where that client is not known. Nothing is tried twice.

    Raises:
        httpx2.HTTPError: nothing came back.
    """
    if not install(model, is_async=False):
        return None
    headers = [pair for pair in envelope.headers if pair[0].lower() not in _OF_ONE_BODY]
    token = WATCH.set(watch)
    try:
        client: httpx2.Client = model._client._client  # noqa: SLF001 - as in `install`
        return client.post(envelope.url, content=body, headers=headers, timeout=_RESEND_SECONDS)
    finally:
        WATCH.reset(token)


def install(model: Any, *, is_async: bool) -> bool:
    """Put the hooks on the HTTP client of a model, unless they are there.

    The clients are private to the stock model (`langchain_anthropic` offers no public seam), so a
    model that has none is simply not observed.

    Returns:
        Whether bodies of this model will be seen.
    """
    sdk = getattr(model, "_async_client" if is_async else "_client", None)
    client = getattr(sdk, "_client", None)
    hooks = getattr(client, "event_hooks", None)
    if not isinstance(hooks, dict):
        return False
    request, response = (
        (_on_request_async, _on_response_async) if is_async else (_on_request, _on_response)
    )
    if request not in hooks["request"]:
        hooks["request"].append(request)
        hooks["response"].append(response)
    return True


def _on_request(request: httpx2.Request) -> None:
    watch = WATCH.get()
    if watch is not None:
        watch.leave(request)


def _on_response(response: httpx2.Response) -> None:
    watch = WATCH.get()
    if watch is not None and watch.arrive(response):
        response.stream = _Tee(response.stream, watch)


async def _on_request_async(request: httpx2.Request) -> None:
    _on_request(request)


async def _on_response_async(response: httpx2.Response) -> None:
    watch = WATCH.get()
    if watch is not None and watch.arrive(response):
        response.stream = _AsyncTee(response.stream, watch)


class _Tee(httpx2.SyncByteStream):
    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._watch.collect(chunk)
            yield chunk

    def close(self) -> None:
        self._stream.close()


class _AsyncTee(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._watch.collect(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
