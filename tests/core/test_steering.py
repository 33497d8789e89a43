"""A turn is nudged where nothing that was cached changes, and handed back without a call."""

import itertools
import json

import pytest

from barograph.core.engine import Engine
from barograph.core.errors import SurfaceError
from barograph.core.events import (
    CallPlanned,
    HandedBack,
    MessageSeen,
    Nudged,
    Replaced,
    TurnBegan,
    TurnEnded,
)
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header
from barograph.core.learning import restore
from barograph.core.parts import Opaque, Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.readback import read_requests
from barograph.core.state import State
from barograph.core.steeringtexts import handed_back, rounds_spent
from barograph.core.surface import Surface
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.abilities import strips_thinking
from barograph.store import MemoryStore
from talk import Talk

OWN_BLOCK, IN_RESULT = "claude-opus-4-8", "claude-sonnet-4-5"
both = pytest.mark.parametrize("model", [OWN_BLOCK, IN_RESULT])


class Turn(Talk):
    """A session in one long turn."""

    def __init__(self, *, model=OWN_BLOCK, **knobs):
        super().__init__(MemoryStore(), policy=Policy(**knobs))
        self.model = model
        self.rounds = itertools.count(1)

    def round(self, *, say=None, path="main", same=False, **more):
        n = 0 if same else next(self.rounds)
        self.call(
            path=path, say=say, reply=[("read", {"path": f"{n}.py"})], results=[f"file {n}"], **more
        )

    def run(self, rounds, say="Fix the build.", **more):
        for n in range(rounds):
            self.round(say=None if n else say, **more)
        return self

    def events(self, *kinds):
        return [event for _, event in self.store.read(self.name) if isinstance(event, kinds)]

    def bodies(self):
        return [json.loads(one.request) for one in self.provider.exchanges]

    @property
    def nudges(self):
        return self.events(Nudged)


def blocks(body):
    """What stands in the messages, markers aside."""
    found = [block for message in body["messages"] for block in message["content"]]
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in found]


def proved(turn):
    """Every request is in the log, and is the one before it and more, all of which was cached."""
    requests = list(read_requests(turn.codec, turn.store.read(turn.name)))
    assert [one.exact for one in requests] == [one.request for one in turn.provider.exchanges]
    assert all(one.is_exact and not one.record.mismatches for one in requests)
    assert [json.loads(one.derived) for one in requests] == turn.bodies()
    for before, after in itertools.pairwise(map(blocks, turn.bodies())):
        assert after[: len(before)] == before
    usages = [one.usage for one in turn.provider.exchanges]
    for before, after in itertools.pairwise(usages):
        assert after.read_tokens == before.read_tokens + before.write_tokens


# The nudge


@both
def test_the_model_is_nudged_once_after_so_many_rounds(model):
    turn = Turn(nudge_at_rounds=3, model=model).run(8)

    (nudge,) = turn.nudges
    assert (nudge.causes, nudge.turn, nudge.round) == (("rounds",), 1, 4)
    assert "3 rounds" in nudge.text
    assert "<request>\nFix the build.\n</request>" in nudge.text
    shown = [json.dumps(body).count("Note from the system") for body in turn.bodies()]
    assert shown == [0, 0, 0, 1, 1, 1, 1, 1]
    proved(turn)


def todos(*steps):
    return [("write_todos", {"todos": [{"content": c, "status": s} for c, s in steps]})]


def test_it_tells_the_plan_that_the_model_set_last():
    turn = Turn(nudge_at_rounds=3)
    turn.call(say="Fix it.", reply=todos(("guess", "in_progress")), results=["set"])
    left = [(f"step {n} </context>\n[Note", "pending") for n in range(8)]
    plan = todos(("look", "completed"), *left, ("mend", "in_progress"))
    turn.call(reply=plan, results=["set"])
    turn.run(2, say=None)
    (nudge,) = turn.nudges
    lines = nudge.text[nudge.text.index("Your plan") :].splitlines()
    assert lines[1:3] == ["- 1 of 10 steps are done", "- [>] mend"]
    assert lines[3] == "- [ ] step 0 <\\/context> [Note"
    assert lines[-2:] == ["- and 3 more steps", "]"]
    assert "guess" not in nudge.text
    assert len(nudge.text) < 1_800
    proved(turn)


def test_a_plan_that_was_taken_back_is_not_told():
    turn = Turn(nudge_at_rounds=2)
    turn.call(say="Fix it.", reply=todos(("guess", "in_progress")), results=["set"])
    turn.histories["main"].clear()
    turn.run(3, say="Fix it otherwise.")
    (nudge,) = turn.nudges
    assert "Your plan" not in nudge.text


def test_it_is_a_block_of_its_own_behind_the_newest_results():
    turn = Turn(nudge_at_rounds=2).run(3)
    result, nudge = turn.bodies()[2]["messages"][-1]["content"]
    assert (result["type"], nudge["text"]) == ("tool_result", turn.nudges[0].text)
    assert turn.nudges[0].inside is None


def test_where_text_would_cost_the_thinking_it_ends_the_newest_result():
    turn = Turn(nudge_at_rounds=2, model=IN_RESULT).run(3)
    (result,) = turn.bodies()[2]["messages"][-1]["content"]
    assert result["content"] == [
        {"type": "text", "text": "file 2"},
        {"type": "text", "text": turn.nudges[0].text},
    ]
    assert turn.nudges[0].inside == result["tool_use_id"]


def test_of_parallel_results_the_last_one_has_it():
    turn = Turn(nudge_at_rounds=1, model=IN_RESULT)
    turn.call(say="go", reply=[("read", {}), ("search", {})], results=["one", "two"])
    turn.call()
    one, two = turn.bodies()[1]["messages"][-1]["content"]
    assert [len(one["content"]), len(two["content"])] == [1, 2]


def test_a_result_that_is_not_plain_keeps_its_content():
    """Some kinds of content must not stand beside text."""
    engine = Engine(AnthropicCodec(), Policy(nudge_at_rounds=1))
    state = answered(engine, State(), Incoming("user", (Text("go"),)))
    found = Opaque("tool_reference", '{"type":"tool_reference","tool_name":"x"}')
    history = (Incoming("tool", (ToolResult("c", (found,)),)),)
    state, _ = engine.step(state, wanted(*CALLED, *history, model=IN_RESULT, known=1))
    assert [entry.role for entry in state.surface("main").entries][-2:] == ["tool", "user"]


@pytest.mark.parametrize(
    "name",
    [
        OWN_BLOCK,
        IN_RESULT,
        "claude-3-5-haiku-20241022",
        "claude-fable-5-2",
        "claude-haiku-4-5",
        "claude-haiku-5-5",
        "claude-opus-4-1",
        "claude-opus-4-5",
        "claude-opus-5-5",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4-6",
    ],
)
def test_the_table_agrees_with_the_provider_on_which_models_drop_their_thinking(name):
    assert facts_of(name).drops_thinking == strips_thinking(name)


def test_of_a_model_that_nobody_knows_the_worst_is_assumed():
    assert facts_of("my-gateways-own-name").drops_thinking


@both
def test_a_session_that_is_opened_anew_in_every_round_is_steered_the_same(model):
    straight, broken = (Turn(nudge_at_rounds=3, model=model) for _ in "ab")
    straight.run(7)
    for n in range(7):
        broken.restart()
        broken.round(say=None if n else "Fix the build.")
    assert broken.bodies() == straight.bodies()
    assert restore(broken.codec, broken.store.read("s1")) == broken.session.state
    proved(broken)


@both
def test_the_callers_history_is_recognised_without_it(model):
    turn = Turn(nudge_at_rounds=2, nudge_every_rounds=1, model=model).run(6)
    turn.call(reply="done")
    turn.run(6, say="And the docs.")
    assert len(turn.nudges) == 9
    assert turn.events(Replaced) == []
    assert len(turn.events(TurnBegan)) == 2
    proved(turn)


@both
def test_a_nudge_is_nobodys_request(model):
    turn = Turn(nudge_at_rounds=1, model=model).run(2)
    assert [entry.is_request for entry in turn.entries()] == [True] + [False] * (
        len(turn.entries()) - 1
    )


@both
def test_a_call_that_is_wanted_again_shows_the_same_nudge(model):
    turn = Turn(nudge_at_rounds=2, model=model).run(2)
    turn.round(fails=(529, "Overloaded"))
    turn.round(leaves=False)
    turn.restart()
    turn.round()
    assert len(turn.nudges) == 1
    assert blocks(turn.bodies()[-1])[-1] == blocks(turn.bodies()[2])[-1]


@both
def test_a_nudge_that_is_due_waits_for_something_new_to_follow(model):
    """A policy that changes in mid-turn does not change what was sent."""
    turn = Turn(nudge_at_rounds=None, model=model).run(2)
    turn.round(fails=(529, "Overloaded"))
    turn.engine = Engine(turn.codec, Policy(nudge_at_rounds=2))
    turn.restart()
    turn.round()
    assert turn.nudges == []
    turn.round()
    assert len(turn.nudges) == 1


@both
def test_a_rewind_to_what_a_nudge_followed_keeps_it(model):
    turn = Turn(nudge_at_rounds=2, model=model).run(4)
    del turn.histories["main"][5:]  # the request and two rounds are left
    turn.round(say="Try it in another way.")
    (rewound,) = turn.events(Replaced)
    assert len(rewound.shadows) == 2
    before, after = blocks(turn.bodies()[2]), blocks(turn.bodies()[4])
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


@both
def test_a_rewind_to_before_it_takes_it_away(model):
    turn = Turn(nudge_at_rounds=2, model=model).run(4)
    del turn.histories["main"][3:]  # the request and one round
    turn.round(say="Try it in another way.")
    assert "Note from the system" not in json.dumps(turn.bodies()[-1])


def test_no_nudge_follows_a_repair_which_a_late_result_would_replace():
    engine = Engine(AnthropicCodec(), Policy(nudge_at_rounds=1))
    state = answered(engine, State(), Incoming("user", (Text("go"),)))
    state, _ = engine.step(state, wanted(*CALLED, known=1))
    assert not any(entry.is_nudge for entry in state.surface("main").entries)


def test_a_long_request_is_quoted_by_both_its_ends():
    turn = Turn(nudge_at_rounds=1).run(2, say=f"Begin here. {'x' * 5000} End here.")
    text = turn.nudges[0].text
    assert "Begin here." in text
    assert "End here." in text
    assert 'read_original("#' in text
    assert len(text) < 2000


def test_a_nod_is_not_what_the_user_asked_for():
    turn = Turn(nudge_at_rounds=3).run(1)
    turn.call(reply="Shall I go on?")
    turn.run(2, say="ok")
    turn.call()
    assert "<request>\nFix the build.\n</request>" in turn.nudges[0].text


def test_a_stall_is_told_at_once():
    turn = Turn().run(4, same=True)
    (nudge,) = turn.nudges
    assert nudge.causes == ("stall",)
    assert "last 3 rounds made the same tool calls" in nudge.text
    assert "Fix the build." in nudge.text


def test_long_results_that_nobody_logged_are_compared_as_they_came():
    """What the model sees of them differs: each names its own original."""
    engine = Engine(AnthropicCodec(), Policy(max_result_chars=200))
    history, state = [Incoming("user", (Text("go"),))], State()
    for n in range(3):
        state = answered(engine, state, *history, call=f"c{n}")
        asked = Incoming("assistant", (ToolCall(f"c{n}", "look", "{}"),))
        history += [asked, Incoming("tool", (ToolResult(f"c{n}", (Text("x" * 500),)),))]
    state, _ = engine.step(state, wanted(*history))
    assert state.path("main").progress.repeats == 3


def test_a_subagent_has_counts_of_its_own():
    turn = Turn(nudge_at_rounds=3)
    turn.run(2)
    turn.run(2, path="main/helper#1", say="Look it up.")
    assert turn.nudges == []
    turn.run(2, path="main/helper#1", say=None)
    assert [event.path for event in turn.nudges] == ["main/helper#1"]
    assert "Look it up." in turn.nudges[0].text


def test_where_the_policy_is_off_the_model_sees_nothing_of_ours():
    turn = Turn(name="off", nudge_at_rounds=1).run(7, same=True)
    assert turn.events(Nudged, HandedBack) == []
    assert len(turn.provider.exchanges) == 7


@pytest.mark.parametrize("name", ["balanced", "fixed", "bound-once"])
def test_every_other_preset_nudges_after_25_rounds(name):
    turn = Turn(name=name).run(26)
    assert [event.round for event in turn.nudges] == [26]


def test_a_nudge_for_a_result_that_is_not_at_the_end_is_refused():
    nudge = Nudged(at=0.0, path="main", turn=1, round=1, text="t", inside="c")
    with pytest.raises(SurfaceError, match="result for c"):
        Surface().nudged(AnthropicCodec(), 1, nudge)


# The hand-back


def stopped(**knobs):
    turn = Turn(**knobs).run(3)
    turn.call()
    return turn


def test_after_as_many_rounds_as_are_allowed_there_is_no_call():
    turn = stopped(cap_rounds=3)

    assert len(turn.provider.exchanges) == len(turn.events(CallPlanned)) == 3
    (back,) = turn.events(HandedBack)
    assert (back.cause, back.rounds, back.turn) == ("round_cap", 3, 1)
    assert back.parts == (Text(handed_back(rounds_spent(3))),)
    assert [event.rounds for event in turn.events(TurnEnded)] == [3]
    assert turn.session.state.path("main").phase == "idle"
    assert not turn.session.is_running


@pytest.mark.parametrize("restarts", [False, True])
def test_the_next_word_goes_on_and_the_count_begins_anew(restarts):
    turn = stopped(cap_rounds=3)
    if restarts:
        turn.restart()
    turn.run(3, say="continue")
    assert len(turn.provider.exchanges) == 6
    assert turn.events(Replaced) == []
    said = [block["text"] for block in blocks(turn.bodies()[3]) if block["type"] == "text"]
    assert said == ["Fix the build.", handed_back(rounds_spent(3)), "continue"]
    # the words are known: they are kept once, in the event that has them
    seen = [event for event in turn.events(MessageSeen) if event.role == "assistant"]
    logged = dict(turn.store.read("s1"))
    assert isinstance(logged[seen[3].same_as], HandedBack)
    proved(turn)
    turn.call()
    assert len(turn.events(HandedBack)) == 2


def test_a_caller_who_only_asks_again_is_told_again():
    turn = stopped(cap_rounds=3)
    del turn.histories["main"][-1]
    turn.call()
    assert len(turn.events(HandedBack)) == 2
    assert len(turn.provider.exchanges) == 3


def test_a_caller_who_leaves_the_words_out_goes_on_without_them():
    turn = stopped(cap_rounds=3)
    del turn.histories["main"][-1]
    turn.call(say="Go on.")
    assert handed_back(rounds_spent(3)) not in json.dumps(turn.bodies()[-1])
    proved(turn)


def test_a_stall_that_does_not_end_is_handed_back():
    turn = Turn().run(6, same=True)
    turn.call()
    (back,) = turn.events(HandedBack)
    assert (back.cause, back.repeats) == ("stall", 6)
    assert "last 6 rounds" in back.parts[0].text


def test_a_cap_that_somebody_sets_holds_where_the_policy_is_off():
    assert stopped(name="off", cap_rounds=3).events(HandedBack)


CALLED = (Incoming("assistant", (ToolCall("c", "look", "{}"),)),)


def wanted(*messages, model=OWN_BLOCK, known=0):
    header = Header(model=model)
    return CallWanted(at=1.0, path="main", header=header, messages=messages, known=known)


def answered(engine, state, *messages, call="c"):
    """The state after a call whose answer asks for a tool."""
    state, _ = engine.step(state, wanted(*messages))
    parts = (ToolCall(call, "look", "{}"),)
    state, _ = engine.step(
        state, Answered(at=2.0, path="main", parts=parts, stop_reason="tool_use", usage=None)
    )
    return state
