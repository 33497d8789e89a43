"""Conformance: what is refused, and in which words."""

import msgspec
import pytest
from wire_prompts import Driver, assistant, call, error_of, marker, parts, result, text, tool, user

from barograph.simulator import Switches

THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
EPHEMERAL = {"type": "ephemeral"}


def refusal(*messages, **body):
    return error_of(Driver().send(*(messages or (user(text("a")),)), **body))


def accepted(*messages, **body):
    return Driver().send(*(messages or (user(text("a")),)), **body).status == 200


# Markers


def test_a_fifth_marker_is_refused():
    four = [text(str(n), "5m") for n in range(4)]
    assert accepted(user(*four))
    message = refusal(user(*four), system=[text("s", "5m")])
    assert message == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_the_automatic_marker_uses_a_slot():
    three = [text(str(n), "5m") for n in range(3)]
    assert accepted(user(*three, text("x")), cache_control=EPHEMERAL)
    message = refusal(user(*three, text("y", "5m"), text("x")), cache_control=EPHEMERAL)
    assert "Found 5" in message


def test_the_automatic_marker_marks_the_last_eligible_block():
    exchange = Driver().send(
        user(text("a")), assistant(text("b"), THINKING), cache_control=EPHEMERAL
    )
    assert [block.marker for block in exchange.blocks] == [None, "5m", None]
    assert parts(exchange) == (0, 0, 2, 2)


def test_the_automatic_marker_does_nothing_on_a_block_that_has_the_same_ttl():
    exchange = Driver().send(user(text("a", "1h")), cache_control=EPHEMERAL | {"ttl": "1h"})
    assert parts(exchange) == (0, 1, 0, 0)


def test_the_automatic_marker_must_not_contradict_the_last_block():
    message = refusal(user(text("a", "1h")), cache_control=EPHEMERAL)
    assert message.startswith("cache_control: the last cacheable block already has ttl='1h'")


def test_the_automatic_marker_obeys_the_order_of_ttls():
    message = refusal(user(text("a", "5m"), text("b")), cache_control=EPHEMERAL | {"ttl": "1h"})
    assert "ttl='1h' cache_control block must not come after a ttl='5m'" in message


def test_a_1h_marker_after_a_5m_marker_is_refused():
    message = refusal(user(text("a", "1h")), tools=[tool("t", "5m")])
    assert "ttl='1h' cache_control block must not come after a ttl='5m'" in message
    assert accepted(user(text("a", "5m")), tools=[tool("t", "1h")])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"type": "persistent"}, "cache_control.type: Input should be 'ephemeral'"),
        ({}, "cache_control.type: Input should be 'ephemeral'"),
        ({"type": "ephemeral", "ttl": "2h"}, "cache_control.ttl: Input should be '5m' or '1h'"),
        ({"type": "ephemeral", "ttl": 5}, "cache_control.ttl: Input should be '5m' or '1h'"),
        ({"type": "ephemeral", "x": 1}, "cache_control.x: Extra inputs are not permitted"),
        ("ephemeral", "cache_control: Input should be an object"),
    ],
)
def test_a_malformed_marker_is_refused_with_its_path(value, words):
    block = text("a") | {"cache_control": value}
    assert refusal(user(text("x"), block)) == f"messages.0.content.1.{words}"
    assert refusal(system=[block]) == f"system.0.{words}"
    assert refusal(tools=[tool("t") | {"cache_control": value}]) == f"tools.0.{words}"
    assert refusal(cache_control=value) == words


def test_a_marker_without_a_ttl_lives_for_five_minutes():
    exchange = Driver().send(user(text("abc") | {"cache_control": EPHEMERAL}))
    assert (exchange.usage.write_5m_tokens, exchange.usage.write_1h_tokens) == (3, 0)


def test_a_null_marker_is_none():
    assert accepted(user(text("a") | {"cache_control": None}), cache_control=None)


@pytest.mark.parametrize(
    ("block", "kind"),
    [(THINKING, "thinking"), ({"type": "redacted_thinking", "data": "x"}, "redacted_thinking")],
)
def test_thinking_cannot_carry_a_marker(block, kind):
    message = refusal(user(text("a")), assistant(block | marker("5m")))
    assert message == f"messages.1.content.0.{kind}.cache_control: Extra inputs are not permitted"


def test_an_empty_text_cannot_carry_a_marker():
    message = refusal(user(text("", "5m")))
    assert message == "messages.0.content.0.text: cache_control cannot be set for empty text blocks"


def test_a_sub_block_of_a_tool_result_cannot_carry_a_marker():
    seen = result("t1") | {"content": [text("seen", "5m")]}
    message = refusal(user(text("a")), assistant(call("t1")), user(seen))
    assert message.startswith("messages.2.content.0.tool_result.content.0.cache_control:")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "document", "source": {"type": "text", "data": "d"}},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "container_upload", "file_id": "f"},
    ],
)
def test_other_blocks_carry_markers(block):
    assert Driver().send(user(block | marker("5m"))).usage.write_5m_tokens > 0


@pytest.mark.parametrize(
    "block",
    [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "compaction", "content": "what was said", "encrypted_content": "e"},
    ],
)
def test_blocks_that_the_provider_made_carry_markers(block):
    exchange = Driver().send(user(text("a")), assistant(block | marker("5m")), user(text("b")))
    assert exchange.usage.write_5m_tokens == sum(b.tokens for b in exchange.blocks[:2])


def test_calls_and_their_results_carry_markers():
    exchange = Driver().send(user(text("a")), assistant(call("t1", "1h")), user(result("t1", "5m")))
    sizes = [block.tokens for block in exchange.blocks]
    assert parts(exchange) == (0, sizes[0] + sizes[1], sizes[2], 0)


# Blocks and messages


def test_empty_text_is_refused():
    words = ": text content blocks must be non-empty"
    assert refusal(user(text("a"), text(""))) == f"messages.0{words}"
    assert refusal(system=[text("")]) == f"system{words}"
    assert "non-whitespace" in refusal(user(text(" \n")))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("a", ": Input should be an object"),
        ({"text": "a"}, ".type: Field required"),
        ({"type": "text"}, ".text.text: Field required"),
        ({"type": "tool_use", "name": "n", "input": {}}, ".tool_use.id: Field required"),
        ({"type": "tool_result"}, ".tool_result.tool_use_id: Field required"),
    ],
)
def test_a_malformed_block_is_refused_with_its_path(block, words):
    assert refusal(user(text("a")), assistant(block)) == f"messages.1.content.0{words}"


def test_messages_begin_with_the_user_and_are_not_empty():
    assert refusal(assistant(text("a"))) == 'messages: first message must use the "user" role'
    assert refusal(user(), user(text("a"))).startswith("messages.0: all messages must have non-emp")
    assert accepted(user(text("a")), {"role": "assistant", "content": ""})
    empty = Driver().post({"model": "m", "max_tokens": 1, "messages": []})
    assert error_of(empty) == "messages: at least one message is required"


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_a_required_field_is_named(name):
    body = {"model": "m", "max_tokens": 1, "messages": [user(text("a"))]}
    del body[name]
    assert error_of(Driver().post(body)) == f"{name}: Field required"


def test_unknown_fields_are_refused_with_their_path():
    words = "Extra inputs are not permitted"
    assert refusal(colour="red") == f"colour: {words}"
    assert refusal(user(text("a")) | {"name": "x"}) == f"messages.0.name: {words}"


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_the_new_api_version_refuses_sampling_parameters_and_the_old_one_takes_them(name):
    body = msgspec.json.encode(
        {"model": "m", "max_tokens": 1, "messages": [user(text("a"))], name: 1}
    )
    provider = Driver().provider
    new = provider.handle(body, {"anthropic-version": "2026-10-21"})
    assert error_of(new) == f"{name}: Extra inputs are not permitted"
    assert provider.handle(body, {"Anthropic-Version": "2023-06-01"}).status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "The request body is not valid JSON"),
        (b"[]", "body: Expected `object`"),
        (b'{"model":1,"max_tokens":1,"messages":[]}', "model: Expected `str`"),
        (b'{"model":"m","max_tokens":-1,"messages":[]}', "max_tokens: Expected `int` >= 0"),
        (b'{"model":"m","max_tokens":1,"messages":[{"role":"x","content":""}]}', "messages.0.role"),
        (b'{"model":"m","max_tokens":1,"messages":[{"role":"user"}]}', "messages.0.content: Field"),
        (
            b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800"}]}',
            "The request body is not valid JSON",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(body, words):
    assert error_of(Driver().provider.handle(body, {})).startswith(words)


# Pairs


def test_a_call_needs_its_result_in_the_next_message():
    words = "`tool_use` ids were found without `tool_result` blocks immediately after: t1."
    start, look = user(text("a")), assistant(call("t1"))
    assert words in refusal(start, look)
    assert words in refusal(start, look, user(text("b")))
    assert words in refusal(start, look, assistant(text("b")), user(text("c")))
    assert refusal(start, look).startswith("messages.1: ")
    assert accepted(start, look, user(result("t1"), text("b")))


def test_every_call_of_a_round_needs_its_result():
    messages = user(text("a")), assistant(call("t1"), call("t2")), user(result("t2"))
    assert "immediately after: t1." in refusal(*messages)


def test_a_result_needs_its_call_in_the_previous_message():
    words = "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t1."
    assert refusal(user(text("a"), result("t1"))).startswith(words)
    round_one = assistant(call("t1")), user(result("t1"))
    late = refusal(user(text("a")), *round_one, assistant(text("b")), user(result("t1")))
    assert late.startswith("messages.4.content.0: unexpected `tool_use_id`")


def test_a_call_has_one_result():
    message = refusal(user(text("a")), assistant(call("t1")), user(result("t1"), result("t1")))
    assert message.startswith("messages.2.content.1: each tool_use must have a single result.")


def test_results_come_before_other_content():
    message = refusal(user(text("a")), assistant(call("t1")), user(text("b"), result("t1")))
    assert message.startswith("messages.2.content.1: `tool_result` blocks must come before any")


def test_ids_of_calls_are_unique():
    rounds = [assistant(call("t1")), user(result("t1"))] * 2
    assert refusal(user(text("a")), *rounds) == "messages.3: `tool_use` ids must be unique"


def test_consecutive_messages_of_one_role_are_one_turn():
    look = assistant(text("b")), assistant(call("t1"), call("t2"))
    assert accepted(user(text("a")), *look, user(result("t1")), user(result("t2")), user(text("c")))


def test_a_system_message_in_the_stream_ends_no_turn():
    nudge = {"role": "system", "content": "be brief"}
    look = assistant(call("t1"))
    driver = Driver(switches=Switches(system_placement="anywhere"))
    messages = (user(text("a")), look, user(result("t1")), nudge, user(text("b")))
    assert driver.send(*messages, model="claude-opus-4-8").status == 200


# Length


def test_a_prompt_over_the_window_is_too_long():
    driver = Driver(window_tokens=100)
    assert driver.send(user(text("a" * 100))).status == 200
    exchange = driver.send(user(text("a" * 101)))
    assert error_of(exchange) == "prompt is too long: 101 tokens > 100 maximum"
    assert exchange.usage is None
    assert exchange.total_tokens == 101


# Pre-warming


def test_no_output_tokens_writes_the_cache_and_answers_nothing():
    driver = Driver()
    warm = driver.send(user(text("abc", "5m")), max_tokens=0)
    body = msgspec.json.decode(warm.response)
    assert (body["content"], body["stop_reason"], warm.usage.output_tokens) == ([], "max_tokens", 0)
    assert parts(warm) == (0, 0, 3, 0)
    assert parts(driver.send(user(text("abc", "5m")))) == (3, 0, 0, 0)


@pytest.mark.parametrize(
    ("conflict", "name"),
    [
        ({"stream": True}, "stream"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
    ],
)
def test_no_output_tokens_cannot_be_combined(conflict, name):
    message = refusal(max_tokens=0, **conflict)
    assert message == f"max_tokens: 0 cannot be combined with `{name}`"
