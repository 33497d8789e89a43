"""The provider as a state machine: one request in, one exchange out, no socket anywhere.

The HTTP server is a thin skin over `SimulatedProvider.handle`; drivers that need no socket call it
directly. Headers it reads, beside the provider's own:

* `x-sim-session`: whose script answers; `default` if absent.
* `x-sim-call`: index of the scripted reply, from 0, instead of the session's own running index.
* `x-sim-now`: start of the request in seconds on the virtual clock.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from random import Random
from threading import RLock
from typing import Final, TypeVar

from msgspec.structs import replace

from barograph.core.model import ModelFacts
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.cache import PromptCache
from barograph.simulator.exchange import Exchange, account_of, kept_headers
from barograph.simulator.prefix import EMPTY_PROMPT, Prompt, extend_prompt
from barograph.simulator.record import Recorder
from barograph.simulator.refusal import Refused
from barograph.simulator.request import CURRENT_VERSION, Request, RequestReader
from barograph.simulator.rules import check_request, check_window
from barograph.simulator.script import DEFAULT_SESSION, Reply, Script, Stage
from barograph.simulator.switches import Switches
from barograph.simulator.tokens import TokenRule, size_of_block
from barograph.simulator.wire import message_json

_PREWARMED: Final = Reply(content=(), stop_reason="max_tokens", output_tokens=0)


class SimulatedProvider:
    """A provider with scripted models and the real one's cache rules.

    Args:
        script: script of the session `default`.
        rule: how tokens are counted.
        switches: undocumented behaviour.
        rng: where random misses come from.
        clock: seconds for requests without `x-sim-now`; frozen at 0.0 if None.
        facts: facts of a model by its id; the dated table if None.
        keep_bodies: whether `exchanges` keeps request and response bodies.
        record_dir: a folder for files of every exchange, None for none.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        rule: TokenRule | None = None,
        switches: Switches | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        facts: Callable[[str], ModelFacts] | None = None,
        keep_bodies: bool = True,
        record_dir: Path | None = None,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._rule = rule or TokenRule()
        self._switches = switches or Switches()
        self._clock = clock or (lambda: 0.0)
        self._facts_of = facts or facts_of
        self._keep_bodies = keep_bodies
        self._recorder = Recorder(record_dir) if record_dir is not None else None
        self._reader = RequestReader(self._rule)
        self._cache = PromptCache(self._switches, rng)
        self._stage = Stage()
        self._prompts: dict[tuple[str, str], Prompt] = {}
        self._received = 0
        self._lock = RLock()  # a script that is a function may register another script
        if script is not None:
            self.play(DEFAULT_SESSION, script)

    def play(self, session: str, script: Script) -> None:
        """Let a session answer by a script, from its beginning.

        Args:
            session: what requests name in `x-sim-session`.
            script: replies in order, or a function of the decoded request and the index.
        """
        with self._lock:
            self._stage.play(session, script)

    def handle(self, body: bytes, headers: Mapping[str, str]) -> Exchange:
        """Answer one request to create a message.

        Args:
            body: JSON as it came.
            headers: names in any case.

        Returns:
            The exchange, bodies included whatever `keep_bodies` says. A refusal is an exchange
            too, with the provider's status and error body.
        """
        with self._lock:
            self._received += 1
            exchange = self._answer(body, {name.lower(): headers[name] for name in headers})
            if self._recorder is not None:
                self._recorder.record(exchange)
            kept = exchange
            if not self._keep_bodies:
                kept = replace(exchange, request=b"", response=b"")
            self.exchanges.append(kept)
            return exchange

    def _answer(self, body: bytes, headers: Mapping[str, str]) -> Exchange:
        exchange = _received(self._received, body, headers)
        pinned = "x-sim-call" in headers
        try:
            exchange = replace(exchange, now_seconds=self._now_seconds(headers))
            exchange = replace(exchange, index=self._index(exchange, headers))
            version = headers.get("anthropic-version", CURRENT_VERSION)
            request = self._reader.read(body, version)
            exchange = replace(exchange, model=request.model, streamed=request.stream)
            check_request(request)
            exchange = self._counted(exchange, request)
            check_window(exchange.total_tokens, self._facts_of(request.model))
            if request.max_tokens == 0:
                return self._delivered(exchange, _PREWARMED)
            reply = self._stage.reply(exchange.session, exchange.index, body)
            self._stage.delivered(exchange.session, exchange.index, pinned=pinned)
            return self._delivered(exchange, reply)
        except Refused as refusal:
            response = refusal.body(exchange.request_id)
            return replace(exchange, status=refusal.status, response=response)

    def _now_seconds(self, headers: Mapping[str, str]) -> float:
        now = headers.get("x-sim-now")
        now_seconds = self._clock() if now is None else _number("x-sim-now", now, float)
        if not isfinite(now_seconds):
            raise Refused(f"x-sim-now: Input should be a finite number, not '{now}'")
        return now_seconds

    def _index(self, exchange: Exchange, headers: Mapping[str, str]) -> int:
        call = headers.get("x-sim-call")
        pinned = None if call is None else _number("x-sim-call", call, int)
        return self._stage.index_of(exchange.session, attempt=exchange.attempt, pinned=pinned)

    def _counted(self, exchange: Exchange, request: Request) -> Exchange:
        key = (exchange.session, request.model)
        prompt = extend_prompt(self._prompts.get(key, EMPTY_PROMPT), request, self._switches)
        self._prompts[key] = prompt
        total_tokens = sum(block.tokens for block in prompt.blocks)
        return replace(exchange, blocks=prompt.blocks, total_tokens=total_tokens)

    def _delivered(self, exchange: Exchange, reply: Reply) -> Exchange:
        """The response begins: only now does anything change in the cache."""
        facts = self._facts_of(exchange.model)
        scope, now_seconds = exchange.account, exchange.now_seconds
        lookup = self._cache.look_up(scope, exchange.blocks, facts, now_seconds)
        self._cache.store(scope, exchange.blocks, lookup, now_seconds)
        usage = replace(lookup.usage, output_tokens=self._output_tokens(reply))
        response = message_json(
            message_id=_message_id(exchange),
            model=exchange.model,
            content=reply.blocks(),
            stop_reason=reply.reason(),
            usage=usage,
        )
        return replace(exchange, status=200, response=response, usage=usage, hit=lookup.hit)

    def _output_tokens(self, reply: Reply) -> int:
        if reply.output_tokens is not None:
            return reply.output_tokens
        return sum(self._rule.tokens_of(size_of_block(block)) for block in reply.blocks())


def _received(number: int, body: bytes, headers: Mapping[str, str]) -> Exchange:
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
        request_id=f"req_sim_{number:06d}",
    )


_Number = TypeVar("_Number", int, float)


def _number(name: str, text: str, kind: type[_Number]) -> _Number:
    try:
        return kind(text)
    except ValueError as error:
        raise Refused(f"{name}: Input should be a number, not '{text}'") from error


def _message_id(exchange: Exchange) -> str:
    """The same for every attempt at one scripted reply."""
    seed = f"{exchange.session}\n{exchange.index}\n{exchange.model}".encode()
    return "msg_sim_" + blake2b(seed, digest_size=10).hexdigest()
