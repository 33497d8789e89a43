"""Rows, differences and segments, over sessions that were played against the simulator."""

import pytest
from msgspec.structs import replace

from barograph.audit.explain import diff, list_calls, rows_of, total, why
from barograph.audit.reading import read_session
from barograph.audit.segments import read_request, view_request
from barograph.core.errors import LogCorrupt, UnknownCall, UnknownSession
from barograph.core.events import Compacted, HeaderSet, Replaced, TurnBegan
from barograph.core.ingest import Incoming
from barograph.core.parts import Text
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.prices import cost_usd
from barograph.store import MemoryStore
from talk import MODEL, SYSTEM, TOOLS, Talk

LONG = "line of text\n" * 900


@pytest.fixture
def talk():
    talk = Talk(MemoryStore())
    talk.call(say="hello", reply=[("read", {"path": "a.py"}), ("search", {})], results=[LONG, "3"])
    talk.call(reply="done")
    return talk


def views(talk, call):
    session = read_session(talk.store, talk.name)
    return view_request(session, read_request(talk.store, session, session.call(call)))


def kinds(difference):
    return [(change.kind, change.name) for change in difference.changes]


def test_a_row_has_the_figures_of_its_call(talk):
    first, second = list_calls(talk.store, "s1")

    assert (first.call, first.path, first.turn, first.round) == (1, "main", 1, 1)
    assert (second.call, second.turn, second.round) == (2, 1, 2)
    assert (second.model, second.outcome, second.attempts) == (MODEL, "answered", 1)
    usage = second.usage
    assert second.hit_ratio == usage.read_tokens / usage.input_total_tokens
    assert second.cost_usd == cost_usd(usage, facts_of(MODEL))
    assert (second.stop_reason, second.request_id) == ("end_turn", "req_2")
    assert second.latency_seconds == 1.5
    assert second.verdict.cause == "held"


def test_what_a_fork_begins_with_comes_from_the_events_above_it(talk):
    talk.call(say="go on", reply=[("search", {})])
    talk.histories["main/search#1"] = talk.histories["main"][:-1]
    talk.tools = TOOLS[:1]
    talk.call(path="main/search#1", say="a task")
    talk.system = "Other rules."
    talk.call(say="more", path="main")

    above, fork = views(talk, 3), views(talk, 4)
    sources = [{one.level: one.source.seq for one in view if one.source} for view in (above, fork)]
    assert sources[0]["system"] == sources[1]["system"]
    assert sources[0]["tools"] < sources[1]["tools"]
    shown = [one.source for one in fork if one.level == "messages"]
    assert [one.path for one in shown] == ["main"] * (len(shown) - 1) + ["main/search#1"]


def test_a_fold_between_the_last_call_and_its_fork_is_named_by_the_fork(talk):
    talk.call(say="go on", reply=[("search", {})])
    talk.log(
        Compacted(
            at=talk.at,
            path="main",
            cause="manual",
            shadows=tuple(entry.seq for entry in talk.entries().span(0, 4)),
            parts=(Text("a summary"),),
            narrated_by=None,
            failures=(),
            tokens_before=9,
            tokens_after=8,
            rewritten_tokens=0,
        )
    )
    fold = talk.session.state.fold.seq
    talk.histories["main/search#1"] = talk.histories["main"][:-1]
    talk.call(path="main/search#1", say="a task")

    verdict = why(talk.store, "s1", 4).verdict
    assert (verdict.cause, verdict.planned, verdict.named_by.seq) == ("planned_fold", True, fold)


def test_calls_that_were_not_answered_say_so(talk):
    talk.call(say="a", fails=(429, "slow down"))
    talk.call(say="b", answers=False)
    talk.call(say="c", leaves=False)
    failed, lost, planned = list_calls(talk.store, "s1")[2:]

    assert (failed.outcome, failed.error) == ("failed", "ApiError: slow down")
    assert (lost.outcome, lost.attempts) == ("unanswered", 1)
    assert (planned.outcome, planned.attempts, planned.model) == ("not_sent", 0, "")
    assert [row.verdict for row in (failed, lost, planned)] == [None] * 3


def test_an_unknown_model_is_priced_as_the_dearest_and_says_so():
    talk = Talk(MemoryStore())
    talk.model = "somebody-elses-9"
    talk.call(say="hello")

    assert list_calls(talk.store, "s1")[0].priced_as == "unknown"


def test_unreported_usage_is_in_no_total(talk):
    talk.call(say="a", usage=False)
    rows = list_calls(talk.store, "s1")
    totals = total(rows)

    assert rows[2].hit_ratio is rows[2].cost_usd is None
    assert (totals.calls, totals.unreported) == (3, 1)
    assert totals.input_tokens == sum(row.usage.input_total_tokens for row in rows[:2])
    assert totals.cost_usd == pytest.approx(rows[0].cost_usd + rows[1].cost_usd)


def test_totals_tell_planned_from_unplanned_breaks(talk):
    talk.call(say="a")
    talk.tools = TOOLS[:1]
    talk.call(say="b")
    [broken] = [row for row in list_calls(talk.store, "s1") if row.verdict.lost_tokens]
    totals = total(list_calls(talk.store, "s1"))

    assert (totals.breaks, totals.unplanned_breaks) == (1, 1)
    assert totals.lost_tokens == broken.verdict.lost_tokens
    assert totals.break_usd == broken.verdict.break_usd
    assert total([]).hit_ratio is None


def test_why_is_the_row_of_one_call(talk):
    assert why(talk.store, "s1", 2) == list_calls(talk.store, "s1")[1]


@pytest.mark.parametrize("number", [0, 3, 99, -1])
def test_an_unknown_call_names_the_calls_there_are(talk, number):
    with pytest.raises(UnknownCall, match="calls 1 to 2") as caught:
        why(talk.store, "s1", number)

    assert caught.value.ids == {"session": "s1", "call": number}


def test_a_session_without_calls():
    talk = Talk(MemoryStore())

    assert list_calls(talk.store, "s1") == []
    with pytest.raises(UnknownCall, match="no calls yet"):
        why(talk.store, "s1", 1)
    with pytest.raises(UnknownCall, match="no calls yet"):
        _ = read_session(talk.store, "s1").last
    with pytest.raises(UnknownSession):
        list_calls(talk.store, "s2")


def test_segments_are_named_as_in_the_request_and_know_their_events(talk):
    shown = views(talk, 2)
    session = read_session(talk.store, "s1")

    assert [view.name for view in shown] == [
        "tools",
        "system",
        "message 0",
        "message 1",
        "tool result 2.0",
        "tool result 2.1",
    ]
    tools, system, hello, asked, result, _ = shown
    assert [block.label for block in tools.blocks] == ["read", "search"]
    assert system.blocks[0].text == SYSTEM
    assert (hello.source.origin, hello.since_call) == ("caller", 1)
    assert (asked.source.origin, asked.since_call, asked.role) == ("model", 2, "assistant")
    assert asked.blocks[0].text == '{"path":"a.py"}'
    assert (result.source.origin, result.blocks[0].text) == ("tool", LONG)
    events = dict(talk.store.read("s1"))
    assert events[asked.source.same_as] == session.calls[0].response
    assert events[result.source.same_as].parts[0].content[0].text == LONG
    assert next((b.ttl, b.slot) for v in shown for b in v.blocks if b.ttl) == ("5m", "header")
    assert sum(b.ttl is not None for v in shown for b in v.blocks) == len(
        session.calls[1].plan.breakpoints
    )


def test_a_header_segment_is_as_old_as_its_last_change(talk):
    talk.system += "!"
    talk.call(say="more")
    tools, system = views(talk, 3)[:2]

    assert (tools.since_call, system.since_call) == (1, 3)


def test_a_repair_and_a_fold_say_what_they_are(talk):
    talk.call(say="go on", reply=[("read", {})])
    talk.call(say="never mind")
    hello = talk.entries()[0]
    talk.log(
        Replaced(at=talk.at, path="main", shadows=(hello.seq,), cause="compaction", planned=True,
                 role="user", parts=(Text("summary"),))
    )  # fmt: skip
    talk.call(say="and?")
    sources = [view.source for view in views(talk, 5)[2:]]

    assert (sources[0].event, sources[0].origin) == ("replaced", "compaction")
    assert "repair" in {source.origin for source in sources}


def test_a_request_that_somebody_rewrote_is_shown_as_it_left(talk):
    talk.call(say="more", edit=lambda body: body.replace(b'"text":"more"', b'"text":"MORE"'))
    last = views(talk, 3)[-1]

    assert last.blocks[0].text == "MORE"


def test_a_message_that_is_not_ours_has_no_source(talk):
    extra = b'{"role":"user","content":"intruder"}]'
    talk.call(say="more", edit=lambda body: body.replace(b"}]}]}", b"}]}," + extra + b"}"))
    last = views(talk, 3)[-1]

    assert (last.blocks[0].text, last.source, last.since_call) == ("intruder", None, None)


def test_a_body_that_cannot_be_taken_apart_is_one_segment(talk):
    talk.call(say="more", edit=lambda body: b" " + body)
    [view] = views(talk, 3)

    assert (view.level, view.name) == ("body", "body")
    assert view.blocks[0].text.startswith(' {"model"')


def test_a_continuation_adds_at_the_end_and_moves_markers(talk):
    found = diff(talk.store, "s1", 1, 2)

    assert found.is_continuation
    assert kinds(found) == [
        ("same", "tools"),
        ("added", "message 1"),
        ("added", "tool result 2.0"),
        ("added", "tool result 2.1"),
    ]
    assert (found.changes[0].last, found.changes[0].count) == ("message 0", 3)
    assert [mark.segment for mark in found.marks_before] == ["system", "message 0"]
    assert "tool result 2.1" in [mark.segment for mark in found.marks_after]


def test_a_changed_tool_is_one_changed_block(talk):
    talk.tools = [TOOLS[0], TOOLS[1] | {"description": "Search the documents of 12:05."}]
    talk.call(say="more")
    found = diff(talk.store, "s1", 2, 3)
    [block] = found.changes[0].blocks

    assert not found.is_continuation
    assert kinds(found)[0] == ("changed", "tools")
    assert block.label == "tool search"
    assert '-  "description": "Search the documents.",' in block.lines
    assert '+  "description": "Search the documents of 12:05.",' in block.lines
    assert found.changes[1].kind == "same"


def test_a_hidden_run_in_the_middle(talk):
    talk.call(say="one")
    talk.call(say="two")
    result, other = (entry for entry in talk.entries() if entry.role == "tool")
    stubs = tuple(
        type(entry.parts[0])(entry.parts[0].call_id, (Text("[stub]"),)) for entry in (result, other)
    )
    for entry, stub in zip((result, other), stubs, strict=True):
        talk.log(
            Replaced(at=talk.at, path="main", shadows=(entry.seq,), cause="prune", planned=True,
                     role="tool", parts=(stub,))
        )  # fmt: skip
    talk.call(say="three")
    found = diff(talk.store, "s1", 4, 5)

    assert [kind for kind, _ in kinds(found)] == ["same", "changed", "changed", "same"] + [
        "added"
    ] * 2
    assert "+[stub]" in found.changes[1].blocks[0].lines


def test_a_rewind_removes(talk):
    del talk.histories["main"][1:]
    talk.call(say="instead")
    found = diff(talk.store, "s1", 2, 3)

    assert not found.is_continuation
    assert {kind for kind, _ in kinds(found)} >= {"same"}
    assert any(kind in {"removed", "changed"} for kind, _ in kinds(found))


def test_the_same_text_in_another_spelling_is_a_change_of_bytes(talk):
    talk.histories["main"].append(Incoming("user", (Text("caf\u00e9"),)))
    talk.call()
    spell = b"caf\xc3\xa9", b"caf\\u00e9"
    talk.call(say="more", edit=lambda body: body.replace(*spell))
    found = diff(talk.store, "s1", 3, 4)
    [changed] = [change for change in found.changes if change.kind == "changed"]

    assert "\\u00e9" in changed.blocks[0].after


@pytest.mark.parametrize(
    ("parameters", "continues"),
    [({"max_tokens": 7}, True), ({"max_tokens": 100, "tool_choice": {"type": "auto"}}, False)],
)
def test_parameters_are_told_apart_by_what_depends_on_them(talk, parameters, continues):
    talk.parameters = parameters
    talk.call(say="more")
    found = diff(talk.store, "s1", 2, 3)

    assert found.is_continuation is continues
    assert len(found.parameters) == 1


def test_a_call_is_the_same_as_itself(talk):
    found = diff(talk.store, "s1", 2, 2)

    assert found.is_continuation
    assert kinds(found) == [("same", "tools")]
    assert found.marks_before == found.marks_after


def test_a_call_that_never_left_cannot_be_compared(talk):
    talk.call(say="more", leaves=False)

    with pytest.raises(UnknownCall, match="never left"):
        diff(talk.store, "s1", 2, 3)


def test_a_log_that_does_not_begin_as_it_must():
    store = MemoryStore()
    store.append("odd", [TurnBegan(at=0.0, path="main", turn=1)], after=0)

    with pytest.raises(LogCorrupt, match="opening event"):
        list_calls(store, "odd")


def test_events_that_make_no_sense_together_are_corrupt_and_not_a_crash(talk):
    last = talk.session.state.path("main").planned
    plan = type(last)(
        **{f: getattr(last, f) for f in last.__struct_fields__ if f not in {"breakpoints", "call"}},
        call=3,
        breakpoints=tuple(
            type(mark)(level=mark.level, block=mark.block + 999, ttl=mark.ttl, slot=mark.slot)
            for mark in last.breakpoints
        ),
    )
    record = next(event for _, event in talk.store.read("s1") if hasattr(event, "body_hash"))
    talk.store.append("s1", [plan, record], after=talk.store.last_seq("s1"))

    with pytest.raises(LogCorrupt, match="does not fit"):
        list_calls(talk.store, "s1")


def test_a_session_is_read_in_one_pass(talk):
    reads = []
    read = talk.store.read
    talk.store.read = lambda *args, **kwargs: reads.append(args) or read(*args, **kwargs)
    rows_of(read_session(talk.store, "s1"))

    assert len(reads) == 1


def test_a_header_that_is_no_json_is_corrupt_and_not_a_crash(talk):
    talk.tools = TOOLS[:1]
    talk.call(say="more")
    altered = MemoryStore()
    events = [event for _, event in talk.store.read("s1")]
    last = max(n for n, event in enumerate(events) if isinstance(event, HeaderSet))
    events[last] = replace(events[last], tools="[{")
    altered.append("s1", events, after=0)
    session = read_session(altered, "s1")

    with pytest.raises(LogCorrupt, match="Call 3 cannot be read back"):
        rows_of(session)
    with pytest.raises(LogCorrupt, match="Call 3 cannot be read back"):
        read_request(altered, session, session.call(3))
