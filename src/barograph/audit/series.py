"""The series of a session: one row for each call, and what they come to.

What was not reported is None and counts nowhere, never as zero. Peak, last and sum are three
figures: the sum is what was paid for, the last is where the context stands, the peak is how near it
came to its limit.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from barograph.audit.reading import Outcome, Recovery
from barograph.core.errors import UnknownCall
from barograph.core.verdict import Cause, Evidence

_Number = TypeVar("_Number", int, float)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class SeriesRow(Struct, frozen=True, kw_only=True):
    """One call of a series.

    Attributes:
        call: number of the call in the session.
        path: agent path.
        turn: turn of that path.
        round: round of the turn.
        model: model id as sent; empty for a call that never left.
        at: start, in seconds since the epoch.
        gap_seconds: since the start of the call before it on the same path; None for the first.
        outcome: `answered`, `failed`, `unanswered` or `not_sent`.
        attempts: how often the request left.
        recovery: of a call that was refused as too long and sent once more: `succeeded`, `failed`,
            or `open` where nothing came; else None.
        input_total_tokens: read + write + uncached; None where no usage was reported, like the
            other tokens and the costs.
        read_tokens: read from the cache.
        write_5m_tokens: written to the cache for five minutes.
        write_1h_tokens: written to the cache for an hour.
        uncached_tokens: neither read nor written.
        output_tokens: the answer.
        hit_ratio: tokens read / all input tokens.
        pressure: all input tokens / what the model takes.
        expected_tokens: what would have been read had nothing changed; None where unknown.
        lost_tokens: what had been cached and was paid for again; None where unknown.
        cost_usd: at list price.
        cost_uncached_usd: what the call would have cost without a cache.
        break_usd: what the lost tokens cost more than read ones.
        priced_as: family whose prices were used; `unknown` means those of the dearest.
        latency_seconds: from the plan to the end of the answer.
        cause: why the cache held or did not; None for a call that was not answered.
        evidence: what that rests on.
        planned: of a call that lost tokens, whether a fold of ours caused it; else None.
    """

    call: int
    path: str
    turn: int
    round: int
    model: str = ""
    at: float
    gap_seconds: float | None = None
    outcome: Outcome = "not_sent"
    attempts: int = 0
    recovery: Recovery | None = None
    input_total_tokens: int | None = None
    read_tokens: int | None = None
    write_5m_tokens: int | None = None
    write_1h_tokens: int | None = None
    uncached_tokens: int | None = None
    output_tokens: int | None = None
    hit_ratio: float | None = None
    pressure: float | None = None
    expected_tokens: int | None = None
    lost_tokens: int | None = None
    cost_usd: float | None = None
    cost_uncached_usd: float | None = None
    break_usd: float | None = None
    priced_as: str = ""
    latency_seconds: float | None = None
    cause: Cause | None = None
    evidence: Evidence | None = None
    planned: bool | None = None

    @property
    def is_break(self) -> bool:
        """Whether it lost tokens that had been cached."""
        return bool(self.lost_tokens)


class Figures(Struct, frozen=True, kw_only=True):
    """What the calls of one path come to, or those of a session.

    Sums are None where no call reported any usage.

    Attributes:
        path: agent path; None for the whole session.
        calls: number of calls.
        unreported: answered calls whose usage is unknown; they are in no other figure.
        peak_input_tokens: largest input of one call. A subagent does not move it for the session:
            there it is that of the session's first path, like the last.
        peak_call: the call of the peak.
        last_input_tokens: input of the last call that reported any.
        last_call: that call.
        sum_input_tokens: all input that was paid for, in one way or another.
        read_tokens: sum over the calls, like all that follow.
        write_5m_tokens: written to the cache for five minutes.
        write_1h_tokens: written to the cache for an hour.
        uncached_tokens: neither read nor written.
        output_tokens: answers.
        hit_ratio: tokens read / all input tokens.
        cost_usd: at list price.
        cost_uncached_usd: what the same calls would have cost without a cache.
        saved_usd: the difference of the two.
        breaks: calls that lost cached tokens.
        unplanned_breaks: those that no fold of ours caused.
        recoveries_attempted: calls that were refused as too long and sent once more.
        recoveries_succeeded: those that were answered then.
        recoveries_failed: those that were refused again.
        lost_tokens: tokens lost by unplanned breaks.
        break_usd: what they cost.
    """

    path: str | None
    calls: int
    unreported: int
    peak_input_tokens: int | None
    peak_call: int | None
    last_input_tokens: int | None
    last_call: int | None
    sum_input_tokens: int | None
    read_tokens: int | None
    write_5m_tokens: int | None
    write_1h_tokens: int | None
    uncached_tokens: int | None
    output_tokens: int | None
    hit_ratio: float | None
    cost_usd: float | None
    cost_uncached_usd: float | None
    saved_usd: float | None
    breaks: int
    unplanned_breaks: int
    recoveries_attempted: int
    recoveries_succeeded: int
    recoveries_failed: int
    lost_tokens: int
    break_usd: float


class Series(Struct, frozen=True, kw_only=True):
    """A session, call by call.

    Attributes:
        session: id of the session.
        calls: in the order of their numbers.
        paths: figures of each agent path, in the order of their first calls.
        total: figures of all of them: what subagents cost is billed to the session.
    """

    session: str
    calls: tuple[SeriesRow, ...]
    paths: tuple[Figures, ...]
    total: Figures

    @property
    def is_guess(self) -> bool:
        """Whether a model in it is not known, and with it the prices."""
        return any(row.priced_as == "unknown" for row in self.calls)

    def of_path(self, path: str) -> "Series":
        """The calls of one agent path alone.

        Raises:
            UnknownCall: there are none.
        """
        calls = tuple(row for row in self.calls if row.path == path)
        if not calls:
            there = ", ".join(str(one.path) for one in self.paths) or "none"
            raise UnknownCall(
                f"Session {self.session!r} has no call of agent path {path!r}.",
                next_step=f"Its paths are: {there}.",
                session=self.session,
                path=path,
            )
        return series_of(self.session, calls)


def series_of(session: str, rows: Sequence[SeriesRow]) -> Series:
    """The series of these rows, which are in the order of their numbers."""
    by_path: dict[str, list[SeriesRow]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    first = next(iter(by_path.values()), [])
    return Series(
        session=session,
        calls=tuple(rows),
        paths=tuple(sum_up(path, calls, calls) for path, calls in by_path.items()),
        total=sum_up(None, rows, first),
    )


def sum_up(path: str | None, rows: Sequence[SeriesRow], own: Sequence[SeriesRow]) -> Figures:
    """The figures of these rows; peak and last are those of `own`."""
    sizes = [
        (row.input_total_tokens, row.call) for row in own if row.input_total_tokens is not None
    ]
    peak = max(sizes, key=lambda size: size[0], default=(None, None))
    last = sizes[-1] if sizes else (None, None)
    given = _sum(rows, lambda row: row.input_total_tokens)
    read = _sum(rows, lambda row: row.read_tokens)
    cost = _sum(rows, lambda row: row.cost_usd)
    uncached = _sum(rows, lambda row: row.cost_uncached_usd)
    breaks = [row for row in rows if row.is_break]
    unplanned = [row for row in breaks if not row.planned]
    return Figures(
        path=path,
        calls=len(rows),
        unreported=sum(
            row.outcome == "answered" and row.input_total_tokens is None for row in rows
        ),
        peak_input_tokens=peak[0],
        peak_call=peak[1],
        last_input_tokens=last[0],
        last_call=last[1],
        sum_input_tokens=given,
        read_tokens=read,
        write_5m_tokens=_sum(rows, lambda row: row.write_5m_tokens),
        write_1h_tokens=_sum(rows, lambda row: row.write_1h_tokens),
        uncached_tokens=_sum(rows, lambda row: row.uncached_tokens),
        output_tokens=_sum(rows, lambda row: row.output_tokens),
        hit_ratio=read / given if read is not None and given else None,
        cost_usd=cost,
        cost_uncached_usd=uncached,
        saved_usd=uncached - cost if uncached is not None and cost is not None else None,
        breaks=len(breaks),
        unplanned_breaks=len(unplanned),
        recoveries_attempted=sum(row.recovery is not None for row in rows),
        recoveries_succeeded=sum(row.recovery == "succeeded" for row in rows),
        recoveries_failed=sum(row.recovery == "failed" for row in rows),
        lost_tokens=sum(row.lost_tokens or 0 for row in unplanned),
        break_usd=sum(row.break_usd or 0.0 for row in unplanned),
    )


def _sum(rows: Sequence[SeriesRow], value: Callable[[SeriesRow], _Number | None]) -> _Number | None:
    """The sum of what is known; None where nothing is."""
    known = [found for row in rows if (found := value(row)) is not None]
    return sum(known[1:], known[0]) if known else None


def series_csv(rows: Iterable[SeriesRow]) -> str:
    """Rows as CSV with a header: unknown is empty, and no text begins as a formula would."""
    names = SeriesRow.__struct_fields__
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_csv_cell(getattr(row, name)) for name in names])
    return text.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
