"""How long a writer needs its session to itself."""

import pytest

from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Header,
    Refused,
    ToolReturned,
    ToolStarted,
)
from barograph.core.parts import Text, ToolCall
from barograph.store.turns import BETWEEN_SECONDS, RUNNING_SECONDS, Turns

HEADER = Header(model="m")


def wanted(path="main"):
    return CallWanted(at=1.0, path=path, header=HEADER, messages=())


def answered(*calls, path="main"):
    parts = tuple(ToolCall(call, "t", "{}") for call in calls) or (Text("done"),)
    return Answered(at=1.0, path=path, parts=parts, stop_reason=None, usage=None)


def began(call, path="main"):
    return ToolStarted(at=1.0, path=path, call_id=call, name="t", arguments="{}")


def ended(call, path="main", error=None):
    return ToolReturned(
        at=1.0, path=path, call_id=call, name="t", parts=(), is_error=False, error=error
    )


def refused(path="main"):
    return Refused(at=1.0, path=path, error="E", status=None, message="m")


LEFT = BodyLeft(at=1.0, path="main", header=HEADER, body=b"{}", observed=True)
NOT, SHORT, LONG = 0.0, BETWEEN_SECONDS, RUNNING_SECONDS


@pytest.mark.parametrize(
    ("inputs", "seconds"),
    [
        ([], NOT),
        ([wanted()], LONG),
        ([wanted(), LEFT], LONG),
        ([wanted(), LEFT, answered()], NOT),
        ([wanted(), LEFT, refused()], NOT),
        ([wanted(), LEFT, answered("a", "b")], SHORT),
        ([wanted(), LEFT, answered("a", "b"), began("a")], LONG),
        ([wanted(), LEFT, answered("a", "b"), began("a"), began("b"), ended("a")], LONG),
        ([wanted(), LEFT, answered("a"), began("a"), ended("a")], SHORT),
        ([began("a")], LONG),
        ([began("a"), ended("a", error="E")], NOT),
        ([began("a"), began("b"), ended("a", error="E")], LONG),
        ([began("a"), began("b"), ended("a", error="E"), ended("b")], NOT),
        (
            [began("a"), began("b"), ended("a", error="E"), began("a"), ended("b"), ended("a")],
            SHORT,
        ),
        ([began("a"), wanted("main/t#1"), answered(path="main/t#1")], LONG),
        ([began("a"), wanted("main/t#1"), refused("main/t#1"), ended("a")], SHORT),
    ],
    ids=str,
)
def test_a_turn_lasts_from_its_first_input_to_its_final_answer_or_error(inputs, seconds):
    turns = Turns()
    for given in inputs:
        turns.follow(given, sent=given.path if isinstance(given, CallWanted) else None)
    assert turns.needed_seconds == seconds


def test_a_refused_call_that_is_sent_once_more_is_still_under_way():
    turns = Turns()
    turns.follow(wanted(), sent="main")
    turns.follow(refused(), sent="main")
    assert turns.needed_seconds == RUNNING_SECONDS


def test_an_interruption_ends_the_turn_when_nothing_else_of_it_runs():
    turns = Turns()
    turns.follow(began("a"), sent=None)
    turns.follow(began("b"), sent=None)
    turns.stop("main", "a")
    assert turns.needed_seconds == RUNNING_SECONDS
    turns.follow(ended("b"), sent=None)
    assert turns.needed_seconds == 0.0
