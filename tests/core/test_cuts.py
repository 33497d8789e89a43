import pytest

from barograph.core.cuts import Pairing, last_calls
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.surface import Entry


def said(role="user"):
    return Entry(0, role, (Text("x"),))


def asked(*ids):
    return Entry(0, "assistant", tuple(ToolCall(i, "look", "{}") for i in ids))


def answered(*ids):
    return Entry(0, "tool", tuple(ToolResult(i, ()) for i in ids))


GROUP = [said(), asked("a", "b"), answered("a"), answered("b"), said("assistant"), said()]


def test_a_tool_group_is_cut_only_at_its_ends():
    assert Pairing().cuts(GROUP) == [0, 1, 4, 5, 6]


def test_an_open_call_leaves_no_legal_cut_after_it():
    assert Pairing().cuts([said(), asked("a"), said()]) == [0, 1]


def test_a_paired_history_has_no_fault():
    assert Pairing().faults(GROUP) == []
    assert Pairing().faults([]) == []


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([asked("a")], "at the end: no result for a"),
        ([asked("a"), said()], "entry 1: no result for a"),
        ([asked("a", "b"), answered("a"), said(), answered("b")], "entry 2: no result for b"),
        ([answered("a")], "entry 0: a result for a, which was not called"),
        ([asked("a"), answered("a"), answered("a")], "entry 2: a result for a, which was"),
        ([asked("a"), asked("b"), answered("b")], "entry 1: no result for a"),
    ],
)
def test_each_broken_pair_is_named(entries, fault):
    assert Pairing().faults(entries)[0].startswith(fault)


def test_the_calls_that_matter_are_those_of_the_last_assistant_entry():
    assert last_calls([]) == last_calls([said()]) == ((), ())
    assert last_calls(GROUP[:2]) == (("a", "b"), ())
    assert last_calls(GROUP[:3]) == (("b",), ("a",))
    assert last_calls([*GROUP[:4], said()]) == ((), ("a", "b"))
    assert last_calls(GROUP) == ((), ())
