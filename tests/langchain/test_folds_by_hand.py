"""Whoever runs an agent folds its history between turns; the next call shows it."""

import pytest
from stage import agent_at, ask, config, exchanges_of, logged, prove_sound, scanner, scanning

from barograph.core.errors import ArchiveRefused
from barograph.core.events import Compacted, Pruned
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")
scan = scanner(200)


@pytest.fixture
def talk(simulator, session, store):
    """An agent that has found much, and its middleware."""
    ours = Barograph(store, policy=Policy(name="off"))
    agent = agent_at(simulator.url, session, store, [scan], middleware=[ours])
    simulator.play(session, [*(scanning(n) for n in range(16)), DONE, DONE])
    agent.invoke(ask("Find it."), config(session))
    return agent, ours


@pytest.mark.parametrize(("how", "event"), [("prune", Pruned), ("compact", Compacted)])
def test_a_fold_by_hand_is_in_the_log_and_in_the_next_request(  # noqa: PLR0917 - fixtures
    simulator, session, store, talk, how, event
):
    agent, ours = talk
    fold = getattr(ours, how)
    told = fold(session=session, dry_run=True)
    assert told is not None
    assert not [one for one in logged(store, session) if isinstance(one, event)]

    done = fold(session=session)
    assert done == told
    assert done.tokens_after < done.tokens_before
    assert [one.cause for one in logged(store, session) if isinstance(one, event)] == ["manual"]
    assert fold(session=session) is None

    agent.invoke(ask("And now?"), config(session))
    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert len(exchanges[-1].request) < 0.7 * len(exchanges[-2].request)


@pytest.mark.parametrize("how", ["prune", "compact"])
def test_a_session_without_a_call_is_refused(session, talk, how):
    _, ours = talk
    with pytest.raises(ArchiveRefused, match="nothing changed") as refused:
        getattr(ours, how)(session=f"{session}-other")
    assert refused.value.ids["reason"] == "no_call"
