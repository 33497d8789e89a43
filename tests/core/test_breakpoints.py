import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barograph.core.breakpoints import (
    CacheView,
    Segment,
    Written,
    confirm_entries,
    find_anchor,
    last_markable,
    plan_breakpoints,
)
from barograph.core.events import Breakpoint
from barograph.core.model import Scope
from barograph.core.trail import Trail
from barograph.providers.anthropic.models import facts_of

SCOPE = Scope(b"header", b"messages")


def segments(count, *, unmarkable=(), chars=1000):
    return Trail(
        Segment(b"k%d" % i, chars * (i + 1), i not in unmarkable, i, i, 0) for i in range(count)
    )


def written(position, *, at=0.0, scope=b"messages", ttl="5m", tokens=None, key=None):
    return Written(
        level="messages" if position else "header",
        scope=scope,
        key=b"k%d" % (position - 1) if key is None else key,
        position=position,
        ttl=ttl,
        used_at=at,
        tokens=tokens,
    )


def view(**changes):
    plain = CacheView(
        header_level="system",
        header_block=1,
        header_chars=10_000,
        segments=segments(9),
        scope=SCOPE,
        ledger=Trail(),
        at=100.0,
        facts=facts_of("claude-opus-4-8"),
        ttl="5m",
        tokens_per_char=0.25,
        insured=2,
    )
    return replace(plain, **changes)


def slots(plan):
    return [(mark.slot, mark.level, mark.block) for mark in plan.breakpoints]


def test_all_four_slots_come_in_wire_order():
    plan = plan_breakpoints(view(ledger=Trail([written(5, tokens=77)])))
    assert slots(plan) == [
        ("header", "system", 1),
        ("insurance", "messages", 1),
        ("anchor", "messages", 4),
        ("tail", "messages", 8),
    ]
    assert plan.anchor.tokens == 77


@pytest.mark.parametrize(
    ("reserved", "left"),
    [
        (0, ["header", "insurance", "anchor", "tail"]),
        (1, ["header", "anchor", "tail"]),
        (2, ["anchor", "tail"]),
        (3, ["tail"]),
        (4, []),
        (5, []),
    ],
)
def test_the_most_valuable_slots_stay_when_others_are_reserved(reserved, left):
    plan = plan_breakpoints(view(ledger=Trail([written(5)]), reserved=reserved))
    assert [slot for slot, _, _ in slots(plan)] == left


def test_a_place_is_marked_once_and_frees_its_slot():
    plan = plan_breakpoints(view(ledger=Trail([written(9)]), insured=9))
    assert slots(plan) == [("header", "system", 1), ("tail", "messages", 8)]


def test_a_tail_that_may_not_be_marked_moves_back():
    plan = plan_breakpoints(view(segments=segments(5, unmarkable=(3, 4)), insured=0))
    assert slots(plan)[-1] == ("tail", "messages", 2)
    assert last_markable(segments(3, unmarkable=(0, 1, 2)), 3) == 0


def test_a_request_without_header_or_messages_is_not_marked():
    assert plan_breakpoints(view(header_level=None, segments=Trail(), insured=0)).breakpoints == ()


@pytest.mark.parametrize(("tokens_per_char", "marked"), [(0.0999, False), (0.1024, True)])
def test_the_minimum_decides_by_the_learned_ratio(tokens_per_char, marked):
    plan = plan_breakpoints(
        view(tokens_per_char=tokens_per_char, segments=segments(1, chars=0), insured=0)
    )
    assert bool(plan.breakpoints) is marked


def test_the_header_counts_towards_the_minimum_of_every_message():
    plan = plan_breakpoints(view(header_chars=3600, segments=segments(2, chars=300), insured=1))
    assert slots(plan) == [("tail", "messages", 1)]


def test_every_marker_has_the_policys_lifetime():
    plan = plan_breakpoints(view(ttl="1h", ledger=Trail([written(5)])))
    assert {mark.ttl for mark in plan.breakpoints} == {"1h"}


def test_the_deepest_live_prefix_is_the_anchor():
    ledger = Trail([written(3, at=90), written(6, at=50), written(7, at=60, key=b"other branch")])
    assert find_anchor(segments(9), ledger, SCOPE, 100.0).position == 6


def test_a_live_entry_is_preferred_to_a_deeper_dead_one():
    ledger = Trail([written(6, at=0), written(3, at=390)])
    assert find_anchor(segments(9), ledger, SCOPE, 400.0).position == 3
    assert find_anchor(segments(9), ledger, SCOPE, 4000.0).position == 6


def test_an_entry_of_another_scope_or_beyond_the_end_is_no_anchor():
    ledger = Trail([written(3, scope=b"old"), written(10)])
    assert find_anchor(segments(9), ledger, SCOPE, 1.0) is None
    header = written(0, scope=b"header", key=b"")
    assert find_anchor(segments(9), ledger.extended([header]), SCOPE, 1.0) == header


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300), ("1h", 3600)])
def test_an_entry_lives_as_long_as_was_paid_for(ttl, seconds):
    entry = written(1, at=1000.0, ttl=ttl)
    assert entry.is_live(1000.0 + seconds)
    assert not entry.is_live(1000.1 + seconds)


def test_a_response_confirms_every_marker_and_tells_two_lengths():
    marks = [
        Breakpoint(level="tools", block=3, ttl="1h", slot="header"),
        Breakpoint(level="messages", block=1, ttl="1h", slot="anchor"),
        Breakpoint(level="messages", block=4, ttl="1h", slot="tail"),
    ]
    learned = confirm_entries(
        marks, segments(5), SCOPE, at=7.0, cached_tokens=900, anchor_tokens=400
    )
    assert [(w.level, w.position, w.key, w.tokens) for w in learned] == [
        ("header", 0, b"", None),
        ("messages", 2, b"k1", 400),
        ("messages", 5, b"k4", 900),
    ]
    assert {w.used_at for w in learned} == {7.0}
    assert [w.scope for w in learned] == [b"header", b"messages", b"messages"]


@given(
    count=st.integers(0, 40),
    unmarkable=st.sets(st.integers(0, 40)),
    ledger=st.lists(st.tuples(st.integers(0, 45), st.floats(0, 9000)), max_size=12),
    reserved=st.integers(0, 5),
    insured=st.integers(0, 60),
    level=st.sampled_from((None, "tools", "system")),
    ratio=st.floats(0.01, 2),
)
def test_a_plan_is_legal_whatever_the_ledger_holds(
    *, count, unmarkable, ledger, reserved, insured, level, ratio
):
    row = segments(count, unmarkable=unmarkable)
    seen = view(
        segments=row,
        ledger=Trail(
            written(position, at=at, scope=b"messages" if position else b"header")
            for position, at in ledger
            if position == 0 or position - 1 not in unmarkable
        ),
        reserved=reserved,
        insured=min(insured, count),
        header_level=level,
        tokens_per_char=ratio,
        at=9000.0,
    )
    plan = plan_breakpoints(seen)
    assert len(plan.breakpoints) <= max(0, 4 - reserved)
    places = [mark.block for mark in plan.breakpoints if mark.level == "messages"]
    assert places == sorted(set(places))
    assert all(row[place].markable for place in places)
    assert [mark.level for mark in plan.breakpoints].count(level) <= 1
    for place in places:
        assert (10_000 + row[place].end_chars) * ratio >= 1024
