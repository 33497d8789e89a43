"""A refused call is planned again once, in another form; what the refusal says is learned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barograph.core.engine import Append, Engine, Send
from barograph.core.events import AttemptFailed, CallFailed, CallPlanned, Compacted, Pruned, Usage
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, BodyLeft, CallWanted, Header, Overflow, Refused
from barograph.core.learning import restore
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.recovery import LEAST_ROOM_TOKENS
from barograph.core.state import State
from barograph.providers.anthropic.codec import AnthropicCodec

MODEL = "claude-opus-4-8"
# The same results over and over are no stall here.
BALANCED = Policy(
    rent_ratio=100.0, summary="digest", stall_nudge_repeats=None, stall_stop_repeats=None
)
LONG = "\n".join(f"src/part.py:{n}: def handler_{n}(event): ..." for n in range(100))
TOO_LONG = Overflow()
REPORTED = Usage(
    read_tokens=0,
    write_5m_tokens=0,
    write_1h_tokens=0,
    uncached_tokens=1200,
    output_tokens=9,
)
MARKERS = "messages.0.cache_control: Extra inputs are not permitted"


class Agent:
    """Rounds of one path, by hand: each asks for tools and gets long results."""

    def __init__(self, policy=BALANCED, *, asked_tokens=4000):
        self.engine = Engine(AnthropicCodec(), policy)
        self.state = State()
        self.events = []
        self.messages = [Incoming("user", (Text("go"),))]
        self.asked_tokens = asked_tokens
        self.wanted = None

    def give(self, one):
        self.state, effects = self.engine.step(self.state, one)
        self.events += [e for each in effects if isinstance(each, Append) for e in each.events]
        return next((each for each in effects if isinstance(each, Send)), None)

    def send(self):
        self.wanted = CallWanted(
            at=1.0,
            path="main",
            header=Header(model=MODEL),
            messages=tuple(self.messages),
            reserve_tokens=self.asked_tokens,
        )
        send = self.give(self.wanted)
        self.leave()
        return send

    def leave(self):
        body = b'{"model":"claude-opus-4-8","messages":[]}'
        header = Header(model=MODEL)
        self.give(BodyLeft(at=1.0, path="main", header=header, body=body, observed=True))

    def round(self, results=1, text=LONG, usage=None):
        self.send()
        number = len(self.messages)
        calls = tuple(ToolCall(f"c{number}-{n}", "look", "{}") for n in range(results))
        self.give(Answered(at=2.0, path="main", parts=calls, stop_reason="tool_use", usage=usage))
        self.messages.append(Incoming("assistant", calls))
        self.messages += [Incoming("tool", (ToolResult(call.id, (Text(text),)),)) for call in calls]

    def refuse(self, overflow=TOO_LONG, message="prompt is too long"):
        refused = Refused(
            at=3.0,
            path="main",
            error="BadRequestError",
            status=400,
            message=message,
            wanted=replace(self.wanted, messages=()),
            overflow=overflow,
        )
        send = self.give(refused)
        if send is not None:
            self.leave()
        return send

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def agent_after(rounds, policy=BALANCED, **more):
    agent = Agent(policy, **more)
    for _ in range(rounds):
        agent.round()
    return agent


def whole(send):
    """Which results of a surface are whole, in order."""
    return [
        part.content == (Text(LONG),)
        for entry in send.surface.entries
        for part in entry.parts
        if isinstance(part, ToolResult)
    ]


REFUSALS = st.sampled_from(
    [
        (TOO_LONG, "prompt is too long"),
        (Overflow(window_tokens=9_000, input_tokens=9_500), "prompt is too long"),
        (Overflow(window_tokens=9_000, room_tokens=2_000), "input length and max_tokens"),
        (None, MARKERS),
        (None, "Overloaded"),
    ]
)


@given(st.integers(0, 4), st.lists(REFUSALS, min_size=1, max_size=3))
def test_invariant_8_a_call_is_planned_again_once_and_then_differs(rounds, refusals):
    agent = agent_after(rounds)
    before = agent.send()
    again = []
    for refusal in refusals:
        send = agent.refuse(*refusal)
        if send is None:
            break
        again.append(send)
    assert len(again) <= 1
    for send in again:
        assert send.plan.call == before.plan.call
        forms = [
            (one.surface.digest, one.plan.max_tokens, one.breakpoints) for one in (before, send)
        ]
        assert forms[0] != forms[1]
    ended = agent.of(CallFailed)
    assert len(ended) == (len(refusals) > len(again))


@given(st.integers(1, 5), st.lists(REFUSALS, min_size=1, max_size=2))
def test_invariant_3_a_restart_knows_what_the_refusals_said(rounds, refusals):
    agent = agent_after(rounds)
    for refusal in refusals:
        agent.send()
        agent.refuse(*refusal)
    again = restore(AnthropicCodec(), enumerate(agent.events, start=1))
    assert again.windows == agent.state.windows
    assert again.resting == agent.state.resting
    assert again.path("main") == agent.state.path("main")


def test_the_attempt_is_logged_before_the_pass_and_the_plan():
    agent = agent_after(3)
    agent.send()
    begun = len(agent.events)
    agent.refuse()
    assert [type(event) for event in agent.events[begun:]][:3] == [
        AttemptFailed,
        Pruned,
        CallPlanned,
    ]


def test_young_results_give_way_where_no_old_ones_are():
    agent = agent_after(4)
    agent.send()
    assert whole(agent.refuse()) == [False, False, False, True]


def test_the_newest_round_stays_whole_however_many_results_it_has():
    agent = agent_after(1)
    agent.round(results=3)
    agent.send()
    assert whole(agent.refuse()) == [False, True, True, True]


def test_with_nothing_but_the_newest_round_there_is_no_second_try():
    agent = agent_after(1)
    agent.send()
    assert agent.refuse() is None
    assert agent.of(AttemptFailed) == agent.of(Pruned) == []
    assert len(agent.of(CallFailed)) == 1


def test_nothing_is_folded_where_nothing_may_be():
    agent = agent_after(3)
    agent.send()
    agent.wanted = replace(agent.wanted, folds=False)
    assert agent.refuse() is None
    assert agent.of(Pruned) == agent.of(Compacted) == []


def test_no_more_is_taken_than_makes_room():
    agent = agent_after(9)
    plan = agent.send().plan
    tokens = plan.projected_tokens + 100
    send = agent.refuse(Overflow(window_tokens=tokens + 3900, input_tokens=tokens))
    kept = whole(send)
    assert kept == sorted(kept)
    assert 5 <= sum(kept) <= 8
    assert send.plan.projected_tokens <= 0.9 * tokens


@pytest.mark.parametrize(
    ("asked", "room", "max_tokens"),
    [
        (4000, 3999, 3999),
        (4000, LEAST_ROOM_TOKENS, LEAST_ROOM_TOKENS),
        (4000, LEAST_ROOM_TOKENS - 1, None),
        (1000, 500, 500),
        (1000, 499, None),
        (4000, 4000, None),  # nothing would change by it
        (4000, None, None),
    ],
)
def test_room_is_given_back_where_enough_is_left_and_else_it_is_made(asked, room, max_tokens):
    agent = agent_after(3, asked_tokens=asked)
    before = agent.send()
    send = agent.refuse(Overflow(room_tokens=room))
    assert send.plan.max_tokens == max_tokens
    assert (send.surface.digest == before.surface.digest) == (max_tokens is not None)
    assert agent.of(AttemptFailed)[-1].cause == ("output_room" if max_tokens else "overflow")


def test_where_nothing_is_folded_nothing_is_tried_and_the_window_is_learned():
    agent = agent_after(3, Policy(name="off"))
    for overflow in (Overflow(window_tokens=5_000), Overflow(room_tokens=2_000)):
        agent.send()
        assert agent.refuse(overflow) is None
    assert agent.state.windows == {MODEL: 5_000}
    assert agent.of(AttemptFailed) == []


def test_where_nothing_is_pruned_history_gives_way_to_its_digest():
    agent = agent_after(4, Policy(name="bound-once"))
    agent.send()
    assert whole(agent.refuse()) == [True]
    (fold,) = agent.of(Compacted)
    assert (fold.cause, fold.narrated_by, agent.of(Pruned)) == ("forced", None, [])


def test_where_stubs_are_not_enough_history_gives_way_too():
    agent = agent_after(6)
    tokens = agent.send().plan.projected_tokens
    send = agent.refuse(Overflow(window_tokens=tokens // 2 + 4000, input_tokens=tokens * 2))
    assert [type(one) for one in agent.events if isinstance(one, Pruned | Compacted)] == [
        Pruned,
        Compacted,
    ]
    assert whole(send) == [True]


def test_a_learned_window_relieves_the_next_call_before_it_leaves():
    agent = agent_after(5)
    tokens = agent.send().plan.projected_tokens
    assert agent.refuse(Overflow(window_tokens=tokens + 3_000)) is not None
    for _ in range(3):
        agent.round()
    plan = agent.send().plan
    assert plan.projected_tokens <= tokens - 1_000
    assert {event.cause for event in agent.of(Pruned)} == {"forced"}


def test_a_window_that_is_wider_than_what_is_known_widens_nothing():
    agent = agent_after(3, replace(BALANCED, window_tokens=3_000), asked_tokens=500)
    agent.send()
    agent.refuse(Overflow(window_tokens=500_000))
    agent.round()
    assert agent.send().plan.projected_tokens <= 2_500


@pytest.mark.parametrize(("factor", "is_learned"), [(1.5, True), (100, False), (0.5, False)])
def test_the_length_that_is_named_corrects_the_meter_where_it_can_be_true(factor, is_learned):
    agent = Agent(replace(BALANCED, name="off"))
    for _ in range(2):
        agent.round(usage=REPORTED)
    projected = agent.send().plan.projected_tokens
    agent.refuse(Overflow(input_tokens=round(factor * projected)))
    assert (agent.send().plan.projected_tokens > projected) == is_learned


def test_a_call_that_is_planned_again_is_the_same_call():
    agent = agent_after(3)
    before = agent.send()
    again = agent.refuse()
    assert again.plan.aged_before == before.plan.aged_before
    assert (again.plan.call, again.plan.round) == (before.plan.call, before.plan.round)
