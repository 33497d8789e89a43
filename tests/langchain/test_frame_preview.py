"""A look at the frame of the next turn: it is what that turn will have, and it leaves no trace."""

import sqlite3
import threading
from contextlib import closing

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, calling, config, exchanges_of, logged, look, looking, prove
from test_frames import DONE, Told

from barograph.core.errors import LogCorrupt, UsageError
from barograph.core.events import FrameComposed, MessageSeen, TurnBegan
from barograph.core.parts import Text
from barograph.core.trust import Item
from barograph.frame import Source
from barograph.langchain import Barograph
from barograph.store import SqliteStore


class Previewed:
    """An agent whose frames can be looked at before they are there."""

    def __init__(self, simulator, session, store, sources, **more):
        self.simulator, self.session = simulator, session
        self.ours = Barograph(store, frame=[one.source for one in sources], **more)
        self.store, self.path = self.ours.store, store
        saver = InMemorySaver()
        self.agent = agent_at(
            simulator.url, session, None, middleware=[self.ours], checkpointer=saver
        )

    def say(self, text, *replies):
        self.simulator.play(self.session, list(replies or [DONE]))
        self.agent.invoke(ask(text), config(self.session))

    def preview(self, text, **more):
        return self.ours.preview_frame(text, session=self.session, **more)

    @property
    def frames(self):
        return [one for one in logged(self.store, self.session) if isinstance(one, FrameComposed)]

    def traces(self):
        """All that a store holds of its sessions; of a file, every row, leases too."""
        rows = []
        if isinstance(self.store, SqliteStore):
            with closing(sqlite3.connect(self.path)) as connection:
                rows = list(connection.iterdump())
        names = [info.session for info in self.store.sessions()]
        return rows, {name: list(self.store.read(name)) for name in names}


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    return "memory" if request.param == "memory" else tmp_path / "sessions.db"


@pytest.fixture
def agent(simulator, session, store):
    made = []

    def make(*sources, **more):
        name, kept = more.pop("session", session), more.pop("store", store)
        made.append(Previewed(simulator, name, kept, sources, **more))
        return made[-1]

    yield make
    for one in made:
        one.ours.close()


def said(frame):
    return frame.turn, frame.sections, frame.parts, frame.missed


def recalled(*names):
    return [Item(id=name, text=f"Text of {name}.", origin="a.md") for name in names]


def test_the_next_turn_has_the_frame_that_was_shown(agent):
    goal, notes = Told("goal", "Ship it."), Told("notes", recalled("k1"), adds=True)
    broken = Told("broken", ValueError("no disk"))
    one = agent(goal, notes, broken)
    for goal.said, notes.said in [("Ship it.", recalled("k1")), ("Wait.", recalled("k1", "k2"))]:
        shown = one.preview("go")
        one.say("go")

        assert said(shown) == said(one.frames[-1])
    assert [part.text.startswith("<context from=") for part in shown.parts] == [True, True]
    assert [(each.source, each.change) for each in shown.sections] == [
        ("goal", "changed"),
        ("notes", "new"),
    ]
    assert [(each.source, each.reason) for each in shown.missed] == [
        ("broken", "ValueError: no disk")
    ]


def test_sources_are_asked_with_what_a_turn_would_tell_them(agent):
    goal = Told("goal", "Ship it.")
    one = agent(goal, mode="goal", clock=lambda: 12.0)
    one.preview("what is next?")
    one.say("what is next?")

    supposed, real = goal.asked
    assert (supposed.session, supposed.path, supposed.text) == (one.session, "main", real.text)
    assert (supposed.mode, supposed.at) == (real.mode, real.at) == ("goal", 12.0)
    for told in goal.asked:
        assert told.state.path("main").turn == 1
        assert [entry.parts for entry in told.state.surface("main").entries] == [
            (Text("what is next?"),)
        ]


def test_a_turn_without_words_can_be_supposed(agent):
    assert agent(Told("goal", "Ship it.")).preview("").turn == 1


def test_nothing_is_written_and_nobody_holds_the_session(agent):
    one = agent(Told("goal", "Ship it."))
    one.say("one", looking("a"), DONE)
    before = one.traces()
    assert before[1]

    for _ in range(3):
        one.preview("two")

    assert one.traces() == before


def test_a_session_that_is_not_there_is_not_begun(agent):
    one = agent(Told("goal", "Ship it."))

    shown = one.preview("one")

    assert shown.turn == 1
    assert [(each.source, each.change) for each in shown.sections] == [("goal", "new")]
    assert one.store.sessions() == []
    one.say("one")
    assert said(one.frames[0]) == said(shown)


def test_turns_go_on_as_if_nobody_had_looked(agent, simulator, session, tmp_path):
    def play(*, looks):
        goal = Told("goal", "Ship it.")
        name = f"{session}-{looks}"
        one = agent(goal, session=name, store=tmp_path / f"{name}.db", clock=lambda: 1.0)
        for turn, text in enumerate(("Ship it.", "Ship it.", "Wait.")):
            goal.said = text
            if looks:
                one.preview("other words")
            one.say("go", looking(f"{turn}"), DONE)
        return [e.request for e in exchanges_of(simulator, one.session)]

    plain, looked_at = play(looks=False), play(looks=True)
    assert len(plain) == 6
    assert looked_at == plain


def test_a_source_that_hangs_in_a_preview_is_asked_by_the_turn(agent):
    release, answers = threading.Event(), iter([True, False])

    def hang(_):
        if next(answers):
            release.wait(20)
        return "Here."

    told = Told("slow")
    told.source = Source(name="slow", compose=hang, timeout_seconds=0.1)
    one = agent(told)

    shown = one.preview("one")
    one.say("one")
    release.set()

    assert [each.source for each in shown.missed] == ["slow"]
    assert [each.source for each in one.frames[0].sections] == ["slow"]


def test_another_writer_of_the_session_is_seen(agent, simulator, session, tmp_path):
    path = tmp_path / "shared.db"
    goal = Told("goal", "Ship it.")
    first, second = agent(goal, store=path), agent(goal, store=path)
    first.say("one")
    first.preview("two")  # and does not keep the other from going on
    assert second.preview("two").sections == ()
    second.say("two")
    goal.said = "Wait."
    second.say("three")

    shown = first.preview("four")

    assert (shown.turn, shown.sections) == (4, ())


def test_in_a_tool_it_is_the_session_that_runs(simulator, session):
    goal, shown = Told("goal", "Ship it."), []
    ours = Barograph("memory", frame=[goal.source])

    @tool
    def peek(what: str) -> str:
        """Look ahead."""
        shown.append(ours.preview_frame(what))
        return "seen"

    agent = agent_at(simulator.url, session, None, (peek, look), middleware=[ours])
    simulator.play(session, [calling(("a", "peek", {"what": "this"})), DONE])
    agent.invoke({"messages": [HumanMessage("go")]}, config(session))

    assert (shown[0].turn, shown[0].sections) == (2, ())
    began = [e for e in logged(ours.store, session) if isinstance(e, TurnBegan)]
    assert len(began) == 1
    prove(ours.store, session, exchanges_of(simulator, session))


def test_an_agent_below_has_the_sources_that_are_for_it(agent):
    goal, shared = Told("goal", "Ship it."), Told("shared", "For all.", subagents=True)
    one = agent(goal, shared)

    assert [each.source for each in one.preview("look", path="main/look#1").sections] == ["shared"]


def test_a_private_session_shows_what_it_would_have_and_leaves_nothing(agent, tmp_path):
    goal = Told("goal", "Ship it.", modes=frozenset({"private"}))
    others = Told("others", "Elsewhere.")
    one = agent(goal, others, store=None, mode="private")

    assert [each.source for each in one.preview("one").sections] == ["goal"]
    one.say("one")
    assert one.preview("two").sections == ()
    assert others.asked == []
    assert list(tmp_path.iterdir()) == []


def test_async_it_is_the_same(agent, loop):
    async def compose(_):
        return "Ship it."

    told = Told("goal")
    told.source = Source(name="goal", compose=compose, trust="operator")
    one = agent(told)

    shown = loop.run(one.ours.apreview_frame("one", session=one.session))

    assert said(shown) == said(one.preview("one"))
    assert one.store.sessions() == []


def test_without_a_session_and_outside_of_a_run_it_is_not_known_which_is_meant(agent):
    with pytest.raises(UsageError, match="which session"):
        agent(Told("goal", "x")).ours.preview_frame("one")


def test_a_damaged_log_is_said_and_left_as_it_is(agent, tmp_path):
    one = agent(Told("goal", "x"), store=tmp_path / "sessions.db")
    torn = MessageSeen(at=1.0, path="main", role="user", origin="caller", same_as=99)
    one.store.append(one.session, [TurnBegan(at=1.0, path="main", turn=1), torn], after=0)
    before = one.traces()

    with pytest.raises(LogCorrupt):
        one.preview("one")
    assert one.traces() == before
