"""A pytest fixture: a running simulator for each test.

Nothing registers it by itself. Name this module in a test file or a `conftest.py`:

```python
import anthropic

from barograph.simulator import Reply

pytest_plugins = ["barograph.simulator.testing"]


def test_the_client_tries_again(barograph_simulator):
    barograph_simulator.play("default", [Reply(content="Hello.")])
    barograph_simulator.fault("overloaded")
    with anthropic.Anthropic(base_url=barograph_simulator.url, api_key="any") as client:
        message = client.messages.create(
            model="claude-opus-4-8",
            max_tokens=100,
            messages=[{"role": "user", "content": "Hi."}],
        )
    assert message.content[0].text == "Hello."
    assert [exchange.status for exchange in barograph_simulator.exchanges] == [529, 200]
```
"""

from collections.abc import Iterator

from barograph.simulator.server import Simulator

try:
    import pytest
except ImportError as error:
    raise ImportError(
        "The simulator's fixture needs pytest and the extra: pip install pytest"
        " 'barograph[simulator]'"
    ) from error


@pytest.fixture
def barograph_simulator() -> Iterator[Simulator]:
    """A simulator that runs for the test and plays nothing yet; see `Simulator.play`."""
    with Simulator() as simulator:
        yield simulator
