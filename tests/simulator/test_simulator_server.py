import anthropic
import pytest

from barograph.simulator import Reply, Simulator


def test_a_stock_client_talks_to_it_by_its_base_url_alone():
    with (
        Simulator([Reply(content="Hello.")]) as simulator,
        anthropic.Anthropic(base_url=simulator.url, api_key="any") as client,
    ):
        message = client.messages.create(
            model="claude-sonnet-5", max_tokens=10, messages=[{"role": "user", "content": "Hi"}]
        )
    assert message.content[0].text == "Hello."
    assert simulator.exchanges[0].status == 200


def test_it_has_no_address_unless_it_runs():
    with pytest.raises(RuntimeError, match="not running"):
        _ = Simulator().url
