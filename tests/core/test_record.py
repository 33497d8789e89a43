import json

import pytest
from histories import Call, Drop, Rewind, Say, Trip, client_body, travel

from barograph.core.canonical import dump_json
from barograph.core.events import RequestSent
from barograph.core.readback import read_requests


def left(trip, body, *, observed=True):
    """The record of a body that leaves for the call that was just planned."""
    header = trip.calls[-1].header
    trip.session.leave(at=trip.at, path="main", header=header, body=body, observed=observed)
    (_, record) = list(trip.store.read(trip.id))[-1]
    assert isinstance(record, RequestSent)
    return record


def planned():
    trip = travel([Say("main", ("one",)), Call("main"), Say("main", ("two",))])
    return trip.play([Call("main", outcome="unsent")])


def body_of(trip):
    return client_body(trip.calls[-1].send, trip.sides["main"])


def where(deviations):
    return [(deviation.where, deviation.text is None) for deviation in deviations]


def test_a_body_as_we_render_it_is_recorded_as_a_reference():
    trip = planned()
    record = left(trip, body_of(trip), observed=False)
    assert (record.deviations, record.mismatches, record.observed) == ((), (), False)
    assert record.order == ("model", "max_tokens", "system", "tools", "messages")
    assert (record.messages, record.body_bytes) == (3, len(body_of(trip)))


def test_other_bytes_of_the_same_meaning_are_stored_and_are_no_mismatch():
    trip = planned()
    body = body_of(trip).replace(b'{"type":"text","text":"two"', b'{"text":"two","type":"text"')
    record = left(trip, body)
    assert where(record.deviations) == [("2", False)]
    assert record.mismatches == ()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'"text":"two"', b'"text":"TWO"', "2"),
        (b'"text":"one"', b'"text":"ONE"', "0"),
        (b'"text":"rules ', b'"text":"Rules ', "system"),
        (b'"ttl":"5m"}}]}]}', b'"ttl":"1h"}}]}]}', "2"),
    ],
)
def test_another_meaning_is_a_mismatch_and_says_where(old, new, place):
    trip = planned()
    record = left(trip, body_of(trip).replace(old, new))
    assert record.mismatches == (place,)
    assert where(record.deviations) == [(place, False)]


def test_a_message_more_or_less_is_a_mismatch():
    trip = planned()
    fields = json.loads(body_of(trip))
    more = fields | {"messages": [*fields["messages"], {"role": "user", "content": []}]}
    assert left(trip, dump_json(more)).mismatches == ("3",)
    less = fields | {"messages": fields["messages"][:1]}
    assert left(trip, dump_json(less)).mismatches == ("messages after 1",)


def test_tools_that_a_client_adds_are_adopted_and_said_to_be():
    trip = planned()
    body = body_of(trip).replace(b'"tools":[', b'"tools":[{"name":"answer"},')
    record = left(trip, body)
    header = trip.session.state.surface("main").header
    assert (record.mismatches, header.adopted, header.changed) == ((), ("tools",), ("tools",))


def test_a_deviation_is_stored_once_and_withdrawn_when_it_ends():
    trip = planned()
    odd = body_of(trip).replace(b'{"type":"text","text":"one"', b'{"text":"one","type":"text"')
    assert where(left(trip, odd).deviations) == [("0", False)]
    assert left(trip, odd).deviations == ()
    assert where(left(trip, body_of(trip)).deviations) == [("0", True)]
    requests = list(read_requests(trip.codec, trip.events()))[-3:]
    assert [request.exact for request in requests] == [odd, odd, body_of(trip)]


def test_a_deviation_beyond_the_end_of_a_shorter_body_is_forgotten():
    trip = travel([Say("main", ("one",)), Call("main"), Say("main", ("two",))])
    trip.play([Call("main", client="shuffled")])
    assert set(trip.session.state.path("main").stored) == {"0", "1", "2"}
    trip.play([Rewind("main", 2), Call("main")])
    assert trip.session.state.path("main").stored == {}


def test_a_settled_message_that_changes_under_way_is_still_noticed():
    trip = Trip()
    for number in range(4):
        trip.play([Say("main", (f"say {number}",)), Call("main")])
    trip.play([Say("main", ("last",)), Call("main", outcome="unsent")])
    record = left(trip, body_of(trip).replace(b'"say 1"', b'"say X"'))
    assert record.mismatches == ("2",)


def test_a_client_that_goes_on_with_what_was_taken_back_is_noticed():
    trip = Trip()
    for number in range(4):
        trip.play([Say("main", (f"say {number}",)), Call("main")])
    before = body_of(trip)
    trip.play([Drop("main", 4), Say("main", ("another",)), Call("main", outcome="unsent")])
    assert {"4", "5", "6"} <= set(left(trip, before).mismatches)


@pytest.mark.parametrize(
    "body",
    [b"", b"\x1f\x8b\x08\x00\xff", b"[]", b'{"a":1}', b'{ "messages":[]}', b'{"messages":1}'],
)
def test_a_body_that_cannot_be_taken_apart_is_kept_whole(body):
    trip = planned()
    record = left(trip, body)
    assert (where(record.deviations), record.mismatches) == ([("body", False)], ("body",))
    assert list(read_requests(trip.codec, trip.events()))[-1].exact == body
    again = left(trip, body_of(trip))
    assert (again.mismatches, again.messages) == ((), 3)
    assert list(read_requests(trip.codec, trip.events()))[-1].is_exact


def test_a_number_that_no_double_holds_is_another_meaning_and_no_failure():
    trip = planned()
    record = left(trip, body_of(trip).replace(b'"text":"two"', b'"text":1e400'))
    assert record.mismatches == ("2",)


def test_a_retry_is_an_attempt_of_the_same_call():
    trip = travel([Say("main", ("one",)), Call("main", attempts=3)])
    records = [event for _, event in trip.events() if isinstance(event, RequestSent)]
    assert [(record.call, record.attempt) for record in records] == [(1, 1), (1, 2), (1, 3)]
