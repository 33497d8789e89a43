"""Properties of every store, over arbitrary events and ids."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabulary import LARGE_CHARS, events, message, turn

from barograph.core.errors import SequenceConflict
from barograph.store.codec import decode_record, encode_events

# The fixture makes a new store for each example.
several = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@several
@given(batches=st.lists(st.lists(events(), max_size=4), max_size=4))
def test_arbitrary_events_come_back_in_order_without_a_gap(new_store, batches):
    store = new_store()
    end = store.end("s")
    for batch in batches:
        end = store.append("s", batch, after=end)
    expected = [event for batch in batches for event in batch]
    assert end == store.end("s")
    assert end.seq == store.last_seq("s") == len(expected)
    if expected:
        assert list(store.read("s")) == list(enumerate(expected, start=1))


@settings(max_examples=300)
@given(event=events())
def test_encoding_is_the_same_each_time_and_decodes_to_an_equal_event(event):
    [one], [two] = (encode_events("s", [event], after=0) for _ in range(2))
    assert one == two
    assert decode_record("s", 1, one.record, one.bodies.get) == event


@several
@given(ids=st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=8))
def test_different_ids_are_different_sessions(new_store, ids):
    store = new_store()
    for number, session in enumerate(ids):
        store.append(session, [turn(number)], after=0)
    assert {info.session for info in store.sessions()} == set(ids)
    for number, session in enumerate(ids):
        assert list(store.read(session)) == [(1, turn(number))]


@several
@given(first=st.lists(events(), min_size=1, max_size=3), second=st.lists(events(), max_size=3))
def test_a_conflict_leaves_nothing_behind(new_store, first, second):
    store = new_store()
    store.append("s", first, after=0)
    before = store.sessions()
    with pytest.raises(SequenceConflict):
        store.append("s", [*second, message("late" * LARGE_CHARS)], after=len(first) + 1)
    assert store.sessions() == before
    assert [logged.event for logged in store.read("s")] == first
