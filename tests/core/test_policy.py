import pytest

from barograph import Policy, PolicyError


def test_the_profile_picks_the_lifetime_unless_one_is_given():
    lifetimes = {p: Policy(profile=p).entry_ttl for p in ("interactive", "subagent", "desktop")}
    assert lifetimes == {"interactive": "5m", "subagent": "5m", "desktop": "1h"}
    assert Policy(profile="fleet").entry_ttl == "1h"
    assert Policy(profile="fleet", ttl="5m").entry_ttl == "5m"


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("name", "bold"),
        ("profile", "office"),
        ("ttl", "10m"),
        ("on_store_error", "ignore"),
        ("start_tokens_per_char", 0),
        ("start_tokens_per_char", 2.01),
        ("start_tokens_per_char", float("nan")),
        ("fanout_wait_seconds", -1),
        ("fanout_wait_seconds", 601),
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
