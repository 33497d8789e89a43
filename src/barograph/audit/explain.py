"""Explain calls: what each cost, what it read from the cache, and why it did not read more."""

from msgspec import Struct

from barograph.audit.differences import Difference, diff_calls
from barograph.audit.reading import LoggedCall, LoggedSession, Outcome, Recovery, read_session
from barograph.core.events import Usage
from barograph.core.model import Codec
from barograph.core.verdict import Cause, Verdict
from barograph.simulator.prices import cost_usd
from barograph.store.protocol import Store

__all__ = ["CallRow", "Totals", "diff", "list_calls", "rows_of", "total", "why"]


class CallRow(Struct, frozen=True, kw_only=True):
    """One call in figures.

    Attributes:
        call: number of the call in the session.
        path: agent path.
        turn: turn of that path.
        round: round of the turn.
        model: model id as sent; empty for a call that never left.
        at: start, in seconds since the epoch.
        outcome: `answered`, `failed`, `unanswered` (it left, and nothing came back) or `not_sent`.
        attempts: how often the request left.
        recovery: where it was refused as too long and sent once more: `succeeded`, `failed`, or
            `open` where nothing came; else None.
        usage: tokens as reported; None where none were.
        hit_ratio: tokens read / all input tokens; None where unknown.
        cost_usd: at list price; None where unknown.
        priced_as: family whose prices were used; `unknown` means those of the dearest.
        latency_seconds: from the plan to the end of the answer.
        stop_reason: why the model stopped.
        error: what failed, in one line.
        request_id: the provider's id of the request.
        verdict: why the cache held or did not; None for a call that was not answered.
        provider_reason: what the provider itself found changed since the call before, where it was
            asked and named something.
    """

    call: int
    path: str
    turn: int
    round: int
    model: str
    at: float
    outcome: Outcome
    attempts: int
    recovery: Recovery | None = None
    usage: Usage | None = None
    hit_ratio: float | None = None
    cost_usd: float | None = None
    priced_as: str = ""
    latency_seconds: float | None = None
    stop_reason: str | None = None
    error: str | None = None
    request_id: str | None = None
    verdict: Verdict | None = None
    provider_reason: str | None = None

    @property
    def cause(self) -> Cause | None:
        """Why the cache held or did not, in a word."""
        return self.verdict.cause if self.verdict else None


class Totals(Struct, frozen=True, kw_only=True):
    """A session in figures.

    Attributes:
        calls: number of calls.
        unreported: answered calls whose usage is unknown; they are in no other figure.
        read_tokens: over all other calls, like the next two.
        input_tokens: the whole input.
        cost_usd: at list price.
        hit_ratio: tokens read / all input tokens; None where nothing was reported.
        breaks: calls that lost cached tokens.
        unplanned_breaks: those among them that no fold of ours caused.
        lost_tokens: tokens lost by unplanned breaks.
        break_usd: what they cost.
    """

    calls: int
    unreported: int
    read_tokens: int
    input_tokens: int
    cost_usd: float
    hit_ratio: float | None
    breaks: int
    unplanned_breaks: int
    lost_tokens: int
    break_usd: float


def list_calls(store: Store, session: str) -> list[CallRow]:
    """Every call of a session, in order; one pass over its log.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    return rows_of(read_session(store, session))


def rows_of(session: LoggedSession) -> list[CallRow]:
    """Every call of a session that was read."""
    return [row_of(session.codec, call) for call in session.calls]


def why(store: Store, session: str, call: int) -> CallRow:
    """One call, explained.

    Raises:
        UnknownCall: the session has no call of that number.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    logged = read_session(store, session)
    return row_of(logged.codec, logged.call(call))


def diff(store: Store, session: str, before: int, after: int) -> Difference:
    """How the request of one call differs from that of another.

    Raises:
        UnknownCall: the session has no such call, or it never left.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    return diff_calls(store, read_session(store, session), before, after)


def row_of(codec: Codec, call: LoggedCall) -> CallRow:
    """One call in figures."""
    plan, response, failure = call.plan, call.response, call.failure
    usage = response.usage if response else None
    header = call.sent.header if call.sent else None
    facts = codec.facts_of(header.model if header else "")
    return CallRow(
        call=plan.call,
        path=plan.path,
        turn=plan.turn,
        round=plan.round,
        model=header.model if header else "",
        at=plan.at,
        outcome=call.outcome,
        attempts=call.record.attempt if call.record else 0,
        usage=usage,
        hit_ratio=_ratio(usage.read_tokens, usage.input_total_tokens) if usage else None,
        cost_usd=cost_usd(usage, facts) if usage else None,
        priced_as=facts.name if header else "",
        recovery=call.recovery,
        latency_seconds=response.latency_seconds if response else None,
        stop_reason=response.stop_reason if response else None,
        error=f"{failure.error}: {failure.message}" if failure else None,
        request_id=response.request_id if response else None,
        verdict=call.verdict(codec),
        provider_reason=response.diagnosis if response else None,
    )


def total(rows: list[CallRow]) -> Totals:
    """Sum up a session. What was not reported is counted apart, never as zero."""
    reported = [row.usage for row in rows if row.usage is not None]
    breaks = [row.verdict for row in rows if row.verdict and row.verdict.lost_tokens]
    unplanned = [verdict for verdict in breaks if not verdict.planned]
    read = sum(usage.read_tokens for usage in reported)
    given = sum(usage.input_total_tokens for usage in reported)
    return Totals(
        calls=len(rows),
        unreported=sum(row.outcome == "answered" and row.usage is None for row in rows),
        read_tokens=read,
        input_tokens=given,
        cost_usd=sum(row.cost_usd or 0.0 for row in rows),
        hit_ratio=_ratio(read, given),
        breaks=len(breaks),
        unplanned_breaks=len(unplanned),
        lost_tokens=sum(verdict.lost_tokens or 0 for verdict in unplanned),
        break_usd=sum(verdict.break_usd or 0.0 for verdict in unplanned),
    )


def _ratio(read: int, given: int) -> float | None:
    return read / given if given else None
