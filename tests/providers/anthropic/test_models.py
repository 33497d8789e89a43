import pytest

from barograph.providers.anthropic.models import AS_OF, UNKNOWN_MINIMUM_TOKENS, facts_of

MINIMUMS = {
    512: ("fable-5", "fable-5-1", "mythos-5", "mythos-5-1", "opus-5", "opus-5-5", "sonnet-5-5"),
    1024: (
        "opus-4-8", "opus-4-1", "opus-4", "sonnet-5", "sonnet-4-6", "sonnet-4-5", "sonnet-4",
    ),
    2048: ("opus-4-7", "3-5-haiku"),
    4096: ("opus-4-6", "opus-4-5", "haiku-4-5", "haiku-5-5", "fable-5-2", "mythos-5-2"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "minimum"), [(name, least) for least, names in MINIMUMS.items() for name in names]
)
def test_c7_every_model_has_its_own_minimum(name, minimum):
    facts = facts_of(f"claude-{name}")
    assert (facts.name, facts.minimum_tokens) == (f"claude-{name}", minimum)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("anthropic:claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("anthropic/claude-haiku-4-5", "claude-haiku-4-5"),
        ("claude-sonnet-5-latest", "claude-sonnet-5"),
    ],
)
def test_dated_and_prefixed_ids_find_their_family(model, family):
    assert facts_of(model).name == family


@pytest.mark.parametrize("model", ["", "gpt-5", "claude", "us.anthropic.claude-opus-4-8"])
def test_an_unknown_model_is_never_flattered(model):
    facts = facts_of(model)
    assert (facts.name, facts.minimum_tokens) == ("unknown", UNKNOWN_MINIMUM_TOKENS)
    assert facts.window_tokens == 200_000
    assert facts.read_ratio == 0.1


def test_facts_carry_the_date_they_were_read_on():
    assert facts_of("claude-opus-4-8").as_of == AS_OF


def test_a_write_costs_more_than_input_and_a_read_less():
    for names in MINIMUMS.values():
        for facts in (facts_of(f"claude-{name}") for name in names):
            assert facts.read_ratio < 1 < facts.write_5m_ratio < facts.write_1h_ratio
            assert 0 < facts.input_usd < facts.output_usd
            assert facts.lookback_positions == 20
