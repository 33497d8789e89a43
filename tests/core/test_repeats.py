"""Of results that say the same, a pass leaves the newest, and references to it."""

from histories import PRUNING, Call, Say, Trip, Work
from msgspec.structs import replace

from barograph.core.events import Pruned
from barograph.core.parts import texts_in
from barograph.core.texts import MARK_OPENS
from barograph.store.originals import read_original

SAME = "\n".join(f"src/{n}.py:{n}: found" for n in range(60))
COLLAPSING = replace(PRUNING, collapse_repeats=True, max_result_chars=50_000)


def passed(policy, *texts):
    """A session whose rounds give these results, and the stubs of its passes, by event."""
    moves = [Say("main", ("begin",))]
    for text in texts:
        moves += [Call("main", arguments=("{}",), usage="honest"), Work("main", ("plain",), text)]
    trip = Trip(policy=policy).play([*moves, *[Call("main", usage="honest")]])
    stubs = [
        stub for _, event in trip.events() if isinstance(event, Pruned) for stub in event.stubs
    ]
    return trip, {stub.seq: "".join(texts_in(stub.parts)) for stub in stubs}


def test_an_older_result_gives_way_to_a_reference_and_reads_back_whole():
    trip, stubs = passed(COLLAPSING, SAME, SAME, SAME)
    first, second = sorted(stubs)[:2]
    for seq in (first, second):
        assert stubs[seq].startswith(f"{MARK_OPENS}The same {len(SAME):,} characters")
        assert len(stubs[seq]) < 160
        assert f"#{seq}" in stubs[seq]
        assert read_original(trip.store, trip.id, f"#{seq}") == SAME
    shown = ["".join(texts_in(entry.parts)) for entry in trip.session.state.surface("main").entries]
    assert shown.count(SAME) == 1


def test_a_pass_still_takes_off_at_least_what_it_said_it_would():
    _, plain = passed(replace(COLLAPSING, collapse_repeats=False), SAME, SAME, SAME, SAME)
    _, collapsed = passed(COLLAPSING, SAME, SAME, SAME, SAME)
    assert plain.keys() == collapsed.keys()
    assert sum(map(len, collapsed.values())) < sum(map(len, plain.values()))


def test_what_no_newer_result_says_keeps_its_facts():
    _, stubs = passed(COLLAPSING, SAME, SAME + "\nand more", SAME + "\nand others")
    assert stubs
    assert not any("The same" in text for text in stubs.values())
