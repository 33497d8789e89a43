"""What entered a turn, read back from the log, and what has become of it since."""

import pytest
from msgspec.structs import replace

from barograph.audit.frames import read_frame
from barograph.core.errors import UnknownTurn
from barograph.core.events import Compacted, FrameMissed, Pruned, Replaced, StoreGap, Stub
from barograph.core.frames import Offer, Offered
from barograph.core.parts import Text
from barograph.core.trust import Item
from barograph.store import MemoryStore
from talk import Talk

RULE = Item(id="k1", text="Never on Fridays.", origin="notes/é.md", domain="law", date="2026-01-02")


@pytest.fixture
def talk():
    return Talk(MemoryStore())


def offer(*sections, missed=(), **texts):
    told = [Offered(source=name, text=text) for name, text in texts.items()]
    why = tuple(FrameMissed(name, "no disk") for name in missed)
    return Offer(sections=(*told, *sections), missed=why)


def recalled(*items):
    return Offered(source="notes", items=items, adds=True)


def frame(talk, turn=None, path="main"):
    return read_frame(talk.name, talk.store.read(talk.name), path=path, turn=turn)


def changes(sections):
    return [(one.source, one.change, one.turn) for one in sections]


def fates(sections):
    return [(one.source, one.fate, one.fate_seq) for one in sections]


def test_each_turn_has_what_was_new_in_it_and_what_it_carried(talk):
    talk.call(say="one", frame=offer(recalled(RULE), goal="Ship it.", place="Berlin"))
    talk.call(say="two", frame=offer(goal="Ship it.", place="Paris"))
    talk.call(say="three", frame=offer(goal="Ship it.", place=""))

    first, second, third = (frame(talk, turn) for turn in (1, 2, 3))
    assert changes(first.sections) == [("goal", "new", 1), ("place", "new", 1), ("notes", "new", 1)]
    assert changes(first.carried) == []
    assert changes(second.sections) == [("place", "changed", 2)]
    assert changes(second.carried) == [("goal", "new", 1), ("notes", "new", 1)]
    assert changes(third.sections) == [("place", "removed", 3)]
    assert changes(third.carried) == [("goal", "new", 1), ("notes", "new", 1)]
    talk.call(say="four", frame=offer(goal="Ship it."))
    assert changes(frame(talk).carried) == changes(third.carried)  # what was taken back is not
    assert [one.seq for one in third.carried] == [first.frames[0]] * 2
    assert (third.turn, third.turns) == (3, 3)


def test_items_are_named_as_their_source_gave_them(talk):
    talk.call(say="one", frame=offer(recalled(RULE, replace(RULE, id="k2", trust="operator"))))

    [section] = frame(talk).sections
    assert [(one.id, one.trust) for one in section.items] == [
        ("k1", "external"),
        ("k2", "operator"),
    ]
    one = section.items[0]
    assert (one.origin, one.domain, one.date) == ("notes/é.md", "law", "2026-01-02")
    assert section.text == talk.entries()[1].parts[0].text
    assert section.chars == len(section.text)


def test_sources_that_gave_nothing_are_named_and_what_they_gave_before_is_carried(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(say="two", frame=offer(missed=["goal"]))

    found = frame(talk)
    assert [(one.source, one.reason) for one in found.missed] == [("goal", "no disk")]
    assert (found.sections, changes(found.carried)) == ((), [("goal", "new", 1)])


def test_a_turn_whose_sources_were_not_asked_carries_what_held(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(say="two")

    found = frame(talk, 2)
    assert found.frames == ()
    assert changes(found.carried) == [("goal", "new", 1)]


def test_what_its_source_said_since_has_superseded_a_section(talk):
    talk.call(say="one", frame=offer(place="Berlin", goal="Ship it."))
    talk.call(say="two", frame=offer(place="Paris", goal="Ship it."))
    talk.call(say="three", frame=offer(place="", goal="Ship it."))

    second, third = frame(talk, 2).frames[0], frame(talk, 3).frames[0]
    assert fates(frame(talk, 1).sections) == [
        ("place", "superseded", second),
        ("goal", "in_force", None),
    ]
    assert fates(frame(talk, 2).sections) == [("place", "superseded", third)]
    assert fates(frame(talk, 3).sections) == [("place", "in_force", None)]


def test_a_pass_retires_the_sections_that_it_does_not_leave(talk):
    talk.call(say="one", frame=offer(place="Berlin", goal="Ship it."))
    talk.call(say="two", frame=offer(place="Paris", goal="Ship it."))
    [seq], goal = frame(talk, 1).frames, frame(talk, 1).sections[1].text
    talk.log(_pass(Stub(seq=seq, parts=(Text(goal),))))

    last = talk.session.state.fold.seq
    assert fates(frame(talk, 1).sections) == [
        ("place", "retired", last),
        ("goal", "in_force", None),
    ]


def test_a_fold_hides_a_section_and_the_frame_that_says_it_again_is_of_that_turn(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(say="two", frame=offer(goal="Ship it."))
    shadows = tuple(entry.seq for entry in talk.entries().span(0, 3))
    talk.log(
        Compacted(
            at=talk.at,
            path="main",
            cause="pressure",
            shadows=shadows,
            parts=(Text("Summary."),),
            narrated_by=None,
            failures=(),
            tokens_before=9,
            tokens_after=8,
            rewritten_tokens=7,
        )
    )
    folded = talk.session.state.fold.seq
    talk.call(say="three", frame=offer(goal="Ship it."))

    assert fates(frame(talk, 1).sections) == [("goal", "folded", folded)]
    assert changes(frame(talk, 2).carried) == [("goal", "new", 1)]
    assert changes(frame(talk, 3).sections) == [("goal", "again", 3)]


def test_what_was_taken_back_with_its_message_is_undone_and_is_carried_no_more(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(say="two", frame=offer(goal="Wait."))
    gone = tuple(entry.seq for entry in talk.entries().span(3))
    talk.log(
        Replaced(
            at=talk.at, path="main", shadows=gone, cause="rewound", planned=False, recognised=2
        )
    )
    undone = talk.session.state.fold.seq
    del talk.histories["main"][2:]
    talk.call(say="two again", frame=offer(goal="Ship it."))

    assert fates(frame(talk, 2).sections) == [("goal", "undone", undone)]
    assert frame(talk, 3).sections == ()
    assert changes(frame(talk, 3).carried) == [("goal", "new", 1)]
    assert fates(frame(talk, 1).sections) == [("goal", "in_force", None)]


def test_what_came_before_a_gap_is_lost_and_what_came_after_is_not(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.log(
        StoreGap(
            at=talk.at,
            since=talk.at,
            reason="disk full",
            first_late=0,
            late=0,
            lost=3,
            first_call=2,
            last_call=2,
            calls=2,
        )
    )
    gap = talk.session.state.fold.seq
    talk.call(say="two", frame=offer(goal="Ship it."))

    assert fates(frame(talk, 1).sections) == [("goal", "lost", gap)]
    assert fates(frame(talk).sections) == [("goal", "in_force", None)]
    assert changes(frame(talk).sections)[0][:2] == ("goal", "new")


def test_paths_have_turns_of_their_own(talk):
    talk.call(say="one", frame=offer(goal="Ship it."))
    talk.call(path="main/look#1", say="look", frame=offer(goal="Look."))

    assert changes(frame(talk, 1, "main/look#1").sections) == [("goal", "new", 1)]
    assert frame(talk, 1, "main/look#1").carried == ()


def forked(talk, path="main/task#1", **frame):
    talk.call(say="one", frame=offer(goal="Ship it.", place="Paris"))
    talk.call(say="two", frame=offer(goal="Ship it.", place="Paris"), reply=[("task", {})])
    talk.histories[path] = talk.histories["main"][:-1]
    talk.call(path=path, say="a task", frame=offer(**frame))
    return path


def test_a_fork_carries_what_held_where_it_began(talk):
    path = forked(talk, place="Rome")

    own = frame(talk, path=path)
    assert (own.turn, own.turns) == (3, 3)
    assert changes(own.sections) == [("place", "changed", 3)]
    assert changes(own.carried) == [("goal", "new", 1)]
    (superseded,) = [one for one in frame(talk, 1).sections if one.source == "place"]
    assert superseded.fate == "in_force"  # above


def test_what_is_folded_in_a_fork_is_not_folded_above_it_and_what_was_before_is_in_both(talk):
    path = forked(talk, place="Rome")
    entries = [entry.seq for entry in talk.entries(path)]
    folded = Compacted(
        at=talk.at,
        path=path,
        cause="manual",
        shadows=tuple(entries[:2]),
        parts=(Text("in short"),),
        narrated_by=None,
        failures=(),
        tokens_before=9,
        tokens_after=8,
        rewritten_tokens=0,
    )
    talk.log(folded)

    seq = talk.session.state.fold.seq
    assert fates(frame(talk, path=path).carried) == [("goal", "folded", seq)]
    assert {one.fate for one in frame(talk, 1).sections} == {"in_force"}


@pytest.mark.parametrize(
    ("turn", "path", "words"),
    [
        (3, "main", "no turn 3: it has turns 1 to 2"),
        (1, "main/nobody", "no turn 1: it has none"),
        (None, "main/nobody", "no turn: it has none"),
    ],
    ids=["too far", "no such path", "latest of no path"],
)
def test_a_turn_that_there_is_not_is_unknown_and_the_error_says_which_there_are(
    talk, turn, path, words
):
    talk.call(say="one")
    talk.call(say="two")

    with pytest.raises(UnknownTurn, match=words) as caught:
        frame(talk, turn, path)
    assert caught.value.next_step == "The agent paths that have turns are: main."


def _pass(*stubs):
    return Pruned(
        at=0.0,
        path="main",
        cause="cold",
        stubs=stubs,
        aged_before=0,
        tokens_before=9,
        tokens_after=8,
        rewritten_tokens=0,
        break_even_calls=None,
    )
