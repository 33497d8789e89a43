"""What is noted of a message, and of whom it is said to come."""

import json

from barograph.core.notes import Spoken, has_failed, last_plan, rules_in, take_notes
from barograph.core.parts import Image, Text, ToolCall, ToolResult
from barograph.core.texts import DIGEST_CLOSES, DIGEST_OPENS


def call(name, arguments, call_id="t1"):
    return ToolCall(call_id, name, json.dumps(arguments))


def test_what_the_user_lays_down_is_a_rule_word_for_word():
    text = (
        "Please repair the parser.\nNever push to main, even if I ask.\nIMPORTANT: 3 spaces\n"
        "I don't know why it fails.\nMust it be quick?\n```\nnever = 1\n```\n> always quoted\n"
        "Use tabs, and do not reformat."
    )
    assert rules_in(text) == (
        "Never push to main, even if I ask.",
        "IMPORTANT: 3 spaces",
        "Use tabs, and do not reformat.",
    )


def test_of_a_long_line_the_sentence_is_the_rule():
    text = "A word about the past. " * 20 + "You must never touch the vault. " + "And so on. " * 9
    assert rules_in(text) == ("You must never touch the vault.",)


def test_only_the_caller_in_the_role_of_the_user_states_rules():
    said = (Text("You must never stop."),)
    assert take_notes(1, "user", "caller", said)[0].rules == ("You must never stop.",)
    assert take_notes(1, "user", "tool", said) == ()
    assert take_notes(1, "user", "repair", said) == ()
    (answer,) = take_notes(1, "assistant", "model", said)
    assert (answer.kind, answer.rules) == ("answer", ())
    (result,) = take_notes(1, "tool", "tool", (ToolResult("t1", said),))
    assert (result.kind, result.rules) == ("result", ())
    in_wire_form = take_notes(1, "user", "caller", (ToolResult("t1", said), Text("ok")))
    assert [(note.kind, note.rules) for note in in_wire_form] == [("nod", ()), ("result", ())]


def test_a_summary_is_nobodys_speech():
    ours = (Text(f"{DIGEST_OPENS}\nNever stop.\n{DIGEST_CLOSES}"),)
    assert take_notes(1, "user", "caller", ours) == ()
    other = (Text("Here is a summary of the conversation to date:\n\nThe user must never stop."),)
    (recap,) = take_notes(1, "user", "caller", other)
    assert (recap.kind, recap.text, recap.rules) == ("recap", "", ())


def test_a_call_says_what_it_is_about_and_which_plan_it_sets():
    first = take_notes(1, "assistant", "model", (call("edit_file", {"path": "a", "old": "x"}),))[0]
    second = take_notes(2, "assistant", "model", (call("edit_file", {"path": "a", "old": "y"}),))[0]
    other = take_notes(3, "assistant", "model", (call("edit_file", {"path": "b", "old": "x"}),))[0]
    assert first.about == second.about != other.about
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "act", "status": "in_progress"},
        {"step": "check"},
        "rest",
        {},
    ]
    (plan,) = take_notes(1, "assistant", "model", (call("write_todos", {"todos": todos}),))
    assert plan.plan == ("[x] look", "[>] act", "[ ] check", "[ ] rest")
    assert (
        take_notes(1, "assistant", "model", (call("update_plan", {"plan": "none"}),))[0].plan == ()
    )


def test_a_result_fails_by_its_flag_or_where_it_runs_something_by_its_words():
    def failed(tool, text, *, is_error=False):
        parts = (ToolResult("t1", (Text(text),), is_error=is_error),)
        (note,) = take_notes(1, "tool", "tool", parts)
        return has_failed(tool, note)

    assert failed("any", "fine", is_error=True)
    assert failed("write_file", "Error: no such folder")
    assert failed("bash", "make: *** nothing\nexit code: 2")
    assert failed("run_tests", "...\nFAILED (failures=1)")
    assert not failed("bash", "ok\nexit code: 0")
    assert not failed("read_file", "a log:\nTraceback (most recent call last)\nexit code 1")


def test_a_picture_alone_is_not_noted():
    assert take_notes(1, "user", "caller", (Image("{}"),)) == ()


def test_the_last_plan_is_the_newest_that_did_not_fail():
    def said(seq, role, part, origin):
        return Spoken(seq, role, origin, (part,))

    plans = [
        said(n, "assistant", ToolCall(f"c{n}", "update_plan", f'{{"plan":["plan {n}"]}}'), "model")
        for n in range(3)
    ]
    results = [
        said(10, "tool", ToolResult("c2", (Text("no"),), is_error=True), "tool"),
        said(11, "tool", ToolResult("c1", (Text("ok"),)), "tool"),
    ]
    assert last_plan([*results, *reversed(plans)]) == ("[ ] plan 1",)
    assert last_plan(results) == ()
