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
    last_made_to_last,
    last_markable,
    plan_breakpoints,
)
from barograph.core.events import Breakpoint
from barograph.core.lifetimes import Outlook
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


def made_to_last(position, **changes):
    return written(position, ttl="1h", **changes)


def lifetimes(plan):
    return {mark.slot: mark.ttl for mark in plan.breakpoints}


@pytest.mark.parametrize(("pause_ratio", "ttl"), [(0.0, "5m"), (0.65, "5m"), (0.66, "1h")])
def test_a_cold_prefix_lives_long_when_pauses_pay_for_every_token_of_it(pause_ratio, ttl):
    assert set(lifetimes(plan_breakpoints(view(outlook=Outlook(pause_ratio)))).values()) == {ttl}


@pytest.mark.parametrize(("new", "ttl"), [(2, "5m"), (1, "1h")])
def test_a_tail_that_is_small_against_what_it_saves_is_made_to_last(new, ttl):
    plan = plan_breakpoints(
        view(outlook=Outlook(0.01), ledger=Trail([written(9 - new)]), header_chars=5_000)
    )
    assert lifetimes(plan)["tail"] == ttl


def test_what_lasts_is_long_and_what_is_new_behind_it_short():
    kept = made_to_last(7)
    plan = plan_breakpoints(
        view(outlook=Outlook(0.1), lasting=kept, ledger=Trail([kept, written(8)]))
    )
    assert lifetimes(plan) == {"header": "1h", "insurance": "1h", "anchor": "5m", "tail": "5m"}


def test_what_lasts_is_named_again_every_five_minutes_for_it_dies_an_hour_after_the_last_time():
    kept = made_to_last(5)
    ledger = Trail([kept, written(8, at=500)])
    early = view(outlook=Outlook(0.01), lasting=kept, ledger=ledger, at=300)
    assert slots(plan_breakpoints(early))[1] == ("insurance", "messages", 1)
    late = replace(early, at=301)
    assert slots(plan_breakpoints(late))[1] == ("insurance", "messages", 4)
    dead = replace(early, at=3601)
    assert slots(plan_breakpoints(dead))[1] == ("insurance", "messages", 1)


def test_a_marker_of_the_client_at_the_end_decides_what_ours_there_has():
    short = plan_breakpoints(view(ttl="1h", end_ttl="5m", ledger=Trail([written(5)])))
    assert lifetimes(short) == {"header": "1h", "insurance": "1h", "anchor": "1h", "tail": "5m"}
    long = plan_breakpoints(view(ttl="5m", end_ttl="1h", ledger=Trail([written(5)])))
    assert set(lifetimes(long).values()) == {"1h"}


@given(
    count=st.integers(0, 30),
    ledger=st.lists(
        st.tuples(st.integers(0, 35), st.floats(0, 9000), st.sampled_from(("5m", "1h"))),
        max_size=12,
    ),
    lasting=st.none() | st.tuples(st.integers(1, 35), st.floats(0, 9000)),
    pause_ratio=st.floats(0, 1),
    own_calls=st.none() | st.integers(0, 99),
    ttl=st.sampled_from(("5m", "1h")),
    end_ttl=st.sampled_from((None, "5m", "1h")),
    reserved=st.integers(0, 4),
    insured=st.integers(0, 30),
)
def test_invariant_7_no_plan_has_a_short_marker_before_a_long_one(
    *, count, ledger, lasting, pause_ratio, own_calls, ttl, end_ttl, reserved, insured
):
    plan = plan_breakpoints(
        view(
            segments=segments(count),
            ledger=Trail(
                written(p, at=at, scope=b"messages" if p else b"header", ttl=of)
                for p, at, of in ledger
            ),
            lasting=None if lasting is None else made_to_last(lasting[0], at=lasting[1]),
            outlook=Outlook(pause_ratio, own_calls),
            ttl=ttl,
            end_ttl=end_ttl,
            reserved=reserved,
            insured=min(insured, count),
            at=9000.0,
        )
    )
    on_the_wire = [mark.ttl for mark in plan.breakpoints] + ([end_ttl] if end_ttl else [])
    assert on_the_wire == sorted(on_the_wire, key=("1h", "5m").index)
    assert len(plan.breakpoints) <= 4 - reserved
    if end_ttl and plan.breakpoints and plan.breakpoints[-1].slot == "tail":
        assert plan.breakpoints[-1].ttl == end_ttl


def test_a_response_does_not_prolong_what_was_bought_short():
    marks = [
        Breakpoint(level="messages", block=1, ttl="1h", slot="anchor"),
        Breakpoint(level="messages", block=4, ttl="1h", slot="tail"),
    ]
    learned = confirm_entries(
        marks,
        segments(5),
        SCOPE,
        at=7.0,
        cached_tokens=900,
        anchor_tokens=400,
        known=[written(2, at=6.0), written(5, at=-400.0)],
    )
    assert [(one.position, one.ttl) for one in learned] == [(2, "5m"), (5, "1h")]


def test_the_deepest_long_entry_lasts_unless_the_history_left_it_behind():
    shallow, deep = made_to_last(3, at=9.0), made_to_last(6)
    assert last_made_to_last(None, [written(8), shallow], segments(9), SCOPE) == shallow
    assert last_made_to_last(deep, [shallow], segments(9), SCOPE) == deep
    assert last_made_to_last(deep, [shallow], segments(5), SCOPE) == shallow
    assert last_made_to_last(deep, [made_to_last(3, at=3601.0)], segments(9), SCOPE).position == 3
    assert last_made_to_last(deep, [written(8)], segments(9), SCOPE) == deep
