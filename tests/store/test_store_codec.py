"""The codec: what becomes a body, and what is said about a record that is not as it was."""

import msgspec
import pytest
from vocabulary import LARGE_CHARS, example, message, turn

from barograph.core.canonical import hash_body
from barograph.core.errors import LogCorrupt, SchemaTooNew
from barograph.core.events import HeaderSet, MessageSeen, Nudged, ToolBegan, ToolEnded, TurnBegan
from barograph.core.parts import encode_parts
from barograph.store import codec
from barograph.store.codec import EXTERNAL_BYTES, Record, decode_record, encode_events


def encode(*events):
    return encode_events("s", events, after=0)


def text_of_bytes(size):
    """A message whose parts are that many bytes of JSON."""
    return message("x" * (size - len(encode_parts(message("").parts))))


def test_a_field_becomes_a_body_from_the_limit_on():
    [below] = encode(text_of_bytes(EXTERNAL_BYTES - 1))
    [at] = encode(text_of_bytes(EXTERNAL_BYTES))
    assert below.record.refs == below.bodies == {}
    assert list(at.record.refs) == ["parts"]
    assert len(at.record.data) < EXTERNAL_BYTES


def test_a_field_with_nothing_in_it_is_not_stored_and_one_that_was_is_read():
    event = MessageSeen(at=1.0, path="main", role="tool", origin="tool", same_as=7)
    [one] = encode(event)
    stored = (
        b'{"type":"message_seen","at":1.0,"path":"main","role":"tool","origin":"tool","same_as":7'
    )
    assert one.record.data == stored + b"}"
    nothing = b',"native_id":null,"parts":[],"original":[],"original_in":null,"known_by":null}'
    for data in (stored + b"}", stored + nothing):
        assert decode_record("s", 1, Record(1, data, {}), None) == event


def test_a_body_is_the_fields_json_under_its_content_hash():
    event = message("x" * LARGE_CHARS)
    [one] = encode(event)
    body = encode_parts(event.parts)
    assert one.bodies == {hash_body(body): body}
    assert one.record.refs == {"parts": hash_body(body)}


def test_each_part_of_a_header_is_a_body_of_its_own():
    header = example(HeaderSet, large=True)
    changed = msgspec.structs.replace(header, parameters="p" * LARGE_CHARS)
    one, two = encode(header, changed)
    assert set(one.record.refs) == {"system", "tools", "parameters"}
    assert set(one.record.refs.items()) - set(two.record.refs.items()) == {
        ("parameters", one.record.refs["parameters"])
    }


def test_the_same_content_in_another_event_has_the_same_hash():
    seen = message("x" * LARGE_CHARS)
    ended = msgspec.structs.replace(example(ToolEnded, large=False), parts=seen.parts)
    one, two = encode(seen, ended)
    assert one.bodies == two.bodies


def test_a_large_field_that_is_no_body_stays_in_the_record():
    nudge = msgspec.structs.replace(example(Nudged, large=False), text="x" * LARGE_CHARS)
    began = msgspec.structs.replace(example(ToolBegan, large=False), name="x" * LARGE_CHARS)
    for one in encode(nudge, began):
        assert one.record.refs == one.bodies == {}


def test_an_error_names_the_field_that_would_not_come_back():
    bad = msgspec.structs.replace(message("x"), native_id=b"bytes")
    with pytest.raises(Exception, match="native_id holds bytes"):
        encode(bad)


def test_a_record_of_a_newer_schema_is_refused_with_the_direction():
    [one] = encode(turn(1))
    record = msgspec.structs.replace(one.record, schema=99, data=b'{"type":"not_known_yet"}')
    with pytest.raises(SchemaTooNew, match="log is newer than this Barograph") as caught:
        decode_record("s", 4, record, None)
    assert caught.value.ids == {"session": "s", "seq": 4, "schema": 99}
    assert "Upgrade" in caught.value.next_step


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"type":"never_known","at":1.0}', "never_known"),
        (b'{"at":1.0}', "type"),
        (b'{"type":"turn_began","at":1.0,"path":"main"}', "turn"),
        (b'{"type":"turn_began","at":null,"path":"main","turn":1}', "at"),
        (b'{"type":"turn_began","at":1.0,"pa', "truncated"),
        (b'{"type":"turn_began","at":1.0,"path":"\xff","turn":1}', "UTF-8"),
        (b"", "truncated"),
        (b"[" * 100_000, "."),
    ],
    ids=str,
)
def test_what_is_no_event_is_corrupt_with_its_ids_and_the_next_step(data, why):
    with pytest.raises(LogCorrupt, match=why) as caught:
        decode_record("s", 4, Record(1, data, {}), None)
    assert caught.value.ids == {"session": "s", "seq": 4}
    assert caught.value.next_step


def test_a_schema_that_never_was_is_corrupt():
    [one] = encode(turn(1))
    with pytest.raises(LogCorrupt, match="no schema 0"):
        decode_record("s", 4, msgspec.structs.replace(one.record, schema=0), None)


@pytest.mark.parametrize(
    ("stored", "how"), [(None, "missing"), (b"", "altered"), (b'[{"type":"text"}]', "altered")]
)
def test_a_missing_or_altered_body_names_session_seq_field_and_hash(stored, how):
    [one] = encode(message("x" * LARGE_CHARS))
    with pytest.raises(LogCorrupt, match=how) as caught:
        decode_record("s", 4, one.record, lambda _: stored)
    hash_ = one.record.refs["parts"]
    assert caught.value.ids == {"session": "s", "seq": 4, "field": "parts", "hash": hash_}
    assert hash_ in str(caught.value)
    assert caught.value.next_step


def test_a_body_that_has_its_hash_and_is_not_the_field_is_corrupt():
    [one] = encode(message("x" * LARGE_CHARS))
    ref = hash_body(b'"text"')
    with pytest.raises(LogCorrupt, match="does not decode"):
        decode_record(
            "s", 4, msgspec.structs.replace(one.record, refs={"parts": ref}), lambda _: b'"text"'
        )


@pytest.mark.parametrize("field", ["role", "no_such_field"])
def test_a_reference_from_a_field_that_holds_no_body_is_corrupt(field):
    [one] = encode(message("x" * LARGE_CHARS))
    record = msgspec.structs.replace(one.record, refs={field: one.record.refs["parts"]})
    with pytest.raises(LogCorrupt, match="holds no body"):
        decode_record("s", 4, record, one.bodies.get)


def test_an_older_schema_is_upgraded_on_reading_and_stays_as_it_was_written(monkeypatch):
    """As if schema 1 had called a turn's number `number`, and schema 2 had not told its path."""
    monkeypatch.setattr(codec, "SCHEMA", 3)
    monkeypatch.setitem(codec.UPGRADES, 1, lambda e: {**e, "turn": e.pop("number")})
    monkeypatch.setitem(codec.UPGRADES, 2, lambda e: {**e, "path": "main"})
    old = Record(1, b'{"type":"turn_began","at":1.0,"number":7}', {})
    assert decode_record("s", 1, old, None) == TurnBegan(at=1.0, path="main", turn=7)
    assert old.data == b'{"type":"turn_began","at":1.0,"number":7}'
    middle = Record(2, b'{"type":"turn_began","at":1.0,"turn":7}', {})
    assert decode_record("s", 1, middle, None) == TurnBegan(at=1.0, path="main", turn=7)


def test_a_field_that_was_kept_as_a_body_can_be_upgraded_too(monkeypatch):
    """As if schema 1 had called the parts of a message `content`."""
    event = message("x" * EXTERNAL_BYTES)
    [one] = encode(event)
    old = Record(1, one.record.data, {"content": one.record.refs["parts"]})
    monkeypatch.setattr(codec, "SCHEMA", 2)
    monkeypatch.setitem(codec.UPGRADES, 1, lambda e: {**e, "parts": e.pop("content", ())})
    assert decode_record("s", 1, old, one.bodies.get) == event
    assert decode_record("s", 1, old, None).parts == ()
    with pytest.raises(LogCorrupt, match="is missing") as caught:
        decode_record("s", 1, old, lambda _: None)
    assert caught.value.ids["field"] == "content"


def test_an_older_record_that_cannot_be_upgraded_is_corrupt(monkeypatch):
    monkeypatch.setattr(codec, "SCHEMA", 2)
    monkeypatch.setitem(codec.UPGRADES, 1, lambda e: {**e, "turn": e["number"]})
    for data in (b'{"type":"turn_began","at":1.0}', b"[]", b"{"):
        with pytest.raises(LogCorrupt, match="does not decode"):
            decode_record("s", 1, Record(1, data, {}), None)
