import itertools

import pytest

from barograph.core.lifetimes import Outlook, Pauses, break_even_pauses, is_pause, pays_to_last
from barograph.providers.anthropic.models import facts_of

OPUS = facts_of("claude-opus-4-8")
FABLE = facts_of("claude-fable-5-1")


@pytest.mark.parametrize(
    ("seconds", "paused"), [(300, False), (300.1, True), (3600, True), (3600.1, False)]
)
def test_a_pause_is_what_a_long_entry_outlives_and_a_short_one_does_not(seconds, paused):
    assert is_pause(seconds) is paused


def test_pauses_are_counted_and_shrunk_towards_what_is_expected():
    seen = Pauses()
    for gap in (5, 400, 10, 5000):
        seen = seen.after(gap)
    assert seen == Pauses(gaps=4, slow=1)
    assert Pauses().outlook(0.02).pause_ratio == pytest.approx(0.02)
    assert seen.outlook(0.0).pause_ratio == 1 / 34
    assert Pauses(gaps=3000, slow=300).outlook(0.5).pause_ratio == pytest.approx(0.1, abs=0.01)


def test_the_break_even_follows_from_the_prices():
    assert round(break_even_pauses(OPUS), 3) == 0.652
    assert round(break_even_pauses(FABLE), 3) == 0.612


def test_no_pause_is_expected_where_none_was_seen_and_nothing_lasts_then():
    assert not pays_to_last(Pauses(gaps=100).outlook(0.0), 1e9, 1.0, OPUS)


def test_a_token_alone_lasts_when_more_pauses_are_expected_than_pay_for_it():
    assert not pays_to_last(Outlook(0.65), 100, 100, OPUS)
    assert pays_to_last(Outlook(0.66), 100, 100, OPUS)


def test_a_call_that_writes_nothing_may_be_made_to_last():
    assert pays_to_last(Outlook(0.01), 100, 0, OPUS)


@pytest.mark.parametrize("share", [0.003, 0.01, 0.03, 0.1, 0.3])
def test_in_a_history_that_grows_evenly_no_other_spacing_of_long_tails_costs_less(share):
    extra = OPUS.write_1h_ratio - OPUS.write_5m_ratio
    saved = OPUS.write_5m_ratio - OPUS.read_ratio

    def cost(lasts):
        exposed, paid = 0, 0.0
        for _ in range(5_000):
            exposed += 1
            if lasts(exposed):
                paid += extra
                exposed = 0
            paid += share * saved * exposed
        return paid

    best = min(cost(lambda exposed, n=n: exposed >= n) for n in range(1, 40))
    assert cost(lambda exposed: pays_to_last(Outlook(share), exposed, 1, OPUS)) <= 1.001 * best


def test_the_rule_wants_more_the_more_is_exposed_and_the_less_is_new():
    for share, new in itertools.product((0.01, 0.1), (1.0, 10.0)):
        answers = [
            pays_to_last(Outlook(share), exposed, new, OPUS) for exposed in range(10, 400, 5)
        ]
        assert answers == sorted(answers)


def test_a_long_entry_that_did_not_keep_what_stands_before_it_is_doubted_for_good():
    slow = Pauses().after(900.0)
    assert slow.judged(1_000, 950) == slow
    assert not Pauses().after(10.0).judged(1_000, 0).is_doubted
    doubted = slow.judged(1_000, 200)
    assert doubted.is_doubted
    assert doubted.after(10.0).after(900.0).judged(1_000, 1_000).is_doubted


def test_then_each_token_pays_for_itself_over_as_many_calls_as_there_were():
    few, many = (Pauses(gaps=n, slow=1, is_doubted=True).outlook(0.0) for n in (10, 90))
    assert not pays_to_last(few, 1e9, 1.0, OPUS)
    assert pays_to_last(many, 1.0, 1.0, OPUS)
