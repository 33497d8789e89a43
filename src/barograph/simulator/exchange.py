"""The record of one HTTP request and its answer: all that an audit needs."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import Usage
from barograph.simulator.faults import Fault
from barograph.simulator.prefix import PromptBlock
from barograph.simulator.prepare import Prepared
from barograph.simulator.refusal import Refused
from barograph.simulator.script import DEFAULT_SESSION

# Credentials are in none of these.
_KEPT_HEADERS: Final = frozenset(
    {"anthropic-version", "anthropic-beta", "content-type", "user-agent", "x-stainless-retry-count"}
)


class Exchange(Struct, frozen=True, kw_only=True):
    """One HTTP request as received, and what came of it.

    Attributes:
        number: 1 for the first request the provider received, then counting.
        session: the session it named.
        index: index of the scripted reply it was for, from 0; -1 if it named no known session.
        attempt: the client's retry count, 0 for a first try.
        now_seconds: start of the request on the virtual clock.
        account: label of the API key; never the key.
        model: the model id, empty if the body could not be read.
        request: the body, byte for byte; empty if bodies are not kept.
        headers: names in lower case; those that hold no secret.
        status: HTTP status of the answer.
        response: the answer's JSON form, for a streamed answer too; empty if bodies are not kept.
        request_id: the `request-id` of the answer.
        streamed: whether the client asked for a stream.
        usage: the four parts of the prompt, and the output; None unless the status is 200.
        total_tokens: the whole prompt; 0 if it could not be read.
        blocks: the prompt block by block.
        hit: index into `blocks` of the last block read from the cache, None for none.
        response_headers: headers of the answer beside the usual ones.
        fault: the fault that struck it, None for none. After `hang` and `drop` there is no answer
            and `status` is 0; after `cut` and `error_event` the client got less than `response`.
    """

    number: int
    session: str
    index: int
    attempt: int
    now_seconds: float
    account: str
    model: str = ""
    request: bytes
    headers: Mapping[str, str]
    status: int
    response: bytes
    request_id: str
    streamed: bool = False
    usage: Usage | None = None
    total_tokens: int = 0
    blocks: tuple[PromptBlock, ...] = ()
    hit: int | None = None
    response_headers: Mapping[str, str] = {}
    fault: Fault | None = None

    def about(self, prepared: Prepared) -> "Exchange":
        """The same exchange, its prompt known."""
        return replace(
            self,
            blocks=prepared.prompt.blocks,
            total_tokens=prepared.total_tokens,
        )

    def refused(self, refusal: Refused) -> "Exchange":
        """The same exchange, answered with an error."""
        return replace(
            self,
            status=refusal.status,
            response=refusal.body(self.request_id),
            response_headers=refusal.headers,
        )


def received(
    number: int, body: bytes, headers: Mapping[str, str], *, request_id: str = ""
) -> Exchange:
    """The exchange as far as it is known when a request arrives."""
    retries = headers.get("x-stainless-retry-count", "0")
    return Exchange(
        number=number,
        session=headers.get("x-sim-session", DEFAULT_SESSION),
        index=-1,
        attempt=int(retries) if retries.isdecimal() else 0,
        now_seconds=0.0,
        account=account_of(headers),
        request=body,
        headers=kept_headers(headers),
        status=0,
        response=b"",
        request_id=request_id or f"req_sim_{number:06d}",
    )


def message_id_of(exchange: Exchange) -> str:
    """The id of the answer, the same for every attempt at one scripted reply."""
    seed = f"{exchange.session}\n{exchange.index}\n{exchange.model}".encode()
    return "msg_sim_" + blake2b(seed, digest_size=10).hexdigest()


def account_of(headers: Mapping[str, str]) -> str:
    """A label that tells API keys apart and gives none away."""
    key = headers.get("x-api-key") or headers.get("authorization") or ""
    return "key-" + blake2b(key.encode(), digest_size=4).hexdigest() if key else "no-key"


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are worth keeping and hold no secret."""
    return {
        name: value
        for name, value in headers.items()
        if name in _KEPT_HEADERS or name.startswith("x-sim-")
    }
