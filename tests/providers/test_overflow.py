"""Overflows told from limits of rate and money, from parameters and from everything else."""

import json
import os
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_refusals import HTML_413, NOT_TOO_LONG, TOO_LONG

from barograph.core.model import MarkerFault
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.overflow import Refusal, read_refusal
from barograph.providers.wordings import OVERFLOW, OVERFLOW_CODES, VAGUE

SEEN = TOO_LONG + NOT_TOO_LONG
SIZE = ("overflow", "max_tokens_room")
STATUSES = st.sampled_from([None, 200, 400, 401, 403, 404, 422, 429, 500, 503, 529])


def figures_of(fault):
    return fault.window_tokens, fault.input_tokens, fault.max_tokens


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: seen.where)
def test_each_error_is_what_it_is_about(seen):
    fault = read_refusal(seen.refusal)
    assert (fault.kind, figures_of(fault)) == (seen.kind, seen.figures)


def test_no_overflow_is_missed_and_none_is_invented():
    assert len(SEEN) >= 120
    said = {seen.where for seen in SEEN if read_refusal(seen.refusal).kind in SIZE}
    assert said == {seen.where for seen in TOO_LONG}
    assert len(said) == len(TOO_LONG)


def test_every_wording_was_seen_in_some_error():
    """A row that no error needs is one that nobody can keep right."""
    texts = [_plain(seen.refusal) for seen in TOO_LONG]
    idle = [
        row.pattern.pattern
        for row in OVERFLOW + VAGUE
        if not any(row.pattern.search(text) for text in texts)
    ]
    assert idle == []


@pytest.mark.parametrize("seen", TOO_LONG, ids=lambda seen: seen.where)
def test_words_about_rates_turn_any_429_into_a_limit(seen):
    """Unless it has the provider's own code for an overflow."""
    limited = Refusal(
        status=429, message=f"Rate limit reached. {seen.refusal.message} {seen.refusal.body}"
    )
    assert read_refusal(limited).kind in ("rate_limited", "quota")


@pytest.mark.parametrize("status", [402, 403, 404])
def test_a_status_about_something_else_is_never_an_overflow(status):
    refusal = Refusal(status=status, message="prompt is too long: 9 tokens > 8 maximum")
    assert read_refusal(refusal).kind not in SIZE


def test_text_that_is_marked_as_json_in_json_is_read():
    inner = json.dumps({"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}})
    body = json.dumps({"error": {"message": "upstream failed", "metadata": {"raw": inner}}})
    fault = read_refusal(Refusal(status=400, body=body))
    assert (fault.kind, figures_of(fault)) == ("overflow", (8, 9, None))


def test_a_figure_that_no_model_can_have_is_not_learned():
    text = f"prompt is too long: {'9' * 14} tokens > 0 maximum"
    assert figures_of(read_refusal(Refusal(status=400, message=text))) == (None, None, None)


def test_markers_are_read_by_the_rules_of_the_codec():
    text = "A maximum of 4 blocks with cache_control may be provided. Found 6."
    fault = read_refusal(Refusal(status=400, message=text))
    assert (fault.kind, fault.excess_markers) == ("markers_over_limit", 2)
    assert AnthropicCodec().marker_fault(400, text) == MarkerFault(2)


# words that speak of size, of a context or of tokens, in any wording
_SIZES = ("token", "context", "long", "length", "large", "exceed", "size", "上下文", "超")


@given(
    message=st.text(max_size=300).filter(lambda text: not any(w in text.lower() for w in _SIZES)),
    status=STATUSES,
    code=st.text(max_size=30).filter(lambda code: code.lower() not in OVERFLOW_CODES),
    names=st.lists(st.sampled_from(["BadRequestError", "APIStatusError", "ClientError"])),
)
def test_nothing_without_a_word_of_size_is_an_overflow(message, status, code, names):
    refusal = Refusal(names=tuple(names), status=status, code=code, message=message)
    assert read_refusal(refusal).kind not in (*SIZE, "too_large")


_WORDS = st.sampled_from(
    [
        "prompt",
        "input",
        "tokens",
        "context",
        "length",
        "window",
        "maximum",
        "limit",
        "is",
        "exceeds",
        "too",
        "long",
        "large",
        "the",
        "model's",
        "request",
        "messages",
        "200000",
        "rate",
        "per",
        "minute",
        "quota",
        "max_tokens",
        ">",
        "+",
        "(",
        ")",
        ":",
        ",",
        "output",
    ]
)


@given(words=st.lists(_WORDS, max_size=40), status=STATUSES)
def test_any_words_in_any_order_are_read(words, status):
    fault = read_refusal(Refusal(status=status, message=" ".join(words)))
    if "rate" in words and status == 429:
        assert fault.kind not in SIZE


@given(
    body=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "x"]), inner)
        ),
    ),
    status=STATUSES,
)
def test_any_body_is_read(body, status):
    read_refusal(Refusal(status=status, body=json.dumps(body)))


HOSTILE = [
    "input length " * 80_000,
    "exceeds " * 120_000,
    "exceed context " * 70_000,
    "number of input tokens " * 40_000,
    "(" * 1_000_000,
    "1" * 1_000_000,
    "1,1 + 1 > " * 100_000,
    "<" * 1_000_000,
    "\\" * 1_000_000,
    " " * 1_000_000,
    "data: " * 150_000,
    "[" * 100_000 + "]" * 100_000,
    '{"error":' * 30_000,
    json.dumps(["prompt"] * 30_000),
    json.dumps({str(n): n for n in range(15_000)}),
    json.dumps(json.dumps(json.dumps(json.dumps({"error": "context " * 10_000})))),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_text_costs_no_more_than_its_length(text):
    begun = perf_counter()
    read_refusal(Refusal(status=400, message=text, body=text))
    assert perf_counter() - begun < 1.0


def test_what_a_long_error_says_at_its_ends_is_read():
    said = "prompt is too long: 9 tokens > 8 maximum"
    for text in (said + " x" * 500_000, "x " * 500_000 + said):
        assert read_refusal(Refusal(status=400, message=text)).kind == "overflow"


def test_a_proxy_that_answers_in_html_is_told_from_one_that_names_the_limit():
    assert read_refusal(Refusal(status=413, body=HTML_413)).kind == "too_large"
    named = HTML_413.replace("nginx", "prompt is too long")
    assert read_refusal(Refusal(status=413, body=named)).kind == "overflow"


CASES = os.environ.get("BAROGRAPH_CASES")


@pytest.mark.skipif(CASES is None, reason="BAROGRAPH_CASES names no folder of cases")
def test_the_cases_are_classified_as_they_are_marked():
    for path in Path(CASES or "").rglob("*.json"):
        case = json.loads(path.read_text("utf-8"))
        if case["input"].get("op") != "classify_error":
            continue
        for error in case["input"].get("errors", []):
            fault = read_refusal(
                Refusal(
                    status=error.get("status"),
                    code=error.get("code"),
                    type=error.get("type"),
                    message=error.get("message", ""),
                )
            )
            assert (fault.kind in SIZE) == error["overflow"], error


def _plain(refusal):
    text = f"{refusal.message} {refusal.body}".replace("\\n", " ").replace("\\", "")
    return " ".join(text.replace("’", "'").lower().split())  # noqa: RUF001
