"""Agents that begin with the history of the agent above them, and what they take over of it."""

import json

import pytest
from msgspec.structs import replace

from barograph.core.events import (
    Compacted,
    Forked,
    FrameComposed,
    HeaderSet,
    MessageSeen,
    Nudged,
    Pinned,
    Pruned,
    Replaced,
    Stub,
)
from barograph.core.frames import Offer, Offered
from barograph.core.inputs import KeepWanted, PinWanted
from barograph.core.learning import restore
from barograph.core.parts import Text
from barograph.core.pins import list_pins
from barograph.core.policy import Policy
from barograph.core.readback import read_requests
from barograph.core.spending import Account
from barograph.store import MemoryStore
from talk import Talk

FORK = "main/task#1"
TASK = [("task", {"description": "go on"})]
READ = [("read", {"path": "a"})]


def offer(**texts):
    return Offer(sections=tuple(Offered(source=name, text=text) for name, text in texts.items()))


@pytest.fixture
def talk():
    return Talk(MemoryStore())


def begin(talk):
    """Two turns of the main agent with a frame each, the second of which calls for a fork."""
    talk.call(say="one", frame=offer(goal="Ship it."), reply=READ, results=["text of a"])
    talk.call(reply="read it")
    talk.call(say="two", frame=offer(goal="Ship it.", place="Paris"), reply=TASK)
    return talk


def fork(talk, *, shares=None, say="your task", path=FORK, **more):
    """The first call of an agent that is shown what its parent was, or a part, and a task."""
    shown = talk.histories["main"][:-1]
    talk.histories[path] = shown if shares is None else shown[:shares]
    talk.call(path=path, say=say, **more)


def events(talk, *kinds, path=FORK):
    return [
        event
        for _, event in talk.store.read(talk.name)
        if isinstance(event, kinds) and event.path == path
    ]


def said(talk, path, call=-1):
    """What a request of a path says, block by block, without markers."""
    requests = list(read_requests(talk.codec, talk.store.read(talk.name)))
    of_path = [one for one in requests if one.record.path == path]
    blocks = [
        (message["role"], block)
        for message in json.loads(of_path[call].derived)["messages"]
        for block in message["content"]
    ]
    return [(role, {k: v for k, v in b.items() if k != "cache_control"}) for role, b in blocks]


def texts(talk, path, call=-1):
    return [block.get("text", "") for _, block in said(talk, path, call)]


def changes(talk, path=FORK):
    return [
        [(one.source, one.change) for one in frame.sections]
        for frame in events(talk, FrameComposed, path=path)
    ]


def begins_as_its_parent(talk, path=FORK):
    above = said(talk, "main")
    return said(talk, path, 0)[: len(above)] == above


def test_invariant_4_a_fork_begins_with_the_last_request_of_its_parent(talk):
    fork(begin(talk), frame=offer(goal="Fork it."))

    assert [(one.path, one.of) for one in events(talk, Forked)] == [(FORK, "main")]
    assert begins_as_its_parent(talk)
    assert events(talk, Replaced, HeaderSet) == []
    assert [one.parts for one in events(talk, MessageSeen)] == [(Text("your task"),)]
    *_, task, own = texts(talk, FORK)
    assert task == "your task"
    assert '<context from="goal" turn="3">' in own


def test_it_reads_what_the_last_request_of_its_parent_left(talk):
    fork(begin(talk))

    plan = talk.session.state.path(FORK).planned
    ledger = talk.session.state.path("main").ledger
    assert plan.expected_read_tokens == ledger.last.tokens
    assert (plan.turn, plan.round) == (3, 1)


def test_what_was_paid_for_an_hour_above_is_known_in_a_fork():
    talk = begin(Talk(MemoryStore(), policy=Policy(ttl="1h")))
    fork(talk, answers=False)

    lasting = talk.session.state.path("main").lasting
    assert lasting is not None
    assert talk.session.state.path(FORK).lasting == lasting


def test_invariant_3_a_fork_that_is_opened_again_goes_on_as_it_was(talk):
    fork(begin(talk), frame=offer(goal="Fork it."), reply=READ, results=["more of a"])
    live = talk.session.state
    talk.restart()

    assert talk.session.state == live == restore(talk.codec, talk.store.read(talk.name))
    talk.call(path=FORK)
    assert len(events(talk, Forked)) == 1
    assert said(talk, FORK)[: len(said(talk, FORK, 0))] == said(talk, FORK, 0)


def pruned(talk, entry, path="main"):
    (result,) = entry.parts
    stub = replace(result, content=(Text("a stub"),))
    talk.log(
        Pruned(
            at=talk.at,
            path=path,
            cause="cold",
            stubs=(Stub(seq=entry.seq, parts=(stub,)),),
            aged_before=9,
            tokens_before=9,
            tokens_after=8,
            rewritten_tokens=0,
            break_even_calls=None,
        )
    )


def compacted(talk, entries, path="main"):
    talk.log(
        Compacted(
            at=talk.at,
            path=path,
            cause="manual",
            shadows=tuple(entry.seq for entry in entries),
            parts=(Text("a summary"),),
            narrated_by=None,
            failures=(),
            tokens_before=9,
            tokens_after=8,
            rewritten_tokens=0,
        )
    )


def steered():
    return Talk(MemoryStore(), policy=Policy(nudge_at_rounds=1))


def test_what_its_parent_is_shown_otherwise_than_the_caller_shows_it_is_taken_over():
    """A summary, a stub, a repair and a nudge."""
    talk = steered()
    talk.call(say="zero")
    talk.call(say="one", reply=READ, results=["text of a"])
    talk.call(reply=READ)  # nobody answers it
    compacted(talk, talk.entries().span(0, 2))
    pruned(talk, next(entry for entry in talk.entries() if entry.role == "tool"))
    talk.call(say="two", reply=READ, results=["text of c"])
    talk.call(reply=TASK)
    fork(talk)

    assert "repair" in [one.origin for one in events(talk, MessageSeen, path="main")]
    nudges = [one.text for one in events(talk, Nudged, path="main")]
    assert nudges
    assert {"a summary", *nudges}.issubset(texts(talk, FORK))
    assert "a stub" in json.dumps(said(talk, FORK))
    assert "zero" not in texts(talk, FORK)
    assert begins_as_its_parent(talk)
    assert events(talk, Replaced) == []


def bar_the_bill(talk):
    path = talk.session.state.path("main")
    return replace(path, progress=replace(path.progress, account=Account()))


def test_what_is_done_in_a_fork_changes_nothing_above_it(talk):
    fork(begin(talk), frame=offer(goal=""), reply=READ, results=["more of a"])
    before, path = talk.session.state.surface("main"), bar_the_bill(talk)
    pruned(talk, next(entry for entry in talk.entries(FORK) if entry.role == "tool"), FORK)
    compacted(talk, talk.entries(FORK).span(0, 2), FORK)
    talk.call(path=FORK)

    assert talk.session.state.surface("main") == before
    assert bar_the_bill(talk) == path
    talk.call(say="three", frame=offer(goal="Ship it.", place="Paris"))
    assert changes(talk, "main")[-1] == []
    assert said(talk, "main")[: len(said(talk, "main", -2))] == said(talk, "main", -2)


def test_of_a_history_that_is_shared_in_part_only_that_part_is_taken_over(talk):
    fork(begin(talk), shares=3, frame=offer(place="Paris"))

    (gone,) = events(talk, Replaced)
    assert (gone.cause, gone.recognised) == ("rewound", 3)
    *shared, task, own = said(talk, FORK)
    assert shared == said(talk, "main", 1)
    assert "Ship it." in shared[1][1]["text"]
    assert task[1]["text"] == "your task"
    assert "Paris" in own[1]["text"]
    assert changes(talk) == [[("place", "new")]]


def test_a_call_that_is_shared_without_its_result_is_closed_as_ever(talk):
    fork(begin(talk), shares=2)

    assert said(talk, FORK)[:3] == said(talk, "main", 1)[:3]
    assert said(talk, FORK)[3][1]["is_error"]


def test_a_summary_that_tells_of_more_than_is_shared_is_not_taken_over(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(say="two")
    compacted(talk, talk.entries().span(0, 4))
    talk.call(say="three", reply=TASK)
    fork(talk, shares=2)

    assert texts(talk, FORK) == ["one", "ok", "your task"]
    assert talk.session.state.path(FORK).frames.sent == ()


def test_a_rewind_in_a_fork_goes_back_to_what_it_was_shown_first(talk):
    fork(begin(talk), frame=offer(place="Rome"))
    del talk.histories[FORK][-2:]
    talk.call(path=FORK, say="another task", frame=offer(place="Paris"))

    assert begins_as_its_parent(talk)
    assert texts(talk, FORK)[-1] == "another task"
    assert changes(talk) == [[("place", "changed")], []]


def test_a_rewind_in_a_fork_may_go_behind_where_it_began(talk):
    fork(begin(talk))
    talk.histories[FORK] = talk.histories[FORK][:4]
    talk.call(path=FORK, say="another task", frame=offer(goal="Ship it.", place="Paris"))

    *shared, answer, _, _ = said(talk, FORK)
    assert shared == said(talk, "main", 1)
    assert answer == ("assistant", {"type": "text", "text": "read it"})
    assert changes(talk)[-1] == [("place", "new")]


@pytest.mark.parametrize("before", [0, 1], ids=["at once", "later"])
def test_an_agent_that_is_given_one_task_is_no_fork_whatever_the_task_says(talk, before):
    for _ in range(before):
        talk.call(say="look into it", frame=offer(goal="Ship it."), reply=READ, results=["a"])
    talk.call(say="look into it", frame=offer(goal="Ship it."), reply=TASK)
    talk.call(path=FORK, say="look into it")

    assert events(talk, Forked) == []
    assert texts(talk, FORK) == ["look into it"]


def test_a_path_that_has_begun_is_no_fork(talk):
    begin(talk)
    talk.call(path=FORK, say="look")
    fork(talk)

    assert events(talk, Forked) == []
    assert not [text for text in texts(talk, FORK) if "Ship it." in text]


def test_the_nearest_agent_above_that_was_shown_anything_is_the_parent(talk):
    fork(begin(talk), reply=TASK)
    talk.histories[f"{FORK}/node/task#1"] = talk.histories[FORK][:-1]
    talk.call(path=f"{FORK}/node/task#1", say="deeper")

    (forked,) = events(talk, Forked, path=f"{FORK}/node/task#1")
    assert forked.of == FORK


def test_other_tools_are_said_and_are_all_that_differs(talk):
    begin(talk)
    talk.tools = talk.tools[:1]
    fork(talk)

    (header,) = events(talk, HeaderSet)
    assert header.changed == ("tools",)
    assert events(talk, Nudged) == []
    assert begins_as_its_parent(talk)


def test_invariant_9_what_was_pinned_above_is_pinned_in_a_fork(talk):
    begin(talk)
    talk.session.take(PinWanted(at=talk.at, message=talk.entries()[0].seq))
    fork(talk)

    above, pin = list_pins(talk.session.state)
    assert (above.path, pin.path) == ("main", FORK)
    assert above.text == pin.text == "one"


def test_what_is_let_go_is_let_go_in_a_fork_too(talk):
    begin(talk)
    message = talk.entries()[0].seq
    talk.session.take(PinWanted(at=talk.at, message=message))
    fork(talk)
    talk.session.take(PinWanted(at=talk.at, message=message, holds=False))

    assert list_pins(talk.session.state) == []
    talk.session.take(PinWanted(at=talk.at, message=message, holds=False))
    assert [(one.path, one.holds) for one in events(talk, Pinned)] == [(FORK, False)]


def test_old_results_of_its_parent_have_their_age_in_a_fork(talk):
    talk.call(say="one", reply=READ, results=["line of text\n" * 900])
    talk.engine.policy = Policy(prune_after_rounds=2)
    for _ in range(2):
        talk.call(reply=READ, results=["short"])
    talk.call(reply=TASK)
    fork(talk, after=7200)

    (taken,) = events(talk, Pruned)
    assert (taken.cause, len(taken.stubs)) == ("cold", 1)
    assert events(talk, Pruned, path="main") == []
    above, below = (talk.session.state.path(path).planned for path in ("main", FORK))
    assert below.aged_before == above.aged_before


def test_it_is_measured_by_what_the_provider_counted_of_its_parent(talk):
    """As if one conversation had gone on."""
    begin(talk)
    above = talk.session.state.path("main").meter
    fork(talk)
    talk.call(path=FORK, say="more")

    counts = talk.session.state.path(FORK).meter.counts
    assert counts.span(0, len(above.counts)) == above.counts.span()
    weights = [one.chars for one in counts.span(1)]
    assert weights == sorted(weights)


def test_what_sources_keep_for_its_parent_they_keep_for_it_until_it_is_told_otherwise(talk):
    begin(talk)
    talk.session.take(KeepWanted(at=talk.at, path="main", source="plan", texts={"goal": "ship"}))
    fork(talk)
    talk.session.take(KeepWanted(at=talk.at, path=FORK, source="plan", texts={"task": "this"}))

    kept = {path: talk.session.state.path(path).kept.of("plan") for path in ("main", FORK)}
    assert kept == {"main": {"goal": "ship"}, FORK: {"goal": "ship", "task": "this"}}


def test_calls_that_wait_for_their_answer_above_are_not_folded_in_a_fork(talk):
    talk.call(say="one", reply=READ)
    talk.call(say="two", reply=TASK)
    fork(talk)

    assert talk.session.state.path(FORK).waiting.kept == {"toolu_1_0"}


class TestSources:
    """What a fork is told by its parent's frame, and what by its own."""

    def test_one_that_is_asked_above_only_is_not_taken_back(self, talk):
        fork(begin(talk), frame=offer(place="Paris"))
        assert changes(talk) == [[]]

    def test_one_that_has_nothing_to_say_here_takes_back_what_it_said_above(self, talk):
        fork(begin(talk), frame=offer(place=""))
        assert changes(talk) == [[("place", "removed")]]

    def test_above_it_is_taken_back_when_nobody_offers_it_any_more(self, talk):
        begin(talk)
        fork(talk, frame=offer(place="Rome"))
        talk.call(say="three", frame=offer(goal="Ship it."))
        assert changes(talk, "main")[-1] == [("place", "removed")]

    def test_what_a_fold_hides_in_a_fork_is_said_again_there(self, talk):
        fork(begin(talk), frame=offer(place="Paris"))
        compacted(talk, talk.entries(FORK).span(0, 8), FORK)
        talk.call(path=FORK, say="go on", frame=offer(place="Paris"))

        assert sorted(changes(talk)[-1]) == [("goal", "again"), ("place", "again")]
        assert sum("Ship it." in text for text in texts(talk, FORK)) == 1


def test_a_history_that_comes_with_its_open_call_has_the_arguments_of_the_model(talk):
    """Some tools hand over all that there is, the call that they are run for included."""
    begin(talk)
    talk.histories[FORK] = list(talk.histories["main"])
    talk.call(path=FORK, say="your task")

    assert begins_as_its_parent(talk)
    answer = next(one for one in events(talk, MessageSeen) if one.role == "assistant")
    assert answer.same_as is not None
