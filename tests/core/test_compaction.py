"""Which history gives way to a summary, and what is taken for one."""

import pytest
from histories import Call, Say, Trip, Work

from barograph.core.compaction import narrative_in
from barograph.core.cuts import Pairing
from barograph.core.errors import PolicyError
from barograph.core.events import Compacted, MessageSeen
from barograph.core.parts import Text, ToolCall
from barograph.core.policy import Policy
from barograph.core.spans import find_spans

OFTEN = Policy(
    name="bound-once",
    window_tokens=20_000,
    compact_at_ratio=0.6,
    compact_to_ratio=0.4,
    summary="digest",
    # the rounds here are all the same
    nudge_at_rounds=None,
    stall_nudge_repeats=None,
    stall_stop_repeats=None,
)
LINES = "\n".join(f"src/{n}.py:{n}: found" for n in range(100))


def rounds(count, width=2):
    for _ in range(count):
        yield Call("main", arguments=("{}",) * width, usage="honest")
        yield Work("main", ("plain",) * width, LINES)


def folds_of(trip):
    return [(seq, event) for seq, event in trip.events() if isinstance(event, Compacted)]


def entries_of(trip):
    return trip.session.state.surface("main").entries


def test_ten_compactions_in_one_turn_keep_the_request_and_never_nibble():
    trip = Trip(policy=OFTEN).play([Say("main", ("begin",)), *rounds(160), Call("main")])
    folds = folds_of(trip)
    assert len(folds) >= 10
    assert len(folds) < len(trip.calls) / 2
    assert entries_of(trip)[0].parts == (Text("begin"),)


def test_a_later_summary_stands_for_all_that_earlier_ones_hid():
    trip = Trip(policy=OFTEN).play([Say("main", ("begin",)), *rounds(60), Call("main")])
    events = dict(trip.events())
    (summary,) = [entry for entry in entries_of(trip) if entry.hides]
    assert {type(events[seq]) for seq in summary.hides} == {MessageSeen}
    left = {entry.seq for entry in entries_of(trip) if not entry.hides}
    seen = {seq for seq, event in events.items() if isinstance(event, MessageSeen)}
    assert seen == left | set(summary.hides)
    assert len(folds_of(trip)) > 1


@pytest.mark.parametrize("excess", range(0, 20_000, 700))
def test_a_run_of_any_length_leaves_calls_with_their_results(excess):
    trip = Trip().play([Say("main", ("begin",)), *rounds(6, width=3), Call("main")])
    surface = trip.session.state.surface("main")
    cuts = Pairing().cuts(surface.entries.span())
    for span in find_spans(surface, excess_chars=excess):
        assert {span.start, span.stop} <= set(cuts)


def test_what_lies_before_the_request_goes_first_and_what_follows_it_only_if_it_must():
    moves = [Say("main", ("old",)), *rounds(5), Call("main"), Say("main", ("new",)), *rounds(5)]
    surface = Trip().play([*moves, Call("main")]).session.state.surface("main")
    request = next(
        index for index, entry in enumerate(surface.entries) if entry.parts == (Text("new"),)
    )
    little, much = (find_spans(surface, excess_chars=chars) for chars in (5_000, 10**9))
    assert [(span.start, span.stop < request) for span in little] == [(0, True)]
    assert [span.start for span in much] == [0, request + 1]
    assert much[0].stop == request


def test_the_summary_is_what_stands_between_its_marks():
    said = (Text("Here you are.\n<summary>\nAll is well.\n</summary>"),)
    assert narrative_in(said, "end_turn", most_chars=100) == "All is well."


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((), "is empty"),
        ((Text(" \n"),), "is empty"),
        ((Text("Error: overloaded"),), "no whole summary"),
        ((Text("<summary>half"),), "no whole summary"),
        ((Text("<summary> </summary>"),), "summary is empty"),
        ((Text("<summary>" + "x" * 101 + "</summary>"),), "101 characters"),
        ((Text("<summary>a</summary>"), ToolCall("1", "look", "{}")), "called a tool"),
    ],
    ids=["nothing", "blank", "error", "cut-off", "no-text", "too-long", "tool-call"],
)
def test_whatever_else_is_answered_is_no_summary(parts, why):
    with pytest.raises(ValueError, match=why):
        narrative_in(parts, "end_turn", most_chars=100)


@pytest.mark.parametrize(
    "knobs",
    [
        {"name": "fixed", "compact_at_ratio": 0.5},
        {"name": "balanced", "prune_at_ratio": 0.95, "compact_at_ratio": 0.9},
        {"name": "bound-once", "compact_to_ratio": 0.8},
        {"summary_ratio": 0.6},
        {"summary": "sentence"},
    ],
    ids=["below-fixed", "below-own", "no-room", "too-much", "unknown"],
)
def test_knobs_that_contradict_each_other_are_refused(knobs):
    with pytest.raises(PolicyError, match=r"compact|summary"):
        Policy(**knobs)
