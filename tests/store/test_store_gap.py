"""A store that cannot be written for a while: nothing breaks, nothing is passed over in silence."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.audit.verify import verify_session
from barograph.core.errors import LogCorrupt, SequenceConflict, StoreBusy, StoreUnavailable
from barograph.core.events import CallPlanned, SessionOpened, StoreGap, TurnBegan
from barograph.core.inputs import PinWanted
from barograph.core.learning import restore
from barograph.core.pins import list_pins
from barograph.core.policy import Policy
from barograph.store import MemoryStore
from talk import Talk


class Unsteady(MemoryStore):
    """A store that is down while told to be."""

    down = None
    blind = False
    tries = 0

    def append(self, session, events, **how):
        self.tries += 1
        self._fail(write=True)
        return super().append(session, events, **how)

    def read(self, session, **how):
        self._fail()
        return super().read(session, **how)

    def end(self, session):
        self._fail()
        return super().end(session)

    def _fail(self, *, write=False):
        if self.down and (write or self.blind):
            raise self.down


FULL = StoreUnavailable("The disk is full.")
DOWN = [FULL, StoreBusy("It was locked."), LogCorrupt("The file is damaged.")]


@pytest.fixture
def store():
    return Unsteady()


@pytest.fixture
def room(monkeypatch):
    def limit(events=10_000, bytes_=2**26):
        monkeypatch.setattr("barograph.store.backlog.MOST_EVENTS", events)
        monkeypatch.setattr("barograph.store.backlog.MOST_BYTES", bytes_)

    return limit


def events_of(store, kind, session="s1"):
    return [event for _, event in store.read(session) if isinstance(event, kind)]


def go_on(talk, **what):
    """A turn as an adapter has it: the session is asked to catch up before its state is used."""
    talk.session.catch_up(at=talk.at)
    talk.call(**what)


def is_as_its_log(talk):
    return talk.session.state == restore(talk.codec, talk.store.read(talk.name))


@pytest.mark.parametrize("error", DOWN, ids=lambda error: error.code)
def test_invariant_13_events_that_were_late_are_all_there_and_a_gap_says_so(store, error):
    talk = Talk(store)
    go_on(talk, say="before")
    last = store.last_seq("s1")
    store.down = error
    go_on(talk, say="first of the gap", reply=[("read", {})], results=["text"])
    waiting = talk.session.waiting_events
    store.down = None
    go_on(talk, reply="second of the gap")

    assert is_as_its_log(talk)
    assert talk.session.waiting_events == 0
    [gap] = events_of(store, StoreGap)
    assert (gap.first_late, gap.late, gap.lost) == (last + 1, waiting, 0)
    assert (gap.first_call, gap.last_call) == (2, 2)
    assert (gap.since, gap.reason) == (1_000_020.0, str(error))
    result = verify_session(store, "s1")
    assert result.is_sound
    assert result.exact == result.derived == 3
    [note] = result.notes
    assert (note.code, note.seq) == ("events_late", last + waiting + 4)
    assert str(error) in note.what


def test_what_waits_is_written_at_the_end_of_the_turn_or_before_the_next_one(store):
    talk = Talk(store)
    store.down = FULL
    go_on(talk, say="one", answers=False)
    store.down = None
    talk.session.rest("main")
    talk.session.catch_up(at=talk.at + 1000)
    assert is_as_its_log(talk)
    assert talk.session.waiting_events == 0


@pytest.mark.parametrize("limits", [{"events": 4}, {"bytes_": 900}], ids=str)
def test_invariant_13_events_that_are_lost_are_counted_and_the_session_starts_over(
    store, room, limits
):
    room(**limits)
    talk = Talk(store)
    go_on(talk, say="before")
    before = store.last_seq("s1")
    store.down = FULL
    go_on(talk, say="lost", reply=[("read", {})], results=["text"])
    go_on(talk, reply="also lost")
    lost = talk.session.waiting_events
    store.down = None
    go_on(talk, say="after")

    assert is_as_its_log(talk)
    [gap] = events_of(store, StoreGap)
    assert (gap.late, gap.lost, gap.first_late) == (0, lost, 0)
    assert (gap.first_call, gap.last_call, gap.calls) == (2, 3, 3)
    assert [plan.call for plan in events_of(store, CallPlanned)] == [1, 4]
    assert [began.turn for began in events_of(store, TurnBegan)] == [1, 2]
    assert len(talk.entries()) == 7
    result = verify_session(store, "s1")
    assert [(one.code, one.seq) for one in result.findings] == [("events_lost", before + 1)]
    assert result.exact == result.derived == result.requests == 2


def test_a_session_that_could_not_be_begun_begins_late(store, room):
    for session, most in (("late", 10_000), ("lost", 3)):
        room(events=most)
        store.down, store.blind = FULL, True
        talk = Talk(store, session)
        go_on(talk, say="unheard")
        store.down = None
        go_on(talk, say="heard")
        assert is_as_its_log(talk)
        assert len(events_of(store, SessionOpened, session)) == 1
        assert bool(verify_session(store, session).findings) is (session == "lost")


def test_a_session_that_could_not_be_read_starts_over_when_it_can(store):
    go_on(Talk(store), say="before")
    store.down, store.blind = FULL, True
    talk = Talk(store)
    go_on(talk, say="unheard")
    store.down = None
    go_on(talk, say="heard")

    assert is_as_its_log(talk)
    [gap] = events_of(store, StoreGap)
    assert gap.lost
    assert [plan.call for plan in events_of(store, CallPlanned)] == [1, 2]


def test_invariant_13_a_store_that_is_back_in_the_first_turn_does_not_break_it(store):
    go_on(Talk(store), say="before")
    store.down, store.blind = FULL, True
    talk = Talk(store)
    store.down = None
    talk.call(say="unheard", reply=[("read", {})], results=["text"])
    talk.call(reply="done")
    go_on(talk, say="heard")

    assert is_as_its_log(talk)
    [finding] = verify_session(store, "s1").findings
    assert finding.code == "events_lost"


def test_events_that_another_writer_overtook_are_lost_and_said_to_be(store):
    one = Talk(store)
    go_on(one, say="one")
    store.down = FULL
    go_on(one, say="unheard")
    store.down = None
    two = Talk(store)
    go_on(two, say="two")
    go_on(one, say="three")

    assert is_as_its_log(one)
    [finding] = verify_session(store, "s1").findings
    assert finding.code == "events_lost"


def test_events_that_waited_for_a_log_that_was_begun_anew_are_lost_and_said_to_be(store):
    one = Talk(store)
    go_on(one, say="one")
    before = store.last_seq("s1")
    store.down = FULL
    go_on(one, say="unheard")
    store.down = None
    store.delete("s1")
    go_on(Talk(store), say="two")
    assert store.last_seq("s1") == before

    go_on(one, say="three")

    assert is_as_its_log(one)
    [finding] = verify_session(store, "s1").findings
    assert finding.code == "events_lost"


def test_events_wait_on_while_another_writer_holds_the_session(store):
    one, two = Talk(store), Talk(store)
    store.down = FULL
    go_on(one, say="unheard")
    waiting = one.session.waiting_events
    store.down = None
    go_on(two, say="two", answers=False)

    with pytest.raises(SequenceConflict, match="is held"):
        one.session.catch_up(at=two.at)

    assert one.session.waiting_events == waiting


def test_invariant_13_one_loud_line_when_it_begins_and_one_when_it_ends(store, caplog):
    talk = Talk(store)
    with caplog.at_level(logging.WARNING, logger="barograph"):
        store.down = FULL
        go_on(talk, say="one", reply=[("read", {})], results=["text"])
        go_on(talk, reply="two")
        assert len(caplog.records) == 1
        store.down = None
        go_on(talk, say="three")
    begins, ends = (record.getMessage() for record in caplog.records)
    assert "s1 goes on unlogged" in begins
    assert "disk is full" in begins
    assert "s1 is logged again" in ends
    assert talk.session.failed_appends > 0


def test_a_store_that_is_down_is_asked_once_a_call_and_at_the_end_of_the_turn(store):
    talk = Talk(store)
    store.down, store.tries = FULL, 0
    for number in range(5):
        go_on(talk, say=f"{number}", reply=[("read", {})] * 4, results=["text"] * 4)
    go_on(talk, reply="done")
    assert store.tries <= 7


def test_a_session_that_is_closed_writes_what_waits_or_says_that_it_is_lost(store, caplog):
    talk = Talk(store)
    store.down = FULL
    go_on(talk, say="one", reply=[("read", {})], results=["text"])
    talk.session.close(at=talk.at)
    assert "events of session s1 are lost" in caplog.text
    store.down = None
    talk.session.close(at=talk.at)
    assert is_as_its_log(talk)


def test_where_the_policy_is_to_stop_nothing_waits(store):
    talk = Talk(store, policy=Policy(on_store_error="stop"))
    store.down, store.blind = FULL, True
    with pytest.raises(StoreUnavailable):
        talk.session.catch_up(at=talk.at)
    with pytest.raises(StoreUnavailable):
        talk.call(say="one")
    with pytest.raises(StoreUnavailable):
        Talk(store, policy=Policy(on_store_error="stop"))
    assert talk.session.waiting_events == 0


def test_a_writer_whose_first_event_was_not_stored_does_not_hold_the_session(store):
    one = Talk(store, policy=Policy(on_store_error="stop"))
    go_on(one, say="one")
    store.down = FULL
    with pytest.raises(StoreUnavailable):
        go_on(one, say="two")
    store.down = None
    two = Talk(store)
    two.at = one.at
    go_on(two, say="three")
    one.at = two.at

    go_on(one, say="four")

    assert is_as_its_log(one)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("aatf")), min_size=1, max_size=25))
@settings(max_examples=60)
def test_invariant_13_whatever_fails_when_the_log_is_whole_or_says_what_it_lacks(steps):
    store = Unsteady()
    talk = Talk(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barograph.store.backlog.MOST_EVENTS", 20)
        for place, (is_down, kind) in enumerate(steps):
            store.down = FULL if is_down else None
            store.blind = bool(place % 2)
            said = None if kind == "t" and place else f"say {place}"
            if kind == "f":
                go_on(talk, say=said, fails=(500, "no"))
            elif kind == "t":
                go_on(talk, say=said, reply=[("read", {})], results=["text"])
            else:
                go_on(talk, say=said)
        store.down = None
        talk.session.close(at=talk.at + 1000)
    assert talk.session.waiting_events == 0
    assert is_as_its_log(talk)
    result = verify_session(store, "s1")
    assert {one.code for one in result.findings} <= {"events_lost"}
    assert result.exact == result.derived == result.requests
    gaps = events_of(store, StoreGap)
    assert any(is_down for is_down, _ in steps) == bool(gaps)
    assert talk.session.state.calls == len(steps)


def test_invariant_9_pins_outlive_events_that_are_lost(store, room):
    room(events=4)
    talk = Talk(store)
    go_on(talk, say="Deploys go to eu-north-7 only.", reply="noted")
    [said] = [seq for seq, one in store.read("s1") if getattr(one, "role", "") == "user"]
    talk.session.take(PinWanted(at=talk.at, message=said, holds=True))
    store.down = FULL
    go_on(talk, say="lost", reply=[("read", {})], results=["text"])
    go_on(talk, reply="also lost")
    store.down = None
    go_on(talk, say="after")

    assert [gap.lost > 0 for gap in events_of(store, StoreGap)] == [True]
    [kept] = list_pins(talk.session.state)
    assert kept.text == "Deploys go to eu-north-7 only."
    assert int(kept.handle[1:]) > said
    assert is_as_its_log(talk)
