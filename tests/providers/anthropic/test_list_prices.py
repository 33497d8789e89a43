"""Our price table against a well-kept one. It may be newer than ours; where they differ, look."""

import pytest
from genai_prices import Usage, calc_price

from barograph.providers.anthropic.models import _ROWS

MILLION = 1_000_000
# dearer above 100 000 tokens: compared below that, and then scaled
SAMPLE = 50_000
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
