"""Errors that real clients raise are read for what they are, however the call was made."""

import json

import anthropic
import httpx2
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from stage import MODEL

from barograph.langchain.refusals import refusal_of
from barograph.providers.overflow import read_refusal
from barograph.simulator import Reply

# fault, what the fault takes, what it is about, whether the error names the window
FAULTS = [
    ("overflow", {"wording": "prompt_too_long"}, "overflow", True),
    ("overflow", {"wording": "input_and_max_tokens"}, "max_tokens_room", True),
    ("overflow", {"wording": "maximum_context_length"}, "overflow", True),
    ("overflow", {"wording": "exceeds_context_window"}, "overflow", False),
    ("overflow", {"wording": "configured_limit"}, "overflow", True),
    ("overflow", {"wording": "available_context_size"}, "overflow", True),
    ("overflow", {"wording": "request_too_large"}, "too_large", False),
    ("too_large", {}, "too_large", False),
    ("rate_limit", {}, "rate_limited", False),
    ("spend_cap", {}, "quota", False),
    ("overloaded", {}, "overloaded", False),
    ("server_error", {}, "other", False),
    ("drop", {}, "other", False),
]
IDS = [f"{kind}-{takes.get('wording', '')}" for kind, takes, _, _ in FAULTS]
TOO_LONG = "Input is too long for requested model."
TOO_MANY = "Too many tokens, please wait before trying again."


@pytest.fixture
def name(simulator, session):
    simulator.play(session, lambda _body, _index: Reply(content="fine"))
    return session


@pytest.fixture
def chat(simulator, name):
    return ChatAnthropic(
        model=MODEL,
        base_url=simulator.url,
        api_key=name,
        default_headers={"x-sim-session": name},
        max_retries=0,
        max_tokens=512,
    )


def sdk_call(chat, loop):
    chat._client.messages.create(
        model=MODEL, max_tokens=512, messages=[{"role": "user", "content": "Hi."}]
    )


def sdk_stream(chat, loop):
    with chat._client.messages.stream(
        model=MODEL, max_tokens=512, messages=[{"role": "user", "content": "Hi."}]
    ) as stream:
        stream.get_final_message()


def invoke(chat, loop):
    chat.invoke("Hi.")


def stream(chat, loop):
    list(chat.stream("Hi."))


def ainvoke(chat, loop):
    loop.run(chat.ainvoke("Hi."))


def astream(chat, loop):
    async def read():
        return [chunk async for chunk in chat.astream("Hi.")]

    loop.run(read())


WAYS = [invoke, stream, ainvoke, astream, sdk_call, sdk_stream]


def session_of(chat):
    return chat.default_headers["x-sim-session"]


def raised(way, chat, loop):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each fault has its own class
        way(chat, loop)
    return caught.value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("planned", FAULTS, ids=IDS)
def test_each_fault_is_read_as_what_it_is(simulator, chat, loop, planned, way):
    kind, takes, about, named = planned
    simulator.fault(kind, session=session_of(chat), **takes)
    fault = read_refusal(refusal_of(raised(way, chat, loop)))
    assert fault.kind == about
    assert (fault.window_tokens is not None) == named


@pytest.mark.parametrize("way", [stream, astream, sdk_stream])
@pytest.mark.parametrize(
    "told",
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limited"),
        ("request_too_large", "too_large"),
        ("api_error", "other"),
    ],
)
def test_an_error_inside_a_stream_is_read_too(simulator, chat, loop, told, way):
    type_, about = told
    simulator.fault("error_event", session=session_of(chat), after_events=2, error_type=type_)
    refusal = refusal_of(raised(way, chat, loop))
    assert refusal.status == 200
    assert read_refusal(refusal).kind == about


def test_figures_of_a_real_overflow_are_learned(simulator, chat, name, loop):
    simulator.fault("overflow", session=name, wording="input_and_max_tokens")
    fault = read_refusal(refusal_of(raised(invoke, chat, loop)))
    assert fault.max_tokens == 512
    assert fault.input_tokens == fault.window_tokens - 512 + 1


def test_an_error_that_is_wrapped_is_found(simulator, chat, name, loop):
    simulator.fault("overflow", session=name, wording="input_and_max_tokens")
    wrapper = RuntimeError("the model could not be asked")
    wrapper.__cause__ = raised(invoke, chat, loop)
    assert read_refusal(refusal_of(wrapper)).kind == "max_tokens_room"


def test_an_error_of_a_model_that_was_tried_before_is_not_taken_for_this_one():
    overflow = ContextOverflowError("prompt is too long: 9 tokens > 8 maximum")
    limited = status_error(429, {"error": {"type": "rate_limit_error"}})
    limited.__context__ = overflow
    assert read_refusal(refusal_of(limited)).kind == "rate_limited"

    unreachable, refused = ConnectionError("no answer"), OSError("refused")
    unreachable.__cause__, refused.__context__ = refused, overflow
    assert read_refusal(refusal_of(unreachable)).kind == "other"


def test_a_context_counts_unless_it_was_hidden_on_purpose():
    later = ValueError("no model is left")
    later.__context__ = ContextOverflowError("prompt is too long")
    assert read_refusal(refusal_of(later)).kind == "overflow"
    later.__suppress_context__ = True
    assert read_refusal(refusal_of(later)).kind == "other"


def test_a_proxys_page_is_read_from_the_response():
    page = "<html><head><title>413 Request Entity Too Large</title></head></html>"
    error = status_error(413, page)
    assert refusal_of(error).body == page
    error.body = None
    assert "413 Request Entity Too Large" in refusal_of(error).body
    assert read_refusal(refusal_of(error)).kind == "too_large"


# Clients that are not installed with Barograph, by what they put on their exceptions.


class OpenAI3Error(Exception):
    """As in version 3: no JSON in the text, and the inner part of the body alone."""

    def __init__(self):
        super().__init__("This model's maximum context length is 128000 tokens.")
        self.status_code, self.code = 400, "context_length_exceeded"
        self.type = "invalid_request_error"
        self.body = {"message": str(self), "code": self.code, "type": self.type, "param": "input"}


class ClientError(Exception):
    """As in botocore."""

    def __init__(self, code, message, status):
        super().__init__(f"An error occurred ({code}): {message}")
        self.response = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }


class GoogleError(Exception):
    """As in google-genai: the status is called a code, and the code a status."""

    def __init__(self):
        said = "The input token count (1058724) exceeds the maximum number of tokens allowed (8)."
        self.code, self.status = 400, "INVALID_ARGUMENT"
        self.details = {"error": {"code": 400, "message": said, "status": self.status}}
        super().__init__(f"400 {self.status}. {self.details}")


@pytest.mark.parametrize(
    ("error", "about", "status"),
    [
        (OpenAI3Error(), "overflow", 400),
        (ClientError("ValidationException", TOO_LONG, 400), "overflow", 400),
        (ClientError("ThrottlingException", TOO_MANY, 429), "rate_limited", 429),
        (GoogleError(), "overflow", 400),
    ],
    ids=["openai", "botocore", "botocore, rate", "google-genai"],
)
def test_other_clients_are_read_by_what_they_show(error, about, status):
    refusal = refusal_of(error)
    assert refusal.status == status
    assert read_refusal(refusal).kind == about


class Sly(Exception):
    """One whose every property fails."""

    @property
    def status_code(self):
        raise RuntimeError("no")

    response = body = code = details = status = type = status_code

    def __str__(self):
        raise RuntimeError("no")


def test_nothing_that_an_exception_holds_makes_reading_it_fail():
    assert read_refusal(refusal_of(Sly())).kind == "other"
    strange = ValueError()
    for name in ("status_code", "code", "type", "body", "response", "details"):
        for value in (True, 7, 99.5, b"\xff", "\ud800", [object()], {"a": {1, 2}}, float("nan")):
            setattr(strange, name, value)
            read_refusal(refusal_of(strange))
    deep = []
    for _ in range(50_000):
        deep = [deep]
    strange.body = deep
    read_refusal(refusal_of(strange))


def test_a_chain_that_bites_its_tail_ends():
    one, other = ValueError("a"), ValueError("prompt is too long")
    one.__cause__, other.__cause__ = other, one
    assert read_refusal(refusal_of(one)).kind == "overflow"


def status_error(status, body):
    text = body if isinstance(body, str) else json.dumps(body)
    request = httpx2.Request("POST", "http://localhost/v1/messages")
    response = httpx2.Response(status, text=text, request=request)
    kind = anthropic.RateLimitError if status == 429 else anthropic.APIStatusError
    return kind(f"Error code: {status}", response=response, body=body)
