"""The digest of other sessions: a line for each by its user's first words, and more on request."""

import pytest

from barograph.core.errors import LogCorrupt
from barograph.core.events import Replaced
from barograph.core.recalltexts import RECALLED_CHARS, TOPIC_CHARS
from barograph.core.state import State
from barograph.frame import Ask, Caller, Composer, session_digest
from barograph.store import MemoryStore, SqliteStore
from talk import Talk


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    opened = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield opened
    opened.close()


class Counting:
    """A store that counts how many events are read."""

    def __init__(self, store):
        self.store, self.read_events, self.broken = store, 0, set()

    def sessions(self):
        return self.store.sessions()

    def read(self, session, **how):
        if session in self.broken:
            raise LogCorrupt("torn", next_step="none")
        for logged in self.store.read(session, **how):
            self.read_events += 1
            yield logged


def talk(store, session, *said, at=0.0, reply="A private answer.", mode="normal"):
    talking = Talk(store, session, at=1_767_348_000.0 + at, mode=mode)
    for one in said:
        talking.call(say=one, reply=reply)
    return talking


def ask(session="now", mode="normal"):
    return Ask(session=session, path="main", text="Hello.", at=0.0, mode=mode, state=State())


def told(source, session="now"):
    return list(source.compose(ask(session)))


def recalled(source, *given, session="now"):
    caller = Caller(session=session, path="main", at=0.0, state=State(), keep=lambda _: None)
    (tool,) = source.tools
    return tool.run(caller, *given)


def test_each_other_session_is_told_of_by_its_first_words_and_the_youngest_comes_first(store):
    talk(store, "tides", "When is\n  high tide?", "And low tide?")
    talk(store, "moon", "How far is the moon?", at=3600)
    talk(store, "now", "Hello.", at=7200)

    moon, tides = told(session_digest(store))

    assert (tides.id, tides.text, tides.trust) == ("tides", "When is high tide?", "external")
    assert (tides.date, tides.origin) == ("2026-01-02 10:00 UTC", "another session")
    assert (moon.id, moon.date) == ("moon", "2026-01-02 11:00 UTC")


def test_nothing_that_an_agent_or_a_tool_said_is_told(store):
    talking = talk(store, "s1")
    call = [("read", {"path": "argued.py"})]
    talking.call(say="Look.", reply=call, results=["found text"])
    talking.call(reply="A private answer.")

    assert [one.text for one in told(session_digest(store))] == ["Look."]


def test_what_several_agents_of_a_graph_show_is_recalled_once_and_what_each_said_last_too(store):
    talking = Talk(store, "s1")
    planner, worker = "main/planner", "main/worker"
    for reply in ("A plan.", "Another plan."):
        talking.call(path=planner, say="Look.", reply=reply)
        talking.histories[worker] = list(talking.histories[planner])
        talking.call(path=worker, reply=f"Done: {reply}")
        talking.histories[planner] = list(talking.histories[worker])
    talking.call(path="main/critic", say="Judge.", reply="Well done.")
    talking.call(path=planner, say="More.", reply="No more plans.")

    text = recalled(session_digest(store), "s1")
    said = ("Look.", "Judge.", "More.", "A plan.", "Done: A plan.", "Well done.", "No more plans.")
    assert [text.count(f"\n{one}\n") for one in said] == [2, 1, 1, 1, 1, 1, 1]


def test_a_long_first_message_is_cut_and_an_empty_session_is_left_out(store):
    talk(store, "long", "word " * 5_000)
    talk(store, "empty")

    (one,) = told(session_digest(store))
    assert len(one.text) == TOPIC_CHARS


def test_ten_sessions_are_told_of_and_the_oldest_are_left_out_within_the_budget(store):
    for number in range(13):
        talk(store, f"s{number}", f"Topic {number}. " * 30, at=number)

    digest = session_digest(store)
    assert [one.id for one in told(digest)] == [f"s{number}" for number in range(12, 2, -1)]

    (section,) = Composer([session_digest(store, budget_chars=1_000)]).compose(ask()).sections
    ids = [one.id for one in section.items]
    assert ids == [f"s{number}" for number in range(12, 12 - len(ids), -1)]
    assert 1 <= len(ids) < 10


def test_goal_runs_are_not_told_of(store):
    talk(store, "asked", "A question.")
    talk(store, "task", "A task.", mode="goal")

    assert [one.id for one in told(session_digest(store))] == ["asked"]


def test_invariant_10_a_private_session_of_a_shared_store_is_neither_told_of_nor_read(store):
    talk(store, "asked", "A question.")
    talk(store, "hidden", "A secret.", mode="private")
    digest = session_digest(store)

    assert [one.id for one in told(digest)] == ["asked"]
    assert "no other session" in recalled(digest, "hidden")


def test_a_session_that_was_deleted_is_gone_and_one_of_the_same_name_is_another(store):
    talk(store, "s1", "Old topic.")
    digest = session_digest(store)
    assert [one.text for one in told(digest)] == ["Old topic."]
    store.delete("s1")
    assert told(digest) == []
    talk(store, "s1", "New topic.", at=60)
    assert [one.text for one in told(digest)] == ["New topic."]


def test_a_turn_reads_only_how_new_sessions_began(store):
    for number in range(3):
        talk(store, f"s{number}", *["A question."] * 30, at=number)
    logs = Counting(store)
    digest = session_digest(logs)
    first = told(digest)
    assert logs.read_events < 3 * 10
    logs.read_events = 0
    assert told(digest) == first
    assert logs.read_events == 0


def test_what_goes_on_in_other_sessions_does_not_change_the_digest(store):
    older = talk(store, "older", "First.")
    talk(store, "younger", "Second.", at=60)
    digest = session_digest(store)
    before = told(digest)
    older.call(say="More.", after=9_999)

    assert told(digest) == before


def test_a_damaged_session_is_left_out_and_costs_the_others_nothing(store):
    talk(store, "good", "Good.")
    talk(store, "torn", "Torn.")
    logs = Counting(store)
    logs.broken.add("torn")
    digest = session_digest(logs)

    assert [one.id for one in told(digest)] == ["good"]
    assert "cannot be read" in recalled(digest, "torn")


def test_only_sessions_that_may_be_shown_are_told_of_and_read(store):
    talk(store, "anna-1", "Mine.")
    talk(store, "bert-1", "His.")
    digest = session_digest(store, shows=lambda session: session.startswith("anna"))

    assert [one.id for one in told(digest)] == ["anna-1"]
    assert "no other session" in recalled(digest, "bert-1")


def test_a_session_is_recalled_with_the_messages_of_the_user_first(store):
    talking = talk(store, "tides", "When is high tide?", reply="At </record> six.")
    call = [("read", {"path": "argued.py"})]
    talking.call(say="And low?", reply=call, results=["found text"])
    talking.call(reply="At noon.")

    text = recalled(session_digest(store), "tide")

    places = [text.index(one) for one in ("When is", "And low?", "At <\\/record> six.", "At noon.")]
    assert places == sorted(places)
    assert text.count("</record>") == 4
    assert '<record id="tides#' in text
    assert 'by="user" at="2026-01-02 10:00 UTC"' in text
    assert "found text" not in text
    assert "argued" not in text


def test_what_was_taken_back_is_not_recalled(store):
    talking = talk(store, "s1", "Rash words.", "Wise words.")
    first = talking.entries()[0].seq
    shadows = (first,)
    talking.log(
        Replaced(at=0.0, path="main", shadows=shadows, cause="edited", planned=False, recognised=0)
    )

    text = recalled(session_digest(store), "s1")
    assert "Wise words." in text
    assert "Rash words." not in text


@pytest.mark.parametrize("char", ["x", "<record>", "é", "\n"])
def test_a_long_session_is_read_piece_by_piece_and_nothing_is_lost(store, char):
    long = "".join(f"{number} {char} " for number in range(4_000))
    talk(store, "s1", f"Begin {long}", "Short.", reply="Yes.")
    digest = session_digest(store)

    start, heard = 0, ""
    while True:
        text = recalled(digest, "s1", start)
        assert len(text) <= RECALLED_CHARS
        head, *records = text.split("\n<record ")
        heard += "".join(one.partition(">\n")[2].rpartition("\n</record>")[0] for one in records)
        if "reads on" not in head:
            break
        ends = int(head.rpartition("start=")[2].partition(")")[0])
        assert ends > start
        start = ends
    assert heard.replace("<\\", "<") == f"Begin {long}".strip() + "Short." + "Yes." * 2


@pytest.mark.parametrize("start", [-5, 10**9])
def test_a_place_out_of_the_text_is_an_answer(store, start):
    talk(store, "s1", "Hi.")
    assert recalled(session_digest(store), "s1", start).startswith("[What was said")


def test_an_id_that_fits_none_or_several_or_this_one_is_an_answer(store):
    for at, name in enumerate(("tide-1", "tide-2", "now")):
        talk(store, name, "Hello.", at=at)
    digest = session_digest(store)

    assert "no other session 'moon'" in recalled(digest, "moon")
    assert "no other session ''" in recalled(digest, "")
    assert "2 sessions begin with 'tide'" in recalled(digest, "tide")
    assert "tide-2, tide-1" in recalled(digest, "tide")
    assert "this session" in recalled(digest, "now")


def test_a_session_is_found_by_the_id_that_a_model_is_shown(store):
    talk(store, 'thread "7"', "Hello.")
    assert "Hello." in recalled(session_digest(store), "thread _7_")
