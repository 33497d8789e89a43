from barograph.core.ingest import Incoming, matching, rule, unit_key, units_of
from barograph.core.parts import Text, Thinking, ToolCall, ToolResult
from barograph.core.texts import NO_RESULT
from barograph.providers.anthropic.codec import AnthropicCodec

CODEC = AnthropicCodec()


def user(*texts):
    return Incoming("user", tuple(map(Text, texts)))


def asked(*ids, arguments="{}"):
    return Incoming("assistant", tuple(ToolCall(i, "look", arguments) for i in ids))


def result(*ids, text="r"):
    return Incoming("tool", tuple(ToolResult(i, (Text(text),)) for i in ids))


def verdicts(*messages, still_open=(), closed=()):
    return [
        (ruling.verdict, *(getattr(part, "call_id", "") for part in ruling.parts[:1]))
        for ruling in rule(units_of(CODEC, messages), still_open, closed)
    ]


def keys(*messages):
    return [unit.key for unit in units_of(CODEC, messages)]


def test_results_come_before_what_the_user_says_among_them():
    units = units_of(CODEC, [asked("a", "b"), result("a"), user("x"), result("b"), user("y")])
    assert [unit.role for unit in units] == ["assistant", "tool", "tool", "user", "user"]


def test_a_message_of_several_results_becomes_one_unit_each():
    mixed = Incoming("user", (Text("x"), ToolResult("a", ()), ToolResult("b", ())))
    assert [unit.role for unit in units_of(CODEC, [mixed])] == ["tool", "tool", "user"]


def test_an_empty_user_message_is_a_unit_that_is_left_out():
    assert verdicts(user(""), user("x")) == [("no_content",), ("enter", "")]


def test_an_empty_tool_message_is_nothing():
    assert verdicts(Incoming("tool", ())) == []


def test_arguments_are_recognised_however_they_are_spelled():
    assert keys(asked("a", arguments='{"x": 1e-7}')) == keys(asked("a", arguments='{"x":1e-07}'))
    assert keys(asked("a", arguments='{"x":1,"y":2}')) != keys(
        asked("a", arguments='{"y":2,"x":1}')
    )


def test_an_assistant_text_is_recognised_without_its_trailing_white_space():
    assert unit_key("assistant", (Text("a \n"),)) == unit_key("assistant", (Text("a"),))
    assert unit_key("user", (Text("a \n"),)) != unit_key("user", (Text("a"),))
    assert unit_key("assistant", (Text("a "), Text("b"))) != (
        unit_key("assistant", (Text("a"), Text("b")))
    )


def test_who_speaks_is_part_of_what_is_said():
    assert unit_key("user", (Text("a"),)) != unit_key("assistant", (Text("a"),))
    assert unit_key("assistant", (Text("a"),)) != unit_key("assistant", (Thinking("a"),))


def test_matching_counts_leading_units_and_stops_at_the_first_that_differs():
    units = units_of(CODEC, [user("a"), user("a"), user("b")])
    known = [unit.key for unit in units]
    assert matching(known, units) == 3
    assert matching([known[0], known[2]], units) == 1
    assert matching([], units) == matching(known, []) == 0


def test_an_unanswered_call_is_closed_before_the_next_speaker():
    rulings = list(rule(units_of(CODEC, [asked("a", "b"), result("a"), user("x")]), ()))
    assert [ruling.verdict for ruling in rulings] == ["enter", "enter", "repair", "enter"]
    assert rulings[2].parts == (ToolResult("b", (Text(NO_RESULT),), is_error=True),)


def test_calls_left_open_at_the_end_are_closed_in_their_order():
    assert verdicts(asked("b", "a")) == [("enter", ""), ("repair", "b"), ("repair", "a")]


def test_calls_that_the_surface_left_open_are_closed_or_answered():
    assert verdicts(result("a"), still_open=("a", "b")) == [("enter", "a"), ("repair", "b")]


def test_results_nobody_asked_for_and_second_ones_are_told_apart():
    assert verdicts(asked("a"), result("a"), result("a"), result("z")) == [
        ("enter", ""),
        ("enter", "a"),
        ("second_result", "a"),
        ("orphan_result", "z"),
    ]
    assert verdicts(result("a"), closed=("a",)) == [("second_result", "a")]


def test_a_result_after_other_speech_is_an_orphan():
    assert verdicts(asked("a"), result("a"), asked("b"), result("b"), result("a"))[-1] == (
        "orphan_result",
        "a",
    )


def test_an_empty_assistant_message_closes_no_call():
    assert verdicts(asked("a"), Incoming("assistant", (Text(" "),)), result("a")) == [
        ("enter", ""),
        ("no_content",),
        ("enter", "a"),
    ]


def test_one_id_called_twice_wants_one_result():
    assert verdicts(asked("a", "a"), result("a"), result("a")) == [
        ("enter", ""),
        ("enter", "a"),
        ("second_result", "a"),
    ]
