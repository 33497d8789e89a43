"""The composition of a request: every token in one kind, by the meter's own weights."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barograph.audit.context import compose, last_sent
from barograph.audit.pieces import KINDS, pieces_of, share_out
from barograph.audit.reading import read_session
from barograph.core.errors import UnknownCall
from barograph.core.events import CallFailed, Compacted, Pruned, Stub, Usage
from barograph.core.ingest import Incoming
from barograph.core.parts import Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.state import count_header_chars
from barograph.core.stubs import stub_text
from barograph.core.surface import Entry, Surface
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from barograph.store.originals import read_original
from cli.everything import record
from talk import Talk

CODEC = AnthropicCodec()
FOUND = "\n".join(f"src/file_{line}.py:{line}: hit" for line in range(200))


def picture(text="QUJD" * 4000):
    return Image(json.dumps({"type": "image", "source": {"type": "base64", "data": text}}))


def paper(text="a page"):
    return Document(json.dumps({"type": "document", "source": {"type": "text", "data": text}}))


def composition(talk, call=None):
    logged = read_session(talk.store, talk.name)
    return compose(logged, last_sent(logged, None) if call is None else logged.call(call))


def by_kind(found):
    return {kind.kind: kind for kind in found.kinds}


@pytest.fixture
def talk():
    return Talk(MemoryStore())


def test_all_kinds_together_are_the_whole_input_that_was_reported(talk):
    talk.call(say="Find it.", reply=[("read", {"path": "a.py"})], results=[FOUND])
    talk.call(reply="Found.")
    found = composition(talk)
    usage = read_session(talk.store, talk.name).call(2).response.usage

    assert (found.call, found.counted) == (2, "reported")
    assert found.tokens == usage.input_total_tokens
    assert sum(kind.tokens for kind in found.kinds) == found.tokens
    assert [*by_kind(found)] == ["tools", "system", "user", "arguments", "results"]
    fixed = by_kind(found)["tools"].tokens + by_kind(found)["system"].tokens
    assert found.fixed_tokens == fixed


def test_a_call_whose_usage_is_unknown_has_the_projection(talk):
    talk.call(say="Find it.")
    talk.call(say="Well?", usage=False)
    found = composition(talk)

    assert found.counted == "projected"
    assert found.tokens == talk.session.state.path("main").planned.projected_tokens
    assert sum(kind.tokens for kind in found.kinds) == found.tokens


def test_a_report_of_nothing_is_none(talk):
    talk.call(say="Find it.")
    logged = read_session(talk.store, talk.name)
    nothing = Usage(
        read_tokens=0, write_5m_tokens=0, write_1h_tokens=0, uncached_tokens=0, output_tokens=5
    )
    call = replace(logged.last, sent=replace(logged.last.sent, usage=nothing))
    found = compose(logged, call)

    assert found.counted == "projected"
    assert found.tokens == call.plan.projected_tokens > 0


def test_each_tool_is_counted_by_its_schema_its_calls_and_its_results(talk):
    asked = [("read", {"path": "a.py"}), ("search", {"words": "b"})]
    talk.call(say="Find it.", reply=asked, results=[FOUND, "nothing"])
    talk.call(reply=[("read", {"path": "b.py"})], results=["short"])
    talk.call()
    kinds = by_kind(composition(talk))

    assert {one.name for one in kinds["tools"].names} == {"read", "search"}
    assert [(one.name, one.pieces) for one in kinds["arguments"].names] == [
        ("read", 2),
        ("search", 1),
    ]
    assert [(one.name, one.pieces) for one in kinds["results"].names] == [
        ("read", 2),
        ("search", 1),
    ]
    assert kinds["results"].names[0].tokens > 50 * kinds["results"].names[1].tokens
    assert kinds["user"].names == ()


def test_the_pieces_of_a_surface_weigh_what_the_meter_says(talk):
    talk.call(say="Find it.", reply=[("read", {"path": "a.py"})], results=[FOUND])
    talk.call(say="日本語")
    surface = read_session(talk.store, talk.name).last.sent.surface
    pieces = pieces_of(CODEC, surface)
    header = count_header_chars(CODEC, surface.header.system, surface.header.tools)

    assert sum(piece.chars for piece in pieces) == header + surface.segments[-1].end_chars


def surface_of(*entries):
    surface = Surface()
    for entry in entries:
        surface = surface.appended(CODEC, entry)
    return surface


def kinds_of(*entries):
    surface = surface_of(*entries)
    pieces = pieces_of(CODEC, surface)
    assert sum(piece.chars for piece in pieces) == surface.segments[-1].end_chars
    return [(piece.kind, piece.name) for piece in pieces]


def test_every_part_has_its_kind():
    server = Opaque("server_tool_use", '{"type":"server_tool_use"}')
    sealed = Opaque("redacted_thinking", '{"type":"redacted_thinking"}')
    rich = Opaque("tool_use", '{"type":"tool_use","id":"c2","name":"plot","caller":{}}')
    said = Entry(2, "assistant", (Thinking("hm"), sealed, Text("So."), server, rich))

    assert kinds_of(
        Entry(1, "user", (Text("Go."), picture(), paper())),
        said,
        Entry(3, "tool", (ToolResult("c2", (Text("done"),)),)),
    ) == [
        ("user", ""),
        ("images", ""),
        ("documents", ""),
        ("thinking", ""),
        ("thinking", ""),
        ("assistant", ""),
        ("other", "server_tool_use"),
        ("arguments", "plot"),
        ("results", "plot"),
    ]


def test_a_picture_in_a_result_is_a_picture_and_not_the_text_beside_it():
    result = ToolResult("c1", (Text("a plot"), picture(), picture(), paper()))

    assert kinds_of(
        Entry(1, "assistant", (ToolCall("c1", "plot", "{}"),)), Entry(2, "tool", (result,))
    ) == [("arguments", "plot"), ("documents", "plot"), ("images", "plot"), ("results", "plot")]


def test_a_summary_is_no_speech_of_the_user():
    summary = Entry(9, "user", (Text("What happened."),), folded_by=9, hides=(1, 2))

    assert kinds_of(summary, Entry(10, "user", (Text("Go on."),))) == [
        ("summaries", ""),
        ("user", ""),
    ]


def test_in_a_pruned_entry_only_what_a_stub_stands_for_is_a_stub():
    stub = stub_text(FOUND, handle="#2")
    pruned = Entry(2, "tool", (ToolResult("c1", (Text(stub),)),), folded_by=5)
    beside = Entry(
        1, "assistant", (Text("⟦so⟧"), ToolCall("c1", "read", '{"path":"#1"}')), folded_by=5
    )
    # what a bounded result names is its own handle, and it is none
    bounded = Entry(2, "tool", (ToolResult("c1", (Text(stub),)),))

    assert kinds_of(beside, pruned) == [
        ("assistant", ""),
        ("arguments", "read"),
        ("stubs", "read"),
    ]
    assert kinds_of(beside, bounded)[-1] == ("results", "read")


def test_stubs_and_summaries_of_a_session_have_handles_that_read_the_original(talk):
    talk.call(say="Find it.", reply=[("read", {"path": "a.py"})], results=[FOUND])
    talk.call(reply=[("read", {"path": "b.py"})], results=["short"])
    seq = next(entry.seq for entry in talk.entries() if entry.role == "tool")
    result = talk.entries()[2].parts[0]
    stub = replace(result, content=(Text(stub_text(FOUND, handle=f"#{seq}")),))
    talk.log(
        Pruned(
            at=talk.at,
            path="main",
            cause="rent",
            stubs=(Stub(seq=seq, parts=(stub,)),),
            aged_before=2,
            tokens_before=10,
            tokens_after=5,
            rewritten_tokens=0,
            break_even_calls=None,
        )
    )
    talk.call()
    found = composition(talk)
    [large] = [piece for piece in found.largest if piece.kind == "stubs"]

    assert by_kind(found)["stubs"].names[0].name == "read"
    assert large.handle == f"#{seq}"
    assert read_original(talk.store, talk.name, large.handle) == FOUND

    shadows = tuple(entry.seq for entry in talk.entries().span(0, 3))
    talk.log(
        Compacted(
            at=talk.at,
            path="main",
            cause="manual",
            shadows=shadows,
            parts=(Text("It was found."),),
            narrated_by=None,
            failures=(),
            tokens_before=10,
            tokens_after=5,
            rewritten_tokens=0,
        )
    )
    talk.call(say="Go on.")
    kinds = by_kind(composition(talk))
    assert kinds["summaries"].pieces == 1
    assert "stubs" not in kinds


def test_the_largest_pieces_come_first_and_say_where_they_stand(talk):
    talk.call(say="Find it.", reply=[("read", {"path": "a.py"})], results=[FOUND])
    talk.call(say="Again.", reply=[("read", {"path": "a.py"})], results=[FOUND * 2])
    talk.call(say="And?", reply="That.")
    talk.call(say="So?")
    largest = composition(talk).largest

    assert [piece.tokens for piece in largest] == sorted(
        (piece.tokens for piece in largest), reverse=True
    )
    assert len(largest) == 10
    first = largest[0]
    assert (first.kind, first.name, first.message) == ("results", "read", 4)
    assert FOUND.startswith(first.begins)
    [system] = [piece for piece in largest if piece.kind == "system"]
    assert (system.handle, system.message) == (None, None)


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("off", ["full"]),
        ("bound-once", ["compact", "full"]),
        ("balanced", ["prune", "compact", "full"]),
        ("fixed", ["prune", "compact", "full"]),
    ],
)
def test_thresholds_are_those_of_the_policy_in_usable_tokens(preset, names):
    talk = Talk(MemoryStore(), policy=Policy(name=preset))
    talk.parameters = {"max_tokens": 50_000}
    talk.call(say="hello")
    found = composition(talk)
    sizes = {one.name: one.tokens for one in found.thresholds}

    assert [one.name for one in found.thresholds] == names
    assert found.usable_tokens == 950_000
    assert sizes["full"] == 950_000
    assert found.pressure == found.tokens / 950_000
    assert all(one.left_tokens == one.tokens - found.tokens for one in found.thresholds)
    policy = Policy(name=preset)
    if "prune" in sizes:
        assert sizes["prune"] == round(policy.safety_ratio * 950_000)
    if "compact" in sizes:
        assert sizes["compact"] == round(policy.hard_ratio * 950_000)


def test_the_window_is_the_one_that_the_provider_named(talk):
    talk.call(say="hello")
    talk.call(say="and?", answers=False)
    talk.log(
        CallFailed(
            at=talk.at,
            path="main",
            call=2,
            error="ApiError",
            status=400,
            message="prompt is too long",
            window_tokens=150_000,
        )
    )
    talk.call(say="well?")
    windows = [composition(talk, call).window_tokens for call in (1, 3)]

    assert windows == [1_000_000, 150_000]
    assert composition(talk).usable_tokens == 150_000 - 100


def test_a_price_cliff_is_a_threshold(talk):
    talk.model = "claude-haiku-5-5-20261001"
    talk.call(say="hello")
    cliff = composition(talk).thresholds[0]

    assert (cliff.name, cliff.tokens) == ("cliff", 100_000)


def test_the_last_call_of_a_path_is_the_last_that_left(talk):
    record_store = MemoryStore()
    record(record_store)
    logged = read_session(record_store, "refactor-billing")

    assert last_sent(logged, None).plan.call == 9
    assert last_sent(logged, "main/researcher#1").plan.call == 3
    with pytest.raises(UnknownCall, match="no call of agent path 'main/x'"):
        last_sent(logged, "main/x")
    with pytest.raises(UnknownCall, match="was planned and never left"):
        compose(logged, logged.call(10))
    talk.call(say="a", leaves=False)
    with pytest.raises(UnknownCall, match="no call that left"):
        last_sent(read_session(talk.store, talk.name), None)


def test_a_session_that_goes_on_meanwhile_is_read_as_it_stands(talk):
    talk.call(say="Find it.", reply=[("read", {"path": "a.py"})], results=[FOUND])
    before = talk.store.last_seq(talk.name)
    first = composition(talk)
    talk.call(answers=False)

    assert composition(talk, 1) == first
    assert talk.store.last_seq(talk.name) > before
    assert composition(talk).counted == "projected"


def test_a_request_without_tools_or_system_has_none(talk):
    talk.tools, talk.system = [], ""
    talk.call(say="hello")
    found = composition(talk)

    assert [*by_kind(found)] == ["user"]
    assert found.fixed_tokens == 0


def test_messages_brought_along_by_a_caller_are_of_the_kinds_they_are(talk):
    talk.histories["main"] = [
        Incoming("user", (Text("Go."),)),
        Incoming("assistant", (Thinking("hm", "sig"), Text("Went."))),
    ]
    talk.call(say="And?")

    assert [*by_kind(composition(talk))] == ["tools", "system", "user", "assistant", "thinking"]


@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), max_size=40))
def test_shares_are_whole_and_add_up(total, weights):
    shares = share_out(total, weights)

    assert len(shares) == len(weights)
    assert sum(shares) == (total if sum(weights) else 0)
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * weight / (sum(weights) or 1)) < 1 or not sum(weights)


def test_kinds_are_named_once():
    assert len(set(KINDS)) == len(KINDS)
