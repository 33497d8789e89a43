import pytest
from wire_prompts import call, result, text, tool

from barograph.simulator import TokenRule
from barograph.simulator.tokens import size_of_block, size_of_tool

RULE = TokenRule()


def tokens(block):
    return RULE.tokens_of(size_of_block(block))


@pytest.mark.parametrize(("chars", "expected"), [(1, 5), (100, 41), (101, 42), (1000, 374)])
def test_a_block_has_four_tokens_and_then_0_37_a_character_rounded_up(chars, expected):
    assert tokens(text("é" * chars)) == expected


def test_a_marker_has_no_tokens():
    for make in (text, call, result):
        assert tokens(make("a")) == tokens(make("a", "1h"))
    assert size_of_tool(tool("a")) == size_of_tool(tool("a", "1h"))


def test_a_string_result_counts_like_one_text():
    assert tokens(result("t")) == tokens(result("t") | {"content": [text("seen")]})


def test_tool_input_counts_as_compact_json_whatever_was_sent():
    assert size_of_block(call("ab")).chars == len("look") + len('{"at":"ab"}')


def inline(encoded, kind="image"):
    return {"type": kind, "source": {"type": "base64", "data": "A" * encoded}}


@pytest.mark.parametrize(("encoded", "expected"), [(4, 64), (400_000, 600), (4_000_000, 1600)])
def test_an_image_counts_by_its_bytes_within_limits(encoded, expected):
    assert tokens(inline(encoded)) == 4 + expected


def test_an_image_elsewhere_counts_as_the_largest():
    assert tokens({"type": "image", "source": {"type": "file", "file_id": "f"}}) == 1604


def test_a_binary_document_counts_by_its_bytes_without_an_upper_limit():
    assert tokens(inline(4_000_000, "document")) == 4 + 6000


def test_documents_of_text_and_images_inside_results_count():
    plain = {"type": "document", "source": {"type": "text", "data": "a" * 100}}
    assert tokens(plain) == 41
    nested = {"type": "document", "source": {"type": "content", "content": [text("a" * 100)]}}
    assert tokens(nested) == 41
    seen = size_of_block(result("t") | {"content": [text("a"), inline(4)]})
    assert (seen.chars, seen.images) == (1, 1)


def test_a_block_of_unknown_kind_counts_as_its_json():
    assert size_of_block({"type": "new", "x": 1}).chars == len('{"type":"new","x":1}')


def test_thinking_counts_its_text_not_its_signature():
    thinking = {"type": "thinking", "thinking": "a" * 100, "signature": "s" * 999}
    assert tokens(thinking) == 41
    assert tokens({"type": "redacted_thinking", "data": "a" * 100}) == 41
