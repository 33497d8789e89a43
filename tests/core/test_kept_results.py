"""No pass takes the results of tools that the policy names, nor the plan that was set last."""

import json

from msgspec.structs import replace

from barograph.core.events import Pruned
from barograph.core.parts import texts_in
from barograph.core.policy import Policy
from barograph.store import MemoryStore
from talk import Talk

EAGER = Policy(prune_after_rounds=1, rent_ratio=0.01, nudge_at_rounds=None)
LONG = "\n".join(f"src/{n}.py:{n}: found" for n in range(200))
STEPS = [{"content": f"look at\n{LONG}", "status": "pending"}]


def stubbed(talk):
    return {s.seq for _, e in talk.store.read(talk.name) if isinstance(e, Pruned) for s in e.stubs}


def begun(policy):
    return Talk(MemoryStore(), policy=policy)


def entries(talk):
    return talk.session.state.surface("main").entries


def test_results_of_a_tool_that_is_named_stay_whole():
    talk = begun(replace(EAGER, keep_results=("find_tool",)))
    talk.call(say="go", reply=[("find_tool", {"n": 1})], results=[LONG])
    for n in range(4):
        talk.call(reply=[("read", {"path": f"{n}"})], results=[LONG + str(n)])
    talk.call(reply="done")
    whole = ["".join(texts_in(entry.parts)) for entry in entries(talk)]
    assert LONG in whole
    assert stubbed(talk)
    pending = talk.session.state.path("main").planned
    assert pending.stale_tokens == 0


def test_what_a_tool_that_is_named_is_called_with_does_not_stay():
    talk = begun(replace(EAGER, keep_results=("find_tool",)))
    both = [("find_tool", {"n": 1}), ("write", {"path": "a", "text": LONG})]
    talk.call(say="go", reply=both, results=["found", "ok"])
    for n in range(4):
        talk.call(reply=[("read", {"path": f"{n}"})], results=[LONG + str(n)])
    talk.call(reply="done")
    calls = [part for entry in entries(talk) for part in entry.parts if hasattr(part, "arguments")]
    (written,) = (json.loads(call.arguments) for call in calls if call.name == "write")
    assert written["text"] != LONG


def test_the_current_plan_stays_whole_and_an_older_one_does_not():
    talk = begun(EAGER)
    talk.call(say="go", reply=[("write_todos", {"todos": STEPS})], results=["ok"])
    later = [*STEPS, {"content": "one more", "status": "pending"}]
    talk.call(reply=[("write_todos", {"todos": later})], results=["Updated.\n" + LONG])
    for n in range(4):
        talk.call(reply=[("read", {"path": f"{n}"})], results=[LONG + str(n)])
    talk.call(reply="done")
    plans = [
        json.loads(part.arguments)["todos"]
        for entry in entries(talk)
        for part in entry.parts
        if getattr(part, "name", "") == "write_todos"
    ]
    assert plans[1] == later
    assert "Updated.\n" + LONG in ["".join(texts_in(entry.parts)) for entry in entries(talk)]
    assert plans[0] != STEPS
