"""Rows and bodies: what is packed comes back, and nothing grows."""

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vocabulary import events, message, turn

from barograph.store.codec import Encoded, Record, encode_events
from barograph.store.packing import (
    ROW_EVENTS,
    pack_bodies,
    pack_events,
    unpack_body,
    unpack_events,
)


def encode(events: Sequence[object]):
    return encode_events("s", events, after=0)


@given(appended=st.lists(events(), max_size=5))
def test_the_records_of_an_append_come_back_from_its_rows(appended):
    encoded = encode(appended)
    rows = pack_events(encoded, after=0)
    assert [one.record for one in encoded] == [
        record for row in rows for record in unpack_events(row)
    ]


def test_a_row_holds_no_more_than_its_limit():
    rows = pack_events(encode([turn(number) for number in range(2 * ROW_EVENTS + 1)]), after=0)
    assert [row.events for row in rows] == [ROW_EVENTS, ROW_EVENTS, 1]


def test_what_compression_would_make_longer_is_stored_as_it_is():
    noise = os.urandom(3000)
    record = Record(1, b"{}", {"parts": "b2:" + "0" * 64})
    [body] = pack_bodies([Encoded(record, {"b2:" + "0" * 64: noise})])
    assert (body.zstd, body.data) == (False, noise)
    assert unpack_body(zstd=body.zstd, data=body.data) == noise
    [row] = pack_events([Encoded(Record(1, b"0", {}), {})], after=0)
    assert (row.dictionary, row.data) == (0, b"[0]")


@pytest.mark.parametrize("events", [0, 2, 2**40, 2**62])
def test_a_row_whose_count_was_altered_is_refused_whatever_it_says(events):
    [row] = pack_events(encode([message("x")]), after=0)
    with pytest.raises(ValueError, match=f"in a row of {events}"):
        unpack_events(row._replace(events=events))


def test_a_row_of_another_dictionary_is_refused():
    [row] = pack_events(encode([message("x")]), after=0)
    with pytest.raises(ValueError, match="no dictionary 2"):
        unpack_events(row._replace(dictionary=2))
