"""Conformance: what a model can do by its name, and thinking that earlier models lose."""

import pytest
from wire_prompts import Driver, assistant, call, parts, result, text, user

from barograph.simulator.abilities import family_of, reads_thinking_of

THOUGHT = {"type": "thinking", "thinking": "hm"}


@pytest.mark.parametrize(
    ("model", "producer", "reads"),
    [
        ("claude-fable-5-1", "claude-fable-5-1-20260901", True),
        ("claude-fable-5-1", "claude-opus-5", True),
        ("claude-fable-5-1", "anthropic/claude-opus-5-5", True),
        ("claude-opus-5", "claude-fable-5-1", False),
        ("claude-opus-4-8", "claude-haiku-5-5", True),
        ("other", "other", True),
        ("other", "claude-opus-5", False),
    ],
)
def test_which_model_reads_whose_thinking(model, producer, reads):
    assert reads_thinking_of(model, producer) is reads


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-20250514", ("opus", (4, 0))),
        ("claude-opus-4-5-20251101", ("opus", (4, 5))),
        ("us.anthropic.claude-haiku-4-5-v1:0", ("haiku", (4, 5))),
        ("claude-3-5-haiku-latest", ("haiku", (3, 5))),
        ("claude-3-opus-20240229", ("opus", (3, 0))),
        ("gpt-6", None),
    ],
)
def test_the_family_of_a_model_is_read_from_its_name(model, family):
    assert family_of(model) == family


# Stripping by earlier models


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("claude-haiku-4-5", False),
        ("claude-sonnet-4-5", False),
        ("claude-opus-4-1", False),
        ("claude-opus-4-5", True),
        ("claude-sonnet-4-6", True),
        ("claude-opus-5-5", True),
    ],
)
def test_user_text_after_thinking_strips_it_on_earlier_models(model, kept):
    history = [
        user(text("go", "5m")),
        assistant(THOUGHT | {"signature": "s"}, call("t1")),
        user(result("t1", "5m")),
    ]
    driver = Driver()
    before = driver.send(*history, model=model)
    assert "thinking" in [block.kind for block in before.blocks]
    after = driver.send(*history, assistant(text("b")), user(text("more")), model=model)
    assert ("thinking" in [block.kind for block in after.blocks]) is kept
    assert parts(after)[0] == (before.total_tokens if kept else len("go"))


def test_tool_results_alone_strip_nothing():
    history = [user(text("go"))]
    for name in ("t1", "t2"):
        history += [assistant(THOUGHT | {"signature": name}, call(name)), user(result(name))]
    exchange = Driver().send(*history, model="claude-haiku-4-5")
    assert [block.kind for block in exchange.blocks].count("thinking") == 2
