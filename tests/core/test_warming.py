"""When the last request of a path is worth repeating, and what is learned of it when it was."""

import pytest
from msgspec.structs import replace

from barograph.core.events import Usage
from barograph.core.inputs import Answered, Header, Refused
from barograph.core.lifetimes import TTL_SECONDS
from barograph.core.policy import Policy
from barograph.core.warming import LEAD_SECONDS, next_refresh
from barograph.core.warmth import Warmth
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from talk import Talk

WARM = Policy(keep_warm_tokens=1_000_000, keep_warm_seconds=1e9)


@pytest.fixture
def talk():
    return Talk(MemoryStore(), policy=WARM)


def due_in(talk, path="main", *, policy=WARM, state=None):
    """Seconds from the start of the last call to the next refresh of a path; None for none."""
    refresh = next_refresh(state or talk.session.state, talk.codec, policy, path)
    return None if refresh is None else refresh.due - talk.at


def refresh(talk, *, after=None, path="main", usage=True):
    """Send the refresh that is due, as an adapter does."""
    talk.at += TTL_SECONDS["5m"] - LEAD_SECONDS if after is None else after
    plan = talk.session.state.path(path).planned
    repeat = talk.session.warm(path, plan.call, at=talk.at)
    if repeat is None:
        return None
    talk.session.leave(
        at=talk.at, path=repeat.path, header=repeat.header, body=repeat.body, observed=True
    )
    before = talk.session.state.path(path).ledger.last
    talk.session.take(
        Answered(
            at=talk.at,
            path=repeat.path,
            parts=(),
            stop_reason="max_tokens",
            usage=usage_of(before.tokens) if usage else None,
        )
    )
    return repeat


def usage_of(read):
    return Usage(
        read_tokens=read,
        write_5m_tokens=0,
        write_1h_tokens=0,
        uncached_tokens=0,
        output_tokens=0,
    )


def test_it_is_due_a_minute_before_the_newest_entry_dies(talk):
    talk.call(say="hello")
    assert due_in(talk) == 240


def test_an_hour_long_entry_is_read_again_once_an_hour():
    policy = replace(WARM, ttl="1h")
    talk = Talk(MemoryStore(), policy=policy)
    talk.call(say="hello")
    assert due_in(talk, policy=policy) == 3540


def test_nothing_is_due_by_default(talk):
    talk.call(say="hello")
    assert due_in(talk, policy=Policy()) is None


def test_nothing_is_due_while_a_call_is_under_way(talk):
    talk.call(say="hello")
    talk.call(say="more", after=0, answers=False)
    assert due_in(talk) is None


def test_nothing_is_due_where_the_call_before_it_was_the_last_that_was_answered(talk):
    talk.call(say="hello")
    talk.call(say="more", fails=(529, "overloaded"))
    assert due_in(talk) is None


def test_nothing_is_due_where_usage_was_not_reported(talk):
    talk.call(say="hello", usage=False)
    assert due_in(talk) is None


def test_nothing_is_due_for_a_prefix_below_the_minimum(talk):
    talk.system, talk.tools = "Be brief.", []
    talk.call(say="hello")
    assert due_in(talk) is None


def test_each_refresh_moves_the_next_one(talk):
    talk.call(say="hello")
    assert refresh(talk) is not None
    assert due_in(talk) == 240


def test_it_is_sent_neither_too_early_nor_too_late(talk):
    talk.call(say="hello")
    assert refresh(talk, after=239) is None
    assert refresh(talk, after=62) is None  # 301 seconds


def test_it_is_not_sent_for_a_call_that_is_not_the_last(talk):
    talk.call(say="hello")
    talk.call(say="more")
    assert talk.session.warm("main", 1, at=talk.at + 240) is None
    assert talk.session.warm("main", 2, at=talk.at + 240) is not None


def test_the_budget_is_one_for_all_paths_and_holds_after_a_restart(talk):
    talk.call(say="hello")
    talk.call(path="other", say="hello")
    cost = next_refresh(talk.session.state, talk.codec, WARM, "main").cost_tokens
    policy = replace(WARM, keep_warm_tokens=round(1.5 * cost))
    assert due_in(talk, "other", policy=policy) == 240
    refresh(talk)
    assert due_in(talk, "other", policy=policy) is None
    talk.restart()
    assert due_in(talk, "other", policy=policy) is None
    assert talk.session.state.path("main").warmth.refreshes == 1


def test_what_was_spent_stays_spent_when_the_pause_is_over(talk):
    talk.call(say="hello")
    refresh(talk)
    spent = talk.session.state.path("main").warmth.total_tokens
    talk.call(say="more")
    assert talk.session.state.path("main").warmth == Warmth(before_tokens=spent)


def test_what_it_did_cost_takes_the_place_of_what_was_expected(talk):
    talk.call(say="hello")
    refresh(talk)
    state = talk.session.state
    read = state.path("main").ledger.last.tokens
    assert state.path("main").warmth.spent_tokens == pytest.approx(0.1 * read, abs=1)


@pytest.mark.parametrize("usage", ["none reported", "nothing cached"])
def test_an_answer_that_read_nothing_ends_it_until_the_next_call(talk, usage):
    talk.call(say="hello")
    talk.at += 240
    repeat = talk.session.warm("main", 1, at=talk.at)
    talk.session.leave(
        at=talk.at, path=repeat.path, header=repeat.header, body=repeat.body, observed=True
    )
    reported = None if usage == "none reported" else usage_of(0)
    talk.session.take(
        Answered(at=talk.at, path=repeat.path, parts=(), stop_reason=None, usage=reported)
    )
    assert due_in(talk) is None
    talk.call(say="more")
    assert due_in(talk) == 240


def test_a_dear_read_is_not_worth_it(talk):
    talk.call(say="hello")
    assert due_in(talk, policy=replace(WARM, read_ratio=0.7)) is None
    assert due_in(talk, policy=replace(WARM, read_ratio=0.6)) == 240


def test_a_read_costs_what_the_policy_says_of_the_model(talk):
    talk.call(say="hello")
    model = talk.session.state.surface("main").header.model
    dear = replace(WARM, by_model={model: {"read_ratio": 0.7}})
    assert due_in(talk, policy=dear) is None
    cheap = replace(WARM, read_ratio=0.7, by_model={model: {"read_ratio": 0.6}})
    assert due_in(talk, policy=cheap) == 240


def test_room_for_an_answer_is_part_of_the_price(talk):
    talk.parameters = {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8000}}
    talk.call(say="hello")
    assert due_in(talk) is None  # 8 001 tokens of an answer for less than 2 000 of a prefix


def test_one_that_wrote_all_of_it_anew_cost_more_than_was_to_be_lost(talk):
    talk.call(say="hello")
    talk.at += 240
    repeat = talk.session.warm("main", 1, at=talk.at)
    talk.session.leave(
        at=talk.at, path=repeat.path, header=repeat.header, body=repeat.body, observed=True
    )
    length = talk.session.state.path("main").ledger.last.tokens
    written = replace(usage_of(0), write_5m_tokens=length)
    talk.session.take(
        Answered(at=talk.at, path=repeat.path, parts=(), stop_reason=None, usage=written)
    )
    assert due_in(talk) is None
    assert talk.session.state.path("main").warmth.spent_tokens == pytest.approx(1.25 * length)


def test_one_that_was_refused_is_the_last_until_the_next_call(talk):
    talk.call(say="hello")
    talk.at += 240
    repeat = talk.session.warm("main", 1, at=talk.at)
    refused = Refused(at=talk.at, path=repeat.path, error="Busy", status=529, message="busy")
    talk.session.take(refused)
    assert due_in(talk) is None
    talk.call(say="more")
    assert due_in(talk) == 240


def test_one_is_under_way_at_a_time(talk):
    talk.call(say="hello")
    assert talk.session.warm("main", 1, at=talk.at + 240) is not None
    assert due_in(talk) is None
    assert talk.session.warm("main", 1, at=talk.at + 241) is None


def test_the_refresh_itself_is_not_kept_warm(talk):
    talk.call(say="hello")
    refresh(talk)
    assert due_in(talk, "main/~keep-warm") is None


def test_numbers_of_calls_go_on_behind_it(talk):
    talk.call(say="hello")
    refresh(talk)
    talk.call(say="more")
    assert talk.session.state.path("main").planned.call == 3
    assert talk.session.state.path("main").planned.turn == 2


REFRESHED = {
    "plain": ('{"model":"m","max_tokens":512}', '{"model":"m","max_tokens":0}', 0),
    "streamed": ('{"max_tokens":9,"stream":true}', '{"max_tokens":0}', 0),
    "forced": (
        '{"max_tokens":9,"tool_choice":{"type":"any"}}',
        '{"max_tokens":1,"tool_choice":{"type":"any"}}',
        1,
    ),
    "free": (
        '{"max_tokens":9,"tool_choice":{"type":"auto"}}',
        '{"max_tokens":0,"tool_choice":{"type":"auto"}}',
        0,
    ),
    "formed": (
        '{"max_tokens":9,"output_config":{"format":{}}}',
        '{"max_tokens":1,"output_config":{"format":{}}}',
        1,
    ),
    "effort": (
        '{"max_tokens":9,"output_config":{"effort":"low"}}',
        '{"max_tokens":0,"output_config":{"effort":"low"}}',
        0,
    ),
    "budget": (
        '{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":1024}}',
        '{"max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024}}',
        1025,
    ),
    "adaptive": (
        '{"max_tokens":9000,"thinking":{"type":"adaptive"}}',
        '{"max_tokens":0,"thinking":{"type":"adaptive"}}',
        0,
    ),
}


@pytest.mark.parametrize("case", REFRESHED)
def test_parameters_are_changed_where_they_ask_for_an_answer_and_nowhere_else(case):
    given, sent, room = REFRESHED[case]
    codec = AnthropicCodec()
    refreshing = codec.refreshing(given)
    assert refreshing.parameters == sent
    assert refreshing.output_tokens == room
    assert codec.scope_of((), "", sent) == codec.scope_of((), "", given)


def test_the_header_is_that_of_the_call(talk):
    talk.call(say="hello")
    repeat = refresh(talk)
    sent = talk.session.state.surface("main").header
    assert repeat.header == Header(model=sent.model, system=sent.system, tools=sent.tools)
