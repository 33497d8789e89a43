"""Conformance: system messages, deferred tools, toggles, gateways, eviction, the window."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from wire_prompts import Driver, assistant, call, error_of, parts, result, text, tool, user

from barograph.simulator import Reply, Switches

OPUS = "claude-opus-4-8"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"


def system(*blocks, **fields):
    return {"role": "system", "content": list(blocks), **fields}


def nudge(words="be brief"):
    return system(text(words), clear_at="next_user_message")


def refusal(*messages, beta="", **body):
    return error_of(Driver().send(*messages, beta=beta, **({"model": OPUS} | body)))


# System messages within the conversation


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("claude-opus-5-5-20261001", True),
        ("claude-fable-5", True),
        ("claude-mythos-5-1", True),
        ("claude-opus-4-7", False),
        ("claude-sonnet-5", False),
        ("claude-haiku-4-5", False),
        ("unknown", False),
    ],
)
def test_system_messages_are_taken_by_the_models_that_know_them(model, takes):
    exchange = Driver().send(user(text("a")), system(text("be brief")), model=model)
    assert exchange.status == (200 if takes else 400)
    if not takes:
        assert error_of(exchange) == f"messages.1.role: `system` is not supported on {model}"


def test_a_system_message_keeps_the_cached_prefix_before_it():
    driver = Driver()
    driver.send(user(text("a" * 50, "5m")), model=OPUS)
    exchange = driver.send(user(text("a" * 50, "5m")), system(text("brief")), model=OPUS)
    assert parts(exchange) == (50, 0, 0, 5)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([user(text("a")), assistant(text("b")), system(text("c"))], "must follow a `user`"),
        ([user(text("a")), system(text("b")), user(text("c"))], "be followed by an `assistant`"),
        ([system(text("a")), user(text("b"))], 'must use the "user" role'),
    ],
)
def test_a_system_message_has_its_places(messages, words):
    assert words in refusal(*messages)


def test_system_messages_may_follow_each_other_and_tool_results():
    messages = [
        user(text("a")),
        assistant(call("t1")),
        user(result("t1")),
        system(text("b")),
        system(text("c")),
        assistant(text("d")),
        user(text("e")),
    ]
    assert Driver().send(*messages, model=OPUS).status == 200


def test_a_system_message_holds_text():
    assert "`image` blocks" in refusal(user(text("a")), system({"type": "image", "source": {}}))


def test_a_turn_scoped_message_needs_its_beta_header_and_the_system_role():
    assert CLEAR_AT in refusal(user(text("a")), nudge())
    wrong = user(text("a")) | {"clear_at": "next_user_message"}
    assert "only permitted on `system`" in refusal(wrong, beta=CLEAR_AT)
    unknown = system(text("b"), clear_at="tomorrow")
    assert refusal(user(text("a")), unknown, beta=CLEAR_AT).startswith("messages.1.clear_at")


def test_a_turn_scoped_message_cannot_carry_a_marker_not_even_the_automatic_one():
    marked = system(text("b", "5m"), clear_at="next_user_message")
    assert "turn-scoped" in refusal(user(text("a")), marked, beta=CLEAR_AT)
    driver = Driver()
    automatic = {"cache_control": {"type": "ephemeral"}, "model": OPUS, "beta": CLEAR_AT}
    exchange = driver.send(user(text("a")), nudge(), **automatic)
    assert [block.marker for block in exchange.blocks] == ["5m", None]


def test_a_turn_scoped_message_is_shown_once_and_then_costs_nothing():
    driver = Driver()
    sent = {"model": OPUS, "beta": CLEAR_AT}
    history = [user(text("a" * 50, "5m")), nudge("n" * 9)]
    assert parts(driver.send(*history, **sent)) == (0, 0, 50, 9)
    history += [assistant(text("b" * 5)), user(text("c" * 7, "5m"))]
    assert parts(driver.send(*history, **sent)) == (50, 0, 12, 0)
    history += [nudge("m" * 3)]
    assert parts(driver.send(*history, **sent)) == (62, 0, 0, 3)


def test_tool_results_are_a_user_message_that_clears_it():
    driver = Driver()
    history = [user(text("a")), nudge("n" * 9), assistant(call("t1")), user(result("t1"))]
    with_it = driver.send(*history, model=OPUS, beta=CLEAR_AT)
    without = driver.send(history[0], *history[2:], model=OPUS)
    assert [b.prefix_key for b in with_it.blocks] == [b.prefix_key for b in without.blocks]


def test_never_is_the_default_of_clear_at():
    kept = system(text("n" * 9), clear_at="never")
    exchange = Driver().send(
        user(text("a")), kept, assistant(text("b")), user(text("c")), model=OPUS
    )
    assert exchange.total_tokens == 12


# Tools that are loaded where they are referenced

LATER = tool("later") | {"defer_loading": True}
FOUND = {"type": "tool_result", "tool_use_id": "t1"}


def with_later(*messages, tools=None):
    tools = tools or [tool("look", "5m"), LATER]
    return {"model": OPUS, "max_tokens": 1, "tools": tools, "messages": messages}


def test_a_deferred_tool_that_nothing_references_is_outside_of_the_prefix():
    driver = Driver()
    plain = driver.post(with_later(user(text("a", "5m")), tools=[tool("look", "5m")]))
    assert parts(driver.post(with_later(user(text("a", "5m")))))[0] == plain.total_tokens


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "tool_reference", "tool_name": "later"}],
        [{"type": "text", "text": "seen"}, {"type": "tool_reference", "tool_name": "later"}],
    ],
)
def test_a_referenced_tool_is_shown_where_it_is_referenced(content):
    driver = Driver()
    history = (user(text("go", "5m")), assistant(call("t1")))
    before = driver.post(with_later(history[0]))
    exchange = driver.post(with_later(*history, user(FOUND | {"content": content})))
    assert [block.kind for block in exchange.blocks][-2:] == ["tool_result", "tool"]
    assert parts(exchange)[0] == before.total_tokens


def test_a_tool_addition_references_its_tool():
    addition = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "later"}}
    exchange = Driver().post(with_later(user(text("a")), system(addition)))
    assert [block.kind for block in exchange.blocks] == ["tool", "text", "tool_addition", "tool"]


def test_a_tool_removal_keeps_the_cached_prefix_before_it():
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
    driver = Driver()
    before = driver.post(with_later(user(text("a", "5m"))))
    exchange = driver.post(with_later(user(text("a", "5m")), system(removal)))
    assert parts(exchange)[0] == before.total_tokens


def test_a_found_tool_is_referenced_by_a_search_result():
    search = {
        "type": "tool_search_tool_result",
        "tool_use_id": "s1",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "later"}],
        },
    }
    exchange = Driver().post(with_later(user(text("a")), assistant(search)))
    assert exchange.blocks[-1].kind == "tool"


def test_a_deferred_tool_carries_no_marker_and_some_tool_is_not_deferred():
    driver = Driver()
    marked = LATER | {"cache_control": {"type": "ephemeral"}}
    assert "tools.1.cache_control" in error_of(
        driver.post(with_later(user(text("a")), tools=[tool("look"), marked]))
    )
    assert "defer_loading=false" in error_of(
        driver.post(with_later(user(text("a")), tools=[LATER]))
    )


# Toggles


DOCUMENT = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "words"},
}


def level_read_after(first, second):
    driver = Driver()
    common = {"tools": [tool("look", "5m")], "system": [text("system", "5m")], "max_tokens": 1}
    driver.post({"model": OPUS, **common, **first})
    exchange = driver.post({"model": OPUS, **common, **second})
    return None if exchange.hit is None else exchange.blocks[exchange.hit].level


@pytest.mark.parametrize(
    ("content", "level"),
    [
        ([text("a", "5m"), DOCUMENT], "messages"),
        ([text("a", "5m"), DOCUMENT | {"citations": {"enabled": False}}], "messages"),
        ([text("a", "5m"), DOCUMENT | {"citations": {"enabled": True}}], "tools"),
    ],
)
def test_turning_citations_on_invalidates_the_system_prompt(content, level):
    assert (
        level_read_after({"messages": [user(text("a", "5m"))]}, {"messages": [user(*content)]})
        == level
    )


def test_turning_web_search_on_leaves_the_tools_before_it():
    search = {"type": "web_search_20250305", "name": "web_search"}
    messages = [user(text("a", "5m"))]
    second = {"messages": messages, "tools": [tool("look", "5m"), search]}
    assert level_read_after({"messages": messages}, second) == "tools"


def test_another_task_budget_invalidates_the_messages():
    messages = [user(text("a", "5m"))]
    budgets = [
        {"messages": messages, "output_config": {"task_budget": {"type": "tokens", "total": n}}}
        for n in (1000, 2000)
    ]
    assert level_read_after(*budgets) == "system"
    assert level_read_after(budgets[0], budgets[0]) == "messages"


# Gateways


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": [user(text("x"), text("a", "5m"))]}, "messages.0.content.1.cache_control"),
        ({"system": [text("s", "5m")]}, "system.0.cache_control"),
        ({"tools": [tool("t", "1h")]}, "tools.0.cache_control"),
        ({"cache_control": {"type": "ephemeral"}}, "cache_control"),
    ],
)
def test_unsupported_markers_are_another_error_than_too_many(body, path):
    made = {"model": OPUS, "max_tokens": 1, "messages": [user(text("a"))], **body}
    gateway = Driver(switches=Switches(markers="unsupported"))
    assert error_of(gateway.post(made)) == f"{path}: Extra inputs are not permitted"
    assert Driver().post(made).status == 200
    five = [text(str(n), "5m") for n in range(5)]
    assert "A maximum of 4 blocks" in refusal(user(*five))


# Life of an entry


def test_an_entry_can_be_evicted_before_its_time():
    driver = Driver(switches=Switches(early_eviction_seconds=60.0))
    for ttl in ("5m", "1h"):
        message = user(text(ttl + "a" * 50, ttl))
        reads = [parts(driver.send(message, now=now))[0] for now in (0.0, 60.0, 120.5, 121.0)]
        assert reads == [0, 52, 0, 52]


@pytest.mark.parametrize(("first_token_seconds", "writes"), [(0.0, 1), (2.0, 8)])
def test_parallel_cold_requests_all_write_until_the_first_response_begins(
    first_token_seconds, writes
):
    driver = Driver(switches=Switches(first_token_seconds=first_token_seconds))
    message = user(text("a" * 50, "5m"))
    with ThreadPoolExecutor(8) as pool:
        exchanges = list(pool.map(lambda _: driver.send(message, now=10.0), range(8)))
    assert sum(parts(exchange) == (0, 0, 50, 0) for exchange in exchanges) == writes
    assert parts(driver.send(message, now=12.0)) == (50, 0, 0, 0)


def test_a_long_stream_leaves_less_of_five_minutes():
    driver = Driver()
    driver.provider.fault("slow", virtual_seconds=240.0)
    message = user(text("a" * 50, "5m"))
    driver.send(message)
    assert [parts(driver.send(message, now=now))[0] for now in (239.0, 240.0)] == [0, 50]
    driver.provider.fault("slow", virtual_seconds=240.0)
    driver.send(user(text("b" * 50, "5m")))
    assert parts(driver.send(user(text("b" * 50, "5m")), now=301.0))[0] == 0


# The window


def test_earlier_models_refuse_an_input_that_leaves_too_little_for_the_output():
    driver = Driver(window_tokens=100)
    words = error_of(driver.send(user(text("a" * 81)), model="claude-opus-4-1", max_tokens=20))
    assert words == (
        "input length and `max_tokens` exceed context limit: 81 + 20 > 100, decrease input length"
        " or `max_tokens` and try again"
    )
    fits = driver.send(user(text("a" * 80)), model="claude-opus-4-1", max_tokens=20)
    assert fits.status == 200


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-8", "claude-fable-5-1"])
def test_current_models_stop_at_the_window(model):
    reply = Reply(content=[text("first"), text("b" * 30), call("t1")])
    driver = Driver(window_tokens=100, script=[reply])
    exchange = driver.send(user(text("a" * 80)), model=model, max_tokens=1000)
    answer = msgspec.json.decode(exchange.response)
    assert answer["stop_reason"] == "model_context_window_exceeded"
    assert answer["content"] == [text("first"), text("b" * 15)]
    assert answer["usage"]["output_tokens"] == 20
    assert sum(parts(exchange)) == 80


def test_a_prompt_over_the_window_is_refused_on_every_model():
    for model in ("claude-opus-4-1", "claude-opus-4-8"):
        driver = Driver(window_tokens=100)
        words = error_of(driver.send(user(text("a" * 101)), model=model))
        assert words == "prompt is too long: 101 tokens > 100 maximum"


def test_a_body_over_32_megabytes_is_too_large():
    exchange = Driver().provider.handle(b" " * (32 * 1024 * 1024 + 1), {})
    assert exchange.status == 413
    assert msgspec.json.decode(exchange.response)["error"]["type"] == "request_too_large"


# Accounts that must say who they are


@pytest.mark.parametrize(
    ("system", "is_taken"),
    [
        ([text("I am A.")], True),
        ([text("I am A."), text("Be brief.", "5m")], True),
        ("I am A.", True),
        ([text("I am A.", "5m")], False),
        ([text("I am A.\n\nBe brief.")], False),
        ([text("Be brief."), text("I am A.")], False),
        ([], False),
    ],
)
def test_an_identity_is_demanded_first_exactly_alone_and_unmarked(system, is_taken):
    driver = Driver(switches=Switches(identity="I am A."))
    exchange = driver.send(user(text("a")), system=system, model=OPUS)
    assert exchange.status == (200 if is_taken else 429)
    if not is_taken:
        told = {"type": "rate_limit_error", "message": "Error"}
        assert msgspec.json.decode(exchange.response)["error"] == told
