"""Sessions, their scripts, retries, the clock and what is kept of each exchange."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from wire_prompts import MODEL, text, user

from barograph.simulator import Reply, SimulatedProvider

BODY = msgspec.json.encode({"model": MODEL, "max_tokens": 9, "messages": [user(text("a"))]})


def said(exchange):
    assert exchange.status == 200, exchange.response
    return msgspec.json.decode(exchange.response)["content"][0]["text"]


def replies(*words):
    return [Reply(content=word) for word in words]


def refused(exchange, status=400):
    assert exchange.status == status
    return msgspec.json.decode(exchange.response)["error"]["message"]


def test_each_session_has_its_own_script_and_its_own_place_in_it():
    provider = SimulatedProvider(replies("one", "two"))
    provider.play("other", replies("uno"))
    assert said(provider.handle(BODY, {})) == "one"
    assert said(provider.handle(BODY, {"x-sim-session": "other"})) == "uno"
    assert said(provider.handle(BODY, {"X-Sim-Session": "default"})) == "two"
    assert [(e.session, e.index) for e in provider.exchanges] == [
        ("default", 0),
        ("other", 0),
        ("default", 1),
    ]


def test_an_unknown_session_is_named_beside_the_known_ones():
    provider = SimulatedProvider()
    provider.play("here", [])
    exchange = provider.handle(BODY, {"x-sim-session": "gone"})
    assert refused(exchange, 404) == "session 'gone' has no script; known sessions: here"
    assert exchange.index == -1


def test_a_script_that_ran_out_says_so_and_changes_nothing():
    provider = SimulatedProvider(replies("one"))
    provider.handle(BODY, {})
    words = "the script of session 'default' ran out: no reply at index 1"
    assert refused(provider.handle(BODY, {})) == words
    provider.play("default", replies("again"))
    assert said(provider.handle(BODY, {})) == "again"


def test_a_retry_repeats_the_reply_and_the_next_call_goes_on():
    provider = SimulatedProvider(replies("one", "two"))
    first = provider.handle(BODY, {})
    retry = provider.handle(BODY, {"x-stainless-retry-count": "1"})
    assert said(first) == said(retry) == "one"
    assert (retry.index, retry.attempt) == (0, 1)
    assert msgspec.json.decode(first.response)["id"] == msgspec.json.decode(retry.response)["id"]
    assert said(provider.handle(BODY, {"x-stainless-retry-count": "0"})) == "two"


def test_a_refused_request_leaves_its_reply_for_the_next():
    provider = SimulatedProvider(replies("one"))
    assert provider.handle(b"{}", {}).status == 400
    assert said(provider.handle(BODY, {})) == "one"


def test_a_call_can_pin_its_index_without_moving_the_session():
    provider = SimulatedProvider(replies("one", "two", "three"))
    assert said(provider.handle(BODY, {"x-sim-call": "2"})) == "three"
    assert said(provider.handle(BODY, {})) == "one"
    assert "no reply at index 9" in refused(provider.handle(BODY, {"x-sim-call": "9"}))
    assert "x-sim-call" in refused(provider.handle(BODY, {"x-sim-call": "last"}))


def test_a_script_can_be_a_function_of_the_request_and_the_index():
    def answer(request, index):
        return Reply(content=f"{request['model']} {index}") if index < 2 else None

    provider = SimulatedProvider(answer)
    assert [said(provider.handle(BODY, {})) for _ in range(2)] == [f"{MODEL} 0", f"{MODEL} 1"]
    assert "ran out" in refused(provider.handle(BODY, {}))


def test_a_script_that_fails_says_so_to_the_client():
    def broken(_request, _index):
        raise KeyError("nothing here")

    words = refused(SimulatedProvider(broken).handle(BODY, {}))
    assert words == "the script of session 'default' failed at index 0: KeyError('nothing here')"


def test_the_stop_reason_follows_the_content_unless_it_is_given():
    assert Reply(content="a").reason() == "end_turn"
    assert Reply(content=[{"type": "tool_use"}]).reason() == "tool_use"
    assert Reply(content="a", stop_reason="max_tokens").reason() == "max_tokens"


def test_output_tokens_are_counted_unless_they_are_given():
    provider = SimulatedProvider([Reply(content="a" * 100), Reply(content="a", output_tokens=77)])
    assert [provider.handle(BODY, {}).usage.output_tokens for _ in range(2)] == [41, 77]


def test_the_clock_is_the_header_else_the_one_given_else_frozen():
    assert SimulatedProvider(replies("a")).handle(BODY, {}).now_seconds == 0.0
    provider = SimulatedProvider(replies("a", "b"), clock=lambda: 7.5)
    assert provider.handle(BODY, {}).now_seconds == 7.5
    assert provider.handle(BODY, {"x-sim-now": "12.25"}).now_seconds == 12.25


@pytest.mark.parametrize("now", ["soon", "nan", "inf"])
def test_a_time_that_is_none_is_refused(now):
    assert "x-sim-now" in refused(SimulatedProvider(replies("a")).handle(BODY, {"x-sim-now": now}))


def test_no_key_is_kept_only_a_label_that_tells_keys_apart():
    provider = SimulatedProvider(replies("a", "b", "c"))
    headers = {"x-api-key": "secret-1", "authorization": "Bearer x", "x-sim-now": "1"}
    one = provider.handle(BODY, headers)
    other = provider.handle(BODY, headers | {"x-api-key": "secret-2"})
    assert one.account != other.account
    assert provider.handle(BODY, {}).account == "no-key"
    assert one.headers == {"x-sim-now": "1"}
    assert "secret" not in repr(provider.exchanges)


def test_an_exchange_shares_the_blocks_it_has_in_common_with_the_one_before():
    provider = SimulatedProvider(replies("a", "b"))
    first, second = (provider.handle(BODY, {}) for _ in range(2))
    assert first.blocks[0] is second.blocks[0]


def test_parallel_calls_are_each_counted_once():
    provider = SimulatedProvider(lambda _request, index: Reply(content=str(index)))
    with ThreadPoolExecutor(8) as pool:
        exchanges = list(pool.map(lambda _: provider.handle(BODY, {}), range(64)))
    assert sorted(exchange.number for exchange in exchanges) == list(range(1, 65))
    assert sorted(exchange.index for exchange in exchanges) == list(range(64))


def test_a_script_may_register_another():
    provider = SimulatedProvider()

    def parent(_request, _index):
        provider.play("child", replies("from the child"))
        return Reply(content="started")

    provider.play("default", parent)
    provider.handle(BODY, {})
    assert said(provider.handle(BODY, {"x-sim-session": "child"})) == "from the child"


def test_bodies_are_kept_unless_they_are_not_wanted():
    kept, bare = SimulatedProvider(replies("a")), SimulatedProvider(replies("a"), keep_bodies=False)
    exchange = kept.handle(BODY, {})
    assert kept.exchanges == [exchange]
    assert exchange.request == BODY
    assert said(bare.handle(BODY, {})) == "a"
    assert (bare.exchanges[0].request, bare.exchanges[0].response) == (b"", b"")
    assert bare.exchanges[0].blocks == exchange.blocks
