"""All ready sources in one agent: what changes is said, once, and the cache is read to the end."""

import itertools
import json

import pytest
from stage import Run, agent_at, ask, calling, config, logged, prove

from barograph.core.events import FrameComposed
from barograph.core.frames import Frames, plan_sections
from barograph.core.learning import restore
from barograph.core.policy import Policy
from barograph.frame import (
    Ask,
    Composer,
    Knowledge,
    Source,
    hot_memory,
    knowledge_source,
    session_digest,
    skills,
    working_state,
)
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.simulator import Reply
from barograph.store.knowledge import NewDocument

TURNS = 50
DONE = Reply(content="Done.")
FACT = "a fact-of-the-frame about the harbour and its tide tables, as the pilot tells it"


class Harbour:
    """An agent with every source on, and a way to change what each of them tells."""

    def __init__(self, simulator, session, store, folder):
        self.simulator, self.session, self.store = simulator, session, store
        self.folder, self.weather = folder, f"{FACT} and the weather. " * 12
        for number in range(10):
            self.remember(number)
            self.document(number)
            self.skill(number)
            self.other_session(number)
        passages = store.index.passages
        self.sources = [
            hot_memory(passages),
            knowledge_source(Knowledge(passages)),
            session_digest(store),
            working_state(),
            skills(folder),
            Source(name="weather", compose=lambda _: self.weather, trust="operator"),
        ]
        self.changes = [
            self.remember,
            self.document,
            self.other_session,
            lambda _: None,  # the agent changes its working state itself, for the turn after
            self.skill,
            self.change_weather,
        ]
        ours = {"frame": self.sources, "policy": Policy()}
        self.run = Run(simulator, session, store, ours)

    def remember(self, number):
        new = NewDocument(text=f"Berth {number}: {FACT}.", domain="hot", trust="operator")
        self.store.index.documents.add(new, at=float(number))

    def document(self, number):
        new = NewDocument(text=f"Chapter {number} of the crane{number} manual: {FACT}. " * 3)
        self.store.index.documents.add(new, at=float(number))

    def skill(self, number):
        place = self.folder / f"skill-{number}"
        place.mkdir(parents=True)
        said = f"---\nname: skill-{number}\ndescription: Use for {FACT}.\n---\nDo it.\n"
        (place / "SKILL.md").write_text(said, "utf-8")

    def other_session(self, number):
        name = f"{self.session}-other-{number:02}"
        self.simulator.play(name, [DONE])
        agent_at(self.simulator.url, name, self.store).invoke(
            ask(f"Session {number}: {FACT}"), config(name)
        )

    def change_weather(self, number):
        self.weather = f"{FACT} and the weather {number}. " * 12

    def say(self, turn):
        """One turn, in which one section is another than before; what all of them would weigh."""
        kind = turn % len(self.changes)
        self.changes[kind](100 + turn)
        text = f"How does crane{100 + turn} work?" if kind == 1 else "Thanks, go on."
        whole = self.whole(text)
        plan = {"plan": f"Turn {turn}: {FACT}", "goal": "Know the harbour."}
        call = calling((f"w{turn}", "update_working_state", plan))
        self.run.say(text, *([call] if kind == 3 else []), DONE)
        return whole

    def whole(self, text):
        """Characters of a frame that says all that is in force."""
        events = self.store.read(self.session) if self.store.last_seq(self.session) else ()
        state = restore(AnthropicCodec(), events)
        asked = Ask(
            session=self.session, path="main", text=text, at=0.0, mode="normal", state=state
        )
        _, texts = plan_sections(Frames(), Composer(self.sources).compose(asked), 1)
        return sum(len(one.text) for one in texts)


@pytest.fixture
def harbour(simulator, session, store, tmp_path):
    return Harbour(simulator, session, store, tmp_path / "skills")


def test_fifty_turns_say_what_changed_and_read_all_that_could_be_read(harbour, store, session):
    whole = sum(harbour.say(turn) for turn in range(TURNS))

    requests = prove(store, session, harbour.run.exchanges)
    for before, after in itertools.pairwise(requests):
        known = _unmarked(json.loads(before.exact)["messages"])
        now = _unmarked(json.loads(after.exact))
        assert now["messages"][: len(known)] == known
        assert "fact-of-the-frame" not in json.dumps([now["system"], now["tools"]])
    frames = [event for event in logged(store, session) if isinstance(event, FrameComposed)]
    told = {one.source for frame in frames for one in frame.sections}
    assert told == {one.name for one in harbour.sources}
    assert [one.missed for one in frames] == [()] * TURNS
    assert max(len(one.sections) for one in frames[1:]) == 2
    sent = sum(len(part.text) for frame in frames for part in frame.parts)
    assert sent <= 0.25 * whole


def _unmarked(value):
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
