"""The contract of every store. Each test runs against each backend."""

import os
import socket
import subprocess
import sys
import threading
import unicodedata

import msgspec
import pytest
from vocabulary import AWKWARD, EVENT_TYPES, FORGED, LARGE_CHARS, example, message, tag_of, turn

from barograph.core.errors import SequenceConflict, StoreUnavailable, UnknownSession, UsageError
from barograph.core.events import CallPlanned, HeaderSet, Usage
from barograph.core.parts import Text, ToolResult
from barograph.store import End, Store, open_store, resolve_session
from barograph.store.lease import Lease, new_holder


def call(number, *, at=1.0):
    return msgspec.structs.replace(example(CallPlanned, large=False), call=number, at=at)


plain = message("x")
BAD = {
    "not a number": turn(1, at=float("nan")),
    "infinite": turn(1, at=float("inf")),
    "larger than a float": turn(1, at=2**2000),
    "a flag for a number": turn(number=True),
    "a fraction for a number": turn(1.5),
    "nothing for a number": turn(None),
    "text for a number": turn("1"),
    "lone surrogate": message("\ud800"),
    "lone surrogates in a large body": message("\udfff" * LARGE_CHARS),
    "bytes for text": message(b"bytes"),
    "bytes for a large text": message(b"bytes" * LARGE_CHARS),
    "an object for text": message(object()),
    "a number for text": message(7),
    "list for tuple": msgspec.structs.replace(plain, parts=[Text("a list")]),
    "a type for a part": msgspec.structs.replace(plain, parts=(Usage,)),
    "text for parts": msgspec.structs.replace(plain, parts="text"),
    "unknown role": msgspec.structs.replace(plain, role="system"),
    "an event inside": msgspec.structs.replace(plain, parts=(ToolResult("c", (plain,)),)),
    "a part": Text("a part is no event"),
    "a dict": {"type": "turn_began", "at": 1.0, "path": "main", "turn": 1},
    "nothing": None,
}


class TestStoreContract:
    @pytest.mark.parametrize("large", [False, True])
    @pytest.mark.parametrize("kind", EVENT_TYPES, ids=tag_of)
    def test_every_event_type_is_read_back_as_it_was_written(self, store, kind, large):
        event = example(kind, large=large)
        assert store.append("s", [event], after=0).seq == 1
        assert list(store.read("s")) == [(1, event)]

    def test_numbers_start_at_one_and_have_no_gap(self, store):
        assert store.append("s", [turn(1), turn(2)], after=0).seq == 2
        assert store.append("s", [turn(3)], after=2).seq == 3
        assert [logged.seq for logged in store.read("s")] == [1, 2, 3]
        assert [logged.event.turn for logged in store.read("s")] == [1, 2, 3]
        assert store.last_seq("s") == 3

    def test_sessions_are_numbered_apart(self, store):
        store.append("a", [turn(1), turn(2)], after=0)
        store.append("b", [turn(9)], after=0)
        store.append("a", [turn(3)], after=2)
        assert [logged.event.turn for logged in store.read("a")] == [1, 2, 3]
        assert [logged.event.turn for logged in store.read("b")] == [9]

    def test_reading_starts_after_the_given_seq(self, store):
        store.append("s", [turn(number) for number in range(1, 1001)], after=0)
        assert [logged.seq for logged in store.read("s", after=997)] == [998, 999, 1000]
        assert list(store.read("s", after=1000)) == []
        assert list(store.read("s", after=5000)) == []
        assert len(list(store.read("s", after=-1))) == 1000

    def test_without_bodies_large_fields_are_empty_and_small_ones_are_there(self, store):
        header = example(HeaderSet, large=True)
        small = message("small")
        store.append("s", [header, small], after=0)
        quick = [logged.event for logged in store.read("s", bodies=False)]
        empty = msgspec.structs.replace(header, system=(), tools="", parameters="")
        assert quick == [empty, small]

    @pytest.mark.parametrize("kind", [kind for kind in EVENT_TYPES if kind.BODIES], ids=tag_of)
    def test_without_bodies_an_event_keeps_its_type_and_its_other_fields(self, store, kind):
        event = example(kind, large=True)
        store.append("s", [event], after=0)
        [(_, quick)] = store.read("s", bodies=False)
        for name in kind.__struct_fields__:
            given, kept = getattr(event, name), getattr(quick, name)
            assert kept == (type(given)() if name in kind.BODIES else given)

    def test_what_a_reader_holds_is_not_the_writers_object(self, store):
        event = message("text")
        store.append("s", [event], after=0)
        assert next(store.read("s")).event is not event

    def test_a_reader_does_not_see_what_was_appended_after_it_started(self, store):
        store.append("s", [turn(1)], after=0)
        reader = store.read("s")
        store.append("s", [turn(2)], after=1)
        assert [logged.seq for logged in reader] == [1]

    @pytest.mark.parametrize("seen", [1, 60, 63, 64, 65, 100])
    def test_a_reader_goes_on_as_before_while_its_log_grows_by_far(self, store, seen):
        for number in range(1, seen + 1):
            store.append("s", [turn(number)], after=number - 1)
        untouched, begun = store.read("s"), store.read("s")
        first = next(begun)
        for number in range(seen + 1, 200):
            store.append("s", [turn(number)], after=number - 1)
        expected = [(number, turn(number)) for number in range(1, seen + 1)]
        assert list(untouched) == [first, *begun] == expected

    def test_a_reader_is_given_each_event_once_while_a_writer_appends_after_each(self, store):
        store.append("s", [turn(number) for number in range(1, 151)], after=0)
        told = []
        for last, logged in enumerate(store.read("s", after=5), start=150):
            told.append(logged.seq)
            store.append("s", [turn(last + 1)], after=last)
        assert told == list(range(6, 151))

    def test_a_log_that_grew_by_far_can_be_set_aside_and_deleted_whole(self, store):
        for number in range(1, 151):
            store.append("s", [turn(number)], after=number - 1)
        aside = store.set_aside("s")
        assert [event.turn for _, event in store.read(aside)] == list(range(1, 151))
        store.delete(aside)
        assert store.append("s", [turn(7)], after=0).seq == 1
        assert list(store.read("s")) == [(1, turn(7))]

    def test_a_reader_that_stops_half_way_stops_nobody(self, store):
        store.append("s", [message("x" * LARGE_CHARS) for _ in range(600)], after=0)
        reader = store.read("s")
        next(reader)
        store.append("s", [turn(2)], after=600)
        store.delete("s")
        assert store.last_seq("s") == 0

    def test_appending_nothing_changes_nothing(self, store):
        assert store.append("s", [], after=0).seq == 0
        assert store.sessions() == []
        store.append("s", [turn(1)], after=0)
        assert store.append("s", [], after=1).seq == 1
        with pytest.raises(SequenceConflict):
            store.append("s", [], after=0)

    @pytest.mark.parametrize("after", [-1, 0, 2])
    def test_a_writer_that_is_mistaken_about_the_end_is_refused(self, store, after):
        store.append("s", [turn(1)], after=0)
        with pytest.raises(SequenceConflict) as caught:
            store.append("s", [message("x" * LARGE_CHARS), turn(2)], after=after)
        assert caught.value.ids == {"session": "s", "expected": after, "last": 1}
        assert caught.value.next_step
        assert list(store.read("s")) == [(1, turn(1))]

    def test_a_new_session_cannot_begin_in_the_middle(self, store):
        with pytest.raises(SequenceConflict):
            store.append("s", [turn(1)], after=4)
        assert store.sessions() == []

    def test_invariant_12_of_many_writers_at_one_seq_exactly_one_wins(self, store):
        start, outcomes = threading.Barrier(6), []

        def write(number):
            start.wait()
            try:
                outcomes.append(store.append("s", [turn(number)], after=0).seq)
            except SequenceConflict as error:
                outcomes.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count(1) == 1
        assert len(outcomes) == 6
        assert store.last_seq("s") == 1

    def test_threads_may_write_sessions_of_their_own_at_once(self, store):
        def write(name):
            for number in range(40):
                store.append(name, [message(name * LARGE_CHARS), turn(number)], after=2 * number)

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in "abcd":
            assert [seq for seq, _ in store.read(name)] == list(range(1, 81))

    @pytest.mark.parametrize(
        "session", [*AWKWARD[1:], "a/b", "../x", "A", " ", "latest"], ids=ascii
    )
    def test_any_text_is_an_id_and_is_kept_as_given(self, store, session):
        store.append(session, [turn(1)], after=0)
        store.append(session + "x", [turn(2)], after=0)
        assert {info.session for info in store.sessions()} == {session, session + "x"}
        assert list(store.read(session)) == [(1, turn(1))]
        assert resolve_session(store, session + "x") == session + "x"

    def test_ids_that_only_look_the_same_are_different_sessions(self, store):
        composed, decomposed = (unicodedata.normalize(form, "\u00e9") for form in ("NFC", "NFD"))
        ids = [composed, decomposed, "k", "K", "\u212a", "a", "a\0", "a\0b", "a ", "1", "1.0", "01"]
        for number, session in enumerate(ids):
            store.append(session, [turn(number)], after=0)
        assert [next(store.read(session)).event.turn for session in ids] == list(range(len(ids)))

    @pytest.mark.parametrize(
        ("session", "why"),
        [
            ("", "may not be empty"),
            ("\ud800", "surrogate"),
            (None, "NoneType"),
            (7, "int"),
            (b"s", "bytes"),
        ],
        ids=ascii,
    )
    def test_an_id_that_cannot_be_kept_is_refused(self, store, session, why):
        with pytest.raises(UsageError, match=why) as caught:
            store.append(session, [turn(1)], after=0)
        assert caught.value.ids == {"session": session}
        assert caught.value.next_step
        assert store.sessions() == []
        assert store.last_seq(session) == 0
        with pytest.raises(UnknownSession):
            store.read(session)
        with pytest.raises(UnknownSession):
            store.delete(session)

    def test_an_unknown_session_is_named_when_reading_is_asked_for(self, store):
        store.append("Known", [turn(1)], after=0)
        for use in (store.read, store.delete):
            with pytest.raises(UnknownSession, match="'known'") as caught:
                use("known")
            assert caught.value.ids == {"session": "known"}
            assert caught.value.next_step
        assert store.last_seq("known") == 0

    def test_the_list_tells_times_events_and_calls_newest_first(self, store):
        store.append("old", [turn(1, at=1.5), call(1), call(2, at=2.5)], after=0)
        store.append("new", [turn(1, at=2.0), turn(2, at=9.0)], after=0)
        store.append("old", [turn(2, at=3.5), call(2, at=4.0)], after=3)
        store.append("old", [turn(3, at=5.0)], after=5)
        new, old = store.sessions()
        assert msgspec.structs.astuple(new) == ("new", 2.0, 9.0, 2, 0)
        assert msgspec.structs.astuple(old) == ("old", 1.5, 5.0, 6, 2)

    def test_of_sessions_written_at_the_same_time_the_later_one_is_listed_first(self, store):
        for session in ("b", "a", "c"):
            store.append(session, [turn(1)], after=0)
        assert [info.session for info in store.sessions()] == ["c", "a", "b"]

    def test_invariant_2_deletion_takes_a_whole_session_and_no_other(self, store):
        shared = "x" * LARGE_CHARS
        for session in ("goes", "stays"):
            store.append(session, [message(shared), turn(1)], after=0)
        store.delete("goes")
        assert [info.session for info in store.sessions()] == ["stays"]
        assert [logged.event for logged in store.read("stays")] == [message(shared), turn(1)]
        with pytest.raises(UnknownSession):
            store.delete("goes")
        store.append("goes", [turn(5)], after=0)
        assert list(store.read("goes")) == [(1, turn(5))]

    def test_a_store_offers_no_way_to_change_an_event(self, store):
        offered = {name for name in dir(store) if not name.startswith("_")} - {"path"}
        assert offered == {name for name in dir(Store) if not name.startswith("_")}

    def test_a_text_that_looks_like_a_reference_is_still_text(self, store):
        large = FORGED * 10
        events = [message(FORGED), message(large), message('{"refs":{"parts":"b2:00"}}')]
        store.append("s", events, after=0)
        assert [logged.event for logged in store.read("s")] == events

    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    def test_a_value_that_would_not_come_back_is_refused_and_nothing_is_written(self, store, bad):
        store.append("s", [turn(1)], after=0)
        with pytest.raises(UsageError) as caught:
            store.append("s", [turn(2), bad], after=1)
        assert caught.value.ids == {"session": "s", "seq": 3}
        assert caught.value.next_step.startswith("Nothing was written")
        assert list(store.read("s")) == [(1, turn(1))]

    def test_a_closed_store_says_so(self, store):
        store.append("s", [turn(1)], after=0)
        store.close()
        store.close()
        for use in (
            lambda: store.append("s", [turn(2)], after=1),
            lambda: store.read("s"),
            lambda: store.end("s"),
            lambda: store.last_seq("s"),
            lambda: store.delete("s"),
            store.sessions,
        ):
            with pytest.raises(StoreUnavailable, match="closed"):
                use()

    def test_an_open_store_is_used_as_it_is(self, store):
        assert open_store(store) is store


class TestAnotherLogOfTheSameId:
    """A writer that tells which log it follows never writes into another one of the same id."""

    def test_an_append_tells_where_the_log_ends_then(self, store):
        assert store.end("s") == End(log=0, seq=0)
        end = store.append("s", [turn(1), turn(2)], after=store.end("s"))
        assert end == store.end("s")
        assert store.append("s", [turn(3)], after=end) == End(log=end.log, seq=3)
        assert store.append("s", [], after=3) == store.end("s")
        assert store.append("other", [turn(1)], after=0).log != end.log

    def test_invariant_12_a_log_that_was_begun_anew_to_the_same_length_refuses_the_old_ones_writer(
        self, store
    ):
        old = store.append("s", [turn(1), turn(2)], after=0)
        store.delete("s")
        assert store.end("s") == End(log=0, seq=0)
        new = store.append("s", [turn(3), turn(4)], after=0)

        assert new.seq == old.seq
        assert new.log != old.log
        for events in ([message("x" * LARGE_CHARS)], []):
            with pytest.raises(SequenceConflict, match="begun anew") as caught:
                store.append("s", events, after=old)
            assert caught.value.ids == {"session": "s", "expected": 2, "last": 2}
            assert caught.value.next_step.startswith("Nothing was written")
        assert [event.turn for _, event in store.read("s")] == [3, 4]
        assert store.append("s", [turn(5)], after=new).seq == 3

    def test_a_log_that_is_gone_refuses_its_writer(self, store):
        end = store.append("s", [turn(1)], after=0)
        store.delete("s")
        with pytest.raises(SequenceConflict):
            store.append("s", [turn(2)], after=end)
        assert store.sessions() == []

    def test_a_log_that_was_set_aside_is_the_same_and_gets_nothing_of_what_its_id_gets(self, store):
        end = store.append("s", [turn(1)], after=0)
        aside = store.set_aside("s")
        assert store.end(aside) == end
        store.append("s", [turn(2)], after=0)
        with pytest.raises(SequenceConflict):
            store.append("s", [turn(3)], after=end)
        assert [event.turn for _, event in store.read(aside)] == [1]
        assert [event.turn for _, event in store.read("s")] == [2]

    def test_whoever_holds_the_log_that_was_begun_anew_is_named_first(self, store):
        old = store.append("s", [turn(1)], after=0)
        store.delete("s")
        mine = Lease(holder=new_holder(), until=100.0)
        store.append("s", [turn(1, at=50.0)], after=0, lease=mine)
        with pytest.raises(SequenceConflict, match="held by another writer"):
            store.append("s", [turn(2, at=60.0)], after=old)

    def test_a_seq_alone_follows_whatever_log_has_the_id(self, store):
        store.append("s", [turn(1)], after=0)
        store.delete("s")
        store.append("s", [turn(2)], after=0)
        assert store.append("s", [turn(3)], after=1).seq == 2


class TestLeases:
    """While a writer is in a turn, nobody else writes its session."""

    @pytest.mark.parametrize(
        "other",
        [Lease(holder=new_holder(), until=500.0), None],
        ids=["with a lease", "without one"],
    )
    def test_invariant_12_a_held_session_refuses_every_other_writer_and_says_who_holds_it(
        self, store, other
    ):
        mine = Lease(holder=new_holder(), until=100.0)
        store.append("s", [turn(1, at=50.0)], after=0, lease=mine)
        for after in (0, 1):
            with pytest.raises(SequenceConflict, match="1970-01-01 00:01:40 UTC") as caught:
                store.append("s", [turn(2, at=99.0)], after=after, lease=other)
            assert caught.value.ids == {
                "session": "s",
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "until": 100.0,
            }
            assert caught.value.next_step.startswith("Nothing was written")
        assert list(store.read("s")) == [(1, turn(1, at=50.0))]
        assert store.append("s", [turn(2, at=99.0)], after=1, lease=mine).seq == 2

    def test_a_lease_holds_one_session_and_no_other(self, store):
        mine = Lease(holder=new_holder(), until=100.0)
        store.append("s", [turn(1, at=50.0)], after=0, lease=mine)
        assert store.append("other", [turn(1, at=50.0)], after=0).seq == 1

    @pytest.mark.parametrize("until", [0.0, 40.0, 99.0])
    def test_a_lease_that_was_given_up_or_has_passed_is_free(self, store, until):
        store.append("s", [turn(1, at=50.0)], after=0, lease=Lease(holder="h/1/1/a", until=until))
        assert store.append("s", [turn(2, at=99.0)], after=1).seq == 2

    def test_a_holder_may_give_up_without_an_event_and_nobody_else_may_for_it(self, store):
        mine = Lease(holder=new_holder(), until=100.0)
        store.append("s", [turn(1, at=50.0)], after=0, lease=mine)
        store.release("s", new_holder())
        store.release("t", mine.holder)
        with pytest.raises(SequenceConflict):
            store.append("s", [turn(2, at=60.0)], after=1)
        store.release("s", mine.holder)
        assert store.append("s", [turn(2, at=60.0)], after=1).seq == 2

    def test_the_lease_of_a_process_that_has_ended_is_free_at_once(self, store):
        said = subprocess.run(
            [sys.executable, "-c", "from barograph.store.lease import *; print(new_holder())"],
            capture_output=True,
            check=True,
            text=True,
        )
        gone = Lease(holder=said.stdout.strip(), until=1e9)
        store.append("s", [turn(1)], after=0, lease=gone)
        assert store.append("s", [turn(2)], after=1).seq == 2

    def test_a_later_process_of_the_same_number_is_not_the_holder(self, store):
        host, pid, birth, _ = new_holder().rsplit("/", 3)
        if birth == "?":
            pytest.skip("this system does not tell when a process began")
        store.append(
            "s", [turn(1)], after=0, lease=Lease(holder=f"{host}/{pid}/1/earlier", until=1e9)
        )
        assert store.append("s", [turn(2)], after=1).seq == 2

    def test_nothing_is_concluded_about_processes_of_another_host(self, store):
        far = Lease(holder="another-host/999999999/1/far", until=1e9)
        store.append("s", [turn(1)], after=0, lease=far)
        with pytest.raises(SequenceConflict, match="process 999999999 on another-host"):
            store.append("s", [turn(2)], after=1)


class TestSettingAside:
    """A damaged log makes room for a new one, and nothing of it is lost."""

    def test_it_is_all_there_under_another_id_and_its_own_is_free(self, store):
        store.append("s", [turn(1), message("x" * LARGE_CHARS)], after=0)
        before = [event for _, event in store.read("s")]
        aside = store.set_aside("s")
        assert aside == "s.damaged-1"
        assert [event for _, event in store.read(aside)] == before
        assert store.last_seq("s") == 0
        assert store.append("s", [turn(2)], after=0).seq == 1

    def test_a_second_one_takes_the_next_name(self, store):
        for number in (1, 2):
            store.append("s", [turn(number)], after=0)
            assert store.set_aside("s") == f"s.damaged-{number}"
        assert [event for _, event in store.read("s.damaged-1")] == [turn(1)]

    def test_nothing_is_set_aside_that_is_not_there(self, store):
        for name in ("s", "", "\ud800"):
            with pytest.raises(UnknownSession):
                store.set_aside(name)
