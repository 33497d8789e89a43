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


def test_a_model_may_have_other_values_and_the_longest_name_counts():
    policy = Policy(
        rent_ratio=1.0,
        by_model={
            "claude-haiku": {"compact_at_ratio": 0.95, "prune_after_rounds": 4.0},
            "claude-haiku-5": {"rent_ratio": 2, "window_tokens": 100_000},
        },
    )
    assert policy.of("claude-opus-4-8") is policy
    old, new = policy.of("claude-haiku-4-5-20251001"), policy.of("claude-haiku-5-5")
    assert (old.hard_ratio, old.prune_after_rounds, old.rent_ratio) == (0.95, 4, 1.0)
    assert isinstance(old.prune_after_rounds, int)
    assert (new.rent_ratio, new.window_tokens, new.hard_ratio) == (2, 100_000, 0.9)


@pytest.mark.parametrize(
    ("model", "knobs", "said"),
    [
        ("", {}, "empty name"),
        ("m", {"rent": 1}, "by_model has rent for 'm'"),
        ("m", {"ttl": "1h"}, "by_model has ttl"),
        ("m", {"prune_after_rounds": 0}, "by_model for 'm': prune_after_rounds is 0"),
        ("m", {"prune_after_rounds": 2.5}, "prune_after_rounds = 2.5"),
        ("m", {"window_tokens": float("inf")}, "window_tokens = inf"),
        ("m", {"rent_ratio": float("nan")}, "rent_ratio is nan"),
        ("m", {"compact_at_ratio": 0.8}, "prune_at_ratio 0.9"),
    ],
)
def test_values_by_model_are_held_to_the_same_ranges(model, knobs, said):
    with pytest.raises(PolicyError, match="by_model") as refused:
        Policy(by_model={model: knobs})
    assert said in refused.value.what
