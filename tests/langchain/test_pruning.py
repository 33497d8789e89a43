"""Old results give way to stubs in batches; what they held can be read back by the model."""

import json

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from stage import (
    SYSTEM,
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    logged,
    model_at,
    prove_sound,
    scanner,
    scanning,
)

from barograph.audit.folds import list_folds
from barograph.audit.score import broken_requests
from barograph.core.events import CallPlanned, Pruned
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply
from barograph.store.originals import read_original

BALANCED = Policy(name="balanced", prune_after_rounds=3)
DONE = Reply(content="Done.")
scan = scanner(200)


def run(simulator, session, store, rounds, policy=BALANCED, **more):
    simulator.play(session, [*(scanning(n) for n in range(rounds)), DONE])
    agent = agent_at(simulator.url, session, store, [scan], barograph={"policy": policy}, **more)
    agent.invoke(ask("go"), config(session))
    return exchanges_of(simulator, session)


def passes_of(store, session):
    return [event for event in logged(store, session) if isinstance(event, Pruned)]


def results_of(exchange):
    return [
        block["content"][0]["text"]
        for message in json.loads(exchange.request)["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def test_each_pass_is_one_break_and_nothing_else_breaks(simulator, session, store):
    exchanges = run(simulator, session, store, 30)

    prove_sound(store, session, exchanges)
    passes = passes_of(store, session)
    assert 2 <= len(passes) <= 10
    assert len(broken_requests(exchanges)) == len(passes)
    assert {event.cause for event in passes} == {"rent"}


def test_it_costs_less_than_to_carry_everything(simulator, session, store):
    pruned = run(simulator, session, store, 40)
    carried = run(simulator, f"{session}-off", store, 40, Policy(name="off"))

    def cost(exchanges):
        return sum(
            0.1 * each.usage.read_tokens + 1.25 * each.usage.write_tokens for each in exchanges
        )

    assert cost(pruned) < 0.85 * cost(carried)


def test_the_newest_rounds_stay_whole_and_old_ones_keep_ends_and_facts(simulator, session, store):
    exchanges = run(simulator, session, store, 20)
    results = results_of(exchanges[-1])
    whole = [scan.invoke({"path": f"src/part{n}"}) for n in range(20)]
    assert results[-3:] == whole[-3:]
    assert len(results[0]) < 0.3 * len(whole[0])
    assert results[0].startswith("src/part0/module_0.py:0: def handler_0")
    assert results[0].endswith("handler_199(event): ...")
    assert "read_original" in results[0]


def test_a_history_that_somebody_brings_along_has_its_age(simulator, session, store):
    whole = [scan.invoke({"path": f"src/part{n}"}) for n in range(12)]
    brought = [HumanMessage("go")]
    for n, said in enumerate(whole):
        asked = {"name": "scan", "args": {"path": f"src/part{n}"}, "id": f"s{n}"}
        brought += [
            AIMessage("Scanning.", tool_calls=[asked]),
            ToolMessage(said, tool_call_id=f"s{n}"),
        ]
    simulator.play(session, [DONE])
    agent = agent_at(simulator.url, session, store, [scan], barograph={"policy": BALANCED})
    agent.invoke({"messages": brought}, config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    (only,) = passes_of(store, session)
    assert (only.cause, len(only.stubs)) == ("cold", 9)
    assert results_of(exchanges[0])[-3:] == whole[-3:]


def test_every_original_is_read_back_whole(simulator, session, store):
    run(simulator, session, store, 20)
    handles = [handle for fold in list_folds(store, session) for handle in fold.handles]
    texts = {read_original(store, session, handle) for handle in handles}
    whole = {scan.invoke({"path": f"src/part{n}"}) for n in range(20)}
    assert len(handles) == len(texts) >= 9
    assert texts <= whole


def test_the_model_reads_an_original_with_its_tool(simulator, session, store):
    rounds = 20
    simulator.play(session, [*(scanning(n) for n in range(rounds)), DONE])
    saver = InMemorySaver()
    ours = {"barograph": {"policy": BALANCED}, "checkpointer": saver}
    agent = agent_at(simulator.url, session, store, [scan], **ours)
    agent.invoke(ask("go"), config(session))
    handle = list_folds(store, session)[0].handles[0]

    asked = {"id": handle, "grep": "handler_77("}
    simulator.play(session, [calling(("r1", "read_original", asked)), DONE])
    answer = agent.invoke(ask("what was handler 77?"), config(session))

    (result,) = [m for m in answer["messages"] if getattr(m, "tool_call_id", "") == "r1"]
    assert result.text == "78: src/part0/module_77.py:77: def handler_77(event): ..."
    prove_sound(store, session, exchanges_of(simulator, session))


def test_tools_are_the_same_from_the_first_call_on(simulator, session, store):
    exchanges = run(simulator, session, store, 20)
    names = [[t["name"] for t in json.loads(each.request)["tools"]] for each in exchanges]
    assert {tuple(each) for each in names} == {
        ("history_read", "history_search", "read_original", "scan")
    }


def test_a_new_process_goes_on_with_the_same_stubs(simulator, session, store):
    saver = InMemorySaver()
    simulator.play(session, [*(scanning(n) for n in range(12)), DONE, scanning(12), DONE])
    for text in ("go", "more"):
        agent = agent_at(
            simulator.url,
            session,
            store,
            [scan],
            barograph={"policy": BALANCED},
            checkpointer=saver,
        )
        agent.invoke(ask(text), config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert len(broken_requests(exchanges)) == len(passes_of(store, session))


def test_a_history_that_is_rewound_after_a_pass_is_shown_anew(simulator, session, store):
    simulator.play(session, [*(scanning(n) for n in range(12)), DONE, DONE])
    agent = agent_at(
        simulator.url,
        session,
        store,
        [scan],
        barograph={"policy": BALANCED},
        checkpointer=InMemorySaver(),
    )
    agent.invoke(ask("go"), config(session))
    early = [s for s in agent.get_state_history(config(session)) if s.next == ("model",)][-3]
    agent.invoke(None, early.config)

    assert passes_of(store, session)
    prove_sound(store, session, exchanges_of(simulator, session))


def test_thinking_that_is_bound_to_its_prefix_is_never_made_invalid(simulator, session, store):
    """The provider refuses thinking whose prefix changed: a pass waits for the turn's end."""
    model = model_at(
        simulator.url,
        session,
        model="claude-opus-5-5",
        thinking={"type": "adaptive"},
    )

    def thinking(number):
        thought = {"type": "thinking", "thinking": f"Part {number} is next.", "signature": ""}
        return Reply(content=[thought, *scanning(number).content])

    saver = InMemorySaver()
    for turn in range(3):
        steps = [thinking(10 * turn + n) for n in range(8)]
        simulator.play(session, [*steps, DONE])
        agent = agent_at(
            simulator.url,
            session,
            store,
            [scan],
            barograph={"policy": BALANCED},
            model=model,
            system_prompt=SYSTEM,
            checkpointer=saver,
        )
        agent.invoke(ask(f"turn {turn}"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    passes = passes_of(store, session)
    assert passes
    assert len(broken_requests(exchanges)) == len(passes)


def test_a_pass_is_forced_before_a_request_that_does_not_fit(simulator, session, store):
    tight = Policy(name="fixed", prune_after_rounds=2, window_tokens=14_000, prune_at_ratio=1.0)
    run(simulator, session, store, 12, tight)
    assert {event.cause for event in passes_of(store, session)} == {"forced"}


def test_where_nothing_is_folded_there_is_no_tool_and_no_pass(simulator, session, store):
    exchanges = run(simulator, session, store, 20, Policy(name="off"))
    assert passes_of(store, session) == []
    assert [t["name"] for t in json.loads(exchanges[0].request)["tools"]] == ["scan"]
    assert Barograph(store, policy=Policy(name="off")).tools == ()


def test_what_was_projected_is_what_was_counted_through_every_pass(simulator, session, store):
    exchanges = run(simulator, session, store, 40)
    plans = [event for event in logged(store, session) if isinstance(event, CallPlanned)]
    assert len(passes_of(store, session)) > 2
    for plan, exchange in list(zip(plans, exchanges, strict=True))[1:]:
        counted = exchange.usage.read_tokens + exchange.usage.write_tokens
        counted += exchange.usage.uncached_tokens
        assert abs(plan.projected_tokens - counted) < 0.05 * counted
