"""The stock clients, unchanged but for their base URL."""

import asyncio

import anthropic
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import AnthropicContextOverflowError
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from wire_prompts import MODEL, text, user

from barograph.simulator import Reply, Simulator

LOOK = {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": [1.5, "é"], "a": None}}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "sig"}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
LONG = "word " * 1000  # 1854 tokens
LONG_AND_TOOL_TOKENS = 1885
PROMPT = {"model": MODEL, "max_tokens": 100, "messages": [user(text(LONG, "5m"))]}


@pytest.fixture(scope="module")
def simulator():
    with Simulator(keep_bodies=False) as running:
        yield running


@pytest.fixture
def session(simulator, request):
    """A session of the test's own, with a key of its own, so that tests share no cache entry."""
    name = request.node.name
    simulator.play(name, [Reply(content=[THINKING, text("Looking."), LOOK])] * 4)
    return {"x-sim-session": name, "x-api-key": name}


@pytest.fixture
def client(simulator, session):
    with anthropic.Anthropic(
        base_url=simulator.url, api_key=session["x-api-key"], default_headers=session
    ) as made:
        yield made


@pytest.fixture
def chat(simulator, session):
    return ChatAnthropic(
        model=MODEL,
        anthropic_api_url=simulator.url,
        api_key=session["x-api-key"],
        default_headers=session,
        max_retries=0,
    )


def check_message(message, *, read, written):
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[0].signature == "sig"
    assert message.content[1].text == "Looking."
    assert message.content[2].input == LOOK["input"]
    assert list(message.content[2].input) == ["b", "a"]
    assert message.stop_reason == "tool_use"
    assert message.usage.cache_read_input_tokens == read
    assert message.usage.cache_creation_input_tokens == written
    assert message.usage.cache_creation.ephemeral_5m_input_tokens == written
    assert message.usage.input_tokens == 0


def test_anthropic_create_and_stream(client):
    check_message(client.messages.create(**PROMPT), read=0, written=1854)
    with client.messages.stream(**PROMPT) as stream:
        check_message(stream.get_final_message(), read=1854, written=0)
    events = [event.type for event in client.messages.create(**PROMPT, stream=True)]
    assert (events[0], events[-2:]) == ("message_start", ["message_delta", "message_stop"])


async def test_async_anthropic_create_and_stream(simulator, session):
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key=session["x-api-key"], default_headers=session
    ) as client:
        check_message(await client.messages.create(**PROMPT), read=0, written=1854)
        async with client.messages.stream(**PROMPT) as stream:
            check_message(await stream.get_final_message(), read=1854, written=0)


def test_a_refusal_is_the_clients_own_error_with_its_request_id(client):
    with pytest.raises(anthropic.BadRequestError, match="at least one message") as caught:
        client.messages.create(model=MODEL, max_tokens=1, messages=[])
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id.startswith("req_sim_")


def test_an_unknown_path_is_not_found(client):
    with pytest.raises(anthropic.NotFoundError, match="GET /v1/models is not simulated"):
        client.models.list()


def test_the_virtual_clock_and_the_session_travel_in_headers(client):
    def read(now):
        message = client.messages.create(**PROMPT, extra_headers={"x-sim-now": str(now)})
        return message.usage.cache_read_input_tokens

    assert [read(now) for now in (0, 299, 700)] == [0, 1854, 0]


def check_chat(answer, *, read, written, split):
    assert answer.tool_calls[0]["args"] == LOOK["input"]
    usage = answer.usage_metadata
    details = usage["input_token_details"]
    assert usage["input_tokens"] == read + written
    assert usage["output_tokens"] > 0
    assert details["cache_read"] == read
    assert details["cache_creation"] == (0 if split else written)
    assert details.get("ephemeral_5m_input_tokens", 0) == (written if split else 0)


def test_chat_anthropic_invoke_and_stream_with_tools(chat):
    bound = chat.bind_tools([TOOL])
    marked = [HumanMessage(content=[text(LONG, "5m")])]
    tokens = LONG_AND_TOOL_TOKENS
    check_chat(bound.invoke(marked), read=0, written=tokens, split=True)
    check_chat(bound.invoke(marked), read=tokens, written=0, split=True)
    whole = None
    for chunk in bound.stream(marked):
        whole = chunk if whole is None else whole + chunk
    check_chat(whole, read=tokens, written=0, split=False)


def test_chat_anthropic_streaming_reports_a_write_without_its_split(chat):
    whole = None
    for chunk in chat.bind_tools([TOOL]).stream([HumanMessage(content=[text(LONG, "5m")])]):
        whole = chunk if whole is None else whole + chunk
    check_chat(whole, read=0, written=LONG_AND_TOOL_TOKENS, split=False)


def test_chat_anthropic_carries_a_tool_round_on(simulator, chat, session):
    simulator.play(
        session["x-sim-session"], [Reply(content=[text("Looking."), LOOK]), Reply(content="Done.")]
    )
    messages = [SystemMessage("Be brief."), HumanMessage("Go.")]
    bound = chat.bind_tools([TOOL])
    messages.append(bound.invoke(messages))
    messages.append(ToolMessage("seen", tool_call_id="t1"))
    assert bound.invoke(messages).text == "Done."
    before, after = (e for e in simulator.exchanges if e.session == session["x-sim-session"])
    shared = len(before.blocks)
    assert before.blocks == after.blocks[:shared]
    assert [block.kind for block in after.blocks[shared:]] == ["text", "tool_use", "tool_result"]


def test_chat_anthropic_knows_an_overflow(simulator, session):
    small = ChatAnthropic(
        model="claude-haiku-4-5",
        anthropic_api_url=simulator.url,
        api_key="any",
        default_headers=session,
    )
    with pytest.raises(AnthropicContextOverflowError, match="tokens > 200000 maximum"):
        small.invoke("x" * 600_000)


def test_chat_anthropic_asynchronously(chat):
    async def run():
        marked = [HumanMessage(content=[text(LONG, "5m")])]
        bound = chat.bind_tools([TOOL])
        first = await bound.ainvoke(marked)
        chunks = [chunk async for chunk in bound.astream(marked)]
        await chat._async_client.close()
        return first, chunks

    first, chunks = asyncio.run(run())
    check_chat(first, read=0, written=LONG_AND_TOOL_TOKENS, split=True)
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    check_chat(whole, read=LONG_AND_TOOL_TOKENS, written=0, split=False)
