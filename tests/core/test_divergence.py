"""Every cause of a miss, made to happen against the simulated provider, and named."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.audit.reading import read_session
from barograph.core.divergence import find_divergence, shared_chars
from barograph.core.events import Breakpoint, Replaced
from barograph.core.ingest import Incoming
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.core.verdict import judge
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.anthropic.models import facts_of
from barograph.store import MemoryStore
from talk import MODEL, TOOLS, Talk

LONG = "word " * 2000


@pytest.fixture
def talk():
    return Talk(MemoryStore())


def verdicts(talk):
    session = read_session(talk.store, talk.name)
    return [call.verdict(session.codec) for call in session.calls]


def last(talk):
    return verdicts(talk)[-1]


def warm(talk, path="main"):
    """Three calls of a normal round: all that could be read was read."""
    talk.call(path=path, say="hello " + LONG, reply="hi")
    talk.call(path=path, say="read", reply=[("read", {"path": "a.py"})], results=[LONG])
    talk.call(path=path, reply="done")


def test_the_first_call_of_a_path_is_a_cold_start(talk):
    talk.call(say="hello")
    [verdict] = verdicts(talk)

    assert (verdict.cause, verdict.evidence) == ("cold_start", "proven")
    assert (verdict.read_tokens, verdict.lost_tokens, verdict.break_usd) == (0, None, None)
    assert verdict.compared_with is None


def test_a_call_that_reads_all_that_was_left_held(talk):
    warm(talk)
    first, second, third = verdicts(talk)

    assert [first.cause, second.cause, third.cause] == ["cold_start", "held", "held"]
    assert third.evidence == "reported"
    assert third.read_tokens == third.expected_tokens > second.expected_tokens
    assert (third.lost_tokens, third.break_usd) == (0, 0.0)


def test_another_model(talk):
    warm(talk)
    talk.model = "claude-sonnet-5"
    talk.call(say="and now?")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("model_changed", "proven")
    assert (verdict.divergence.before, verdict.divergence.after) == (MODEL, "claude-sonnet-5")
    assert verdict.named_by.event == "header_set"
    assert "model" in verdict.named_by.cause


def test_another_tool_description_names_the_tool_and_the_place(talk):
    warm(talk)
    expected = verdicts(talk)[-1]
    talk.tools = [TOOLS[0], TOOLS[1] | {"description": "Search the documents of 12:05."}]
    talk.call(say="and now?")
    verdict = last(talk)
    divergence = verdict.divergence

    assert (verdict.cause, verdict.evidence) == ("tools_changed", "proven")
    assert (divergence.level, divergence.label, divergence.block) == ("tools", "search", 1)
    assert (divergence.segment, divergence.message) == (1, None)
    assert '"Search the documents."' in divergence.before
    assert "of 12:05" in divergence.after
    spelled = json.dumps(TOOLS[1], separators=(",", ":"))
    assert divergence.offset == spelled.index("documents.") + len("documents")
    assert verdict.read_tokens == 0
    assert verdict.lost_tokens == verdict.expected_tokens > expected.expected_tokens
    facts = facts_of(MODEL)
    price = (facts.write_5m_ratio - facts.read_ratio) * facts.input_usd / 1e6
    assert verdict.break_usd == pytest.approx(verdict.lost_tokens * price)
    assert "search" in verdict.advice


def test_a_tool_that_went(talk):
    warm(talk)
    talk.tools = TOOLS[:1]
    talk.call(say="and now?")
    divergence = last(talk).divergence

    assert (divergence.label, divergence.block, divergence.after) == ("search", 1, "")


def test_a_header_that_comes_back_finds_its_older_entry(talk):
    warm(talk)
    talk.tools = TOOLS[:1]
    talk.call(say="and now?")
    talk.tools = TOOLS
    talk.call(say="and now?")
    verdict = last(talk)

    # what call 3 wrote was still there, and is longer than what call 4 wrote with fewer tools
    assert verdict.cause == "tools_changed"
    assert verdict.compared_with == 4
    assert verdict.read_tokens == verdict.expected_tokens
    assert verdict.lost_tokens == 0


def test_another_system_prompt(talk):
    warm(talk)
    talk.system = talk.system[:300] + "It is noon. " + talk.system[300:]
    talk.call(say="and now?")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("system_changed", "proven")
    assert (verdict.divergence.segment, verdict.divergence.offset) == (2, 300)
    assert verdict.divergence.after[24:].startswith("It is noon")
    assert verdict.named_by.cause == "system changed"


def test_a_parameter_that_messages_depend_on(talk):
    warm(talk)
    talk.parameters = {"max_tokens": 100, "tool_choice": {"type": "any"}}
    talk.call(say="and now?", reply=[("read", {})])
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("parameters_changed", "proven")
    assert verdict.divergence.label == "tool_choice"
    assert (verdict.divergence.before, verdict.divergence.after) == ("", '{"type":"any"}')
    # tools and system were still read
    assert 0 < verdict.read_tokens < verdict.expected_tokens
    assert verdict.lost_tokens == verdict.expected_tokens - verdict.read_tokens


def test_a_parameter_that_no_entry_depends_on_breaks_nothing(talk):
    warm(talk)
    talk.parameters = {"max_tokens": 99}
    talk.call(say="and now?")

    assert last(talk).cause == "held"


def test_an_edited_history_names_the_event(talk):
    warm(talk)
    history = talk.histories["main"]
    history[0] = Incoming("user", (Text("goodbye " + LONG),))
    talk.call(say="and now?")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("history_changed", "proven")
    assert (verdict.named_by.event, verdict.named_by.cause) == ("replaced", "rewound")
    assert (verdict.divergence.message, verdict.divergence.block) == (0, 0)
    assert verdict.divergence.before.startswith("hello")
    assert verdict.divergence.after.startswith("goodbye")
    assert not verdict.planned
    assert verdict.read_tokens > 0
    assert verdict.lost_tokens > 0


def test_a_rewind_loses_only_what_is_sent_again(talk):
    warm(talk)
    before = last(talk)
    del talk.histories["main"][2:]
    talk.call(say="something else")
    verdict = last(talk)

    assert verdict.cause == "history_changed"
    # the long result is gone from the request; nobody paid for it again
    assert verdict.lost_tokens < before.expected_tokens / 4
    assert verdict.expected_tokens > before.expected_tokens


def test_a_planned_fold_is_planned(talk):
    warm(talk)
    entry = next(entry for entry in talk.entries() if entry.role == "tool")
    [result] = entry.parts
    stub = (type(result)(result.call_id, (Text("[stub]"),)),)
    talk.at += 5
    talk.log(
        Replaced(
            at=talk.at,
            path="main",
            shadows=(entry.seq,),
            cause="prune",
            planned=True,
            role="tool",
            parts=stub,
        )
    )
    talk.call(say="and now?")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence, verdict.planned) == ("planned_fold", "proven", True)
    assert verdict.named_by.cause == "prune"
    assert verdict.divergence.after == "[stub]"
    assert verdict.divergence.before_seq == entry.seq
    # the stubbed text was not paid again, what follows it was
    assert 0 <= verdict.lost_tokens < 200


def test_a_fold_on_a_cold_cache_is_not_blamed(talk):
    warm(talk)
    entry = talk.entries()[0]
    gone = Replaced(
        at=talk.at, path="main", shadows=(entry.seq,), cause="compaction", planned=True,
        role="user", parts=(Text("summary"),),
    )  # fmt: skip
    talk.log(gone)
    talk.call(say="and now?", after=301)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("expired", "inferred")
    assert verdict.also == ("planned_fold",)
    assert verdict.named_by.cause == "compaction"


@pytest.mark.parametrize(("ttl", "life"), [("5m", 300), ("1h", 3600)])
def test_an_entry_expires_on_the_clock_of_the_log(ttl, life):
    talk = Talk(MemoryStore(), policy=Policy(ttl=ttl))
    warm(talk)
    talk.call(say="in time", after=life)
    assert last(talk).cause == "held"
    talk.call(say="too late", after=life + 1)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("expired", "inferred")
    assert verdict.idle_seconds == life + 1
    assert verdict.read_tokens == 0
    assert ("`barograph ttl`" in verdict.advice) is (ttl == "5m")


def test_bytes_beat_the_clock_as_evidence(talk):
    warm(talk)
    talk.system += "!"
    talk.call(say="and now?", after=400)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence, verdict.also) == (
        "system_changed",
        "proven",
        ("expired",),
    )


def test_a_prompt_below_the_minimum(talk):
    talk.system, talk.tools = "short", []
    talk.call(say="hello")
    talk.call(say="again")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("below_minimum", "reported")
    assert (verdict.expected_tokens, verdict.read_tokens, verdict.lost_tokens) == (0, 0, 0)
    assert "1024" in verdict.advice


def test_no_free_slot_for_a_marker(talk):
    warm(talk)
    talk.call(say="and now?", reserved=4)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("no_breakpoint", "proven")
    assert verdict.read_tokens == 0
    # unmarked tokens are plain input: dearer than a read, cheaper than a write
    facts = facts_of(MODEL)
    assert verdict.break_usd == pytest.approx(
        verdict.lost_tokens * (1 - facts.read_ratio) * facts.input_usd / 1e6
    )


def test_a_lost_token_costs_more_above_a_price_cliff(talk):
    talk.model = "claude-haiku-5-5"
    talk.call(say="word " * 110_000)
    talk.system += "It is 12:05."
    talk.call(say="and now?")
    verdict = last(talk)

    assert verdict.lost_tokens > 100_000
    assert verdict.break_usd == pytest.approx(verdict.lost_tokens * 5 * (1.25 - 0.1) * 0.1 / 1e6)


def test_no_marker_within_reach(talk):
    talk.call(say="hello " + LONG)
    for number in range(30):
        talk.histories["main"].append(Incoming("user", (Text(f"note {number}"),)))
    # one slot alone: the tail, 30 blocks behind the entry
    talk.call(reserved=3)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("out_of_lookback", "proven")
    assert verdict.read_tokens < verdict.expected_tokens


def test_a_run_of_results_is_one_position_of_the_lookback(talk):
    talk.call(say="hello " + LONG, reply=[("read", {"path": str(n)}) for n in range(30)],
              results=["text"] * 30)  # fmt: skip
    talk.call(reserved=3)

    assert last(talk).cause == "held"


def test_a_miss_without_any_reason_is_the_providers(talk):
    warm(talk)
    talk.provider._cache._entries.clear()
    talk.call(say="and now?")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("provider_side_suspected", "unknown")
    assert verdict.lost_tokens == verdict.expected_tokens
    assert "request id" in verdict.advice


def test_a_partial_read_is_never_held(talk):
    warm(talk)
    scope_entries = talk.provider._cache._entries
    deepest = list(scope_entries)[-1]
    del scope_entries[deepest]
    talk.call(say="and now?")
    verdict = last(talk)

    assert 0 < verdict.read_tokens < verdict.expected_tokens
    assert verdict.cause == "provider_side_suspected"
    assert verdict.lost_tokens == verdict.expected_tokens - verdict.read_tokens


def test_unreported_usage_is_unknown_and_not_zero(talk):
    warm(talk)
    talk.call(say="and now?", usage=False)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("not_comparable", "unknown")
    assert verdict.expected_tokens > 0
    assert (verdict.read_tokens, verdict.lost_tokens, verdict.break_usd) == (None, None, None)


def test_a_change_of_bytes_is_proven_even_where_usage_is_not_reported(talk):
    warm(talk)
    talk.system += "!"
    talk.call(say="and now?", usage=False)
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("system_changed", "proven")
    assert verdict.lost_tokens is None


def test_a_call_after_an_unreported_one_is_not_comparable(talk):
    talk.call(say="hello " + LONG, usage=False)
    talk.call(say="again")
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("not_comparable", "unknown")
    assert verdict.expected_tokens is None
    assert verdict.lost_tokens is None


def test_paths_are_compared_each_with_itself(talk):
    warm(talk)
    warm(talk, path="main/helper#1")
    talk.call(say="back", path="main")
    talk.call(say="more", path="main/helper#1")
    found = verdicts(talk)

    assert [v.cause for v in found] == ["cold_start", "held", "held"] * 2 + ["held", "held"]
    assert [v.compared_with for v in found[-2:]] == [3, 6]


def test_a_failed_call_is_no_base_of_comparison(talk):
    warm(talk)
    talk.call(say="and now?", fails=(529, "Overloaded"))
    talk.call()
    found = verdicts(talk)

    assert found[3] is None
    assert (found[4].cause, found[4].compared_with) == ("held", 3)


def test_a_request_rewritten_behind_our_back_is_proven_and_no_event_names_it(talk):
    warm(talk)
    talk.call(say="and now?", edit=lambda body: body.replace(b"hello word", b"HELLO word"))
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("history_changed", "proven")
    assert verdict.named_by is None
    assert verdict.divergence.message == 0
    assert "HELLO" in verdict.divergence.after
    assert "last middleware" in verdict.advice


def test_a_body_that_cannot_be_taken_apart_is_not_comparable(talk):
    warm(talk)
    talk.call(say="and now?", edit=lambda body: b" " + body.replace(b"hello word", b"HELLO word"))
    verdict = last(talk)

    assert (verdict.cause, verdict.evidence) == ("not_comparable", "unknown")


def test_moving_a_marker_is_no_divergence(talk):
    warm(talk)
    session = read_session(talk.store, talk.name)
    before, after = session.calls[1].sent, session.calls[2].sent

    assert before.plan.breakpoints != after.plan.breakpoints
    assert find_divergence(session.codec, before, after) is None


def test_a_change_behind_the_last_marker_is_none_that_counts(talk):
    warm(talk)
    session = read_session(talk.store, talk.name)
    sent = session.calls[-1].sent
    plan = type(sent.plan)(
        **{f: getattr(sent.plan, f) for f in sent.plan.__struct_fields__ if f != "breakpoints"},
        breakpoints=(Breakpoint(level="messages", block=0, ttl="5m", slot="tail"),),
    )
    shorter = type(sent)(plan=plan, surface=sent.surface.cut(1), scope=sent.scope, usage=sent.usage)
    marked_early = type(sent)(plan=plan, surface=sent.surface, scope=sent.scope, usage=sent.usage)

    assert find_divergence(session.codec, marked_early, shorter) is None
    assert find_divergence(session.codec, sent, shorter) is not None


def test_no_remedy_is_offered_without_evidence(talk):
    warm(talk)
    talk.call(say="a", usage=False)
    talk.provider._cache._entries.clear()
    talk.call(say="b")
    talk.provider._cache._entries.clear()
    talk.call(say="c")
    for verdict in verdicts(talk):
        if verdict.evidence == "unknown":
            assert verdict.advice.startswith(("Nothing on your side", "Not enough was reported"))


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_shared_chars_is_the_length_of_the_common_beginning(start, left, right):
    one, other = start + left, start + right
    count = shared_chars(one, other)

    assert one[:count] == other[:count]
    assert count >= len(start)
    assert count in {len(one), len(other)} or one[count] != other[count]


def act(talk, step, number):
    """Change one thing before the next call; `say` and `silent` change nothing."""
    if step == "late":
        talk.at += 500
    elif step == "tools":
        talk.tools = [TOOLS[0] | {"description": f"Read {number} files."}]
    elif step == "system":
        talk.system += f" {number}"
    elif step == "thinking":
        talk.parameters = {"max_tokens": 100, "thinking": {"budget_tokens": number}}
    elif step == "lost":
        talk.provider._cache._entries.clear()
    elif step == "rewind":
        del talk.histories["main"][1:]


STEPS = ["say", "silent", "late", "tools", "system", "thinking", "lost", "rewind"]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(STEPS), max_size=9))
def test_what_a_verdict_says_is_so_in_every_history(steps):
    talk = Talk(MemoryStore())
    warm(talk)
    for number, step in enumerate(steps):
        act(talk, step, number)
        talk.call(say=f"{step} {number}", usage=step != "silent")
    session = read_session(talk.store, talk.name)
    for call in session.calls:
        verdict = call.verdict(session.codec)
        usage = call.response.usage
        assert (verdict.read_tokens is None) is (usage is None)
        if verdict.cause == "held":
            assert verdict.read_tokens >= verdict.expected_tokens
        if verdict.evidence == "proven" and verdict.cause.endswith("_changed"):
            assert verdict.divergence is not None
        if verdict.lost_tokens is not None:
            assert 0 <= verdict.lost_tokens <= usage.input_total_tokens
            assert verdict.break_usd >= 0
        assert verdict.advice.endswith(".")


def test_judge_needs_no_log_at_all():
    talk = Talk(MemoryStore())
    warm(talk)
    session = read_session(talk.store, talk.name)
    calls = session.calls

    assert judge(AnthropicCodec(), None, calls[0].sent).cause == "cold_start"
    assert judge(AnthropicCodec(), calls[1].sent, calls[2].sent).cause == "held"
