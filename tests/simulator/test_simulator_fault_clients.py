"""Faults as stock clients see them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import anthropic
import httpx2
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import AnthropicContextOverflowError
from langchain_core.messages import HumanMessage
from wire_prompts import MODEL, text, user

from barograph.simulator import Reply, Simulator, Switches

LONG = "word " * 1000
PROMPT = {"model": MODEL, "max_tokens": 100, "messages": [user(text(LONG, "5m"))]}
SOON = 0.001


@pytest.fixture(scope="module")
def simulator():
    with Simulator(keep_bodies=False) as running:
        yield running


@pytest.fixture
def name(simulator, request):
    simulator.play(request.node.name, lambda _body, index: Reply(content=f"answer {index}"))
    return request.node.name


@pytest.fixture
def client(simulator, name):
    headers = {"x-sim-session": name}
    with anthropic.Anthropic(
        base_url=simulator.url, api_key=name, default_headers=headers, max_retries=0
    ) as made:
        yield made


@pytest.fixture
def patient(client):
    return client.with_options(max_retries=2)


@pytest.fixture
def chat(simulator, name):
    return ChatAnthropic(
        model=MODEL,
        anthropic_api_url=simulator.url,
        api_key=name,
        default_headers={"x-sim-session": name},
        max_retries=0,
        timeout=5.0,
    )


def tries_of(simulator, name):
    return [(e.status, e.attempt, e.index) for e in simulator.exchanges if e.session == name]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("rate_limit", anthropic.RateLimitError),
        ("spend_cap", anthropic.RateLimitError),
        ("overloaded", anthropic.OverloadedError),
        ("too_large", anthropic.ContentTooLargeError),
        ("server_error", anthropic.InternalServerError),
        ("overflow", anthropic.BadRequestError),
        ("drop", anthropic.APIConnectionError),
        ("cut", anthropic.APIConnectionError),
    ],
)
def test_each_fault_is_the_clients_own_error(simulator, client, name, kind, error):
    simulator.fault(kind, session=name)
    with pytest.raises(error):
        client.messages.create(**PROMPT)
    assert client.messages.create(**PROMPT).content[0].text == "answer 0"


def test_a_limited_client_waits_as_it_is_told_and_gets_the_same_reply(simulator, patient, name):
    simulator.fault("rate_limit", session=name, times=2, retry_after_seconds=SOON)
    assert patient.messages.create(**PROMPT).content[0].text == "answer 0"
    assert tries_of(simulator, name) == [(429, 0, 0), (429, 1, 0), (200, 2, 0)]


def test_a_dropped_connection_is_tried_again(simulator, patient, name):
    simulator.fault("drop", session=name)
    assert patient.messages.create(**PROMPT).content[0].text == "answer 0"
    assert tries_of(simulator, name) == [(0, 0, 0), (200, 1, 0)]


def test_a_hanging_answer_ends_with_the_clients_patience(simulator, client, name):
    simulator.fault("hang", session=name)
    with pytest.raises(anthropic.APITimeoutError):
        client.with_options(timeout=0.2).messages.create(**PROMPT)
    assert client.messages.create(**PROMPT).content[0].text == "answer 0"


def test_a_slow_answer_comes_late_and_holds_up_nobody(simulator, client, name):
    simulator.fault("slow", session=name, index=0, delay_seconds=0.3)
    begun = monotonic()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(client.messages.create, **PROMPT)
        while not tries_of(simulator, name):
            threading.Event().wait(0.005)
        quick = client.messages.create(**PROMPT)
        assert not slow.done()
        assert slow.result().content[0].text == "answer 0"
    assert quick.content[0].text == "answer 1"
    assert monotonic() - begun >= 0.3


@pytest.mark.parametrize("after_events", [0, 1, 4])
def test_a_stream_is_cut_after_so_many_events(simulator, client, name, after_events):
    simulator.fault("cut", session=name, after_events=after_events)
    seen = []

    def read():
        with client.messages.create(**PROMPT, stream=True) as stream:
            seen.extend(event.type for event in stream)

    with pytest.raises(httpx2.RemoteProtocolError):
        read()
    assert len(seen) <= after_events
    whole = client.messages.create(**PROMPT)
    assert whole.content[0].text == "answer 0"
    assert whole.usage.cache_read_input_tokens == 1854


def test_an_error_can_come_inside_a_stream(simulator, client, name):
    simulator.fault("error_event", session=name, after_events=4)
    with (
        client.messages.create(**PROMPT, stream=True) as stream,
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
    ):
        list(stream)


def test_usage_faults_reach_the_client(simulator, client, name):
    simulator.fault("usage_absurd", session=name, usage="negative")
    assert client.messages.create(**PROMPT).usage.input_tokens < 0
    simulator.fault("usage_missing", session=name)
    assert client.messages.create(**PROMPT).usage is None
    simulator.fault("usage_missing", session=name, usage="input")
    with client.messages.stream(**PROMPT) as stream:
        assert stream.get_final_message().content[0].text == "answer 2"


def test_chat_anthropic_knows_one_overflow_and_not_the_others(simulator, chat, name):
    simulator.fault("overflow", session=name)
    with pytest.raises(AnthropicContextOverflowError):
        chat.invoke("Hi.")
    for wording in ("input_and_max_tokens", "request_too_large"):
        simulator.fault("overflow", session=name, wording=wording)
        with pytest.raises(anthropic.APIStatusError) as caught:
            chat.invoke("Hi.")
        assert not isinstance(caught.value, AnthropicContextOverflowError)
    simulator.fault("overflow", session=name, wording="stop_reason")
    answer = chat.invoke("Hi.")
    assert answer.response_metadata["stop_reason"] == "model_context_window_exceeded"


def test_chat_anthropic_streams_into_a_cut_and_an_error(simulator, chat, name):
    simulator.fault("cut", session=name, after_events=4)
    with pytest.raises(httpx2.RemoteProtocolError):
        list(chat.stream("Hi."))
    simulator.fault("error_event", session=name, after_events=4)
    with pytest.raises(anthropic.APIStatusError):
        list(chat.stream("Hi."))
    assert "".join(chunk.text for chunk in chat.stream("Hi.")) == "answer 0"


def test_a_request_brings_its_fault_in_a_header(client):
    with pytest.raises(anthropic.OverloadedError):
        client.messages.create(**PROMPT, extra_headers={"x-sim-fault": "overloaded"})
    assert client.messages.create(**PROMPT).content[0].text == "answer 0"


def test_the_server_stops_while_an_answer_hangs():
    outcome = []
    with Simulator([Reply(content="a")]) as running:
        running.fault("hang")
        client = anthropic.Anthropic(base_url=running.url, api_key="any", max_retries=0)

        def ask():
            try:
                client.messages.create(**PROMPT)
            except anthropic.APIConnectionError as error:
                outcome.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not running.exchanges:
            threading.Event().wait(0.005)
        begun = monotonic()
    thread.join(5)
    client.close()
    assert len(outcome) == 1
    assert monotonic() - begun < 5


# What is no fault


def test_parallel_cold_requests_all_write():
    with (
        Simulator(
            lambda _body, _index: Reply(content="a"), switches=Switches(first_token_seconds=2.0)
        ) as running,
        anthropic.Anthropic(base_url=running.url, api_key="any") as client,
    ):

        def written(now):
            headers = {"x-sim-now": str(now)}
            usage = client.messages.create(**PROMPT, extra_headers=headers).usage
            return usage.cache_creation_input_tokens

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(written, [0.0] * 6)) == [1854] * 6
        assert written(2.0) == 0


def test_counting_diagnostics_and_binding_through_the_client(simulator, client, name):
    counted = client.messages.count_tokens(model=MODEL, messages=PROMPT["messages"])
    assert counted.input_tokens == 1854
    first = client.messages.create(**PROMPT, diagnostics={"previous_message_id": None})
    assert first.diagnostics is None
    changed = PROMPT | {"system": "new", "diagnostics": {"previous_message_id": first.id}}
    reason = client.messages.create(**changed).diagnostics.cache_miss_reason
    assert (reason.type, reason.cache_missed_input_tokens) == ("system_changed", 1854)
    simulator.play(
        name, lambda _body, _index: Reply(content=[{"type": "thinking", "thinking": "t"}])
    )
    bound = {"model": "claude-opus-5-5", "max_tokens": 9}
    thought = client.messages.create(**bound, messages=[user(text("a"))])
    later = [{"role": "assistant", "content": thought.content}, user(text("b"))]
    client.messages.create(**bound, messages=[user(text("a")), *later])
    for ask in (client.messages.create, client.messages.count_tokens):
        body = bound if ask == client.messages.create else {"model": bound["model"]}
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            ask(**body, messages=[user(text("c")), *later])
    dropped = client.beta.messages.create(
        **bound,
        messages=[user(text("c")), *later],
        thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        betas=["thinking-binding-controls-2026-08-01"],
    )
    assert dropped.input_transformations[0].reason == "prefix_binding_mismatch"


def test_chat_anthropic_sends_bound_thinking_back_unchanged(simulator, name):
    thought = {"type": "thinking", "thinking": "hm"}
    simulator.play(name, lambda _body, _index: Reply(content=[thought, text("So."), thought]))
    chat = ChatAnthropic(
        model="claude-opus-5-5",
        anthropic_api_url=simulator.url,
        api_key=name,
        default_headers={"x-sim-session": name},
        max_retries=0,
        thinking={"type": "adaptive"},  # else it streams text as strings, and an empty one first
    )
    messages = [HumanMessage("a")]
    for ask in (chat.invoke, lambda sent: sum_of(chat.stream(sent)), chat.invoke):
        messages += [ask(messages), HumanMessage("more")]
    chat.invoke(messages)
    messages[0] = HumanMessage("b")
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        chat.invoke(messages)


def sum_of(chunks):
    whole = None
    for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    return whole
