"""What a call would be the first to write of what the agents of a session share."""

import json

import pytest

from barograph.core.inputs import CallWanted, Header
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.core.sharing import cold_prefix
from barograph.store import MemoryStore
from talk import Talk


@pytest.fixture
def talk():
    store = MemoryStore()
    yield Talk(store)
    store.close()


def prefix(talk, path="main/helper#1", *, policy=None, after=1.0, **more):
    """What a call of that path would be the first to write, as the session stands."""
    tools = json.dumps(talk.tools, ensure_ascii=False, separators=(",", ":"))
    header = Header(model=talk.model, system=(Text(talk.system),), tools=tools)
    wanted = CallWanted(at=talk.at + after, path=path, header=header, messages=(), **more)
    return cold_prefix(talk.session.state, talk.codec, policy or Policy(), wanted)


def test_agents_with_the_same_tools_and_system_would_write_the_same(talk):
    assert prefix(talk, "main/helper#1") == prefix(talk, "main/helper#2") is not None


@pytest.mark.parametrize("part", ["system", "tools", "model"])
def test_agents_that_differ_in_one_part_would_not(talk, part):
    before = prefix(talk)
    other = {"system": talk.system + "!", "tools": talk.tools[:1], "model": "claude-opus-5"}
    setattr(talk, part, other[part])
    assert prefix(talk) not in (None, before)


def test_what_a_sibling_wrote_is_warm_until_its_life_is_over(talk):
    talk.call(path="main/helper#1", say="one")
    assert prefix(talk, "main/helper#2") is None
    assert prefix(talk, "main/helper#2", after=301.0) is not None


def test_it_is_warm_for_a_session_that_is_opened_anew(talk):
    talk.call(path="main/helper#1", say="one")
    talk.restart()
    assert prefix(talk, "main/helper#2") is None


def test_a_call_without_an_answer_wrote_nothing_for_sure(talk):
    talk.call(path="main/helper#1", say="one", answers=False)
    assert prefix(talk, "main/helper#2") is not None


def test_what_no_marker_is_placed_for_is_not_written(talk):
    assert prefix(talk, policy=Policy(markers="off")) is None
    assert prefix(talk, reserved=2) is None
    talk.system = "Be brief."
    assert prefix(talk) is None


def test_nobody_needs_to_know_who_is_not_to_wait(talk):
    assert prefix(talk, policy=Policy(fanout_wait_seconds=0)) is None


def test_tools_that_a_client_adds_do_not_make_an_agent_look_cold(talk):
    added = {"name": "answer", "description": "", "input_schema": {"type": "object"}}

    def with_one_more(body):
        given = json.loads(body)
        given["tools"].append(added)
        return json.dumps(given, separators=(",", ":")).encode()

    talk.call(path="main/helper#1", say="one", edit=with_one_more)
    assert prefix(talk, "main/helper#1") is None
