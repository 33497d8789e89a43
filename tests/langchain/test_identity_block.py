"""Accounts that must say who they are: a provider that demands it takes every request."""

import json

import anthropic
import pytest
from langchain_core.messages import SystemMessage
from stage import SYSTEM, agent_at, ask, config, exchanges_of, looking, prove, prove_sound

from barograph.core.policy import Policy
from barograph.simulator import Reply, Simulator, Switches

IDENTITY = "You are A, the agent of B."
ALONE = {"type": "text", "text": IDENTITY}
MARKER = {"type": "ephemeral", "ttl": "5m"}
DONE = Reply(content="Done.")


@pytest.fixture(scope="module")
def simulator():
    with Simulator(switches=Switches(identity=IDENTITY)) as running:
        yield running


def blocks(*texts):
    return SystemMessage([{"type": "text", "text": text} for text in texts])


def identified_agent(simulator, session, store, system=SYSTEM, **more):
    more.setdefault("barograph", {"policy": Policy(identity=IDENTITY)})
    return agent_at(simulator.url, session, store, system_prompt=system, **more)


@pytest.mark.parametrize(
    "system",
    [
        SYSTEM,
        f"{IDENTITY}\n\n{SYSTEM}",
        blocks(IDENTITY, SYSTEM),
        blocks(IDENTITY[:5], f"{IDENTITY[5:]}\n{SYSTEM}"),
        SystemMessage([{**ALONE, "cache_control": {"type": "ephemeral"}}, SYSTEM]),
    ],
    ids=["without it", "merged", "apart", "cut", "marked"],
)
def test_the_system_field_is_the_identity_alone_and_the_rest_marked(
    simulator, session, store, system
):
    simulator.play(session, [looking("a"), DONE])
    identified_agent(simulator, session, store, system).invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove(store, session, exchanges)
    for each in exchanges:
        assert json.loads(each.request)["system"] == [
            ALONE,
            {"type": "text", "text": SYSTEM, "cache_control": MARKER},
        ]


def test_an_agent_without_a_system_prompt_says_it_too(simulator, session, store):
    simulator.play(session, [looking("a"), DONE])
    identified_agent(simulator, session, store, None).invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert all(json.loads(each.request)["system"] == [ALONE] for each in exchanges)


def test_without_it_such_a_provider_refuses_in_words_that_tell_nothing(simulator, session, store):
    simulator.play(session, [DONE])
    agent = identified_agent(simulator, session, store, barograph={})
    with pytest.raises(anthropic.RateLimitError, match="Error"):
        agent.invoke(ask("go"), config(session))
    assert [each.status for each in exchanges_of(simulator, session)] == [429]
