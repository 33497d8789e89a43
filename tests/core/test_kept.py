"""What sources keep, told by the events of a log."""

from barograph.core.events import SourceKept
from barograph.core.kept import Kept


def _kept(*notes):
    kept = Kept()
    for seq, (source, key, text) in enumerate(notes, start=1):
        event = SourceKept(at=0.0, path="main", source=source, key=key, text=text)
        kept = kept.with_event(seq, event)
    return kept


def test_each_source_has_its_own():
    kept = _kept(("plan", "goal", "Ship it."), ("skills", "goal", "other"))

    assert kept.of("plan") == {"goal": "Ship it."}
    assert kept.of("none") == {}


def test_what_was_kept_last_stands_last():
    kept = _kept(("skills", "a", "1"), ("skills", "b", "1"), ("skills", "a", "2"))

    assert list(kept.of("skills").items()) == [("b", "1"), ("a", "2")]


def test_an_empty_text_takes_away():
    assert _kept(("plan", "goal", "Ship it."), ("plan", "goal", "")).of("plan") == {}


def test_what_is_taken_back_gives_way_to_what_was_there_before():
    kept = _kept(("plan", "goal", "Ship it."), ("plan", "goal", ""), ("plan", "goal", "Stop."))

    assert kept.before(3).of("plan") == {}
    assert kept.before(2).of("plan") == {"goal": "Ship it."}


def test_what_is_dated_by_a_message_is_taken_back_with_it():
    kept = _kept(("plan", "goal", "Ship it."), ("plan", "goal", "Stop.")).seen(1, 5)

    assert kept.of("plan") == {"goal": "Stop."}
    assert kept.before(5).of("plan") == {"goal": "Ship it."}
