import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.factindex import printable
from barograph.core.stubs import (
    MOST_KEPT_RATIO,
    StubShape,
    holds,
    stub_json,
    stub_text,
    visible_text,
)
from barograph.core.texts import MARK_CLOSES, MARK_OPENS, stubbed

WORDS = st.sampled_from(
    ["plain", "src/core/app.py", "src/core/b.py:7", "max_depth", "HTTPServer", "\n", "é", "👩‍👩‍👧",
     "ValueError: no\n", "retries=3", "https://a.org/x", MARK_OPENS, MARK_CLOSES, "\x00", "\u202e",
     'read_original("h", ...) shows them.⟧\n', stubbed(5, 9, "x", "h")]
)  # fmt: skip
LONG = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: " ".join(words * 12))
SHAPES = st.builds(
    StubShape,
    head_chars=st.integers(0, 200),
    tail_chars=st.integers(0, 200),
    index_chars=st.integers(0, 300),
    index_ratio=st.floats(0, 0.3),
)
LISTING = "\n".join(f"src/pack/module_{n}.py: def handle_case_{n}(self):" for n in range(40))


def stub(text, **shape):
    return stub_text(text, handle="h1", shape=StubShape(**shape))


def test_a_stub_is_head_marker_and_tail():
    text = "first line\n" + "filler words of no interest here\n" * 80 + "src/a.py:3\nlast line"
    assert stub(text, head_chars=15, tail_chars=12) == (
        "first line\n"
        f"{MARK_OPENS}2,652 of 2,671 characters left out; they hold:\n"
        "src/a.py:3\n"
        f'read_original("h1", ...) shows them.{MARK_CLOSES}\n'
        "last line"
    )


def test_a_text_that_a_stub_would_not_clearly_shorten_has_none():
    assert stub("x" * 300) is None
    assert stub("") is None


def test_what_head_and_tail_show_is_not_said_again():
    text = "max_depth\n" + "word " * 400 + "\nmax_depth"
    assert stub(text).count("max_depth") == 2
    assert "max_depths" in stub(text.replace("word ", "max_depths ", 1))


def test_an_index_full_of_facts_may_leave_nothing_to_gain():
    assert stub(LISTING, index_chars=500) is not None
    assert stub(LISTING, index_chars=5_000, head_chars=900) is None


def test_a_long_text_has_a_long_index_up_to_a_limit():
    long = "\n".join(f"src/module_{n}.py" for n in range(2_000))
    assert len(stub(LISTING)) < len(stub(LISTING + long[:5_000])) < len(stub(long))
    assert len(stub(long, index_most_chars=1_000)) < 1_400


@given(LONG, SHAPES)
def test_a_stub_is_clearly_shorter_and_keeps_to_its_shape(text, shape):
    made = stub_text(text, handle="h", shape=shape)
    if made is not None:
        assert len(made) <= MOST_KEPT_RATIO * len(text)
        marker = len(stubbed(len(text), len(text), "-", "h"))
        room = shape.head_chars + shape.tail_chars + shape.room_chars(len(text))
        assert len(made) <= room + marker
        assert made.encode()


@given(LONG, SHAPES)
def test_the_same_text_has_the_same_stub_and_a_stub_has_none(text, shape):
    made = stub_text(text, handle="h7", shape=shape)
    assert made == stub_text(text, handle="h7", shape=shape)
    assert made is None or stub_text(made, handle="h7", shape=shape) is None


@given(LONG, SHAPES)
def test_nobody_but_us_ends_our_marker(text, shape):
    made = stub_text(text, handle="h7", shape=shape)
    if made is None:
        return
    opening = max(at for at in range(len(made)) if is_ours(text, made, at))
    inside = made[opening + 1 : made.index(MARK_CLOSES, opening)]
    assert inside.endswith('read_original("h7", ...) shows them.')
    assert inside.replace("\n", " ") == printable(inside)
    assert MARK_OPENS not in inside


def is_ours(text, made, at):
    """Whether the marker opens here: what is before it is the text's head."""
    return made[at] == MARK_OPENS and text.startswith(made[: at - 1]) and made[at - 1] == "\n"


def test_a_middle_without_facts_has_a_marker_without_an_index():
    made = stub("plain words " * 200, head_chars=11, tail_chars=11)
    assert made == f"plain words{stubbed(2378, 2400, '', 'h1')}lain words "
    assert stub(made) is None


def test_errors_are_shown_before_all_else_and_their_repeats_after_it():
    repeats = [f"fatal: disk {n} is full" for n in range(100)]
    made = stub("\n".join([*repeats, "fatal: no power", "max_depth", *repeats]), index_ratio=0)
    assert "! fatal: no power\n" in made
    assert "max_depth" in made
    assert made.count("! fatal: disk") == 4


HOSTILE = [
    stubbed(5, 9, "x", "h1"), f"{MARK_OPENS}5 of 9 characters left out; they hold:\n", "a/b/c/",
    "a/b.c ", "aB ", "a_b=1 ", "ERROR x\n", "\n", 'read_original("h1", ...)',
]  # fmt: skip


@pytest.mark.parametrize("unit", [*HOSTILE, None])
def test_the_time_to_stub_is_linear_in_the_text(unit):
    def seconds(chars):
        text = unit * (chars // len(unit)) if unit else many_facts(chars)
        start = time.thread_time()
        stub(text)
        return time.thread_time() - start

    few, many = (min(seconds(chars) for _ in range(3)) for chars in (50_000, 100_000))
    assert many < 3.2 * few + 0.02


def many_facts(chars):
    return " ".join(f"src/p{n % 97}/m{n}.py:{n} nameOf{n} k{n}x={n}" for n in range(chars // 40))


def test_a_result_that_pretends_to_be_a_stub_is_stubbed_all_the_same():
    fake = "a\n" + stubbed(10_000, 10_002 + 4_000, "nothing", "other") + "b" * 4_000
    assert stub(fake) is not None


def test_a_long_stub_is_not_stubbed_again():
    made = stub(LISTING * 30)
    assert len(made) > 1_000
    assert stub(made) is None
    assert stub_text(made + "x" * 9_000, handle="h1") is not None


def test_a_result_that_quotes_its_own_stub_is_stubbed_all_the_same():
    assert stub("as seen before:\n" + stub(LISTING) + LISTING) is not None


def test_a_bounded_result_has_a_stub():
    text = LISTING + f"\n{MARK_OPENS}5 of 9 characters are left out here.{MARK_CLOSES}\n" + LISTING
    assert stub(text) is not None


def test_no_emoji_is_parted():
    family = "👩‍👩‍👧"
    made = stub(family * 500, head_chars=101, tail_chars=51)
    head, _, rest = made.partition("\n" + MARK_OPENS)
    tail = rest.partition(MARK_CLOSES + "\n")[2]
    assert head == family * (len(head) // len(family))
    assert tail == family * (len(tail) // len(family))


@pytest.mark.parametrize(
    ("text", "fact", "is_held"),
    [
        ("see max_depth.", "max_depth", True),
        ("see max_depths", "max_depth", False),
        ("x_max_depth max_depth", "max_depth", True),
        ("a/b.py:12", "a/b.py", True),
        ("a/b.py:12", "a/b.py:1", False),
        ("caa/b", "a/b", False),
        ("", "a", False),
    ],
)
def test_a_text_holds_a_fact_as_a_word_of_its_own(text, fact, is_held):
    assert holds(text, fact) is is_held


def test_the_paths_of_an_index_are_spelled_out_for_the_eye():
    made = stub(LISTING)
    seen = visible_text(made, handle="h1")
    assert holds(seen, "src/pack/module_10.py")
    assert not holds(made, "src/pack/module_10.py")
    assert visible_text(LISTING, handle="h1") == LISTING


def test_long_arguments_keep_their_keys_and_lose_their_middle():
    arguments = json.dumps({"path": "src/a.py", "mode": 420, "content": LISTING})
    made = json.loads(stub_json(arguments, handle="h1"))
    assert list(made) == ["path", "mode", "content"]
    assert (made["path"], made["mode"]) == ("src/a.py", 420)
    assert made["content"] == stub(LISTING)


def test_arguments_that_are_short_or_no_json_stay():
    assert stub_json('{"a": "b"}', handle="h1") is None
    mostly_short = json.dumps({"a": ["short"] * 900, "b": LISTING})
    assert stub_json(mostly_short, handle="h1") is None
    assert stub_json("{" + LISTING, handle="h1") is None
    assert stub_json("[" * 100_000, handle="h1") is None
    assert (
        stub_json(
            '{"a": [' + "[" * 900 + "]" * 901 + f', "b": {json.dumps(LISTING)}}}', handle="h1"
        )
        is None
    )
    assert stub_json('{"a":     1,     "a":     2}', handle="h1") is None


def test_half_a_pair_in_long_arguments_is_replaced():
    arguments = json.dumps({"a": "\ud800", "b": LISTING})
    assert json.loads(stub_json(arguments, handle="h1"))["a"] == "\ufffd"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | LONG,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def shape_of(value):
    match value:
        case dict():
            return {key: shape_of(item) for key, item in value.items()}
        case list():
            return [shape_of(item) for item in value]
        case str():
            return "text"
        case _:
            return value


@given(JSONS)
def test_stubbed_arguments_are_valid_json_of_the_same_keys(value):
    arguments = json.dumps(value)
    made = stub_json(arguments, handle="h1")
    if made is not None:
        assert shape_of(json.loads(made)) == shape_of(value)
        assert len(made) <= MOST_KEPT_RATIO * len(arguments)
        assert stub_json(made, handle="h1") is None
