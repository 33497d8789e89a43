import pytest

from barograph import Policy, PolicyError


def test_the_profile_picks_the_lifetime_unless_one_is_given():
    chosen = {p: Policy(profile=p) for p in ("interactive", "subagent", "desktop", "fleet")}
    assert {name: policy.lifetime for name, policy in chosen.items()} == {
        "interactive": "auto",
        "subagent": "5m",
        "desktop": "1h",
        "fleet": "1h",
    }
    assert [policy.entry_ttl for policy in chosen.values()] == ["5m", "5m", "1h", "1h"]
    assert Policy(profile="fleet", ttl="5m").lifetime == "5m"
    assert Policy(profile="subagent", ttl="auto").lifetime == "auto"
    assert Policy(ttl="1h").entry_ttl == "1h"


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("name", "bold"),
        ("profile", "office"),
        ("ttl", "10m"),
        ("pause_ratio", -0.1),
        ("pause_ratio", 1.01),
        ("pause_ratio", float("nan")),
        ("on_store_error", "ignore"),
        ("start_tokens_per_char", 0),
        ("start_tokens_per_char", 2.01),
        ("start_tokens_per_char", float("nan")),
        ("fanout_wait_seconds", -1),
        ("fanout_wait_seconds", 601),
        ("keep_warm_tokens", -1),
        ("keep_warm_seconds", 0),
        ("identity", ""),
        ("identity", "I am an agent.\n"),
        ("identity", 3),
        ("tool_order", ("a", "b", "a")),
    ],
)
def test_a_knob_outside_its_range_is_named(knob, value):
    with pytest.raises(PolicyError) as caught:
        Policy(**{knob: value})
    assert caught.value.ids == {"knob": knob}
    assert knob in str(caught.value)
    assert caught.value.next_step


def test_a_policy_cannot_be_changed():
    with pytest.raises(AttributeError):
        Policy().ttl = "1h"
