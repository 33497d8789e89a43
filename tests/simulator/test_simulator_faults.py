"""Faults: which request they strike, and what the state machine makes of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_prompts import MODEL, Driver, parts, text, user

from barograph.core.errors import UsageError
from barograph.simulator import Fault, Reply, SimulatedProvider
from barograph.simulator.faults import FaultPlan

BODY = msgspec.json.encode({"model": MODEL, "max_tokens": 9, "messages": [user(text("a" * 99))]})


def provider(*faults):
    return SimulatedProvider([Reply(content=str(n)) for n in range(9)], faults=faults)


def status(made, **headers):
    return made.handle(BODY, {name.replace("_", "-"): headers[name] for name in headers}).status


def error(exchange):
    return msgspec.json.decode(exchange.response)["error"]


@pytest.mark.parametrize(
    ("fault", "expected", "kind", "headers"),
    [
        (Fault(kind="rate_limit"), 429, "rate_limit_error", {}),
        (
            Fault(kind="rate_limit", retry_after_seconds=7),
            429,
            "rate_limit_error",
            {"retry-after": "7"},
        ),
        (Fault(kind="spend_cap"), 429, "billing_error", {}),
        (Fault(kind="overloaded"), 529, "overloaded_error", {}),
        (Fault(kind="too_large"), 413, "request_too_large", {}),
        (Fault(kind="server_error"), 500, "api_error", {}),
        (Fault(kind="overflow"), 400, "invalid_request_error", {}),
        (Fault(kind="error_event"), 529, "overloaded_error", {}),
        (Fault(kind="error_event", error_type="api_error"), 500, "api_error", {}),
    ],
)
def test_an_error_has_the_providers_status_type_and_headers(fault, expected, kind, headers):
    made = provider(fault)
    exchange = made.handle(BODY, {})
    assert (exchange.status, error(exchange)["type"]) == (expected, kind)
    assert exchange.response_headers == headers
    assert exchange.fault == fault
    assert exchange.usage is None
    assert status(made) == 200


def test_a_fault_leaves_the_reply_for_the_next_try():
    made = provider(Fault(kind="overloaded", times=2))
    assert [status(made, x_stainless_retry_count=str(n)) for n in range(3)] == [529, 529, 200]
    assert [exchange.index for exchange in made.exchanges] == [0, 0, 0]


def test_a_fault_is_addressed_by_session_and_index_or_by_number():
    made = provider(Fault(kind="overloaded", session="other", index=1))
    made.play("other", [Reply(content="a")] * 3)
    assert [status(made) for _ in range(3)] == [200] * 3
    assert [status(made, x_sim_session="other") for _ in range(4)] == [200, 529, 200, 200]
    made = provider(Fault(kind="overloaded", request=3), Fault(kind="server_error", index=0))
    assert [status(made) for _ in range(4)] == [500, 200, 529, 200]


def test_a_refused_request_spends_no_fault():
    made = provider(Fault(kind="overloaded"))
    assert made.handle(b"{}", {}).status == 400
    assert status(made) == 529


def test_faults_can_be_added_while_it_runs():
    made = provider()
    made.fault("overloaded", times=1)
    assert [status(made) for _ in range(2)] == [529, 200]


def test_a_request_can_bring_its_fault_along():
    made = provider()
    assert status(made, x_sim_fault="server_error") == 500
    assert status(made, x_sim_fault="server_error", x_stainless_retry_count="1") == 200
    twice = {"x_sim_fault": "overloaded; times=2", "x_stainless_retry_count": "1"}
    assert status(made, **twice) == 529
    limited = made.handle(BODY, {"x-sim-fault": "rate_limit;retry_after_seconds=1.5"})
    assert limited.response_headers == {"retry-after": "1.5"}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("sleepy", "There is no fault 'sleepy'. Use one of rate_limit,"),
        ("cut; events=3", "A fault has no field 'events'. It has kind,"),
        ("cut; after_events=few", "cannot be read"),
        ("overloaded; after_events=3", "takes no after_events"),
        ("overloaded; index=3", "it strikes this request"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(header, words):
    exchange = provider().handle(BODY, {"x-sim-fault": header})
    assert exchange.status == 400
    assert words in error(exchange)["message"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "sleepy"}, "Use one of rate_limit"),
        ({"kind": "overloaded", "wording": "prompt_too_long"}, "takes no wording"),
        ({"kind": "overloaded", "times": -1}, "times is -1"),
        ({"kind": "slow", "delay_seconds": float("nan")}, "delay_seconds is nan"),
        ({"kind": "usage_missing", "usage": "huge"}, "Use one of all, input, split"),
    ],
)
def test_a_fault_that_makes_no_sense_is_the_callers_mistake(fields, words):
    with pytest.raises(UsageError, match=words):
        Fault(**fields)


@pytest.mark.parametrize(
    ("wording", "begins"),
    [
        ("prompt_too_long", "prompt is too long: 1000001 tokens > 1000000 maximum"),
        ("input_and_max_tokens", "input length and `max_tokens` exceed context limit: 999992 + 9"),
        ("maximum_context_length", "This model's maximum context length is 1000000 tokens."),
        ("exceeds_context_window", "Your input exceeds the context window of this model."),
        ("configured_limit", "Input tokens exceed the configured limit of 1000000 tokens."),
        ("available_context_size", "request (1000001 tokens) exceeds the available context size"),
    ],
)
def test_an_overflow_comes_in_every_known_wording(wording, begins):
    exchange = provider(Fault(kind="overflow", wording=wording)).handle(BODY, {})
    assert exchange.status == 400
    assert error(exchange)["message"].startswith(begins)


def test_an_overflow_can_be_a_413_or_a_stop_reason():
    assert status(provider(Fault(kind="overflow", wording="request_too_large"))) == 413
    made = SimulatedProvider([Reply(content="word " * 100)])
    made.fault("overflow", wording="stop_reason")
    answer = msgspec.json.decode(made.handle(BODY, {}).response)
    assert answer["stop_reason"] == "model_context_window_exceeded"
    assert 0 < len(answer["content"][0]["text"]) < 500


@pytest.mark.parametrize("kind", ["hang", "drop"])
def test_no_answer_changes_nothing(kind):
    driver = Driver()
    driver.provider.fault(kind)
    message = user(text("a" * 50, "5m"))
    silent = driver.send(message)
    assert (silent.status, silent.response, silent.index) == (0, b"", 0)
    answered = driver.send(message)
    assert (parts(answered), answered.index) == ((0, 0, 50, 0), 0)


@pytest.mark.parametrize("kind", ["cut", "error_event"])
def test_half_an_answer_has_written_the_cache_and_is_given_again(kind):
    driver = Driver()
    driver.provider.fault(kind)
    message = user(text("a" * 50, "5m"))
    cut = driver.send(message, stream=True)
    again = driver.send(message, stream=True)
    assert (cut.status, cut.index, again.index) == (200, 0, 0)
    assert parts(again) == (50, 0, 0, 0)


def usage_after(**fields):
    made = provider(Fault(**fields))
    return msgspec.json.decode(made.handle(BODY, {}).response).get("usage")


def test_usage_can_be_missing():
    assert usage_after(kind="usage_missing") is None
    assert set(usage_after(kind="usage_missing", usage="input")) == {
        "output_tokens",
        "service_tier",
    }
    assert "cache_creation" not in usage_after(kind="usage_missing", usage="split")


def test_usage_can_be_absurd():
    honest = msgspec.json.decode(provider().handle(BODY, {}).response)["usage"]
    count = honest["input_tokens"]
    values = [
        usage_after(kind="usage_absurd", usage=usage)["input_tokens"]
        for usage in ("negative", "huge", "strings")
    ]
    assert values == [-count - 1, count + 10**15, str(count)]
    split = usage_after(kind="usage_absurd")["cache_creation"]
    assert split == {"ephemeral_5m_input_tokens": -1, "ephemeral_1h_input_tokens": -1}


def test_the_bill_of_a_struck_exchange_stays_true():
    made = provider(Fault(kind="usage_absurd", usage="huge"))
    assert made.handle(BODY, {}).usage.input_total_tokens < 100


_ADDRESSES = st.builds(
    Fault,
    kind=st.just("overloaded"),
    session=st.sampled_from([None, "a", "b"]),
    index=st.one_of(st.none(), st.integers(0, 3)),
    request=st.one_of(st.none(), st.integers(1, 6)),
    times=st.integers(0, 3),
)


@given(
    st.lists(_ADDRESSES, max_size=4), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)))
)
def test_property_a_fault_strikes_its_address_and_never_more_often_than_it_is_to(faults, calls):
    plan = FaultPlan()
    for fault in faults:
        plan.add(fault)
    struck = []
    for number, (session, index) in enumerate(calls, start=1):
        fault = plan.strike(number, session, index)
        if fault is not None:
            assert fault.session in (None, session)
            assert fault.index in (None, index)
            assert fault.request in (None, number)
            struck.append(id(fault))
    for fault in {id(fault): fault for fault in faults}.values():
        planned = sum(other is fault for other in faults)
        assert struck.count(id(fault)) <= fault.times * planned


@given(st.text(max_size=40))
def test_property_any_header_is_read_or_refused(words):
    headers = {"x-sim-fault": words}
    assert provider().handle(BODY, headers).status in (0, 200, 400, 413, 429, 500, 529)
