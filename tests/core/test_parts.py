import msgspec
import pytest

from barograph.core.parts import (
    Image,
    Opaque,
    Parts,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    calls_in,
    encode_parts,
    results_in,
    texts_in,
)

PARTS = (
    Thinking("why", "sig"),
    Text("said"),
    ToolCall("a", "look", '{"y": 1.0}'),
    ToolResult("b", (Text("seen"), Image('{"type":"image"}')), is_error=True),
    ToolCall("c", "look", "{}"),
    Opaque("search_result", '{"type":"search_result"}'),
)


def test_encoded_parts_have_one_golden_form():
    assert encode_parts(PARTS[1:4]) == (
        b'[{"type":"text","text":"said"},'
        b'{"type":"tool_call","id":"a","name":"look","arguments":"{\\"y\\": 1.0}"},'
        b'{"type":"tool_result","call_id":"b","content":[{"type":"text","text":"seen"},'
        b'{"type":"image","block":"{\\"type\\":\\"image\\"}"}],"is_error":true}]'
    )


def test_encoded_parts_come_back_equal():
    assert msgspec.json.decode(encode_parts(PARTS), type=Parts) == PARTS


def test_calls_and_results_are_listed_in_their_order():
    assert calls_in(PARTS) == ("a", "c")
    assert results_in(PARTS) == ("b",)


def test_a_call_with_more_to_it_than_we_understand_is_a_call():
    programmatic = Opaque("tool_use", '{"type":"tool_use","id":"p","caller":{"type":"code"}}')
    assert calls_in((programmatic,)) == ("p",)


@pytest.mark.parametrize("block", ["", "[]", '"x"', '{"type":"tool_use"}'])
def test_an_unknown_block_without_an_id_is_no_call(block):
    assert calls_in((Opaque("tool_use", block),)) == ()


def test_server_tools_answer_themselves_and_are_no_calls():
    assert calls_in((Opaque("server_tool_use", '{"type":"server_tool_use","id":"s"}'),)) == ()


def test_every_readable_text_is_found_inside_results_too():
    assert list(texts_in(PARTS)) == ["why", "said", '{"y": 1.0}', "seen", "{}"]
