"""No text of others can end its envelope, however it spells our tags."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.envelope import TAGS, escape_tags, spells_tag
from barograph.core.texts import section
from barograph.core.trust import Item

HIDDEN = ("", " ", "\u200b", "\u200d", "\ufeff", "\u2060", "\t", "\n", "\u00ad")
BRACKETS = "<\uff1c\u2039\u27e8\u3008"
SLASHES = ("", "/", "\uff0f", "\u2044", "\u2215")
ALIKE = {
    "c": "\u0441",
    "o": "\u043e",
    "e": "\u0435",
    "i": "\u0456",
    "t": "\U0001d42d",
    "x": "\uff58",
}

spellings = st.builds(
    lambda bracket, slash, name, hidden, change: (
        bracket + hidden + slash + hidden.join(change(char) for char in name) + ">"
    ),
    st.sampled_from(BRACKETS),
    st.sampled_from(SLASHES),
    st.sampled_from(TAGS),
    st.sampled_from(HIDDEN),
    st.sampled_from(
        [str, str.upper, lambda char: ALIKE.get(char, char), lambda char: char + "\u0301"]
    ),
)
hostile = st.lists(st.one_of(spellings, st.text(max_size=12)), max_size=8).map("".join)


def readable_tags(text):
    """Places where somebody who squints reads one of our tags."""
    return [
        found.start()
        for found in re.finditer(f"[{BRACKETS}]", text)
        if spells_tag(text, found.end())
    ]


@given(hostile)
def test_no_tag_can_be_read_in_an_escaped_text(text):
    assert readable_tags(escape_tags(text)) == []


@given(spellings)
def test_every_spelling_of_a_tag_is_seen(spelling):
    assert readable_tags(spelling) == [0]


@given(hostile)
def test_escaping_only_puts_backslashes_in_and_once(text):
    escaped = escape_tags(text)

    assert escape_tags(escaped) == escaped
    kept = iter(escaped)
    assert all(char in kept for char in text)
    assert len(escaped) - len(text) == len(readable_tags(text))


@given(
    st.lists(st.builds(Item, id=hostile, text=hostile, origin=hostile, date=hostile), max_size=3)
)
def test_a_section_has_one_envelope_and_one_for_each_item_whatever_they_say(items):
    said = section("knowledge", turn=3, text="", items=items)

    assert len(readable_tags(said)) == 2 + 2 * len(items)
    assert said.startswith('<context from="knowledge" turn="3">\n')
    assert said.endswith("\n</context>")


@pytest.mark.parametrize(
    "text", ["<div>", "a < b", "if x<item_count:", "< ", "<\\/context>", "<p>item</p>"]
)
def test_what_is_no_tag_of_ours_stays_as_it_is(text):
    expected = text if "item_count" not in text else "if x<\\item_count:"

    assert escape_tags(text) == expected


def test_letters_keep_their_marks():
    text = unicodedata.normalize("NFD", "café <b>é</b>")

    assert escape_tags(text) == text
