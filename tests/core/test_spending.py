"""A turn is handed back when it, and all that it started, has spent what it may."""

import pytest
from msgspec.structs import replace
from test_steering import Turn

from barograph.core.costs import usd_of
from barograph.core.errors import PolicyError
from barograph.core.events import HandedBack, ResponseCame
from barograph.core.inputs import Answered
from barograph.core.learning import restore
from barograph.core.lifetimes import TTL_SECONDS
from barograph.core.policy import Policy
from barograph.core.spending import Account, Spent, cost_of, paths_above
from barograph.core.warming import LEAD_SECONDS
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.prices import cost_usd

BELOW = "main/helper#1"


def spent(turn, path="main"):
    return turn.session.state.path(path).progress.account.since("request")


def usages(turn):
    return [event.usage for event in turn.events(ResponseCame)]


def tokens_of(turn):
    return sum(one.input_total_tokens + one.output_tokens for one in usages(turn))


def test_what_a_turn_spent_is_what_its_calls_cost():
    turn = Turn().run(4)
    assert spent(turn).tokens == tokens_of(turn)
    usd = sum(cost_usd(one, facts_of(turn.model)) for one in usages(turn))
    assert spent(turn).usd == pytest.approx(usd, rel=1e-9)


def test_agents_below_spend_what_is_above_them():
    turn = Turn().run(1)
    turn.run(2, path=BELOW)
    assert spent(turn).tokens == tokens_of(turn)
    assert 0 < spent(turn, BELOW).tokens < tokens_of(turn)


def test_a_turn_that_spent_its_tokens_is_handed_back_before_its_next_call():
    three = tokens_of(Turn().run(3))
    turn = Turn(cap_tokens=three).run(3)
    turn.call()
    (back,) = turn.events(HandedBack)
    assert (back.cause, back.rounds, back.spent_tokens) == ("token_cap", 3, three)
    assert f"after {three:,} tokens" in back.parts[0].text
    assert len(turn.provider.exchanges) == 3


def test_a_turn_that_spent_its_money_is_handed_back():
    dollars = spent(Turn().run(3)).usd
    turn = Turn(cap_usd=0.99 * dollars).run(3)
    turn.call()
    (back,) = turn.events(HandedBack)
    assert (back.cause, back.spent_usd) == ("cost_cap", pytest.approx(dollars))
    assert f"after ${dollars:,.4f}" in back.parts[0].text


def test_an_agent_below_stops_when_all_together_have_spent_what_the_one_above_may():
    turn = Turn(cap_tokens=tokens_of(Turn().run(3))).run(2)
    turn.run(2, path=BELOW)
    turn.call(path=BELOW)
    turn.call()
    assert [back.path for back in turn.events(HandedBack)] == [BELOW, "main"]


@pytest.mark.parametrize("restarts", [False, True])
def test_any_word_lets_it_go_on_and_counts_anew(restarts):
    cap = tokens_of(Turn().run(3))
    turn = Turn(cap_tokens=cap).run(3)
    turn.call()
    if restarts:
        turn.restart()
    turn.round(say="continue")
    assert spent(turn).tokens < cap
    assert turn.session.state == restore(turn.codec, turn.store.read(turn.name))


def test_a_nod_lets_it_spend_no_more_unless_messages_reset():
    turn = Turn().run(2)
    before = spent(turn).tokens
    turn.round(say="ok")
    account = turn.session.state.path("main").progress.account
    assert account.since("request").tokens > before
    assert account.since("message").tokens < before
    turn.round(say="Now fix the tests.")
    assert spent(turn).tokens < before


def test_where_nobody_says_what_it_cost_what_was_projected_counts():
    turn = Turn().run(1)
    plan = turn.session.state.path("main").planned
    (response,) = turn.events(ResponseCame)
    silent = ResponseCame(
        at=0.0, path="main", call=1, parts=response.parts, stop_reason=None, usage=None,
        latency_seconds=0.0,
    )  # fmt: skip
    facts = facts_of(turn.model)
    expected = plan.projected_tokens * facts.input_usd / 1e6
    assert cost_of(silent, plan, facts) == Spent(plan.projected_tokens, expected)
    assert cost_of(silent, None, facts) == Spent()


def test_a_cap_that_somebody_sets_holds_where_the_policy_is_off():
    turn = Turn(name="off", cap_tokens=1).run(1)
    turn.call()
    assert turn.events(HandedBack)


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        *(("cap_tokens", one) for one in (0, -1, 1.5, True, "9")),
        *(("cap_usd", one) for one in (0, -1.0, float("nan"), float("inf"), True, "3")),
    ],
)
def test_a_cap_that_is_none_is_refused(knob, value):
    with pytest.raises(PolicyError, match=knob):
        Policy(**{knob: value})


def test_an_account_tells_what_was_spent_since_the_user_spoke():
    account = Account().charged(Spent(5, 0.5)).asked().charged(Spent(3, 0.25)).spoken()
    account = account.charged(Spent(2, 0.125))
    assert account.since("request") == Spent(5, 0.375)
    assert account.since("message") == Spent(2, 0.125)
    assert list(paths_above("main/a#1/b#2")) == ["main/a#1", "main"]


def test_money_is_tokens_at_the_price_of_a_million():
    assert usd_of(2_500_000, facts_of("claude-opus-4-8")) == 12.5


def test_a_call_that_keeps_a_path_warm_is_charged_to_that_path():
    turn = Turn(keep_warm_tokens=1_000_000, keep_warm_seconds=1e9).run(2)
    before = spent(turn).tokens
    turn.at += TTL_SECONDS["5m"] - LEAD_SECONDS
    plan = turn.session.state.path("main").planned
    repeat = turn.session.warm("main", plan.call, at=turn.at)
    turn.session.leave(
        at=turn.at, path=repeat.path, header=repeat.header, body=repeat.body, observed=True
    )
    usage = replace(usages(turn)[-1], read_tokens=700, output_tokens=1)
    turn.session.take(
        Answered(at=turn.at, path=repeat.path, parts=(), stop_reason="max_tokens", usage=usage)
    )
    assert spent(turn).tokens == before + usage.input_total_tokens + 1
    assert turn.session.state.path("main").warmth.refreshes == 1
    assert turn.session.state == restore(turn.codec, turn.store.read(turn.name))
