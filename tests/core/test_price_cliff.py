"""A price cliff: above it the whole request costs more, so a pass that goes below it pays."""

import pytest

from barograph.core.events import Pruned
from barograph.core.policy import Policy
from barograph.providers.anthropic.models import facts_of
from barograph.store import MemoryStore
from talk import Talk

CLIFF = 100_000
STEEP = "claude-haiku-5-5"
NEVER = 1e9
"""A rent that no pass is ever worth: what runs then, runs for another cause."""


def passes_of(talk):
    return [event for _, event in talk.store.read(talk.name) if isinstance(event, Pruned)]


def inputs_of(talk):
    events = (event for _, event in talk.store.read(talk.name))
    usages = (event.usage for event in events if getattr(event, "usage", None) is not None)
    return [usage.input_total_tokens for usage in usages]


def reads(*, rounds, words, model=STEEP, say="Read all.", **knobs):
    """A session that reads one file a round, each of so many words."""
    policy = Policy(**{"name": "balanced", "prune_after_rounds": 2, "rent_ratio": NEVER, **knobs})
    talk = Talk(MemoryStore(), policy=policy)
    talk.model = model
    talk.call(say=say, reply=[("read", {"path": "0"})], results=["word " * words])
    for number in range(1, rounds):
        talk.call(reply=[("read", {"path": f"{number}"})], results=["word " * words])
    return talk


def test_a_pass_brings_a_request_below_the_cliff():
    talk = reads(rounds=16, words=9_000)
    first, *_ = passes_of(talk)

    assert facts_of(STEEP).cliff_tokens == CLIFF
    assert {one.cause for one in passes_of(talk)} == {"cliff"}
    assert first.tokens_before > CLIFF >= first.tokens_after
    assert max(inputs_of(talk)) <= CLIFF * 1.01


def test_it_is_paid_back_within_few_calls():
    first, *_ = passes_of(reads(rounds=16, words=9_000))
    paid = (1.25 - 0.1) * first.rewritten_tokens
    saved = 0.1 * (5 * first.tokens_before - first.tokens_after)

    assert first.break_even_calls == pytest.approx(paid / saved, abs=0.02)
    assert first.break_even_calls < 3


def test_a_model_without_a_cliff_has_no_such_pass():
    assert passes_of(reads(rounds=16, words=9_000, model="claude-opus-4-8")) == []


@pytest.mark.parametrize("name", ["fixed", "bound-once", "off"])
def test_only_a_policy_that_asks_for_prices_has_it(name):
    assert passes_of(reads(rounds=12, words=9_000, name=name)) == []


def test_where_it_cannot_come_below_it_does_not_run():
    talk = reads(rounds=6, words=5_000, say="word " * 110_000)

    assert min(inputs_of(talk)) > CLIFF
    assert passes_of(talk) == []


def test_a_little_is_enough_where_this_very_call_pays_for_it():
    # what grows and what is left are near the cliff: a little is stale on every call
    talk = reads(rounds=40, words=1_500, say="word " * 46_000)
    above = [tokens for tokens in inputs_of(talk) if tokens > CLIFF]

    assert len(passes_of(talk)) > 10
    assert all(one.break_even_calls <= 1 for one in passes_of(talk))
    assert len(above) <= 3


def test_where_that_call_does_not_pay_it_takes_off_enough():
    talk = reads(rounds=40, words=1_500, say="word " * 46_000, write_ratio=6.0)
    dear = [one for one in passes_of(talk) if one.break_even_calls > 1]

    assert dear
    assert min(one.tokens_before - one.tokens_after for one in dear) >= 0.099 * CLIFF


def test_at_a_cold_cache_it_is_free_and_named_so():
    talk = reads(rounds=5, words=9_000)
    assert passes_of(talk) == []
    talk.call(say="word " * 60_000, after=4000)

    assert [one.cause for one in passes_of(talk)] == ["cold"]
