import msgspec
import pytest
from wire_prompts import MODEL, text, user

from barograph.core.events import Usage
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, SimulatedProvider, cost_usd, input_equivalents

USAGE = Usage(
    read_tokens=1000, write_1h_tokens=100, write_5m_tokens=200, uncached_tokens=50, output_tokens=30
)


def test_cost_is_each_part_times_its_ratio_and_price():
    facts = facts_of("claude-opus-5-5")  # 4 and 20 USD a million; reads at 0.05
    plain = 50 + 0.05 * 1000 + 1.25 * 200 + 2.0 * 100
    assert input_equivalents(USAGE, facts) == pytest.approx(plain)
    assert cost_usd(USAGE, facts) == pytest.approx((plain * 4 + 30 * 20) / 1_000_000)


def test_above_a_price_cliff_the_whole_call_costs_more():
    facts = facts_of("claude-haiku-5-5")  # 0.1 and 0.5 USD a million; above 100 000 tokens 5 times
    edge = msgspec.structs.replace(USAGE, uncached_tokens=100_000 - 1300)
    over = msgspec.structs.replace(USAGE, uncached_tokens=100_001 - 1300)
    plain = 98_700 + 0.1 * 1000 + 1.25 * 200 + 2.0 * 100
    assert cost_usd(edge, facts) == pytest.approx((plain * 0.1 + 30 * 0.5) / 1_000_000)
    assert cost_usd(over, facts) == pytest.approx(((plain + 1) * 0.5 + 30 * 2.5) / 1_000_000)


def test_a_recording_lets_a_stranger_recompute_marks_prefixes_hits_and_cost(tmp_path):
    folder = tmp_path / "deep" / "recording"
    provider = SimulatedProvider([Reply(content="ok")] * 2, record_dir=folder)
    message = user(text("a" * 8000, "5m"))
    body = msgspec.json.encode({"model": MODEL, "max_tokens": 9, "messages": [message]})
    headers = {"x-api-key": "secret", "x-sim-session": "default", "x-sim-now": "3.5"}
    first, second = (provider.handle(body, headers) for _ in range(2))
    names = [f"{n:04d}.{part}.json" for n in (1, 2) for part in ("meta", "request", "response")]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "0001.request.json").read_bytes() == body
    assert (folder / "0002.response.json").read_bytes() == second.response
    meta = [msgspec.json.decode((folder / f"000{n}.meta.json").read_bytes()) for n in (1, 2)]
    assert [m["hit"] for m in meta] == [None, 0]
    assert meta[0]["blocks"] == [
        {
            "prefix_key": first.blocks[0].prefix_key.hex(),
            "tokens": 2964,
            "level": "messages",
            "kind": "text",
            "eligible": True,
            "marker": "5m",
        }
    ]
    assert meta[1]["usage"]["read_tokens"] == 2964
    assert meta[1]["now_seconds"] == 3.5
    assert meta[1]["cost_usd"] == pytest.approx((0.1 * 2964 * 2 + 5 * 10) / 1_000_000)
    assert all(b"secret" not in path.read_bytes() for path in folder.iterdir())


def test_a_refused_request_is_recorded_too(tmp_path):
    SimulatedProvider(record_dir=tmp_path).handle(b"{}", {})
    meta = msgspec.json.decode((tmp_path / "0001.meta.json").read_bytes())
    assert (meta["status"], meta["usage"], meta["cost_usd"]) == (404, None, None)
