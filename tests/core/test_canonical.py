import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.canonical import (
    DEEPEST,
    canonical_json,
    clean_text,
    digest,
    dump_json,
    hash_body,
    one_spelling,
    parse_json,
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_hashes_are_golden_and_name_their_algorithm():
    assert hash_body(b"abc") == (
        "b2:bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"
    )
    assert digest(b"ab", b"c").hex() == "d301c71d527a1a9ae0e1e1e5bee135f5"


def test_no_two_lists_of_pieces_share_a_digest():
    lists = [(), (b"",), (b"", b""), (b"ab",), (b"a", b"b"), (b"", b"ab"), (b"ab", b"")]
    assert len({digest(*pieces) for pieces in lists}) == len(lists)


def test_key_order_matters_inside_arguments_and_schemas_and_nowhere_else():
    one = {"b": 1, "a": {"d": 1, "c": 2}, "input": {"y": 1, "x": 2}}
    other = {"input": {"y": 1, "x": 2}, "a": {"c": 2, "d": 1}, "b": 1}
    assert canonical_json(one) == canonical_json(other)
    assert canonical_json(one) != canonical_json(one | {"input": {"x": 2, "y": 1}})
    schema = {"input_schema": {"b": {"d": 1, "c": 1}, "a": 1}}
    assert canonical_json([schema]) == b'[{"input_schema":{"b":{"d":1,"c":1},"a":1}}]'


@given(values)
def test_canonical_json_is_a_fixed_point(value):
    once = canonical_json(value)
    assert canonical_json(json.loads(once)) == once


@given(values)
def test_a_dumped_value_is_what_python_clients_send(value):
    assert dump_json(value).decode("utf-8", "surrogatepass") == json.dumps(
        value, ensure_ascii=False, separators=(",", ":")
    )


@given(values)
def test_a_text_parses_to_the_value_that_was_dumped(value):
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", '{"x":Infinity}', '{"x":-Infinity}', '{"x":1e400}', "[-1E999]"]
)
def test_what_not_every_reader_understands_is_no_json(text):
    assert parse_json(text) is None
    assert one_spelling(text) == text


def test_numbers_keep_their_value_and_take_pythons_spelling():
    text = '{"y": 1.0, "f": 1e-7, "big": 12345678901234567890, "z": -0.0}'
    assert one_spelling(text) == '{"y":1.0,"f":1e-07,"big":12345678901234567890,"z":-0.0}'


@pytest.mark.parametrize(("open_", "close"), ["[]", ('{"a":', "}")])
def test_what_nests_too_deep_is_no_json_wherever_it_is_asked_from(open_, close):
    def nested(depth):
        return open_ * depth + "1" * (open_ != "[") + close * depth

    assert parse_json(nested(DEEPEST)) is not None
    assert parse_json(nested(DEEPEST + 1)) is None
    assert parse_json(nested(sys.getrecursionlimit() * 3)) is None
    assert one_spelling(nested(100_000)) == nested(100_000)


def test_brackets_in_texts_and_side_by_side_are_no_depth():
    text = json.dumps(["[" * 1000 + '"\\', [[]] * 500, {"{{": "}"}])
    assert parse_json(text) == json.loads(text)


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert clean_text("a\ud83db\udcff \U0001f600") == "a\ufffdb\ufffd \U0001f600"
    assert clean_text("plain") == "plain"
