"""What of a frame is in force, what a pass leaves of it, and what is said again."""

import pytest

from barograph.core.events import FrameComposed, FrameMissed, Stub
from barograph.core.frames import Frames, Offer, Offered, plan_again, plan_sections
from barograph.core.trust import Item


class Told:
    """The frames of a path, a turn at a time: event and turn have one number."""

    def __init__(self):
        self.frames, self.turn = Frames(), 0

    def say(self, *, missed=(), **said):
        offered = tuple(Offered(source=name, text=text) for name, text in said.items())
        return self.offer(*offered, missed=missed)

    def offer(self, *offered, missed=()):
        self.turn += 1
        why = tuple(FrameMissed(name, "no disk") for name in missed)
        offer = Offer(sections=offered, missed=why)
        sections, texts = plan_sections(self.frames, offer, self.turn)
        event = FrameComposed(
            at=0.0, path="main", turn=self.turn, parts=texts, sections=sections, missed=why
        )
        self.frames = self.frames.with_frame(self.turn, event, self.turn)
        return [(one.source, one.change) for one in sections]

    def fold(self, *seqs):
        self.frames = self.frames.without(seqs, by_fold=True)

    def retire(self, *, only=None):
        """A pass for which everything has aged; the frames that it may change."""
        left = self.frames.retired(turn=self.turn + 1, aged_before=99)
        left = {seq: parts for seq, parts in left.items() if only is None or seq in only}
        stubs = [Stub(seq=seq, parts=parts) for seq, parts in left.items()]
        self.frames = self.frames.pruned(stubs)
        return set(left)


@pytest.fixture
def told():
    return Told()


def test_a_pass_retires_what_its_source_took_back(told):
    told.say(goal="Ship it.")
    told.say(goal="")

    assert told.retire() == {1}
    assert told.retire() == {2}
    assert told.frames.sent == ()


def test_what_was_taken_back_does_not_hold_again_when_a_pass_spares_its_frame(told):
    told.say(goal="Ship it.")
    told.say(goal="")

    assert told.retire(only={2}) == set()
    assert told.frames.holding == {}
    assert told.say(goal="") == []


def test_what_a_fold_hid_and_its_source_took_back_is_never_said_again(told):
    told.say(goal="Ship it.")
    told.fold(1)

    assert told.say(goal="") == []
    assert plan_again(told.frames) == ((), ())


def test_what_a_fold_hid_is_said_again_while_its_source_fails(told):
    told.say(goal="Ship it.")
    told.fold(1)

    assert told.say(missed=("goal",)) == [("goal", "again")]
    assert told.frames.holding["goal"].text == told.frames.sent[0].sections[0][1]
    assert told.say(goal="Ship it.") == []


def test_items_of_one_id_are_each_shown_once(told):
    one, two = Item(id="a", text="one"), Item(id="a", text="two")
    recalled = Offered(source="docs", items=(one, two, one), adds=True)

    assert told.offer(recalled) == [("docs", "new")]
    assert len(told.frames.sent[0].sections[0][0].items) == 2
    assert told.offer(recalled) == []
