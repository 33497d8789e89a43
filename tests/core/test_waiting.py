"""A call that waits for its answer is not folded, and neither is an answer that nobody has read."""

from histories import Call, Deliver, Say, Trip, Work
from test_compaction import LINES, OFTEN, entries_of, folds_of, rounds

from barograph.core.ingest import Incoming
from barograph.core.parts import Text, ToolResult, calls_in, results_in
from barograph.core.waiting import Waiting

ASKED = [
    Say("main", (LINES * 2,)),
    Call("main", arguments=("{}",), usage="honest"),
    Work("main", ("missing",)),
]
MEANWHILE = [Say("main", ("meanwhile",)), *rounds(60), Call("main", usage="honest")]


def shown(entries):
    """Calls that are there with their results."""
    calls = {call for entry in entries for call in calls_in(entry.parts)}
    return calls & {call for entry in entries for call in results_in(entry.parts)}


def test_a_call_that_waits_stays_shown_while_all_around_it_is_folded():
    trip = Trip(policy=OFTEN).play([*ASKED, *MEANWHILE])
    (waiting,) = trip.session.state.path("main").waiting.unanswered
    assert len(folds_of(trip)) > 1
    assert waiting in shown(entries_of(trip))


def test_its_answer_is_shown_once_and_is_then_history_like_any_other():
    trip = Trip(policy=OFTEN).play([*ASKED, *MEANWHILE])
    (waiting,) = trip.session.state.path("main").waiting.unanswered
    answer = Incoming("tool", (ToolResult(waiting, (Text("approved"),)),), "late")
    trip.sides["main"].held.append((2, answer))
    trip.play([Deliver("main", in_place=True), Say("main", ("go on",)), Call("main")])
    assert waiting in shown(trip.calls[-1].send.surface.entries)
    assert trip.session.state.path("main").waiting == Waiting()

    trip.play([Say("main", ("more",)), *rounds(30), Call("main")])
    assert waiting not in shown(entries_of(trip))
