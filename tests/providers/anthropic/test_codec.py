import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.errors import SchemaTooNew
from barograph.core.parts import Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.registry import codec_named

EXACT, RESPELLED = AnthropicCodec(), AnthropicCodec(respell_arguments=True)
ARGUMENTS = '{"y": 1.0, "f": 1e-7, "big": 12345678901234567890}'
IMAGE = Image('{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}')
TOOLS = '[{"name":"a","input_schema":{"type":"object"}},{"name":"b","input_schema":{}}]'

CONVERSATION = (
    ("user", (Text('caf\u00e9 \u2028 \U0001f600 "\\/\x00\x1b\x7f'), IMAGE)),
    (
        "assistant",
        (
            Thinking("hm", "c2ln"),
            Thinking("unsigned"),
            Text("I look."),
            ToolCall("t1", "look", ARGUMENTS),
            ToolCall("t2", "look", '{ "b":\t1,"a":"\\u00e9" }'),
        ),
    ),
    (
        "tool",
        (
            ToolResult("t1", (Text("seen"), IMAGE)),
            ToolResult("t2", (), is_error=True),
            Text("and?"),
        ),
    ),
)
HEAD = (
    '{"model":"m","max_tokens":10,"system":[{"type":"text","text":"s",'
    '"cache_control":{"type":"ephemeral","ttl":"1h"}}],'
    '"tools":[{"name":"a","input_schema":{"type":"object"}},'
    '{"name":"b","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}],'
    '"messages":['
    '{"role":"user","content":[{"type":"text","text":'
    '"caf\u00e9 \u2028 \U0001f600 \\"\\\\/\\u0000\\u001b\x7f"},'
    '{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]},'
    '{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},'
    '{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"I look."},'
)
CALLS = (
    '{"type":"tool_use","name":"look","input":{"y": 1.0, "f": 1e-7, '
    '"big": 12345678901234567890},"id":"t1"},'
    '{"type":"tool_use","name":"look","input":{ "b":\t1,"a":"\\u00e9" },"id":"t2"}]},'
)
RESPELLED_CALLS = (
    '{"type":"tool_use","name":"look","input":{"y":1.0,"f":1e-07,'
    '"big":12345678901234567890},"id":"t1"},'
    '{"type":"tool_use","name":"look","input":{"b":1,"a":"\u00e9"},"id":"t2"}]},'
)
TAIL = (
    '{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"seen"},'
    '{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}],'
    '"tool_use_id":"t1","is_error":false},'
    '{"type":"tool_result","content":[],"tool_use_id":"t2","is_error":true},'
    '{"type":"text","text":"and?","cache_control":{"type":"ephemeral","ttl":"5m"}}]}]}'
)
# A log refers to these bytes by the renderer's name: whoever changes them must change the name.
GOLDEN = {
    "anthropic/1": HEAD + CALLS + TAIL,
    "anthropic-respelled/1": HEAD + RESPELLED_CALLS + TAIL,
}


def body_of(codec):
    last = len(CONVERSATION) - 1
    messages = [
        codec.render_message(
            role, [codec.block(part).text for part in parts], {2: "5m"} if i == last else {}
        )
        for i, (role, parts) in enumerate(CONVERSATION)
    ]
    system = codec.render_system((Text("s"),), {0: "1h"})
    tools = codec.render_tools(TOOLS, {1: "1h"})
    return (
        b'{"model":"m","max_tokens":10,"system":' + system + b',"tools":' + tools
        + b',"messages":[' + b",".join(messages) + b"]}"
    )  # fmt: skip


@pytest.mark.parametrize("codec", [EXACT, RESPELLED], ids=lambda codec: codec.renderer)
def test_a_whole_body_has_its_golden_bytes(codec):
    assert body_of(codec).decode() == GOLDEN[codec.renderer]


def test_m2_arguments_go_back_exactly_as_they_were_received():
    block = EXACT.block(ToolCall("t", "look", ARGUMENTS)).text
    assert '"input":' + ARGUMENTS + "," in block


@pytest.mark.parametrize(
    ("received", "respelled"),
    [
        (ARGUMENTS, '{"y":1.0,"f":1e-07,"big":12345678901234567890}'),
        ('{"z":1,"a":{"d":1,"c":2}}', '{"z":1,"a":{"d":1,"c":2}}'),
        ('{"s":"\\u00e9\\/\\u2028"}', '{"s":"\u00e9/\u2028"}'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ("{ }", "{}"),
    ],
)
def test_m2_respelled_arguments_are_pythons_and_keep_the_order_of_keys(received, respelled):
    assert f'"input":{respelled},' in RESPELLED.block(ToolCall("t", "look", received)).text
    assert f'"input":{received},' in EXACT.block(ToolCall("t", "look", received)).text


def test_both_renderers_are_found_by_name_and_others_are_refused():
    assert codec_named("anthropic/1").renderer == "anthropic/1"
    assert codec_named("anthropic-respelled/1").renderer == "anthropic-respelled/1"
    with pytest.raises(SchemaTooNew, match="anthropic/2"):
        codec_named("anthropic/2")


@pytest.mark.parametrize(
    ("part", "markable"),
    [
        (Text("x"), True),
        (IMAGE, True),
        (Document('{"type":"document"}'), True),
        (ToolResult("t", ()), True),
        (ToolCall("t", "n", "{}"), False),
        (Thinking("x"), False),
        (Opaque("redacted_thinking", '{"type":"redacted_thinking"}'), False),
    ],
)
def test_only_eligible_blocks_may_carry_a_marker(part, markable):
    assert EXACT.block(part).markable is markable


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_is_written_as_pythons_own_clients_write_it(text):
    by_python = json.dumps(
        {"type": "text", "text": text}, ensure_ascii=False, separators=(",", ":")
    )
    assert EXACT.block(Text(text)).text == by_python


# What may be sent


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003\u2028", "\x1f"])
def test_a_text_of_white_space_is_not_sent(text):
    assert EXACT.sendable((Text(text), Text("x"))) == (Text("x"),)
    assert EXACT.sendable((ToolResult("t", (Text(text),)),)) == (ToolResult("t", ()),)


@pytest.mark.parametrize(
    "arguments",
    [
        "", "null", "[1]", '"x"', "{", '{"x":NaN}', '{"x":1e400}', '{"x":"\\ud83d"}',
        '{"x":"\udcff"}', '{"x":' + "[" * 300 + "]" * 300 + "}",
    ],
)  # fmt: skip
def test_arguments_that_are_no_object_every_reader_understands_are_sent_empty(arguments):
    assert EXACT.sendable((ToolCall("t", "n", arguments),)) == (ToolCall("t", "n", "{}"),)


@pytest.mark.parametrize("arguments", [ARGUMENTS, '{"x":"\\ud83d\\ude00"}', '{"a":1,"a":2}', "{ }"])
def test_arguments_that_are_an_object_are_left_alone(arguments):
    call = ToolCall("t", "n", arguments)
    assert EXACT.sendable((call,)) == (call,)


def test_lone_surrogates_are_cleaned_wherever_they_are():
    lone, clean = "a\ud83d", "a\ufffd"
    parts = (
        Text(lone), Thinking(lone, lone), ToolCall(lone, lone, "{}"), Image(lone),
        Opaque("x", lone), ToolResult(lone, (Text(lone), Document(lone))),
    )  # fmt: skip
    assert EXACT.sendable(parts) == (
        Text(clean), Thinking(clean, clean), ToolCall(clean, clean, "{}"), Image(clean),
        Opaque("x", clean), ToolResult(clean, (Text(clean), Document(clean))),
    )  # fmt: skip


def test_a_second_call_of_the_same_id_in_a_message_is_not_sent():
    first, second = ToolCall("t", "a", "{}"), ToolCall("t", "b", "{}")
    assert EXACT.sendable((first, Text("x"), second)) == (first, Text("x"))
    copied = Opaque("tool_use", '{"type":"tool_use","id":"t","caller":{}}')
    assert EXACT.sendable((first, copied)) == (first,)


def test_only_the_last_text_of_a_prefill_loses_its_trailing_white_space():
    parts = (Text("a "), Text("b \u2028\n"))
    assert EXACT.sendable(parts, prefill=True) == (Text("a "), Text("b"))
    assert EXACT.sendable(parts) == parts
    call = (Text("a "), ToolCall("t", "n", "{}"))
    assert EXACT.sendable(call, prefill=True) == call
    assert EXACT.sendable((), prefill=True) == ()


parts = st.lists(
    st.one_of(
        st.builds(Text, st.text()),
        st.builds(Thinking, st.text(), st.none() | st.text()),
        st.builds(ToolCall, st.text(max_size=2), st.text(), st.text() | st.just(ARGUMENTS)),
        st.builds(ToolResult, st.text(), st.lists(st.builds(Text, st.text())).map(tuple)),
    )
).map(tuple)


@given(parts, st.booleans())
def test_what_is_sendable_is_sendable_again_unchanged_and_renders(parts, prefill):
    once = EXACT.sendable(parts, prefill=prefill)
    assert EXACT.sendable(once, prefill=prefill) == once
    for part in once:
        for codec in (EXACT, RESPELLED):
            assert isinstance(json.loads(codec.block(part).text), dict)


# Bodies


@pytest.mark.parametrize("codec", [EXACT, RESPELLED], ids=lambda codec: codec.renderer)
@pytest.mark.parametrize("name", GOLDEN)
def test_a_body_comes_apart_and_together_byte_for_byte(codec, name):
    body = GOLDEN[name].encode()
    apart = codec.split_body(body)
    assert codec.join_body(apart) == body
    assert apart.order == ("model", "max_tokens", "system", "tools", "messages")
    assert apart.parameters == b'{"model":"m","max_tokens":10}'
    assert len(apart.messages) == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4
)


@given(
    st.dictionaries(st.text(max_size=4) | st.sampled_from(("system", "tools")), json_values),
    st.lists(json_values),
    st.booleans(),
    st.booleans(),
)
def test_any_compact_body_is_given_back_or_refused(fields, messages, last, ascii_only):
    fields = fields | {"messages": messages} if last else {"messages": messages} | fields
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=ascii_only)
    body = body.encode("utf-8", "surrogatepass")
    apart = EXACT.split_body(body)
    assert apart is None or EXACT.join_body(apart) == body
    if apart is None:
        # an escaped key, or text that is no UTF-8
        assert ascii_only or b"\\" in body or b"\xed" in body


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b"{}", b'{"messages":{}}', b'{"messages":[]} ', b'{"messages": []}',
        b'{"messages":[],"messages":[]}', b'{"messages":[ ]}', b'{"messages":[],"x":"\xff"}',
        b'{"messages":[' + b"[" * 5000 + b"]" * 5000 + b"]}",
    ],
    ids=lambda body: body[:24],
)  # fmt: skip
def test_a_body_that_would_not_come_back_is_not_taken_apart(body):
    apart = EXACT.split_body(body)
    assert apart is None or EXACT.join_body(apart) == body


def test_pieces_keep_the_bytes_they_were_sent_in():
    body = b'{"messages":[{ "a" : 1.0 }],"system":"s","metadata":{ "x":1e-7}}'
    apart = EXACT.split_body(body)
    assert apart.messages == (b'{ "a" : 1.0 }',)
    assert (apart.system, apart.tools) == (b'"s"', None)
    assert apart.parameters == b'{"metadata":{ "x":1e-7}}'


# Tools, and what entries depend on


def test_tools_as_sent_without_markers_are_the_tools_that_were_given():
    marked = EXACT.render_tools(TOOLS, {0: "5m", 1: "1h"})
    assert EXACT.unmarked_tools(marked) == TOOLS
    assert EXACT.unmarked_tools(TOOLS.encode()) == TOOLS


def test_a_property_that_is_called_like_a_marker_stays():
    schema = '{"name":"a","input_schema":{"properties":{"cache_control":{"type":"string"}}}}'
    assert json.loads(EXACT.unmarked_tools(f"[{schema}]".encode())) == [json.loads(schema)]


@pytest.mark.parametrize("nothing", ["", "[]", " [ ] "])
def test_no_tools_and_no_system_are_no_field(nothing):
    assert EXACT.render_tools(nothing, {}) is None
    assert EXACT.render_system((), {}) is None


def scope(model="m", system="s", tools=TOOLS, **parameters):
    return EXACT.scope_of((Text(system),), tools, json.dumps({"model": model} | parameters))


@pytest.mark.parametrize(
    "changes", [{"model": "n"}, {"system": "t"}, {"tools": "[]"}, {"speed": "fast"}]
)
def test_some_changes_invalidate_everything(changes):
    assert scope(**changes).header != scope().header
    assert scope(**changes).messages != scope().messages


@pytest.mark.parametrize(
    "changes",
    [
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"output_config": {"effort": "low"}},
    ],
)
def test_some_changes_invalidate_the_messages_alone(changes):
    assert scope(**changes).header == scope().header
    assert scope(**changes).messages != scope().messages


@pytest.mark.parametrize(
    "changes", [{"max_tokens": 5}, {"metadata": {"user_id": "u"}}, {"stream": True}]
)
def test_other_changes_invalidate_nothing(changes):
    assert scope(**changes) == scope()


def test_where_an_entry_ends_is_not_confused_with_what_it_depends_on():
    both = {json.dumps(s) for s in (scope().header.hex(), scope().messages.hex())}
    assert len(both) == 2
