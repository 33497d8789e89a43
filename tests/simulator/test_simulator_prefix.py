"""Conformance: what invalidates what (the provider's table), and what counts as the same block."""

import msgspec
import pytest
from wire_prompts import Driver, assistant, call, parts, result, text, tool, user

from barograph.simulator import Switches

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
TOOLS, SYSTEM, MESSAGES = "tools", "system", "messages"


def base(**changes):
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 1,
        "tools": [tool("look"), tool("find", "5m")],
        "system": [text("system", "5m")],
        "messages": [user(text("first", "5m")), user(text("second", "5m"))],
    }
    return body | changes


def level_read(exchange):
    """The level up to which the prompt was read, None for nothing."""
    return None if exchange.hit is None else exchange.blocks[exchange.hit].level


def read_after(change, switches=None, **before):
    driver = Driver(switches=switches)
    driver.post(base(**before))
    return level_read(driver.post(base(**(before | change))))


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({"tools": [tool("find"), tool("look", "5m")]}, None),
        ({"tools": [tool("look"), tool("other", "5m")]}, None),
        ({"tools": [tool("look", "5m")]}, None),
        ({"model": "claude-sonnet-4-6"}, None),
        ({"speed": "fast"}, TOOLS),
        ({"system": [text("another system", "5m")]}, TOOLS),
        ({"system": [text("more"), text("system", "5m")]}, TOOLS),
        ({"system": [text("system"), text("more", "5m")]}, SYSTEM),
        ({"tool_choice": {"type": "any"}}, SYSTEM),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, SYSTEM),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, SYSTEM),
        ({"output_config": {"effort": "low"}}, SYSTEM),
        ({"messages": [user(text("first", "5m")), user(text("2nd", "5m"))]}, MESSAGES),
        ({"messages": [user(text("1st", "5m")), user(text("second", "5m"))]}, SYSTEM),
        ({"messages": [user(text("first"), text("second", "5m"), IMAGE)]}, SYSTEM),
        ({"max_tokens": 999}, MESSAGES),
        ({"metadata": {"user_id": "someone"}}, MESSAGES),
        ({"stream": True}, MESSAGES),
        ({"tool_choice": {"type": "auto"}}, MESSAGES),
        ({"thinking": {"type": "disabled"}}, MESSAGES),
        ({"output_config": {"effort": "high"}}, MESSAGES),
    ],
)
def test_a_change_invalidates_its_level_and_every_later_one(change, level):
    assert read_after(change) == level


@pytest.mark.parametrize(
    "change",
    [
        {"system": [text("system")]},
        {"tools": [tool("look", "5m"), tool("find")]},
        {"messages": [user(text("first")), user(text("second", "5m"))]},
        {"messages": [user(text("first"), text("second", "5m"))]},
        {"tools": [tool("look"), tool("find")], "system": "system"},
    ],
)
def test_moving_adding_and_removing_markers_invalidates_nothing(change):
    driver = Driver()
    whole = driver.post(base()).total_tokens
    assert parts(driver.post(base(**change)))[0] == whole


def test_a_change_of_the_thinking_budget_invalidates_the_messages():
    change = {"thinking": {"type": "enabled", "budget_tokens": 3000}}
    before = {"type": "enabled", "budget_tokens": 2000}
    assert read_after(change, thinking=before) == SYSTEM


def test_how_thinking_is_shown_is_no_change_of_mode():
    change = {"thinking": {"type": "adaptive", "display": "omitted"}}
    assert read_after(change, thinking={"type": "adaptive"}) == MESSAGES


def test_the_level_that_thinking_and_effort_invalidate_is_a_switch():
    thinking = {"thinking": {"type": "adaptive"}}
    effort = {"output_config": {"effort": "low"}}
    assert read_after(thinking, Switches(thinking_level="tools")) is None
    assert read_after(effort, Switches(effort_level="system")) == TOOLS


def test_effort_leaves_the_cache_alone_on_models_that_are_known_for_it():
    assert read_after({"output_config": {"effort": "low"}}, model="claude-opus-5-5") == MESSAGES


def test_an_image_anywhere_invalidates_messages_that_already_held_one_unless_switched():
    first = {"messages": [user(text("first"), IMAGE), user(text("second", "5m"))]}
    grown = {"messages": [*first["messages"], user(IMAGE, text("third", "5m"))]}
    assert read_after(grown, **first) == SYSTEM
    assert read_after(grown, Switches(images_by_presence=True), **first) == MESSAGES


def test_an_image_inside_a_tool_result_counts():
    look = assistant(call("t1"))
    seen = {"type": "tool_result", "tool_use_id": "t1", "content": [text("seen"), IMAGE]}
    before = {"messages": [user(text("first", "5m"))]}
    after = {"messages": [user(text("first", "5m")), look, user(seen)]}
    assert read_after(after, **before) == SYSTEM


# What is the same block


def same(one, other):
    driver = Driver()
    return (
        driver.send(user(one)).blocks[0].prefix_key == driver.send(user(other)).blocks[0].prefix_key
    )


def test_a_string_is_one_text_block_in_messages_system_and_tool_results():
    driver = Driver()
    plain = driver.send({"role": "user", "content": "words"}, system="system")
    listed = driver.send(user(text("words")), system=[text("system")])
    assert [b.prefix_key for b in plain.blocks] == [b.prefix_key for b in listed.blocks]
    as_string = result("t1")
    as_list = as_string | {"content": [text("seen")]}
    look = (user(text("go")), assistant(call("t1")))
    keys = [driver.send(*look, user(seen)).blocks[-1].prefix_key for seen in (as_string, as_list)]
    assert keys[0] == keys[1]


def test_the_order_of_a_blocks_own_keys_means_nothing():
    assert same({"type": "text", "text": "a"}, {"text": "a", "type": "text"})
    assert same({"type": "text", "text": "a", "citations": None}, text("a"))
    assert not same(text("a"), text("b"))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1}', False),
        ('{"a":1,"b":2}', '{"a": 1,  "b": 2}', True),
        ('{"a":1e-7}', '{"a":1e-07}', True),
        ('{"a":1}', '{"a":1.0}', False),
        ('{"a":"\\u00e9"}', '{"a":"é"}', True),
        ('{"a":null}', "{}", False),
        ('{"cache_control":1}', "{}", False),
    ],
)
def test_inside_tool_input_the_text_counts_and_json_spelling_does_not(one, other, equal):
    driver = Driver()

    def key(words):
        made = call("t1") | {"input": msgspec.Raw(words.encode())}
        exchange = driver.send(user(text("go")), assistant(made), user(result("t1")))
        return exchange.blocks[-1].prefix_key

    assert (key(one) == key(other)) is equal


def test_the_order_of_schema_keys_counts():
    driver = Driver()
    one = tool("look") | {"input_schema": {"type": "object", "properties": {}}}
    other = tool("look") | {"input_schema": {"properties": {}, "type": "object"}}
    keys = [
        driver.send(user(text("a")), tools=[made]).blocks[0].prefix_key for made in (one, other)
    ]
    assert keys[0] != keys[1]


def test_the_role_counts():
    driver = Driver()
    keys = {
        driver.send(user(text("a")), message).blocks[1].prefix_key
        for message in (user(text("b")), assistant(text("b")))
    }
    assert len(keys) == 2


def test_keys_do_not_depend_on_what_the_provider_saw_before():
    bodies = [base(), base(system="x"), base(tools=[]), base(tool_choice={"type": "none"}), base()]
    warm = Driver()
    for body in bodies:
        cold = Driver().post(body)
        assert warm.post(body).blocks == cold.blocks


def test_each_block_is_described_for_an_audit():
    exchange = Driver().post(
        base(
            messages=[user(text("first", "1h"))],
            tools=[tool("look", "1h")],
            system=[text("system")],
        )
    )
    assert [(b.level, b.kind, b.marked, b.marker, b.eligible) for b in exchange.blocks] == [
        (TOOLS, "tool", True, "1h", True),
        (SYSTEM, "text", False, None, True),
        (MESSAGES, "text", True, "1h", True),
    ]
    assert sum(b.tokens for b in exchange.blocks) == exchange.total_tokens
