"""Conformance: cache diagnostics compare what was sent; counting costs nothing."""

import msgspec
import pytest
from wire_prompts import Driver, assistant, error_of, parts, text, tool, user

from barograph.simulator import Switches

ASSISTANT = {"role": "assistant", "content": "b"}


def base(**changes):
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 1,
        "tools": [tool("look", "5m")],
        "system": [text("system", "5m")],
        "messages": [user(text("first")), assistant(text("answer")), user(text("second", "5m"))],
    }
    return body | changes


def diagnosed(exchange):
    return msgspec.json.decode(exchange.response)["diagnostics"]


def message_id(exchange):
    return msgspec.json.decode(exchange.response)["id"]


def after(change, switches=None, **before):
    driver = Driver(switches=switches)
    first = driver.post(base(**before) | {"diagnostics": {"previous_message_id": None}})
    assert diagnosed(first) is None
    asked = {"diagnostics": {"previous_message_id": message_id(first)}}
    second = driver.post(base(**(before | change)) | asked)
    return first, diagnosed(second)


def tokens_from(exchange, level):
    levels = ("tools", "system", "messages")
    return sum(
        block.tokens
        for block in exchange.blocks
        if levels.index(block.level) >= levels.index(level)
    )


@pytest.mark.parametrize(
    ("change", "kind", "level"),
    [
        ({"model": "claude-opus-5"}, "model_changed", "tools"),
        ({"speed": "fast"}, "model_changed", "tools"),
        ({"tools": [tool("find")]}, "tools_changed", "tools"),
        ({"tools": []}, "tools_changed", "tools"),
        ({"system": "another"}, "system_changed", "system"),
        ({"tools": [tool("find")], "system": "another"}, "tools_changed", "tools"),
        ({"messages": [user(text("1st"))]}, "messages_changed", "messages"),
        ({"system": "another", "messages": [user(text("1st"))]}, "system_changed", "system"),
    ],
)
def test_a_reason_names_the_first_difference_and_the_tokens_after_it(change, kind, level):
    first, diagnosis = after(change)
    missed = tokens_from(first, level)
    assert diagnosis == {"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": missed}}


def test_only_the_tokens_after_the_difference_are_missed():
    edited = [user(text("first")), assistant(text("other")), user(text("second"))]
    first, diagnosis = after({"messages": edited})
    missed = sum(block.tokens for block in first.blocks[-2:])
    assert diagnosis["cache_miss_reason"]["cache_missed_input_tokens"] == missed


@pytest.mark.parametrize(
    "change",
    [
        {"thinking": {"type": "adaptive"}},
        {"tool_choice": {"type": "any"}},
        {"output_config": {"effort": "low"}},
    ],
)
def test_other_parameters_make_it_unavailable(change):
    assert after(change)[1] == {"cache_miss_reason": {"type": "unavailable"}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"messages": [*base()["messages"], assistant(text("c")), user(text("d"))]},
        {"max_tokens": 7, "metadata": {"user_id": "someone"}},
        {"system": "system", "tools": [tool("look"), tool("f") | {"defer_loading": True}]},
    ],
)
def test_what_only_appends_is_no_divergence(change):
    assert after(change)[1] is None


def test_an_unknown_id_and_the_id_of_a_request_that_asked_for_nothing_are_not_found():
    driver = Driver()
    silent = driver.post(base())
    assert diagnosed(silent) is None
    for name in ("msg_unknown", message_id(silent)):
        exchange = driver.post(base(diagnostics={"previous_message_id": name}))
        assert diagnosed(exchange) == {"cache_miss_reason": {"type": "previous_message_not_found"}}


def test_other_accounts_do_not_find_it():
    driver = Driver()
    first = driver.post(base(diagnostics={"previous_message_id": None}), key="one")
    asked = base(diagnostics={"previous_message_id": message_id(first)})
    assert "not_found" in diagnosed(driver.post(asked, key="two"))["cache_miss_reason"]["type"]


def test_a_diagnosis_can_still_be_pending():
    pending = Switches(diagnostics_pending=True)
    assert after({"system": "another"}, pending)[1] == {"cache_miss_reason": None}
    assert after({}, pending)[1] is None


def test_it_tells_of_structure_whatever_the_cache_did_and_is_not_part_of_the_prefix():
    driver = Driver()
    first = driver.post(base(diagnostics={"previous_message_id": None}))
    asked = base(diagnostics={"previous_message_id": message_id(first)})
    late = driver.post(asked, now=9999.0)
    assert (parts(late)[0], diagnosed(late)) == (0, None)
    assert parts(driver.post(base(), now=9999.0))[0] == first.total_tokens


@pytest.mark.parametrize("value", [{"previous": "x"}, {"previous_message_id": 3}, "x"])
def test_a_malformed_request_for_diagnostics_is_refused(value):
    assert error_of(Driver().post(base(diagnostics=value))).startswith("diagnostics")


# Counting


def test_counting_gives_the_tokens_of_the_prompt_and_changes_nothing():
    driver = Driver()
    body = base()
    del body["max_tokens"]
    counted = driver.count(*body.pop("messages"), **body)
    total = driver.post(base()).total_tokens
    assert msgspec.json.decode(counted.response) == {"input_tokens": total}
    assert parts(driver.post(base())) == (total, 0, 0, 0)  # the first one wrote, not the count
    assert len(driver.provider.exchanges) == 2
    assert [exchange.request_id for exchange in driver.provider.counts] == ["req_sim_count_000001"]


def test_counting_writes_no_entry_and_takes_no_scripted_reply():
    driver = Driver(script=[])
    assert driver.count(*base()["messages"]).status == 200
    assert driver.send(*base()["messages"]).status == 400


@pytest.mark.parametrize("name", ["max_tokens", "stream", "metadata", "diagnostics"])
def test_counting_takes_only_what_shapes_the_prompt(name):
    value = {"max_tokens": 1, "stream": True}.get(name, {})
    exchange = Driver().count(user(text("a")), **{name: value})
    assert error_of(exchange) == f"{name}: Extra inputs are not permitted"


def test_counting_checks_the_request_and_its_thinking():
    driver = Driver()
    assert "at least one message" in error_of(driver.count())
    sent = driver.send(user(text("a")), model="claude-opus-5-5")
    assert sent.status == 200
    thought = {"type": "thinking", "thinking": "hm", "signature": "sim1.00.11.22.claude-opus-5-5"}
    messages = (user(text("a")), assistant(thought), user(text("b")))
    words = error_of(driver.count(*messages, model="claude-opus-5-5"))
    assert words == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_a_missing_max_tokens_is_only_allowed_in_a_count():
    driver = Driver()
    assert error_of(driver.post({"model": "m", "messages": [user(text("a"))]})) == (
        "max_tokens: Field required"
    )
