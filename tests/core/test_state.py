import pytest
from histories import Call, Fork, Restart, Rewind, Say, Work, travel

from barograph.core.events import Usage
from barograph.core.inputs import Answered
from barograph.core.learning import restore
from barograph.core.parts import Text
from barograph.core.state import State


def usage(read=0, written=0, uncached=0):
    return Usage(
        read_tokens=read,
        write_5m_tokens=written,
        write_1h_tokens=0,
        uncached_tokens=uncached,
        output_tokens=1,
    )


def answered(used):
    trip = travel([Say("main", ("hi",)), Call("main", outcome="abandon")])
    trip.session.take(
        Answered(at=trip.at, path="main", parts=(Text("a"),), stop_reason=None, usage=used)
    )
    return trip


def test_an_empty_log_is_an_empty_state():
    assert restore(travel([]).codec, []) == State()
    assert State().path("main").phase == "idle"


def test_the_ratio_is_learned_from_what_was_reported():
    session = answered(usage(uncached=700)).session
    state, codec = session.state, session.engine.codec
    chars = state.path("main").header_chars + codec.weigh(Text("hi"))
    model = state.surface("main").header.model
    assert state.factors[model].tokens_per_char == pytest.approx(700 / chars)


def test_nothing_is_learned_from_silence_or_from_zero():
    assert answered(None).session.state.factors == {}
    assert answered(usage()).session.state.factors == {}


def test_a_response_that_cached_nothing_confirms_nothing():
    assert len(answered(usage(uncached=700)).session.state.path("main").ledger) == 0
    assert len(answered(usage(written=700)).session.state.path("main").ledger) == 2


def test_without_a_report_the_next_call_still_gets_its_anchor():
    trip = answered(None)
    tail = trip.calls[-1].send.breakpoints[-1]
    trip.play([Say("main", ("more",)), Call("main")])
    anchor = next(m for m in trip.calls[-1].send.breakpoints if m.slot == "anchor")
    assert anchor.block == tail.block
    assert trip.session.state.path("main").planned.expected_read_tokens is None


def test_the_life_of_an_entry_runs_from_the_start_of_its_request():
    trip = travel([Say("main", ("hi",)), Call("main", outcome="abandon")])
    trip.session.take(
        Answered(
            at=trip.at + 290,
            path="main",
            parts=(Text("a"),),
            stop_reason=None,
            usage=usage(written=2000),
        )
    )
    assert {w.used_at for w in trip.session.state.path("main").ledger} == {trip.at}


def test_a_rewind_forgets_what_was_seen_after_it_and_nothing_before():
    trip = travel([Say("main", ("a",)), Call("main"), Say("main", ("b",)), Call("main")])
    trip.play([Rewind("main", 6), Call("main")])
    assert len(trip.session.state.path("main").seen) == 3
    assert trip.session.state.path("main").settled <= trip.calls[-1].send.surface.messages


def test_a_rewind_to_before_the_turns_first_call_is_planned_like_any_other():
    trip = travel([Say("main", ("a",)), Call("main"), Say("main", ("b",)), Call("main")])
    trip.play([Rewind("main", 2), Call("main")])
    assert len(trip.calls[-1].send.surface.entries) == 1


def test_an_older_branch_that_comes_back_finds_its_entry_again():
    trip = travel([Say("main", ("a " * 50,)), Call("main"), Say("main", ("b",)), Call("main")])
    deep = trip.calls[-1].send.breakpoints[-1].block
    trip.play([Rewind("main", 2), Say("main", ("other",)), Call("main", usage="honest")])
    trip.play([Fork("main", 2), Call("main")])
    assert deep in {mark.block for mark in trip.calls[-1].send.breakpoints}


def test_rounds_are_counted_within_a_turn_and_calls_within_the_session():
    work = (Call("main", arguments=("{}",)), Work("main", ("plain",)))
    trip = travel([Say("main", ("a",)), *work, *work, Call("main"), Say("main", ("b",))])
    trip.play([Say("main/helper#1", ("x",)), Call("main/helper#1"), Call("main")])
    plans = [made.planned.path(made.move.path).planned for made in trip.calls]
    assert [(p.path, p.call, p.turn, p.round) for p in plans] == [
        ("main", 1, 1, 1),
        ("main", 2, 1, 2),
        ("main", 3, 1, 3),
        ("main/helper#1", 4, 1, 1),
        ("main", 5, 2, 1),
    ]


def test_what_a_call_left_open_is_still_there_after_a_restart():
    moves = [Say("main", ("a",)), Call("main", arguments=("{}", "{}")), Work("main", ("plain",))]
    trip = travel([*moves, Restart(forgetful=False), Call("main")])
    ((live, restored),) = trip.restarts
    assert live == restored
    assert set(restored.path("main").outcomes) == {part.id for part in _asked(trip)}
    assert [event.same_as is not None for event in trip.calls[-1].events[:3]] == [True] * 3


def _asked(trip):
    return trip.calls[-1].send.surface.entries[1].parts[1:]
