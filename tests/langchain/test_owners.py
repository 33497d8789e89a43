"""One owner of the surface: what create_agent, deepagents and a hand-made list are told."""

import warnings

import pytest
from deepagents import create_deep_agent, register_harness_profile
from deepagents.profiles.harness import harness_profiles
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ContextEditingMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import HumanMessage
from stage import (
    SYSTEM,
    ask,
    config,
    exchanges_of,
    kinds,
    logged,
    look,
    model_at,
    records,
)

from barograph.audit.verify import verify_session
from barograph.core.errors import SecondOwner, SurfaceError, UsageError
from barograph.core.events import CallFailed
from barograph.core.policy import Policy
from barograph.langchain import Barograph, check, deep_agent_profile, owners
from barograph.simulator import Reply

DONE = Reply(content="Done.")


class Summariser(SummarizationMiddleware):
    """Somebody's own kind of it."""


def summarising(model):
    return SummarizationMiddleware(model, trigger=("messages", 50))


def editing(_model):
    return ContextEditingMiddleware()


def caching(_model):
    return AnthropicPromptCachingMiddleware()


def of_ones_own(model):
    return Summariser(model, trigger=("messages", 50))


RIVALS = [summarising, editing, caching, of_ones_own]


@pytest.fixture(autouse=True)
def no_profile_stays(monkeypatch):
    """`deepagents` keeps profiles for the whole process."""
    monkeypatch.setattr(harness_profiles, "_HARNESS_PROFILES", {})


@pytest.fixture
def unseen_list(monkeypatch):
    """As if the agent were built by other means than create_agent."""
    monkeypatch.setattr(owners, "_stack_around", lambda _ours: None)


@pytest.fixture
def model(simulator, session):
    return model_at(simulator.url, session)


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("is_first", [True, False])
def test_create_agent_refuses_another_owner_wherever_it_stands(model, store, rival, is_first):
    pair = [rival(model), Barograph(store)]
    name = pair[0].name
    with pytest.raises(SecondOwner, match=name) as refused:
        create_agent(model, [look], middleware=pair if is_first else pair[::-1])
    assert refused.value.ids["middlewares"] == (name,)
    assert "Remove it" in refused.value.next_step


@pytest.mark.usefixtures("unseen_list")
@pytest.mark.parametrize("rival", RIVALS)
def test_check_finds_an_owner_that_the_list_did_not_show(model, store, rival):
    agent = create_agent(model, [look], middleware=[rival(model), Barograph(store)])
    with pytest.raises(SecondOwner, match=rival(model).name):
        check(agent)


@pytest.mark.usefixtures("unseen_list")
@pytest.mark.parametrize("rival", [editing, caching])
def test_the_first_call_finds_an_owner_that_wraps_it(simulator, session, model, store, rival):
    simulator.play(session, [DONE])
    agent = create_agent(model, [look], middleware=[rival(model), Barograph(store)])
    with pytest.raises(SecondOwner):
        agent.invoke(ask("go"), config(session))
    assert exchanges_of(simulator, session) == []


def test_an_agent_of_its_own_passes_the_check(model, store):
    check(create_agent(model, [look], middleware=[ModelRetryMiddleware(), Barograph(store)]))


def test_check_says_what_is_no_agent_and_which_agent_is_not_governed(model):
    with pytest.raises(UsageError, match="int is not an agent"):
        check(3)
    with pytest.raises(UsageError, match="not among the middlewares"):
        check(create_agent(model, [look]))


def test_a_middleware_behind_ours_that_may_change_requests_is_warned_of(model, store):
    with pytest.warns(UserWarning, match="not the last middleware: ModelRetryMiddleware"):
        create_agent(model, [look], middleware=[Barograph(store), ModelRetryMiddleware()])


def test_a_middleware_behind_ours_that_only_sees_tools_is_welcome(model, store):
    class Tooling(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            return handler(request)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create_agent(model, [look], middleware=[Barograph(store), Tooling()])


def deep_agent(model, store, **more):
    register_harness_profile("anthropic", deep_agent_profile(Barograph(store)))
    return create_deep_agent(model, [look], system_prompt=SYSTEM, **more)


def test_deepagents_as_it_comes_is_refused(model, store):
    with pytest.raises(SecondOwner, match=r"summarises the history.*places cache breakpoints"):
        create_deep_agent(model, [look], middleware=[Barograph(store)])


@pytest.mark.parametrize("given", ["memory", "skills"])
def test_text_that_deepagents_writes_behind_ours_is_refused(model, store, given):
    with pytest.raises(SecondOwner, match="system message") as refused:
        deep_agent(model, store, **{given: ["/notes/"]})
    assert "deep_agent_memory" in refused.value.next_step


class Meddler(AgentMiddleware):
    """Changes what Barograph decided."""

    def wrap_model_call(self, request, handler):
        return handler(request.override(messages=[HumanMessage("something else")]))


def meddled(model, store, **policy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = [Barograph(store, policy=Policy(**policy)), Meddler()]
        return create_agent(model, [look], middleware=stack)


def test_a_request_that_is_not_the_surface_is_spoken_of_once(
    simulator, session, model, store, caplog
):
    simulator.play(session, [DONE, DONE])
    agent = meddled(model, store)
    for _ in range(2):
        agent.invoke(ask("go"), config(session))
    (told,) = [line for line in caplog.messages if "is not the surface" in line]
    assert "differs in 0" in told
    assert [record.mismatches for record in records(store, session)] == [("0",), ("0",)]


def test_a_request_that_is_not_the_surface_does_not_leave_under_stop(simulator, session, store):
    simulator.play(session, [DONE])
    model = model_at(simulator.url, session, max_retries=1)
    with pytest.raises(SurfaceError, match="is not the surface"):
        meddled(model, store, on_mismatch="stop").invoke(ask("go"), config(session))
    assert exchanges_of(simulator, session) == []
    assert kinds(store, session)["RequestSent"] == 1
    assert [e.error for e in logged(store, session) if isinstance(e, CallFailed)] == [
        "SurfaceError"
    ]
    (finding,) = verify_session(store, session).findings
    assert finding.what == "The request of call 1 has another message 0 than its log gives."
    # nothing runs any more, so another worker need not wait
    assert store.append(session, logged(store, session)[:1], after=store.last_seq(session))
