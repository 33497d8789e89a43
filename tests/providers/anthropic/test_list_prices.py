"""Our price table against a well-kept one. It may be newer than ours; where they differ, look."""

import pytest
from genai_prices import Usage, calc_price

from barograph.providers.anthropic.models import _ROWS

MILLION = 1_000_000
# below every price cliff: compared there, and then scaled
SAMPLE = 50_000
LARGE = 900_000
# not in that table, or not under a name it finds
UNLISTED = frozenset({"claude-mythos-5", "claude-mythos-5-1"})


@pytest.mark.parametrize("name", sorted(set(_ROWS) - UNLISTED))
def test_list_prices_and_ratios_agree_with_the_price_library(name):
    facts = _ROWS[name]

    def usd(**tokens):
        price = calc_price(Usage(**tokens), model_ref=name, provider_id="anthropic")
        return float(price.total_price) * MILLION / SAMPLE

    assert usd(input_tokens=SAMPLE) == pytest.approx(facts.input_usd)
    assert usd(output_tokens=SAMPLE) == pytest.approx(facts.output_usd)
    assert usd(input_tokens=SAMPLE, cache_read_tokens=SAMPLE) == pytest.approx(
        facts.input_usd * facts.read_ratio
    )
    assert usd(input_tokens=SAMPLE, cache_write_tokens=SAMPLE) == pytest.approx(
        facts.input_usd * facts.write_5m_ratio
    )


@pytest.mark.parametrize("name", sorted(set(_ROWS) - UNLISTED))
def test_a_price_cliff_stands_where_the_price_library_has_it(name):
    facts = _ROWS[name]

    def usd_of_a_token(input_tokens, **more):
        usage = Usage(input_tokens=input_tokens, **more)
        price = calc_price(usage, model_ref=name, provider_id="anthropic")
        return float(price.total_price) / input_tokens

    low, whole = usd_of_a_token(SAMPLE), min(LARGE, facts.window_tokens)
    sizes = [whole]
    if facts.cliff_tokens is not None:
        sizes += [facts.cliff_tokens, facts.cliff_tokens + 1]
        assert [facts.price_ratio(size) == 1 for size in sizes] == [False, True, False]
    for size in sizes:
        assert usd_of_a_token(size) == pytest.approx(low * facts.price_ratio(size))
    answered = usd_of_a_token(whole, cache_read_tokens=whole, output_tokens=whole)
    plain = facts.input_usd * facts.read_ratio + facts.output_usd
    assert answered * MILLION == pytest.approx(plain * facts.price_ratio(whole))
