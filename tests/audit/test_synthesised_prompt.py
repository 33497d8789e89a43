"""What goes in front of the messages of a recording that holds no tools and no system prompt."""

import pytest

from barograph.audit.filler import FILLER_TOKENS_PER_CHAR, LEAST_BASE_TOKENS, filler, synthesise
from barograph.audit.recorded import AgentTrack, Recording


def recording(*, systems=(None,), base_tokens=None, tool_names=()):
    tracks = tuple(
        AgentTrack(agent=f"agent{number}", parent_tool_use_id=None, system=system, calls=())
        for number, system in enumerate(systems)
    )
    return Recording(
        name="talk",
        calls=(),
        agents=tracks,
        tool_names=tool_names,
        notes={},
        base_tokens=base_tokens,
        tokens_per_char=None,
    )


def tokens_of(text):
    return len(text) * FILLER_TOKENS_PER_CHAR


@pytest.mark.parametrize(
    ("asked", "estimated", "expected"),
    [
        (None, None, LEAST_BASE_TOKENS),
        (None, 9_000, 9_000),
        (20_000, 9_000, 20_000),
        (0, 9_000, LEAST_BASE_TOKENS),
    ],
)
def test_the_system_prompt_has_the_asked_size(asked, estimated, expected):
    system = synthesise(recording(base_tokens=estimated), asked).systems["agent0"]
    assert expected <= tokens_of(system) < expected + 100


def test_agents_without_a_recorded_prompt_share_one():
    systems = synthesise(recording(systems=(None, None, " "))).systems
    assert len(set(systems.values())) == 1


def test_a_recorded_prompt_stays_in_front_and_is_topped_up_with_the_same_filler():
    systems = synthesise(recording(systems=("Be brief.", None))).systems
    recorded, added = systems["agent0"].split("\n\n")
    assert recorded == "Be brief."
    assert systems["agent1"].startswith(added)
    assert LEAST_BASE_TOKENS <= tokens_of(systems["agent0"]) < LEAST_BASE_TOKENS + 100


def test_a_recorded_prompt_that_is_long_enough_is_left_alone():
    system = "word " * 4_000
    assert synthesise(recording(systems=(system,))).systems == {"agent0": system}


def test_filler_is_prose_that_does_not_repeat_and_grows_from_the_same_start():
    long, short = filler(50_000), filler(1_000)
    assert long.startswith(short)
    sentences = long.splitlines()
    assert sentences[0].startswith("1. Before a file is changed, ")
    assert len({sentence.split(". ", 1)[1] for sentence in sentences}) == len(sentences)


def test_each_tool_has_one_permissive_definition():
    tools = synthesise(recording(tool_names=("edit", "look"))).tools
    assert [tool["name"] for tool in tools] == ["edit", "look"]
    assert tools[0]["input_schema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
    }
