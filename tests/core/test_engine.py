"""The machine, input by input; and the nastiest histories, each as a sentence."""

import itertools

import pytest
from histories import MODEL, Call, Edit, Fork, Reconfigure, Restart, Rewind, Say, Trip, Work, travel

from barograph.core.engine import TRANSITIONS, Append, Engine, Send
from barograph.core.errors import SurfaceError
from barograph.core.events import (
    CallFailed,
    HeaderSet,
    MessageLeftOut,
    MessageSeen,
    Replaced,
    ResponseCame,
    SessionOpened,
    ToolEnded,
    TurnBegan,
    TurnEnded,
)
from barograph.core.ingest import Incoming
from barograph.core.inputs import (
    Answered,
    BodyLeft,
    CallWanted,
    Header,
    Refused,
    SessionStarted,
    ToolReturned,
    ToolStarted,
)
from barograph.core.parts import Opaque, Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.state import State
from barograph.core.texts import NO_RESULT, NOT_STARTED, OUTCOME_UNKNOWN, failed
from barograph.providers.anthropic.codec import AnthropicCodec

HEADER = Header(model=MODEL)
REPAIR = (Text(NO_RESULT),)


def user(text, native_id=None):
    return Incoming("user", (Text(text),), native_id)


def said(*texts):
    return Incoming("assistant", tuple(map(Text, texts)))


def asked(*ids):
    return Incoming("assistant", tuple(ToolCall(i, "look", "{}") for i in ids))


def result(call, text="r"):
    return Incoming("tool", (ToolResult(call, (Text(text),)),))


class Machine:
    """An engine and its state, stepped by hand."""

    def __init__(self):
        self.engine = Engine(AnthropicCodec(), Policy())
        self.state = State()
        self.events = []

    def give(self, given):
        self.state, effects = self.engine.step(self.state, given)
        new = [event for e in effects if isinstance(e, Append) for event in e.events]
        self.events += new
        return new, [effect for effect in effects if isinstance(effect, Send)]

    def want(self, *messages, known=0):
        wanted = CallWanted(at=1.0, path="main", header=HEADER, messages=messages, known=known)
        return self.give(wanted)[0]

    def leave(self):
        body = b'{"model":"m","messages":[]}'
        left = BodyLeft(at=1.0, path="main", header=HEADER, body=body, observed=True)
        return self.give(left)[0]

    def answer(self, *parts):
        return self.give(
            Answered(at=2.0, path="main", parts=parts, stop_reason="end_turn", usage=None)
        )[0]

    def refuse(self):
        return self.give(Refused(at=2.0, path="main", error="E", status=529, message="m"))[0]

    def returned(self, call, text):
        parts = (ToolResult(call, (Text(text),)),)
        return self.give(
            ToolReturned(
                at=1.5, path="main", call_id=call, name="look", parts=parts, is_error=False
            )
        )[0]

    @property
    def texts(self):
        """What the surface says, a word for each entry."""
        return [
            _word(entry.parts[0]) + ("" if len(entry.parts) == 1 else "+")
            for entry in self.state.surface("main").entries
        ]


def _word(part):
    if isinstance(part, ToolResult):
        return f"{part.call_id}={'repair' if part.content == REPAIR else part.content[0].text}"
    return f"call {part.id}" if isinstance(part, ToolCall) else part.text


def kinds(events):
    return [type(event).__name__ for event in events]


# Phases

PHASES = {
    "idle": [],
    "planned": [Machine.want],
    "sent": [Machine.want, Machine.leave],
}
INPUTS = {
    CallWanted: Machine.want,
    BodyLeft: Machine.leave,
    Answered: Machine.answer,
    Refused: Machine.refuse,
}


@pytest.mark.parametrize(("phase", "kind"), list(itertools.product(PHASES, INPUTS)))
def test_an_input_is_taken_in_exactly_the_phases_of_the_table(phase, kind):
    machine = Machine()
    for step in PHASES[phase]:
        step(machine)
    assert machine.state.path("main").phase == phase
    before = machine.state
    if (phase, kind) in TRANSITIONS:
        INPUTS[kind](machine)
        assert machine.state.path("main").phase == TRANSITIONS[phase, kind]
    else:
        with pytest.raises(SurfaceError) as caught:
            INPUTS[kind](machine)
        assert caught.value.ids == {"path": "main", "phase": phase}
        assert machine.state == before


def test_a_session_opens_with_who_wrote_it_and_in_which_form():
    opened, _ = Machine().give(SessionStarted(at=3.0, session="s", made_by="test 1"))
    assert opened == [
        SessionOpened(
            at=3.0, session="s", made_by="test 1", policy="balanced", renderer="anthropic/1"
        )
    ]


def test_tools_may_run_in_any_phase():
    machine = Machine()
    started = ToolStarted(at=1.0, path="main", call_id="a", name="look", arguments="{}")
    assert kinds(machine.give(started)[0]) == ["ToolBegan"]
    assert kinds(machine.returned("a", "r")) == ["ToolEnded"]


def test_a_call_is_logged_before_it_is_sent():
    machine = Machine()
    events, (send,) = machine.give(
        CallWanted(at=1.0, path="main", header=HEADER, messages=(user("a"),))
    )
    assert kinds(events) == ["TurnBegan", "MessageSeen", "CallPlanned"]
    assert (send.plan.call, send.seen, send.breakpoints) == (1, 1, events[-1].breakpoints)
    assert send.surface == machine.state.surface("main")


def test_a_turn_ends_with_the_answer_that_calls_no_tool():
    machine = Machine()
    machine.want(user("a"))
    assert kinds(machine.answer(ToolCall("x", "look", "{}"))) == ["ResponseCame"]
    machine.want(user("a"), asked("x"), result("x"))
    events = machine.answer(Text("done"))
    assert events[1] == TurnEnded(at=2.0, path="main", turn=1, rounds=2)


def test_a_failed_call_is_logged_and_its_history_asked_for_again_as_another_call():
    machine = Machine()
    machine.want(user("a"))
    assert machine.refuse() == [
        CallFailed(at=2.0, path="main", call=1, error="E", status=529, message="m")
    ]
    assert kinds(machine.want(user("a"))) == ["CallPlanned"]
    assert machine.events[-1].call == 2


# What is stored once


def test_an_answer_that_comes_back_is_stored_once_whatever_its_spelling():
    machine = Machine()
    machine.want(user("a"))
    machine.answer(ToolCall("x", "look", '{"f": 1e-7}'))
    respelled = Incoming("assistant", (ToolCall("x", "look", '{"f":1e-07}'),))
    seen = machine.want(user("a"), respelled)[0]
    assert (seen.same_as, seen.parts) == (4, ())
    assert machine.state.surface("main").entries[1].parts[0].arguments == '{"f": 1e-7}'


def test_a_result_that_comes_back_changed_is_stored_as_it_came_back():
    machine = Machine()
    machine.want(user("a"))
    machine.answer(ToolCall("x", "look", "{}"), ToolCall("y", "look", "{}"))
    machine.returned("x", "kept")
    machine.returned("y", "long")
    seen = machine.want(user("a"), asked("x", "y"), result("x", "kept"), result("y", "short"))
    assert [(e.same_as is not None, bool(e.parts)) for e in seen[1:3]] == [
        (True, False),
        (False, True),
    ]
    assert machine.texts[2:] == ["x=kept", "y=short"]


def test_text_that_utf8_cannot_carry_is_logged_as_text_that_it_can():
    trip = travel([Say("main", ("\ud83d",)), Call("main", arguments=("{}",), texts=("\udcff",))])
    trip.play([Work("main", ("plain",), text="file \udcff")])
    ended = [event for _, event in trip.events() if isinstance(event, ToolEnded)]
    assert ended[0].parts[0].content == (Text("file \ufffd"),)
    trip.play([Call("main")])
    assert trip.calls[-1].events[1].same_as is not None


# What closes a call that nobody answered, by what the log knows of it


def closed(kind, *more):
    moves = [Say("main", ("a",)), Call("main", arguments=("{}",)), Work("main", (kind,), "r")]
    trip = travel([*moves, Say("main", ("b",)), Call("main", outcome="refuse"), *more])
    return trip.calls[-1].send.surface.entries[2].parts[0].content


@pytest.mark.parametrize(
    "more",
    [
        (),
        (Restart(), Call("main")),
        (Edit("main", 2, "B", later_stay=True), Call("main")),
    ],
    ids=["at once", "after a restart", "asked for again in another way"],
)
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("crashes", OUTCOME_UNKNOWN),
        ("vanishes", "r"),
        ("fails", failed("OSError")),
        ("babbles", NO_RESULT),
        ("strays", NO_RESULT),
        ("missing", NO_RESULT),
    ],
)
def test_a_repair_says_what_the_log_knows_of_its_call(kind, content, more):
    assert closed(kind, *more) == (Text(content),)


def test_a_call_whose_tool_never_began_had_no_effect_where_tools_are_logged():
    trip = travel([Say("main", ("a",)), Call("main", arguments=("{}",)), Work("main", ("plain",))])
    trip.play([Call("main", arguments=("{}", "{}")), Work("main", ("plain", "missing"))])
    trip.play([Call("main")])
    last = trip.calls[-1].send.surface.entries[-1].parts[0]
    assert last.content == (Text(NOT_STARTED),)


def test_what_an_older_response_asked_for_is_not_judged_by_the_last_one():
    trip = travel([Say("main", ("a",)), Call("main", arguments=("{}",)), Work("main", ("plain",))])
    trip.play([Call("main", arguments=("{}",)), Rewind("main", 4), Call("main")])
    assert trip.calls[-1].send.surface.entries[-1].parts[0].content == (Text(NO_RESULT),)


# Histories that depart


def test_an_empty_history_is_a_call_without_messages():
    machine = Machine()
    assert kinds(machine.want()) == ["CallPlanned"]
    machine.want(user("a"))
    assert kinds(machine.want()) == ["Replaced", "CallPlanned"]
    assert machine.texts == []


def test_a_shorter_history_is_a_rewind_that_cites_all_it_hides():
    machine = Machine()
    machine.want(user("a"), said("b"), user("c"))
    replaced = machine.want(user("a"))[0]
    assert (replaced.cause, replaced.planned, replaced.recognised) == ("rewound", False, 1)
    assert replaced.shadows == (3, 4)
    assert machine.texts == ["a"]


def test_an_edited_message_is_told_by_its_id_and_later_ones_are_shown_anew():
    machine = Machine()
    machine.want(user("a", "1"), user("b", "2"), user("c", "3"))
    events = machine.want(user("a", "1"), user("B", "2"), user("c", "3"))
    assert (events[0].cause, events[0].recognised) == ("edited", 1)
    assert kinds(events) == ["Replaced", "TurnBegan", "MessageSeen", "MessageSeen", "CallPlanned"]
    assert machine.texts == ["a", "B", "c"]


def test_the_same_text_said_twice_is_two_messages():
    machine = Machine()
    machine.want(user("go"), said("no"), user("go"))
    assert machine.texts == ["go", "no", "go"]
    replaced = machine.want(user("go"), user("go"))[0]
    assert replaced.recognised == 1
    assert machine.texts == ["go", "go"]


def test_known_messages_need_not_be_shown_again():
    machine = Machine()
    machine.want(user("a"), said("b"))
    assert kinds(machine.want(user("c"), known=2)) == ["TurnBegan", "MessageSeen", "CallPlanned"]
    assert machine.texts == ["a", "b", "c"]


def test_a_known_prefix_may_be_followed_by_a_departure():
    machine = Machine()
    machine.want(user("a"), said("b"), user("c"))
    replaced = machine.want(user("d"), known=2)[0]
    assert (replaced.shadows, replaced.recognised) == ((4,), 2)
    assert machine.texts == ["a", "b", "d"]
    assert machine.want(known=1)[0].shadows == (3, 8)


def test_more_cannot_be_known_than_was_seen():
    machine = Machine()
    machine.want(user("a"))
    before = machine.state
    with pytest.raises(SurfaceError, match="2 units are vouched for"):
        machine.want(known=2)
    assert machine.state == before


def test_a_cut_in_the_middle_of_a_tool_group_is_closed():
    machine = Machine()
    group = asked("x", "y"), result("x"), result("y")
    machine.want(user("a"), *group, said("b"))
    machine.want(user("a"), *group[:2])
    assert machine.texts == ["a", "call x+", "x=r", "y=repair"]
    machine.want(user("a"), *group[:1])
    assert machine.texts == ["a", "call x+", "x=repair", "y=repair"]


def test_a_result_that_arrives_where_it_belongs_replaces_the_repair():
    machine = Machine()
    machine.want(user("a"), asked("x"), user("b"))
    assert machine.texts == ["a", "call x", "x=repair", "b"]
    machine.want(user("a"), asked("x"), result("x", "late"), user("b"))
    assert machine.texts == ["a", "call x", "x=late", "b"]


@pytest.mark.parametrize("known", [0, 2])
def test_a_result_that_arrives_after_a_repair_at_the_end_takes_its_place(known):
    machine = Machine()
    machine.want(user("a"), asked("x", "y"))
    assert machine.texts == ["a", "call x+", "x=repair", "y=repair"]
    history = user("a"), asked("x", "y"), result("y", "late")
    replaced = machine.want(*history[known:], known=known)[0]
    assert (replaced.cause, replaced.shadows, replaced.recognised) == ("answered", (4, 5), 2)
    assert machine.texts == ["a", "call x+", "y=late", "x=repair"]


def test_a_result_that_arrives_after_more_was_said_is_left_out():
    machine = Machine()
    machine.want(user("a"), asked("x"), user("b"))
    events = machine.want(result("x", "late"), known=3)
    assert isinstance(events[0], MessageLeftOut)
    assert machine.texts == ["a", "call x", "x=repair", "b"]


def test_a_repair_stays_where_nothing_answers_it():
    machine = Machine()
    machine.want(user("a"), asked("x"))
    assert kinds(machine.want(user("a"), asked("x"), user("b"))) == [
        "TurnBegan",
        "MessageSeen",
        "CallPlanned",
    ]


def test_a_second_result_is_left_out_in_a_later_call_too():
    machine = Machine()
    machine.want(user("a"), asked("x"), result("x"))
    assert machine.want(result("x"), known=3)[0].reason == "second_result"
    assert machine.want(result("z"), known=4)[0].reason == "orphan_result"


def test_one_id_called_twice_in_a_message_is_one_call():
    machine = Machine()
    machine.want(user("a"), asked("x", "x"), result("x", "1"), result("x", "2"))
    assert machine.texts == ["a", "call x", "x=1"]


def test_a_call_that_we_carry_without_understanding_keeps_its_result():
    programmatic = Opaque("tool_use", '{"type":"tool_use","id":"p","caller":{"type":"code"}}')
    machine = Machine()
    machine.want(user("a"), Incoming("assistant", (programmatic,)), result("p"))
    assert [e.role for e in machine.state.surface("main").entries] == ["user", "assistant", "tool"]


def test_an_empty_message_changes_nothing_that_is_sent():
    machine = Machine()
    machine.want(user("a"), asked("x"), said(" "), result("x"), user(""), said("b"), user("c"))
    assert machine.texts == ["a", "call x", "x=r", "b", "c"]
    assert len([e for e in machine.events if isinstance(e, MessageLeftOut)]) == 2


# A final assistant message


def test_a_prefill_is_stripped_and_still_recognised_when_it_goes_on():
    machine = Machine()
    machine.want(user("a"), said("Dear \n"))
    assert machine.texts == ["a", "Dear"]
    events = machine.want(user("a"), said("Dear \n"), said("Sir"), user("b"))
    assert not [event for event in events if isinstance(event, Replaced)]
    assert machine.texts == ["a", "Dear", "Sir", "b"]


def test_an_answer_of_the_model_is_stripped_too_where_it_ends_the_request():
    machine = Machine()
    machine.want(user("a"))
    machine.answer(Text("Dear "))
    machine.want(user("a"), said("Dear "))
    assert machine.texts == ["a", "Dear"]


def test_an_answer_that_does_not_end_the_request_is_left_as_it_was():
    machine = Machine()
    machine.want(user("a"))
    machine.answer(Text("Dear "))
    assert machine.want(user("a"), said("Dear"), user("b"))[1].same_as is not None
    assert machine.texts == ["a", "Dear ", "b"]


@pytest.mark.parametrize("last", [user(""), said(""), result("nobody")])
def test_a_prefill_is_stripped_though_something_that_is_left_out_follows(last):
    machine = Machine()
    machine.want(user("a"), said("Dear "), last)
    assert machine.texts == ["a", "Dear"]


# The header


def test_a_header_change_and_a_rewind_may_come_in_one_call():
    trip = travel([Say("main", ("a",)), Call("main"), Say("main", ("b",)), Call("main")])
    trip.play([Rewind("main", 1), Reconfigure("main", "system", 1)])
    trip.play([Say("main", ("A",)), Call("main")])
    events = [event for _, event in trip.events()]
    assert [e.cause for e in events if isinstance(e, Replaced)] == ["rewound"]
    assert [e.changed for e in events if isinstance(e, HeaderSet)][1:] == [("system",)]


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("system", ("system",)),
        ("tools", ("tools",)),
        ("model", ("model", "parameters")),
        ("parameters", ("parameters",)),
    ],
)
def test_what_changed_in_a_header_is_named(what, changed):
    trip = travel([Say("main", ("a",)), Call("main"), Reconfigure("main", what, 1), Call("main")])
    headers = [event for _, event in trip.events() if isinstance(event, HeaderSet)]
    assert [header.changed for header in headers] == [
        ("model", "system", "tools", "parameters"),
        changed,
    ]


def test_another_system_reads_nothing_and_the_old_one_reads_its_own_again():
    trip = travel([Say("main", ("a " * 3000,)), Call("main")])
    trip.play([Reconfigure("main", "system", 1), Call("main")])
    trip.play([Reconfigure("main", "system", 0), Call("main")])
    expected = [m.planned.path("main").planned.expected_read_tokens for m in trip.calls]
    assert [tokens is not None for tokens in expected] == [False, False, True]


def test_another_model_expects_nothing():
    trip = travel([Say("main", ("a",)), Call("main"), Reconfigure("main", "model", 1)])
    trip.play([Call("main")])
    assert trip.session.state.path("main").planned.expected_read_tokens is None


# Several paths, forks


def test_paths_share_the_log_and_nothing_else():
    trip = travel([Say("main", ("a",)), Call("main"), Say("main/helper#1", ("b",))])
    trip.play([Call("main/helper#1"), Say("main", ("c",)), Call("main")])
    paths = [(event.path, event.turn) for _, event in trip.events() if isinstance(event, TurnBegan)]
    assert paths == [("main", 1), ("main/helper#1", 1), ("main", 2)]
    assert [entry.parts[0].text for entry in trip.calls[-1].send.surface.entries] == [
        "a",
        "ok",
        "c",
    ]


def test_going_back_and_forth_between_branches_keeps_every_answer():
    trip = Trip().play([Say("main", ("a",)), Call("main"), Say("main", ("b",)), Call("main")])
    trip.play([Rewind("main", 4), Say("main", ("B",)), Call("main", texts=("other",))])
    trip.play([Fork("main", 2), Call("main"), Fork("main", 2), Call("main")])
    answers = [event for _, event in trip.events() if isinstance(event, ResponseCame)]
    assert len(answers) == 5
    assert [e.cause for _, e in trip.events() if isinstance(e, Replaced)] == ["rewound"] * 3
    seen = [event for _, event in trip.events() if isinstance(event, MessageSeen)]
    assert {event.origin for event in seen} == {"caller", "model"}
