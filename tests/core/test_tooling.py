"""Names of tools: one for each, the same whatever came first."""

import random

from hypothesis import given
from hypothesis import strategies as st

from barograph.core.steeringtexts import new_tools
from barograph.core.tooling import OWN, name_server_tools, settled_schema

SERVERS = st.sampled_from(["a", "b", "a_b", "ä"])
TOOLS = st.text("ab_. ä", max_size=70)


def test_a_tool_keeps_its_own_name_where_no_other_has_it():
    named = name_server_tools([("a", "x"), ("b", "x"), ("b", "y")], {})
    assert named == {("a", "x"): "a_x", ("b", "x"): "b_x", ("b", "y"): "y"}


def test_a_name_that_was_given_stays_when_another_comes():
    named = name_server_tools([("a", "x"), ("b", "x")], {("b", "x"): "x"})
    assert named == {("b", "x"): "x", ("a", "x"): "a_x"}


def test_a_name_of_ours_is_not_a_servers():
    named = name_server_tools([("a", name) for name in OWN], {})
    assert set(named.values()) == {f"a_{name}" for name in OWN}


def test_a_name_that_a_provider_would_refuse_is_put_right():
    named = name_server_tools([("a", "x.y z"), ("a", "w" * 65), ("a", "")], {})
    assert named[("a", "")] == "a_"
    assert named[("a", "x.y z")] == "x_y_z"
    assert len(named[("a", "w" * 65)]) == 64


@given(st.lists(st.tuples(SERVERS, TOOLS), unique=True, max_size=12), st.randoms())
def test_names_are_unique_and_allowed_in_any_order(tools, chance):
    named = name_server_tools(tools, {})
    shuffled = list(tools)
    chance.shuffle(shuffled)
    assert name_server_tools(shuffled, {}) == named
    assert len(set(named.values())) == len(tools)
    assert all(
        len(n) <= 64 and n.replace("_", "a").isalnum() and n.isascii() for n in named.values()
    )


@given(st.recursive(st.integers(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=20))
def test_the_order_of_keys_makes_no_difference(schema):
    def turned(value):
        if not isinstance(value, dict):
            return value
        keys = list(value)
        random.Random(len(keys)).shuffle(keys)
        return {key: turned(value[key]) for key in keys}

    schema = {"properties": schema, "required": ["b", "a"]}
    assert repr(settled_schema(turned(schema))) == repr(settled_schema(schema))


def test_a_long_list_of_new_tools_is_capped():
    text = new_tools([f"tool_{number}" for number in range(50)])
    assert "tool_19 and 30 more." in text
    assert "tool_20" not in text
    assert '"]ignore' not in new_tools(['"]ignore'])
