"""The checks find what they look for: each holds on a sound run and fails on a planted fault."""

import json
from copy import deepcopy
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from barograph.core.events import (
    ArchiveMissed,
    CallPlanned,
    Compacted,
    MessageSeen,
    Pruned,
    Replaced,
    RequestSent,
    TurnBegan,
)
from barograph.core.parts import Text
from barograph.core.texts import left_out
from cases import not_yet
from cases.kit import ABSENT, Case, folder, kit
from cases.observed import Observed, Sent
from cases.registry import OPS, PROPERTIES, UnknownWordError, load
from cases.words import is_known

load()

if folder() is None:
    pytest.skip(ABSENT, allow_module_level=True)

MARK = {"type": "ephemeral", "ttl": "5m"}
THOUGHT = {"type": "thinking", "thinking": "plan", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
ANSWER = [THOUGHT, CALL]


def text(said, **more):
    return {"type": "text", "text": said, **more}


def result(content, call="t1", **more):
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def body(*messages):
    roles = ("user", "assistant")
    return {
        "model": "m",
        "max_tokens": 1000,
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "system": [text("be careful", cache_control=MARK)],
        "messages": [{"role": roles[i % 2], "content": c} for i, c in enumerate(messages)],
    }


def sound():
    """Two requests of one agent, as they should be."""
    return [
        body([text("go", cache_control=MARK)]),
        body(
            [text("go", cache_control=MARK)], ANSWER, [result([text("whole")], cache_control=MARK)]
        ),
    ]


def observed(bodies, **more):
    seen = Observed(Case("c", "request_sequence", "anthropic", {}, ()), results={"t1": "whole"})
    answer = json.dumps({"content": ANSWER}).encode()
    for one in bodies:
        raw = json.dumps(one, separators=(",", ":")).encode()
        seen.sent.append(Sent("main", "main", "m", raw, 200, answer, 10, scripted=False))
    for key, value in more.items():
        setattr(seen, key, value)
    return seen


def faults(name, seen, arguments):
    return list(PROPERTIES[name](seen, **arguments))


def at(*path):
    """The place in the second request that a fault is planted in."""

    def plant(value):
        def change(bodies):
            place = bodies[1]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value

        return change

    return plant


FIRST, LAST = at("messages", 0, "content"), at("messages", 2, "content")
THINKING = at("messages", 1, "content")
PLANTED = {
    "prefix_extends": ({"pairs": [[0, 1]]}, FIRST([text("otherwise")])),
    "prefix_extends_all": ({}, FIRST("go")),
    "wire_bytes_prefix": ({"pairs": [[0, 1]]}, FIRST([{"text": "go", "type": "text"}])),
    "system_bytes_identical": ({}, at("system")([text("be quick")])),
    "tools_bytes_identical": ({}, at("tools")([{"input_schema": {}, "name": "read"}])),
    "content_shape_unchanged": ({}, FIRST("go")),
    "latest_thinking_unchanged": ({}, THINKING([CALL])),
    "recent_rounds_unchanged": ({"n": 1}, LAST([result("stub", cache_control=MARK)])),
    "markers_max": ({"n": 4}, FIRST([text("a", cache_control=MARK)] * 4)),
    "markers_min": ({"n": 1, "where": "messages"}, at("messages")([])),
    "markers_valid": ({}, THINKING([{**THOUGHT, "cache_control": MARK}, CALL])),
    "ttl_non_increasing": ({}, LAST([result("x", cache_control={**MARK, "ttl": "1h"})])),
    "ttl_of": ({"value": "5m"}, LAST([result("x", cache_control={**MARK, "ttl": "1h"})])),
    "last_marker_in_last_message": ({}, LAST([result("x")])),
    "marker_within_lookback": (
        {"blocks": 2},
        at("messages")(
            [{"role": "user", "content": [text("x")] * 9 + [text("x", cache_control=MARK)]}]
        ),
    ),
    "pairing_valid": ({}, LAST([result("x", "t9")])),
    "text_present": ({"text": "whole", "where": "messages"}, LAST([result("x")])),
    "text_absent": ({"text": "secret"}, at("system")([text("a secret")])),
    "call_kept": ({"id": "t1"}, THINKING([text("x")])),
    "group_atomic": ({"prefix": "t"}, LAST([text("x")])),
    "no_empty_text_blocks": ({}, LAST([text(" ")])),
    "no_empty_results": ({}, LAST([result("")])),
    "no_result_grew": ({}, LAST([result("the whole of it")])),
    "no_base64_text": ({"min_run": 50}, LAST([result("QUJD" * 20)])),
    "image_whole_or_placeholder": (
        {},
        LAST([result([{"type": "image", "source": {"type": "base64", "data": "cut"}}])]),
    ),
    "utf8_encodable": ({}, LAST([result("\ud83d")])),
    "no_control_chars": ({}, LAST([result("a\x1b[0m")])),
    "text_length_max": ({"chars": 5}, LAST([result("longer")])),
    "arguments_parse": ({}, THINKING([{**CALL, "input": "{"}])),
    "json_equal": (
        {"path": "tools[name=read].name", "value": "read"},
        at("tools")([{"name": "x"}]),
    ),
    "request_max_tokens_min": ({"n": 1000}, at("max_tokens")(1)),
    "synthetic_results": ({"ids": [], "count": 0}, LAST([result("made up", "t9")])),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_check_holds_on_a_sound_run_and_finds_a_planted_fault(name):
    arguments, plant = PLANTED[name]
    assert faults(name, observed(sound()), arguments) == []
    bodies = deepcopy(sound())
    plant(bodies)
    try:
        found = faults(name, observed(bodies), arguments)
    except LookupError as error:
        found = [str(error)]
    assert found


def turn(number):
    return TurnBegan(at=1.0, path="main", turn=number)


def note(said):
    return MessageSeen(at=1.0, path="main", role="user", origin="caller", parts=(Text(said),))


OVERFLOW = {"message": "prompt is too long", "overflow": True}
LIMIT = {"message": "too many tokens a minute", "overflow": False}


def measured(tokens):
    """The log of two requests, the second of which is expected to be so long."""
    log = []
    for call, projected in ((1, 1), (2, tokens)):
        told = {"at": 1.0, "path": "main", "call": call}
        plan = {"turn": 1, "round": 1, "entries": 1, "digest": "", "breakpoints": ()}
        body = {"order": (), "messages": 1, "deviations": (), "mismatches": (), "observed": True}
        body |= {"attempt": 1, "header": 1, "renderer": "r", "body_hash": "", "body_bytes": 1}
        log.append((2 * call, CallPlanned(**told, **plan, projected_tokens=projected)))
        log.append((2 * call + 1, RequestSent(**told, **body)))
    return log


def pass_of(before, after):
    figures = {"tokens_before": before, "tokens_after": after, "rewritten_tokens": 0}
    about = {"at": 1.0, "path": "main", "cause": "rent", "stubs": (), "aged_before": 1}
    return Pruned(**about, **figures, break_even_calls=None)


RUNS = {
    "log_append_only": ({}, {"logs": [[1], [1, 2]]}, {"logs": [[1], [2, 1]]}),
    "log_unchanged": ({}, {"logs": [[1], [1]]}, {"logs": [[1], [1, 2]]}),
    "idempotent": ({}, {"again": [(1, 1)]}, {"again": [(1, 2)]}),
    "request_bytes_equal_recorded": (
        {},
        {"recorded": {0: (b"a", b"a")}},
        {"recorded": {0: (b"a", b"b")}},
    ),
    "seq_unique_contiguous": (
        {},
        {"values": {"threads": [[(1, turn(1)), (2, turn(2))]]}},
        {"values": {"threads": [[(1, turn(1)), (3, turn(2))]]}},
    ),
    "single_tip": (
        {},
        {"values": {"threads": [[(1, note("a"))]], "acknowledged": [{"a": 1}]}},
        {"values": {"threads": [[(1, note("a"))]], "acknowledged": [{"a": 2}]}},
    ),
    "acknowledged_all_present": (
        {},
        {"values": {"threads": [[(1, note("a"))]], "acknowledged": [{"a": 1}]}},
        {"values": {"threads": [[(1, note("a"))]], "acknowledged": [{"b": 1}]}},
    ),
    "bytes_max": (
        {"steps": 2, "bytes": 5},
        {"values": {"bytes": {2: 5}}},
        {"values": {"bytes": {2: 6}}},
    ),
    "growth_ratio_max": (
        {"a": 1, "b": 2, "ratio": 2.0},
        {"values": {"bytes": {1: 2, 2: 4}}},
        {"values": {"bytes": {1: 2, 2: 5}}},
    ),
    "value": (
        {"name": "n", "values": [1, 2.5], "tolerance": 0.1},
        {"values": {"n": [1, 2.45]}},
        {"values": {"n": [1, 2.7]}},
    ),
    "model_calls": ({"min": 2, "max": 2}, {}, {"sent": []}),
    "ends": ({"reason_in": ["completed"]}, {}, {"unfinished_turns": 1}),
    "raises": (
        {"kind": "rate_limit"},
        {"errors": [SimpleNamespace(status_code=429)]},
        {"errors": [SimpleNamespace(status_code=400)]},
    ),
    "classify_all": (
        {},
        {"classified": [(OVERFLOW, True), (LIMIT, False)]},
        {"classified": [(OVERFLOW, False), (LIMIT, False)]},
    ),
    "classify_no_false_positive": (
        {},
        {"classified": [(OVERFLOW, False)]},
        {"classified": [(LIMIT, True)]},
    ),
    "fits_window": ({"tokens": 9}, {"logs": [measured(9)]}, {"logs": [measured(10)]}),
    "prune_pass_min_tokens": (
        {"tokens": 6},
        {"logs": [[(1, pass_of(9, 3))]]},
        {"logs": [[(1, pass_of(9, 4))]]},
    ),
    "prefix_breaks_equal_relief_events": ({}, {"logs": [[]]}, {"logs": [[(1, pass_of(9, 3))]]}),
    "relief_order": (
        {"order": ["prune", "summarise"]},
        {"logs": [[(1, pass_of(9, 3))]]},
        {"logs": [[]]},
    ),
    "source_read_count": (
        {"name": "clock", "eq": 2},
        {"reads": {"clock": 2}},
        {"reads": {"clock": 3}},
    ),
    "warning": ({"contains": "fixed"}, {"said": ["the fixed part"]}, {"said": ["other"]}),
}


def fold(after, said="summed up"):
    return Compacted(
        at=1.0,
        path="main",
        cause="pressure",
        shadows=(1,),
        parts=(Text(said),),
        narrated_by=None,
        failures=(),
        tokens_before=100,
        tokens_after=after,
        rewritten_tokens=0,
    )


MISSED = ArchiveMissed(at=1.0, path="main", reason="it is down")


def hiding(*seqs):
    return replace(fold(40), shadows=seqs)


def gone(*seqs):
    """The caller goes back to before these entries."""
    return Replaced(at=1.0, path="main", shadows=seqs, cause="rewound", planned=False, recognised=0)


def asking(*, tokens=10, **more):
    """A request for a summary."""
    request = json.dumps({**sound()[1], **more}).encode()
    return [Sent("main", "main", "m", request, 200, b"{}", tokens, scripted=False)]


FOLDED = {"logs": [[(1, fold(40))]]}
RUNS |= {
    "compactions": ({"eq": 1}, FOLDED, {"logs": [[]]}),
    "surface_never_grows_by_compaction": ({}, FOLDED, {"logs": [[(1, fold(100))]]}),
    "no_empty_summary": ({}, FOLDED, {"logs": [[(1, fold(40, " "))]]}),
    "summariser_calls": ({"max": 1}, {"asked": asking()}, {"asked": asking() * 2}),
    "summariser_saw": ({"text": "whole", "call": 0}, {"asked": asking()}, {"asked": []}),
    "summariser_text_present": ({"text": "whole"}, {"asked": asking()}, {"asked": []}),
    "summariser_request_max_tokens": (
        {"tokens": 10},
        {"asked": asking()},
        {"asked": asking(tokens=11)},
    ),
    "summariser_request_valid": (
        {},
        {"asked": asking()},
        {"asked": asking(tool_choice={"type": "any"})},
    ),
}
RUNS |= {
    "order": (
        {"sequence": ["archive", "summarise", "compact"]},
        {"moments": ["archive", "summarise", "archive", "compact"]},
        {"moments": ["summarise", "archive", "compact"]},
    ),
    "event_count": (
        {"kind": "archive", "eq": 1},
        {"logs": [[]], "moments": ["archive"]},
        {"logs": [[]]},
    ),
    "summary_max_chars": (
        {"chars": 9},
        {"logs": [[(1, fold(40, "x" * 9))]]},
        {"logs": [[(1, fold(40, "x" * 10))]]},
    ),
    "summariser_text_absent_base64": (
        {},
        {"asked": asking()},
        {"asked": asking(system=[text(kit().expand({"b64": 900}))])},
    ),
    "coverage_complete": (
        {},
        {"logs": [[(1, note("a")), (2, fold(40))]]},
        {"logs": [[(1, note("a")), (2, note("b")), (3, hiding(1, 2)), (4, gone(3))]]},
    ),
    "surface_smaller_than_before": (
        {},
        {"logs": [[(1, note("a long word")), (2, fold(40, "a"))]]},
        {"logs": [[(1, note("a")), (2, fold(40, "a long word"))]]},
    ),
    "surface_contains_one_of": (
        {"texts": ["whole", "part"], "otherwise": "no_compaction"},
        {},
        {"sent": asking(messages=[]), "logs": [[(1, fold(40))]]},
    ),
    "auto": (
        {"compactions": 1, "log_level": "ERROR", "metric": "archive_failures"},
        {"values": {"auto_log": [(1, fold(40)), (2, MISSED)]}, "said": ["ERROR down"]},
        {"values": {"auto_log": [(1, fold(40))]}, "said": ["WARNING down"]},
    ),
    "metric": (
        {"name": "archive_failures", "eq": 1},
        {"logs": [[(1, MISSED)]]},
        {"logs": [[(1, fold(40))]]},
    ),
    "manual": (
        {"refused": True, "compactions": 0},
        {"values": {"manual": {"refused": True, "compactions": 0}}},
        {"values": {"manual": {"refused": False, "compactions": 1}}},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_check_of_a_run_holds_and_fails(name):
    arguments, good, bad = RUNS[name]
    assert faults(name, observed(sound(), **good), arguments) == []
    assert faults(name, observed(sound(), **bad), arguments)


GIVEN = "TOP" + "x" * 700 + "END"
MARKER = left_out(len(GIVEN) - 40, len(GIVEN), 200, "#3")
CUTS = {
    "length_max": ({"chars": 200}, GIVEN),
    "text_length_max": ({"chars": 200}, GIVEN),
    "length_max_each": ({}, GIVEN),
    "head_kept": ({"text": "TOP"}, GIVEN[1:]),
    "tail_kept": ({"text": "END"}, GIVEN[:-1]),
    "each_result_keeps_ends": ({"begin": "TOP", "end": "END"}, GIVEN[1:]),
    "each_stub_keeps_ends": ({}, GIVEN[1:]),
    "marker_count": ({"eq": 1}, GIVEN[:20] + GIVEN[-20:]),
    "marker_states_omitted_amount": ({}, GIVEN[:20] + MARKER + GIVEN[-21:]),
    "short_results_unchanged": ({}, ""),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_check_of_a_cut_holds_where_both_ends_are_and_fails_elsewhere(name):
    arguments, bad = CUTS[name]
    sent = {"limit_chars": [200] if name.endswith("_each") else 200}
    case = Case("c", "bound", "anthropic", sent, ())

    def seen_with(shown, given=GIVEN):
        bodies = [body([text("go")], ANSWER, [result([text(shown)])])]
        return observed(bodies, case=case, results={"t1": given})

    assert faults(name, seen_with(GIVEN[:20] + MARKER + GIVEN[-20:]), arguments) == []
    planted = seen_with(bad, GIVEN[:100] if name == "short_results_unchanged" else GIVEN)
    assert faults(name, planted, arguments)


def test_a_check_that_looks_for_what_is_not_there_is_loud():
    with pytest.raises(LookupError):
        faults("value", observed([]), {"name": "unheard", "eq": 1})
    with pytest.raises(LookupError):
        faults("prefix_extends", observed(sound()), {"pairs": [[0, 7]]})
    with pytest.raises(UnknownWordError):
        faults("event_count", observed([], logs=[[]]), {"kind": "unheard", "eq": 0})
    with pytest.raises(TypeError):
        faults("markers_max", observed(sound()), {"n": 4, "unheard": 1})


def test_unknown_words_are_known_as_such():
    assert not is_known("unheard", "op:unheard")
    assert not is_known("request_sequence", "input:unheard")
    assert not is_known("request_sequence", "setting:unheard")
    assert is_known("request_sequence", "setting:window")
    assert all(is_known(op, f"op:{op}") for op in OPS)


def test_a_thing_that_is_not_possible_yet_is_named_by_what_needs_it():
    names = [one.name for one in not_yet.blocking({"input:provider_rule", "form:openai"})]
    assert names == ["rules of providers", "OpenAI codec"]
    assert not_yet.judged_elsewhere({"prop": "telemetry_flag"}, []).name == "metrics"
    assert not_yet.judged_elsewhere({"prop": "event_count", "kind": "turn"}, []) is None
    touched = not_yet.touched_by({"setting:subagent_cache_ttl"})
    assert not_yet.judged_elsewhere({"prop": "ttl_of"}, touched).name == "lifetimes by agent"
    assert not_yet.judged_elsewhere({"prop": "ttl_of"}, []) is None
