import msgspec

from barograph.core.events import Usage
from barograph.simulator.wire import message_json, stream_of

USAGE = Usage(
    read_tokens=100, write_1h_tokens=20, write_5m_tokens=3, uncached_tokens=4, output_tokens=50
)
CONTENT = [
    {"type": "thinking", "thinking": "t" * 1500, "signature": "sig"},
    {"type": "text", "text": "é" * 2500},
    {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": "x" * 1100}},
    {"type": "redacted_thinking", "data": "d"},
]


def message(content=CONTENT):
    return message_json(
        message_id="msg_1",
        model="m",
        content=content,
        stop_reason="tool_use",
        usage=USAGE,
    )


def events(body):
    for event in stream_of(body):
        name, data, *rest = event.decode().split("\n")
        assert rest == ["", ""]
        decoded = msgspec.json.decode(data.removeprefix("data: "))
        assert decoded["type"] == name.removeprefix("event: ")
        yield decoded


def test_the_usage_of_a_message_has_the_four_parts_and_the_split_by_ttl():
    assert msgspec.json.decode(message())["usage"] == {
        "input_tokens": 4,
        "cache_creation_input_tokens": 23,
        "cache_read_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 50,
        "service_tier": "standard",
    }


def test_the_events_come_in_the_documented_order():
    names = [event["type"] for event in events(message([{"type": "text", "text": "a"}]))]
    assert names == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_the_first_event_has_the_input_side_of_the_usage_with_the_split():
    start = next(events(message()))["message"]
    assert (start["content"], start["stop_reason"]) == ([], None)
    assert start["usage"]["cache_creation"]["ephemeral_1h_input_tokens"] == 20
    assert start["usage"]["input_tokens"] == 4
    assert start["usage"]["output_tokens"] == 1


def test_the_closing_usage_is_cumulative_and_has_no_split():
    delta = next(event for event in events(message()) if event["type"] == "message_delta")
    assert delta["delta"]["stop_reason"] == "tool_use"
    assert delta["usage"] == {
        "input_tokens": 4,
        "cache_creation_input_tokens": 23,
        "cache_read_input_tokens": 100,
        "output_tokens": 50,
    }


def test_the_deltas_put_together_are_the_content():
    blocks = []
    for event in events(message()):
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"] | {"json": ""})
        delta = event.get("delta", {})
        if delta.get("type") == "input_json_delta":
            blocks[-1]["json"] += delta["partial_json"]
        for name in ("text", "thinking", "signature"):
            if name in delta:
                blocks[-1][name] += delta[name]
    assert blocks[2].pop("json") == msgspec.json.encode(CONTENT[2]["input"]).decode()
    assert blocks[2] == CONTENT[2] | {"input": {}}
    assert [block | {"json": ""} for block in CONTENT[:2]] == blocks[:2]
    assert blocks[3] == CONTENT[3] | {"json": ""}


def test_long_content_comes_in_several_deltas():
    deltas = [event for event in events(message()) if event["type"] == "content_block_delta"]
    assert len(deltas) == 2 + 1 + 3 + 3


def test_arguments_that_are_cut_off_are_streamed_as_they_are():
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": '{"path": "half of'}
    deltas = [e["delta"] for e in events(message([call])) if e["type"] == "content_block_delta"]
    assert "".join(delta["partial_json"] for delta in deltas) == '{"path": "half of'
