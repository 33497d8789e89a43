"""What parts weigh: text by its characters, media by their size."""

import json

import pytest

from barograph.core.parts import Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from barograph.providers.anthropic.weight import BLOCK_CHARS, CHARS_PER_TOKEN, weigh


def weight(part):
    return weigh(part) - BLOCK_CHARS


def media(kind, **source):
    made = Image if kind == "image" else Document
    return made(json.dumps({"type": kind, "source": source}))


@pytest.mark.parametrize(
    ("encoded_chars", "tokens"), [(100, 64), (400_000, 600), (1_398_104, 1600), (9_000_000, 1600)]
)
def test_a_picture_weighs_by_its_bytes_between_a_least_and_a_most(encoded_chars, tokens):
    picture = media("image", type="base64", media_type="image/png", data="A" * encoded_chars)
    assert weight(picture) == tokens * CHARS_PER_TOKEN
    assert weight(ToolResult("t1", (picture, Text("seen")))) == tokens * CHARS_PER_TOKEN + 4


def test_a_binary_document_has_no_most():
    paper = media("document", type="base64", media_type="application/pdf", data="A" * 4_000_000)
    assert weight(paper) == 6_000 * CHARS_PER_TOKEN


def test_bytes_that_are_elsewhere_weigh_as_the_largest_picture():
    assert weight(media("image", type="url", url="https://example.org/a.png")) == 4800
    assert weight(media("document", type="file", file_id="f1")) == 4800


def test_a_document_of_text_weighs_as_its_text():
    picture = json.loads(media("image", type="url", url="x").block)
    inside = [{"type": "text", "text": "seven c"}, picture]
    assert weight(media("document", type="text", media_type="text/plain", data="word " * 9)) == 45
    assert weight(media("document", type="content", content=inside)) == 7 + 4800
    assert weight(media("document", type="content", content="plain")) == 5


def test_text_weighs_as_it_is_not_as_json_spells_it():
    assert weight(Text('"\n"\\' * 10)) == 40
    assert weight(ToolCall("t1", "find", '{"a":1}')) == 11
    assert weight(Opaque("search_result", '{"type":"search_result"}')) == 24


def test_a_wide_character_is_about_a_token():
    assert weight(Text("漢字かな한글")) == 18
    assert weight(Text("é→─🎉")) == 4


def test_a_signature_weighs_nothing():
    assert weight(Thinking("hmm", "s" * 4_000)) == 3


@pytest.mark.parametrize("block", ["{", "[]", "{}", '{"type":"image","source":3}'])
def test_a_block_that_says_no_size_weighs_nothing(block):
    assert weight(Image(block)) == 0


def test_a_lone_surrogate_weighs_as_any_character():
    assert weight(Text("a\udce9b")) == 3
