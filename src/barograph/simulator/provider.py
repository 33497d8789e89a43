"""The provider as a state machine: one request in, one exchange out, no socket anywhere.

The HTTP server is a thin skin over `SimulatedProvider.handle`; drivers that need no socket call it
directly. Headers it reads, beside the provider's own:

* `x-sim-session`: whose script answers; `default` if absent.
* `x-sim-call`: index of the scripted reply, from 0, instead of the session's own running index.
* `x-sim-now`: start of the request in seconds on the virtual clock.
* `x-sim-fault`: a fault that strikes this request; see `barograph.simulator.faults`.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from barograph.core.model import ModelFacts
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.binding import CONTROLS_BETA
from barograph.simulator.cache import PromptCache
from barograph.simulator.diagnostics import PENDING, Diagnostics
from barograph.simulator.exchange import Exchange, message_id_of, received
from barograph.simulator.faults import Fault, FaultPlan, fault_from, fault_of_header
from barograph.simulator.faulty import refusal_for, refusal_of_event, with_faulty_usage
from barograph.simulator.prepare import Prepared, Preparer
from barograph.simulator.record import Recorder
from barograph.simulator.refusal import Refused
from barograph.simulator.request import CURRENT_VERSION, Request, RequestReader
from barograph.simulator.rules import check_request, check_size, check_window
from barograph.simulator.script import DEFAULT_SESSION, Reply, Script, Stage
from barograph.simulator.strictness import betas_of, check_strictly
from barograph.simulator.switches import Switches
from barograph.simulator.tokens import TokenRule
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
        faults: faults to come; `fault` adds more.

    Attributes:
        exchanges: every request to create a message, with its answer.
        counts: every request to count tokens, with its answer.
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
        faults: Sequence[Fault] = (),
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.counts: list[Exchange] = []
        self._rule = rule or TokenRule()
        self._switches = switches or Switches()
        self._clock = clock or (lambda: 0.0)
        self._facts_of = facts or facts_of
        self._keep_bodies = keep_bodies
        self._recorder = Recorder(record_dir) if record_dir is not None else None
        self._reader = RequestReader(self._rule)
        self._cache = PromptCache(self._switches, rng)
        self._stage = Stage()
        self._preparer = Preparer(self._switches, self._reader.blocks)
        self._diagnostics = Diagnostics()
        self._faults = FaultPlan()
        self._received = 0
        self._lock = RLock()  # a script that is a function may register another script
        if script is not None:
            self.play(DEFAULT_SESSION, script)
        for fault in faults:
            self._faults.add(fault)

    @property
    def sessions(self) -> list[str]:
        """Names of the sessions that play."""
        return self._stage.sessions

    def play(self, session: str, script: Script) -> None:
        """Let a session answer by a script, from its beginning.

        Args:
            session: what requests name in `x-sim-session`.
            script: replies in order, or a function of the decoded request and the index.
        """
        with self._lock:
            self._stage.play(session, script)

    def fault(self, kind: str, **fields: Any) -> None:
        """Let requests fail.

        Args:
            kind: what goes wrong, as in `Fault`.
            fields: its other fields: `session`, `index`, `request`, `times` and what it takes.

        Raises:
            UsageError: there is no such fault, or it takes no such field.
        """
        with self._lock:
            self._faults.add(fault_from({"kind": kind, **fields}))

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
            exchange = self._answer(body, _lowered(headers))
            if self._recorder is not None:
                self._recorder.record(exchange)
            self.exchanges.append(self._kept(exchange))
            return exchange

    def count(self, body: bytes, headers: Mapping[str, str]) -> Exchange:
        """Answer one request to count tokens: it costs nothing and changes nothing.

        Args:
            body: JSON as it came.
            headers: names in any case.

        Returns:
            The exchange; it names no scripted reply. No fault strikes it and no file is made of it.
        """
        with self._lock:
            exchange = self._counted(body, _lowered(headers))
            self.counts.append(self._kept(exchange))
            return exchange

    def _kept(self, exchange: Exchange) -> Exchange:
        return exchange if self._keep_bodies else replace(exchange, request=b"", response=b"")

    def _counted(self, body: bytes, headers: Mapping[str, str]) -> Exchange:
        number = len(self.counts) + 1
        exchange = received(number, body, headers, request_id=f"req_sim_count_{number:06d}")
        try:
            request = self._read(body, headers, counting=True)
            exchange = replace(exchange, model=request.model)
            exchange = exchange.about(self._prepared(exchange.session, request, headers))
            response = msgspec.json.encode({"input_tokens": exchange.total_tokens})
            return replace(exchange, status=200, response=response)
        except Refused as refusal:
            return exchange.refused(refusal)

    def _answer(self, body: bytes, headers: Mapping[str, str]) -> Exchange:
        exchange = received(self._received, body, headers)
        pinned = "x-sim-call" in headers
        try:
            exchange = replace(exchange, now_seconds=self._now_seconds(headers))
            exchange = replace(exchange, index=self._index(exchange, headers))
            request = self._read(body, headers)
            exchange = replace(exchange, model=request.model, streamed=request.stream)
            prepared = self._prepared(exchange.session, request, headers)
            exchange = exchange.about(prepared)
            fault = self._fault_of(exchange, headers)
            exchange = replace(exchange, fault=fault)
            if fault is not None and fault.is_silent:
                return exchange
            reply = self._reply(exchange, prepared, body)
            if request.max_tokens > 0 and (fault is None or not fault.loses_answer):
                self._stage.delivered(exchange.session, exchange.index, pinned=pinned)
            return self._delivered(exchange, prepared, reply)
        except Refused as refusal:
            return exchange.refused(refusal)

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

    def _read(self, body: bytes, headers: Mapping[str, str], *, counting: bool = False) -> Request:
        check_size(body)
        version = headers.get("anthropic-version", CURRENT_VERSION)
        return self._reader.read(body, version, counting=counting)

    def _prepared(self, session: str, request: Request, headers: Mapping[str, str]) -> Prepared:
        """The request, checked and laid out."""
        betas = betas_of(headers.get("anthropic-beta", ""))
        check_request(request)
        check_strictly(request, betas, self._switches)
        return self._preparer.prepare(session, request, betas)

    def _fault_of(self, exchange: Exchange, headers: Mapping[str, str]) -> Fault | None:
        brought = headers.get("x-sim-fault")
        fault = None if brought is None else fault_of_header(brought, exchange.attempt)
        if fault is None:
            fault = self._faults.strike(exchange.number, exchange.session, exchange.index)
        return fault

    def _reply(self, exchange: Exchange, prepared: Prepared, body: bytes) -> Reply:
        """The scripted reply, as far as the model's window has room for it.

        Raises:
            Refused: the fault or the window refuses the request, or the script has no reply.
        """
        request, fault = prepared.request, exchange.fault
        total, facts = prepared.total_tokens, self._facts_of(request.model)
        if fault is not None:
            most, window = request.max_tokens, facts.window_tokens
            refusal = refusal_for(fault, total=total, most=most, window=window)
            if fault.kind == "error_event" and not exchange.streamed:
                refusal = refusal_of_event(fault)
            if refusal is not None:
                raise refusal
        check_window(request, total, facts)
        if request.max_tokens == 0:
            return _PREWARMED
        reply = self._stage.reply(exchange.session, exchange.index, body)
        tokens, room = reply.tokens(self._rule), facts.window_tokens - total
        if fault is not None and fault.kind == "overflow":
            room = min(room, tokens // 2)
        return reply if tokens <= room else reply.stopped_at(room, self._rule)

    def _delivered(self, exchange: Exchange, prepared: Prepared, reply: Reply) -> Exchange:
        """The response begins: only now does anything change in the cache."""
        facts = self._facts_of(exchange.model)
        scope, now_seconds, fault = exchange.account, exchange.now_seconds, exchange.fault
        slow_seconds = (fault.virtual_seconds or 0.0) if fault is not None else 0.0
        lookup = self._cache.look_up(scope, exchange.blocks, facts, now_seconds)
        self._cache.store(scope, exchange.blocks, lookup, now_seconds, slow_seconds=slow_seconds)
        usage = replace(lookup.usage, output_tokens=reply.tokens(self._rule))
        message_id = message_id_of(exchange)
        diagnosis = self._diagnostics.diagnose(scope, prepared.request, message_id)
        if diagnosis is not None and self._switches.diagnostics_pending:
            diagnosis = PENDING
        told = prepared.thinking.transformations if CONTROLS_BETA in prepared.betas else None
        response = message_json(
            message_id=message_id,
            model=exchange.model,
            content=self._preparer.sealed(prepared, reply.blocks()),
            stop_reason=reply.reason(),
            usage=usage,
            diagnostics=diagnosis,
            input_transformations=told,
        )
        if fault is not None:
            response = with_faulty_usage(response, fault)
        return replace(exchange, status=200, response=response, usage=usage, hit=lookup.hit)


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): headers[name] for name in headers}


_Number = TypeVar("_Number", int, float)


def _number(name: str, text: str, kind: type[_Number]) -> _Number:
    try:
        return kind(text)
    except ValueError as error:
        raise Refused(f"{name}: Input should be a number, not '{text}'") from error
