"""An agent whose prompt or tools change from call to call is told of once, and of what to do."""

import itertools
import logging

import pytest
from langchain.agents.middleware import dynamic_prompt
from stage import agent_at, ask, config, look, looking

from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")
PROSE = "Be careful. "


@pytest.fixture
def warned(simulator, store, session, caplog):
    """The lines said of a run of so many calls whose system prompt is this one or that."""

    def run(prompts, *, tools=(look,), calls=4, mode="normal"):
        texts = itertools.cycle(prompts)

        @dynamic_prompt
        def prompt(_):
            return PROSE * 300 + next(texts)

        agent = agent_at(
            simulator.url, session, store, tools, middleware=[prompt, Barograph(store, mode=mode)]
        )
        simulator.play(session, [*(looking(f"a{n}") for n in range(calls - 1)), DONE])
        with caplog.at_level(logging.WARNING, logger="barograph"):
            agent.invoke(ask("go"), config(session))
        return [one for one in caplog.messages if "changes from call to call" in one]

    return run


def test_a_clock_is_named_once_with_what_to_do(warned, session):
    (line,) = warned([f"It is 10:00:0{n}." for n in range(4)])

    assert f"main in session {session}" in line
    assert "system prompt" in line
    assert "10:00:01" in line
    assert "10:00:00" in line
    assert "frame=[Source(...)]" in line


def test_other_text_is_named_when_it_changes_again(warned):
    (line,) = warned(["The cat sleeps.", "The cat wakes.", "The cat eats.", "The cat runs."])

    assert "eats" in line


def test_a_prompt_that_was_changed_once_is_nobodys_business(warned):
    assert warned(["The cat sleeps.", *["The cat wakes."] * 3]) == []


def test_a_prompt_that_stays_is_not_spoken_of(warned):
    assert warned(["The cat sleeps; it is 10:00:00."]) == []


def test_invariant_10_of_a_private_session_no_word_is_quoted(warned):
    (line,) = warned([f"Anna is ill; it is 10:00:0{n}." for n in range(4)], mode="private")

    assert "system prompt, moment. Leave the clock" in line
    assert "Anna" not in line
    assert "10:00" not in line
