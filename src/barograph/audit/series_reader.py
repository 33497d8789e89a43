"""Read the series of a session, mostly without its bodies.

**Theory of operation.** Tokens, costs and times stand in the events themselves, so the rows need no
stored body. Where a call was the first of its path, or read all that there was to read, that is its
verdict. Only where one read less is the whole log folded and the bytes compared, as `why` does.

**Invariants.** Every verdict is the one that `why` gives.
"""

from itertools import chain
from typing import Any

from msgspec.structs import replace

from barograph.audit.reading import RECOVERED, Outcome, codec_of, read_session, recovery_of
from barograph.audit.series import Series, SeriesRow, series_of
from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Event,
    Forked,
    HeaderSet,
    KeptWarm,
    RequestSent,
    ResponseCame,
    Usage,
)
from barograph.core.model import Codec
from barograph.core.verdict import Verdict
from barograph.simulator.prices import cost_usd
from barograph.store.protocol import Store


def read_series(store: Store, session: str) -> Series:
    """The series of a session.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    events = iter(store.read(session, bodies=False))
    head = [event for event in (next(events, None),) if event is not None]
    codec, _ = codec_of(session, head)
    reader = _Reader(codec)
    for seq, event in chain(head, events):
        reader.take(seq, event)
    rows = reader.rows
    if reader.unexplained:
        logged = read_session(store, session)
        for number in reader.unexplained:
            rows[number] = _explained(rows[number], logged.call(number).verdict(codec))
    return series_of(session, tuple(rows[number] for number in sorted(rows)))


class _Reader:
    """Rows so far, and per path what its next call is compared with."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.rows: dict[int, SeriesRow] = {}
        self.unexplained: list[int] = []
        self._models: dict[int, str] = {}
        self._plans: dict[int, CallPlanned] = {}
        self._before: dict[int, ResponseCame | None] = {}
        self._began: dict[str, float] = {}
        self._answered: dict[str, ResponseCame] = {}
        self._kept: dict[str, str] = {}

    def take(self, seq: int, event: Event) -> None:
        match event:
            case HeaderSet():
                self._models[seq] = event.model
            case Forked() if event.of in self._answered:
                self._answered[event.path] = self._answered[event.of]
            case KeptWarm() if event.path in self._answered:
                self._kept[event.by] = event.path
                self._answered[event.by] = self._answered[event.path]
            case CallPlanned():
                self._plan(event)
            case RequestSent() if event.call in self.rows:
                self._before[event.call] = self._answered.get(event.path)
                self._update(
                    event.call,
                    model=self._models.get(event.header, ""),
                    attempts=event.attempt,
                    outcome="unanswered",
                )
            case AttemptFailed() if event.call in self.rows and event.cause in RECOVERED:
                self._update(event.call, recovery="open")
            case CallFailed() if event.call in self.rows:
                if self.rows[event.call].outcome != "answered":
                    self._end(event.call, "failed")
            case ResponseCame() if event.call in self.rows:
                self._answer(event)
            case _:
                pass

    def _plan(self, event: CallPlanned) -> None:
        began = self._began.get(event.path)
        self._began[event.path] = event.at
        self._plans[event.call] = event
        known = self.rows.get(event.call)  # it is planned again
        self.rows[event.call] = SeriesRow(
            call=event.call,
            path=event.path,
            turn=event.turn,
            round=event.round,
            at=event.at,
            gap_seconds=None if began is None else event.at - began,
            recovery=known.recovery if known else None,
        )

    def _answer(self, event: ResponseCame) -> None:
        number, usage = event.call, event.usage
        row = self.rows[number]
        self._end(number, "answered")
        fields: dict[str, Any] = {"latency_seconds": event.latency_seconds}
        if usage is not None:
            fields |= _figures_of(self.codec, row.model, usage)
        if number in self._before:
            verdict = _verdict_of(self._before[number], self._plans[number], usage)
            fields |= verdict
            if not verdict:
                self.unexplained.append(number)
            for path in (row.path, self._kept.get(row.path, row.path)):
                self._answered[path] = event
        self._update(number, **fields)

    def _end(self, number: int, outcome: Outcome) -> None:
        recovery = recovery_of(outcome) if self.rows[number].recovery else None
        self._update(number, outcome=outcome, recovery=recovery)

    def _update(self, number: int, **fields: Any) -> None:
        self.rows[number] = replace(self.rows[number], **fields)


def _figures_of(codec: Codec, model: str, usage: Usage) -> dict[str, Any]:
    """Tokens and costs of a call that reported them."""
    facts, given = codec.facts_of(model), usage.input_total_tokens
    plain = Usage(
        read_tokens=0,
        write_5m_tokens=0,
        write_1h_tokens=0,
        uncached_tokens=given,
        output_tokens=usage.output_tokens,
    )
    return {
        "input_total_tokens": given,
        "read_tokens": usage.read_tokens,
        "write_5m_tokens": usage.write_5m_tokens,
        "write_1h_tokens": usage.write_1h_tokens,
        "uncached_tokens": usage.uncached_tokens,
        "output_tokens": usage.output_tokens,
        "hit_ratio": usage.read_tokens / given if given else None,
        "pressure": given / facts.window_tokens,
        "cost_usd": cost_usd(usage, facts),
        "cost_uncached_usd": cost_usd(plain, facts),
        "priced_as": facts.name,
    }


def _verdict_of(
    before: ResponseCame | None, plan: CallPlanned, usage: Usage | None
) -> dict[str, Any]:
    """The verdict where figures alone give it; nothing where the bytes must be asked."""
    expected = plan.expected_read_tokens
    if before is None:
        return {"cause": "cold_start", "evidence": "proven", "expected_tokens": expected}
    if before.usage is not None:
        left = before.usage.read_tokens + before.usage.write_tokens
        expected = left if expected is None else max(left, expected)
    if usage is None or expected is None or not usage.read_tokens >= max(expected, 1):
        return {}
    return {
        "cause": "held",
        "evidence": "reported",
        "expected_tokens": expected,
        "lost_tokens": 0,
        "break_usd": 0.0,
    }


def _explained(row: SeriesRow, verdict: Verdict | None) -> SeriesRow:
    if verdict is None:
        return row
    return replace(
        row,
        cause=verdict.cause,
        evidence=verdict.evidence,
        expected_tokens=verdict.expected_tokens,
        lost_tokens=verdict.lost_tokens,
        break_usd=verdict.break_usd,
        planned=verdict.planned if verdict.lost_tokens else None,
    )
