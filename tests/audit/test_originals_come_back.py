"""The sweep that reads every original back finds all of them, and notices one that is not whole."""

from contextlib import closing

import pytest
from msgspec.structs import replace
from recordings import call, result, text, use, user, write

import originals
from barograph.audit.recorded import read_recording
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.core.events import MessageSeen
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.store import Logged, SqliteStore

ROUNDS = 24
POLICY = Policy(name="balanced", prune_after_rounds=2)


def found(number):
    return "\n".join(f"src/part{number}/file_{line}.py:{line}: hit" for line in range(80 + number))


def rounds():
    yield call(1, [user("find it")], [text("Looking."), use("t1", "scan", note="why " * 400)])
    for number in range(2, ROUNDS + 1):
        seen = [user(result(f"t{number - 1}", found(number - 1)))]
        yield call(number, seen, [text(f"On to {number}."), use(f"t{number}", "scan", n=number)])
    yield call(ROUNDS + 1, [user(result(f"t{ROUNDS}", "none"), "stop")], [text("There is none.")])


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """A recording after its replay in a narrow window, and where the log of that is."""
    folder = tmp_path_factory.mktemp("originals")
    path, place = write(folder / "scan.jsonl", rounds()), folder / "sessions.db"
    replay_file(path, ReplayOptions(policy=POLICY, window_share=0.35, mode="direct", store=place))
    return read_recording(path), place


def swept(replayed):
    recording, place = replayed
    with closing(SqliteStore(place)) as store:
        return originals.Findings(recording, place, store).sum


def test_every_text_comes_back_through_the_tool_and_through_unfold(replayed):
    found = swept(replayed)
    assert found.texts == 2 * (ROUNDS + 1) + 1
    assert found.hidden >= ROUNDS
    assert found.named >= 5
    assert found.lost.total() == 0


def test_a_byte_that_is_lost_is_noticed(replayed, monkeypatch):
    intact = SqliteStore.read

    def read(self, *given, **more):
        for seq, event in intact(self, *given, **more):
            yield Logged(seq, without_its_last_byte(event))

    monkeypatch.setattr(SqliteStore, "read", read)
    lost = swept(replayed).lost
    assert (lost["tool"], lost["command"]) == (1, 1)


def without_its_last_byte(event):
    if not (isinstance(event, MessageSeen) and event.origin == "tool"):
        return event
    (answer,) = event.parts
    if answer.call_id != "t3":
        return event
    shorter = Text(answer.content[0].text[:-1])
    return replace(event, parts=(replace(answer, content=(shorter,)),))
