import json
import time
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barograph.core.bounds import bound_parts, bound_text
from barograph.core.parts import Document, Image, Opaque, Text
from barograph.core.texts import MARK_CLOSES, MARK_OPENS, left_out

CLUSTERS = st.sampled_from(
    ["a", " ", "\n", "é", "e\u0301", "🎉", "👍🏽", "👩‍👩‍👧", "🇩🇪", "각", "क्ष", "\r\n"]
)
TEXTS = st.lists(CLUSTERS, max_size=400).map("".join)
CAPS = st.integers(0, 500)


def bound(text, cap_chars):
    return bound_text(text, cap_chars=cap_chars, handle="h1")


def ends(bounded):
    head, _, rest = bounded.partition("\n" + MARK_OPENS)
    return head, rest.partition(MARK_CLOSES + "\n")[2]


def test_a_long_text_keeps_its_ends_and_says_what_is_missing():
    bounded = bound("HEAD" + "x" * 9_992 + "TAIL", 200)
    head, tail = ends(bounded)
    assert head.startswith("HEAD")
    assert tail.endswith("TAIL")
    assert bounded == head + left_out(10_000 - len(head + tail), 10_000, 200, "h1") + tail
    assert 'read_original("h1", ...)' in bounded


@given(TEXTS, CAPS)
def test_a_bounded_text_is_within_its_cap_and_never_longer_than_it_was(text, cap_chars):
    bounded = bound(text, cap_chars)
    assert len(bounded) <= len(text)
    assert not cap_chars or len(bounded) <= cap_chars


@given(TEXTS, CAPS)
def test_bounding_twice_is_bounding_once(text, cap_chars):
    assert bound(bound(text, cap_chars), cap_chars) == bound(text, cap_chars)


@given(TEXTS, CAPS)
@example("x" * 500, 500)
def test_a_text_within_its_cap_is_not_touched(text, cap_chars):
    assert bound(text, len(text)) == bound(text, 0) == text
    if len(text) <= cap_chars:
        assert bound(text, cap_chars) == text


@given(st.lists(CLUSTERS, min_size=80, max_size=400), st.integers(5, 260))
def test_no_cut_parts_a_character(clusters, cap_chars):
    text = "".join(clusters)
    head, tail = ends(bound(text, cap_chars))
    places, at = {0}, 0
    for cluster in clusters:
        at += len(cluster)
        places.add(at)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) in places
    assert len(text) - len(tail) in places


def test_a_cap_below_the_marker_leaves_a_plain_head():
    assert bound("abc" * 100, 50) == "abc" * 16 + "ab"
    assert bound("🇩🇪" * 100, 3) == "🇩🇪"


def test_no_cap_leaves_nothing_at_all():
    assert bound("🇩🇪" * 100, 1) == "🇩"


def test_half_a_pair_is_replaced():
    assert bound("a\ud83d", 0) == "a\ufffd"
    assert bound("🎉" * 2_000 + "\ud83d tail", 1_000).encode()


@given(st.text(max_size=600), CAPS)
def test_a_bounded_text_survives_json_and_utf8(text, cap_chars):
    bounded = bound(text, cap_chars)
    assert json.loads(json.dumps(bounded, ensure_ascii=False).encode()) == bounded


def parts_of(*parts, cap_chars=200, keep_images=True):
    return bound_parts(parts, cap_chars=cap_chars, handle="h1", keep_images=keep_images)


def test_the_texts_of_a_list_share_one_cap_and_one_marker():
    image = Image("{}")
    bounded = parts_of(Text("A" * 300), image, Text("B" * 300), Text("C" * 300))
    assert bounded[1:] == (image, Text("C" * len(bounded[2].text)))
    assert bounded[0].text.startswith("A" * 20)
    assert sum(len(part.text) for part in bounded if isinstance(part, Text)) <= 200
    assert "".join(part.text for part in bounded if isinstance(part, Text)).count(MARK_OPENS) == 1


@given(st.lists(TEXTS, max_size=5), CAPS)
def test_a_list_is_bounded_as_its_texts_in_a_row(leaves, cap_chars):
    bounded = parts_of(*map(Text, leaves), cap_chars=cap_chars)
    assert "".join(part.text for part in bounded) == bound("".join(leaves), cap_chars)
    assert parts_of(*bounded, cap_chars=cap_chars) == bounded


def test_blocks_that_are_not_text_stay_whole_or_give_way_to_a_note():
    blocks = (Image('{"data":"xyz"}'), Document('{"d":1}'), Opaque("search", '{"k":' + "1" * 90))
    assert parts_of(*blocks) == blocks
    notes = parts_of(*blocks, keep_images=False, cap_chars=600)
    assert "an image, 14 characters" in notes[0].text
    assert "a document, 7 characters" in notes[1].text
    assert notes[2] == blocks[2]
    assert "'search'" in parts_of(blocks[2], cap_chars=80)[0].text[:80]


def base64(size, begin=b"\x89PNG\r\n\x1a\n"):
    return b64encode(begin + bytes(n * n % 251 for n in range(size))).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [('{"data":"', '"}'), ("data:image/png;base64,", " x"), ("data = ", "\n")],
)
def test_encoded_bytes_in_a_text_give_way_to_a_note(before, after):
    (part,) = parts_of(Text(before + base64(30_000) + after), cap_chars=50_000)
    assert len(part.text) < 300
    assert "base64 of image/png, about 30,00" in part.text
    assert part.text.endswith(after)


def test_wrapped_base64_is_binary_too():
    lines = "\n".join(base64(6_000)[at : at + 76] for at in range(0, 8_000, 76))
    (part,) = parts_of(Text("x\n" + lines + "\nend of it"), cap_chars=50_000)
    assert len(part.text) < 300
    assert part.text.endswith("end of it")


def test_a_list_of_hashes_is_no_binary():
    text = "\n".join(f"{n:040x}" for n in range(10**39, 10**39 + 100))
    assert parts_of(Text(text), cap_chars=50_000) == (Text(text),)


def test_short_data_and_long_words_are_no_binary():
    text = "data:image/png;base64,iVBORw0KGgo= " + "a" * 5_000 + " " + "word " * 300
    assert parts_of(Text(text), cap_chars=50_000) == (Text(text),)


def test_with_the_cap_off_binary_stays():
    text = base64(5_000)
    assert parts_of(Text(text), cap_chars=0) == (Text(text),)


@pytest.mark.parametrize(
    "unit",
    ["a", "A1/", "data:", "data:a/b;", ";base64,", "A" * 76 + "\n", "A" * 999 + " ", "\\/", "="],
)
def test_the_time_to_bound_is_linear_whatever_the_text_repeats(unit):
    def seconds(chars):
        text = unit * (chars // len(unit))
        start = time.thread_time()
        parts_of(Text(text), cap_chars=1_000)
        return time.thread_time() - start

    few, many = (min(seconds(chars) for _ in range(3)) for chars in (200_000, 400_000))
    assert many < 3.2 * few + 0.02
    assert many < 0.3
