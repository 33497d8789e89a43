"""A session beside other writers."""

import pytest
from vocabulary import turn

from barograph.audit.verify import verify_session
from barograph.core.errors import SequenceConflict
from barograph.core.learning import restore
from barograph.core.policy import Policy
from barograph.store import End
from talk import Talk


def said(talk):
    return [entry.parts[0].text for entry in talk.entries()]


def is_as_its_log(talk):
    return talk.session.state == restore(talk.codec, talk.store.read(talk.name))


def take_turns(*talks):
    """Two writers whose callers show the same history and read the same clock."""
    first, *others = talks
    for other in others:
        other.histories, other.provider, other._calls = first.histories, first.provider, 100
        other.at = first.at


def test_invariant_12_writers_that_take_turns_learn_what_the_other_one_wrote(store):
    one, two = Talk(store), Talk(store)
    take_turns(one, two)
    for number in range(3):
        for writer in (one, two):
            writer.session.catch_up(at=writer.at)
            writer.call(say=f"question {number}", reply=f"answer {number}")
            assert is_as_its_log(writer)
    assert len(said(two)) == 11  # the last answer is shown at the next call
    assert one.session.renewals == 2


def test_invariant_12_a_second_writer_in_mid_turn_is_refused_and_changes_nothing(store):
    one, two = Talk(store), Talk(store)
    one.call(say="begin", answers=False)
    before = list(store.read("s1"))
    two.session.catch_up(at=two.at)
    state = two.session.state

    with pytest.raises(SequenceConflict, match="is held by another writer") as refused:
        two.call(say="me too")
    assert "share one `Barograph` object" in refused.value.next_step

    assert list(store.read("s1")) == before
    assert two.session.state is state
    one.call(reply="done")
    two.at = one.at
    two.session.catch_up(at=two.at)
    two.call(say="now")
    assert is_as_its_log(two)


def test_a_writer_that_was_overtaken_in_mid_turn_is_told_and_may_begin_again(store):
    one, two = Talk(store), Talk(store)
    one.call(say="begin", answers=False)
    two.session.catch_up(at=two.at)
    two.call(say="much later", after=3600.0)

    with pytest.raises(SequenceConflict, match="ends at seq"):
        one.call(say="go on", after=3601.0)

    one.session.catch_up(at=one.at)
    one.call(say="begin again")
    assert is_as_its_log(one)


def test_between_turns_nobody_waits_and_a_writer_that_holds_reads_nothing(store, monkeypatch):
    one = Talk(store)
    one.call(say="begin", reply=[("read", {})], results=["text"])
    monkeypatch.setattr(store, "end", lambda _: pytest.fail("it holds the session"))
    one.session.catch_up(at=one.at)
    one.call(reply="done")
    monkeypatch.undo()
    assert store.append("s1", [turn(9)], after=store.last_seq("s1"))


def test_a_writer_that_rests_lets_others_in_before_its_time_has_passed(store):
    one, two = Talk(store), Talk(store)
    one.call(say="begin", answers=False)
    one.session.rest("main")
    two.session.catch_up(at=two.at)
    two.call(say="go on", after=11.0)
    assert is_as_its_log(two)


def test_a_session_that_was_deleted_begins_anew(store):
    one = Talk(store)
    one.call(say="begin")
    store.delete("s1")
    one.session.catch_up(at=one.at)
    one.call(say="again")
    assert is_as_its_log(one)


def test_a_session_that_was_deleted_and_grew_again_is_not_continued_from_memory(store):
    one = Talk(store)
    one.call(say="begin")
    store.delete("s1")
    two = Talk(store)
    for number in range(5):
        two.call(say=f"other {number}", after=7.0)
    one.at = two.at
    one.session.catch_up(at=one.at)
    assert is_as_its_log(one)
    assert "begin" not in said(one)


@pytest.mark.parametrize("policy", ["continue", "stop"])
def test_a_session_that_was_begun_anew_to_the_same_length_is_not_continued_from_memory(
    store, policy
):
    one = Talk(store, policy=Policy(on_store_error=policy))
    one.call(say="begin")
    before = store.last_seq("s1")
    store.delete("s1")
    two = Talk(store)
    two.call(say="other")
    assert store.last_seq("s1") == before

    one.at = two.at
    one.session.catch_up(at=one.at)
    assert one.session.renewals == 1
    assert is_as_its_log(one)
    assert said(one)[0] == "other"
    one.call(say="go on")
    assert is_as_its_log(one)
    assert verify_session(store, "s1").is_sound


@pytest.mark.parametrize("policy", ["continue", "stop"])
def test_invariant_12_a_log_begun_anew_in_the_middle_of_a_turn_gets_nothing_of_that_turn(
    store, policy
):
    one = Talk(store, policy=Policy(on_store_error=policy))
    one.call(say="begin", reply=[("read", {})], answers=False)
    before = store.last_seq("s1")
    store.delete("s1")
    two = Talk(store)
    two.call(say="other", answers=False)
    two.session.rest("main")
    theirs = list(store.read("s1"))
    assert len(theirs) == before

    one.session.catch_up(at=one.at)
    with pytest.raises(SequenceConflict, match="begun anew"):
        one.call(reply="too late")
    assert list(store.read("s1")) == theirs

    one.session.catch_up(at=one.at)
    assert one.session.renewals == 1
    assert is_as_its_log(one)
    one.call(say="go on")
    assert is_as_its_log(one)
    assert verify_session(store, "s1").is_sound


def test_two_writers_that_begin_a_session_at_once_share_it(store, monkeypatch):
    real, answers = store.end, iter([End(0, 0)] * 2)
    monkeypatch.setattr(store, "end", lambda name: next(answers, None) or real(name))
    one, two = Talk(store), Talk(store)
    assert one.session.state == two.session.state
    assert store.last_seq("s1") == 1


def test_a_writer_does_not_take_its_own_last_body_for_the_last_that_left(store):
    def spaced(body):
        return body.replace(b'"role":"user"', b'"role": "user"', 1)

    one, two = Talk(store), Talk(store)
    take_turns(one, two)
    for word in "abc":
        one.call(say=word)
    for writer, edit in ((two, spaced), (one, None)):
        writer.session.catch_up(at=writer.at)
        writer.call(say="more", edit=edit)
    assert verify_session(store, "s1").is_sound
