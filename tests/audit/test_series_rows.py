"""The series: the verdicts of `why` without its work, and nothing unknown counted as zero."""

import csv
import io
import time

import pytest
from msgspec.structs import asdict

from barograph.audit.explain import list_calls
from barograph.audit.series import SeriesRow, series_csv, series_of
from barograph.audit.series_reader import read_series
from barograph.core.errors import LogCorrupt, UnknownCall, UnknownSession
from barograph.core.events import (
    Breakpoint,
    CallPlanned,
    HeaderSet,
    MessageSeen,
    Replaced,
    RequestSent,
    ResponseCame,
    SessionOpened,
    StoreGap,
    Usage,
)
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from cli.everything import record
from talk import Talk

RENDERER = AnthropicCodec().renderer
MODEL = "claude-opus-4-8"


def long_log(calls, *, breaks=()):
    """The events of a long session whose calls hold, but for those named."""
    parameters = f'{{"model":"{MODEL}","max_tokens":5}}'
    yield SessionOpened(at=0.0, session="long", made_by="test", policy="off", renderer=RENDERER)
    yield HeaderSet(
        at=0.0,
        path="main",
        model=MODEL,
        system=(Text("s" * 4000),),
        tools="",
        parameters=parameters,
        changed=("model",),
    )
    seq = 2
    for call in range(1, calls + 1):
        at, cached, entries = call * 10.0, (call - 1) * 2000, 2 * call - 1
        read = 0 if call in breaks else cached
        mark = Breakpoint(level="messages", block=entries - 1, ttl="5m", slot="tail")
        yield MessageSeen(
            at=at, path="main", role="user", origin="caller", parts=(Text("y" * 600),)
        )
        yield CallPlanned(
            at=at,
            path="main",
            call=call,
            turn=call,
            round=1,
            entries=entries,
            digest="",
            breakpoints=(mark,),
            expected_read_tokens=cached or None,
        )
        yield RequestSent(
            at=at,
            path="main",
            call=call,
            attempt=1,
            header=2,
            renderer=RENDERER,
            order=("model", "max_tokens", "system", "messages"),
            messages=entries,
            deviations=(),
            mismatches=(),
            body_hash="b2:0",
            body_bytes=10,
            observed=True,
        )
        usage = Usage(
            read_tokens=read,
            write_5m_tokens=2000 + cached - read,
            write_1h_tokens=0,
            uncached_tokens=3,
            output_tokens=20,
        )
        yield ResponseCame(
            at=at + 2,
            path="main",
            call=call,
            parts=(Text("a" * 600),),
            stop_reason="end_turn",
            usage=usage,
            latency_seconds=1.5,
        )
        seq += 5
        yield MessageSeen(at=at + 2, path="main", role="assistant", origin="model", same_as=seq - 1)


class NoBodies(MemoryStore):
    """A store that notes whether bodies were asked for."""

    asked = False

    def read(self, session, *, after=0, bodies=True):
        self.asked = self.asked or bodies
        return super().read(session, after=after, bodies=bodies)


def stored(calls, *, breaks=()):
    store = NoBodies()
    store.append("long", list(long_log(calls, breaks=breaks)), after=0)
    return store


@pytest.fixture
def everything():
    store = MemoryStore()
    record(store)
    return store


def edited(store):
    """A session whose history was edited, rewound and folded."""
    talk = Talk(store, "edited")
    for number in range(4):
        talk.call(say=f"question {number} " + "why " * 300, reply="because " * 50)
    del talk.histories["main"][3:]
    talk.call(say="again " * 100)
    entries = list(talk.entries())
    talk.log(
        Replaced(
            at=talk.at,
            path="main",
            shadows=tuple(entry.seq for entry in entries[:2]),
            cause="compaction",
            planned=True,
            role="user",
            parts=(Text("summary"),),
        )
    )
    return talk.name


def compare_with_why(store, session):
    rows, calls = read_series(store, session).calls, list_calls(store, session)
    for row, call in zip(rows, calls, strict=True):
        shared = ("call", "path", "turn", "round", "model", "at", "outcome", "attempts")
        figures = ("hit_ratio", "cost_usd", "latency_seconds")
        for name in (*shared, *figures):
            assert getattr(row, name) == getattr(call, name), (row.call, name)
        verdict = call.verdict
        named = ("cause", "evidence", "expected_tokens", "lost_tokens", "break_usd")
        expected = [verdict and getattr(verdict, name) for name in named]
        assert [getattr(row, name) for name in named] == expected, row.call
        assert row.planned == (verdict.planned if verdict and verdict.lost_tokens else None)


def test_the_verdicts_are_those_of_why(everything):
    compare_with_why(everything, "refactor-billing")


def test_the_verdicts_are_those_of_why_where_the_history_changed():
    store = MemoryStore()
    compare_with_why(store, edited(store))


@pytest.mark.parametrize("changes_tools", [False, True], ids=["alike", "other tools"])
def test_a_fork_is_compared_with_the_last_call_above_it(changes_tools):
    store = MemoryStore()
    talk = Talk(store, "fork")
    talk.call(say="why " * 300, reply=[("task", {})])
    talk.histories["main/task#1"] = talk.histories["main"][:-1]
    if changes_tools:
        talk.tools = talk.tools[:1]
    talk.call(path="main/task#1", say="go on")

    compare_with_why(store, "fork")
    first, fork = list_calls(store, "fork")
    assert fork.verdict.compared_with == first.call
    assert fork.verdict.cause == ("tools_changed" if changes_tools else "held")


def test_the_verdicts_are_those_of_why_after_a_gap_in_the_log():
    store = MemoryStore()
    talk = Talk(store, "gap")
    for number in range(3):
        talk.call(say=f"question {number}")
    talk.log(
        StoreGap(
            at=talk.at,
            since=talk.at,
            reason="disk full",
            first_late=0,
            late=0,
            lost=4,
            first_call=0,
            last_call=0,
            calls=3,
        )
    )
    talk.call(say="again")
    compare_with_why(store, "gap")


def test_the_verdicts_are_those_of_why_over_a_long_session():
    store = stored(60, breaks=(7, 8, 41))
    compare_with_why(store, "long")
    assert [row.call for row in read_series(store, "long").calls if row.is_break] == [7, 8, 41]


def test_a_long_session_that_held_is_read_without_its_bodies_and_quickly():
    store = stored(10_000)
    began = time.process_time()
    series = read_series(store, "long")

    assert time.process_time() - began < 5  # a tenth of it on an idle machine
    assert not store.asked
    assert len(series.calls) == 10_000
    assert {row.cause for row in series.calls} == {"cold_start", "held"}


def test_bodies_are_read_only_to_explain_a_loss():
    store = stored(20, breaks=(9,))
    read_series(store, "long")

    assert store.asked


def test_peak_last_and_sum_are_three_figures():
    rows = [
        SeriesRow(call=n, path="main", turn=1, round=n, at=0.0, input_total_tokens=tokens)
        for n, tokens in enumerate((10, 90, 40, None), 1)
    ]
    total = series_of("s", rows).total

    assert (total.peak_input_tokens, total.peak_call) == (90, 2)
    assert (total.last_input_tokens, total.last_call) == (40, 3)
    assert total.sum_input_tokens == 140


def test_a_subagent_is_billed_to_the_session_and_does_not_move_its_peak():
    rows = [
        SeriesRow(call=1, path="main", turn=1, round=1, at=0.0, input_total_tokens=10),
        SeriesRow(call=2, path="main/x#1", turn=1, round=1, at=1.0, input_total_tokens=500),
    ]
    series = series_of("s", rows)

    assert [figures.path for figures in series.paths] == ["main", "main/x#1"]
    assert series.total.sum_input_tokens == 510
    assert (series.total.peak_input_tokens, series.total.last_input_tokens) == (10, 10)
    assert series.paths[1].peak_input_tokens == 500


def test_what_was_not_reported_is_never_zero(everything):
    row = read_series(everything, "refactor-billing").calls[7]

    assert row.outcome == "answered"
    unknown = [name for name, value in asdict(row).items() if value is None]
    assert {"input_total_tokens", "read_tokens", "cost_usd", "hit_ratio", "lost_tokens"} <= {
        *unknown
    }
    alone = series_of("s", [row]).total
    assert (alone.sum_input_tokens, alone.cost_usd, alone.saved_usd) == (None, None, None)
    assert alone.unreported == 1


def test_the_cost_without_a_cache_is_all_input_at_the_plain_price(everything):
    row = read_series(everything, "refactor-billing").calls[1]
    plain = AnthropicCodec().facts_of(MODEL)
    expected = row.input_total_tokens * plain.input_usd + row.output_tokens * plain.output_usd

    assert row.cost_uncached_usd == pytest.approx(expected / 1e6)
    total = series_of("s", [row]).total
    assert total.saved_usd == pytest.approx(row.cost_uncached_usd - row.cost_usd)


def test_gaps_are_counted_on_the_path(everything):
    gaps = [row.gap_seconds for row in read_series(everything, "refactor-billing").calls]

    assert gaps[:6] == [None, 10.0, None, 20.0, 10.0, 400.0]


def test_one_path_alone(everything):
    series = read_series(everything, "refactor-billing")

    assert [row.call for row in series.of_path("main/researcher#1").calls] == [3]
    with pytest.raises(UnknownCall, match="no call of agent path 'main/x'") as caught:
        series.of_path("main/x")
    assert "main, main/researcher#1" in caught.value.next_step


def test_csv_has_every_field_and_leaves_the_unknown_empty(everything):
    series = read_series(everything, "refactor-billing")
    lines = list(csv.DictReader(io.StringIO(series_csv(series.calls))))

    assert list(lines[0]) == list(SeriesRow.__struct_fields__)
    assert len(lines) == 10
    assert lines[7]["read_tokens"] == ""
    assert lines[4]["planned"] == "false"
    assert lines[0]["lost_tokens"] == ""


def test_csv_cannot_smuggle_a_formula_into_a_spreadsheet():
    row = SeriesRow(call=1, path='=cmd|"x"!A1', turn=1, round=1, at=-1.5)
    [line] = csv.DictReader(io.StringIO(series_csv([row])))

    assert line["path"] == '\'=cmd|"x"!A1'
    assert line["at"] == "-1.5"


def test_a_session_without_calls():
    store = MemoryStore()
    Talk(store, "empty", policy=Policy())

    series = read_series(store, "empty")
    assert series.calls == ()
    assert series.total.sum_input_tokens is None


def test_an_unknown_session_and_a_log_that_does_not_begin():
    store = MemoryStore()
    with pytest.raises(UnknownSession):
        read_series(store, "nope")
    store.append("torn", list(long_log(1))[1:], after=0)
    with pytest.raises(LogCorrupt, match="does not begin"):
        read_series(store, "torn")
