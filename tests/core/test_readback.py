import json

import pytest
from histories import Call, Restart, Rewind, Say, travel
from msgspec.structs import replace

from barograph.core.errors import LogCorrupt
from barograph.core.events import CallPlanned, RequestSent
from barograph.core.readback import read_requests

MOVES = [
    Say("main", ("one",)),
    Call("main"),
    Say("main", ("two",)),
    Call("main", client="shuffled", attempts=2),
    Restart(),
    Say("main", ("three",)),
    Call("main", client="spaced"),
]


def test_one_call_is_read_with_all_its_attempts():
    trip = travel(MOVES)
    requests = list(read_requests(trip.codec, trip.events(), call=2))
    assert [(r.record.call, r.record.attempt) for r in requests] == [(2, 1), (2, 2)]
    assert list(read_requests(trip.codec, trip.events(), call=9)) == []


def test_exact_and_derived_are_told_apart():
    trip = travel(MOVES)
    plain, shuffled, _, spaced = read_requests(trip.codec, trip.events())
    assert plain.exact == plain.derived
    assert shuffled.exact != shuffled.derived
    assert json.loads(shuffled.exact) == json.loads(shuffled.derived)
    assert spaced.exact.startswith(b'{ "model"')
    assert json.loads(spaced.derived) == json.loads(spaced.exact)
    assert {r.is_exact for r in (plain, shuffled, spaced)} == {True}


def test_an_earlier_call_is_read_as_it_was_after_the_history_was_rewound():
    trip = travel([*MOVES, Rewind("main", 1), Say("main", ("other",)), Call("main")])
    bodies = [d.body for made in trip.calls for d in made.departures]
    assert [r.exact for r in read_requests(trip.codec, trip.events())] == bodies


def test_an_altered_message_is_told_by_its_hash():
    trip = travel(MOVES[:2])
    events = [
        (seq, replace(event, parts=(replace(event.parts[0], text="forged"),)))
        if getattr(event, "role", None) == "user"
        else (seq, event)
        for seq, event in trip.events()
    ]
    (request,) = read_requests(trip.codec, events)
    assert not request.is_exact
    assert b"forged" in request.exact


@pytest.mark.parametrize("kind", [CallPlanned])
def test_a_record_without_its_plan_is_a_damaged_log(kind):
    events = [event for _, event in travel(MOVES[:2]).events() if not isinstance(event, kind)]
    with pytest.raises(LogCorrupt, match="no plan or no header"):
        list(read_requests(travel([]).codec, enumerate(events, start=1)))


def test_a_first_body_that_cannot_be_taken_apart_leaves_the_log_readable():
    trip = travel([Say("main", ("one",)), Call("main", client="broken"), Call("main")])
    first, second = read_requests(trip.codec, trip.events())
    assert first.is_exact
    assert second.is_exact
    assert [m["role"] for m in json.loads(first.derived)["messages"]] == ["user"]
    assert first.record.header == 0


def test_a_record_may_say_that_we_only_built_the_body():
    records = [e for _, e in travel(MOVES).events() if isinstance(e, RequestSent)]
    assert {record.observed for record in records} == {True}
