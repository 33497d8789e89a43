import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.trail import Trail

steps = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.integers(0, 9), st.lists(st.integers(), max_size=3)))
)


@given(steps)
def test_every_version_stays_what_it_was_whatever_grows_from_it(steps):
    trails, lists = [Trail()], [[]]
    for chosen, what in steps:
        trail, items = trails[chosen % len(trails)], lists[chosen % len(lists)]
        if isinstance(what, int):
            keep = min(what, len(items))
            trails.append(trail.cut(keep))
            lists.append(items[:keep])
        else:
            trails.append(trail.extended(what))
            lists.append(items + what)
    for trail, items in zip(trails, lists, strict=True):
        assert list(trail) == trail.span() == items
        assert len(trail) == len(items)
        assert [trail[i] for i in range(-len(items), len(items))] == items + items
        assert trail == Trail(items)


def test_extending_the_newest_version_copies_nothing():
    first = Trail([1])
    assert first.extended([2])._items is first._items
    assert first.extended([]) is first


def test_an_empty_trail_lends_its_storage_to_nobody():
    empty = Trail()
    one, other = empty.extended([1]), empty.extended([2])
    assert one._items is not empty._items
    assert (list(one), list(other), empty._items) == ([1], [2], [])


def test_sessions_that_begin_in_several_threads_share_nothing():
    empty, results = Trail(), {}

    def grow(number):
        trail = empty
        for _ in range(200):
            trail = trail.extended([number])
        results[number] = trail.span()

    threads = [threading.Thread(target=grow, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number] * 200 for number in range(8)}


def test_an_older_version_does_not_see_what_came_later():
    old = Trail([1, 2])
    new = old.extended([3])
    assert old.span() == old.span(0, 9) == [1, 2]
    assert new.span(1, 3) == [2, 3]
    for index in (2, -3):
        with pytest.raises(IndexError):
            old[index]


@pytest.mark.parametrize("length", [-1, 3])
def test_a_cut_beyond_the_ends_is_refused(length):
    with pytest.raises(IndexError):
        Trail([1, 2]).cut(length)


def test_trails_are_equal_by_content_and_not_hashable():
    assert Trail([1, 2]) == Trail([1, 2, 3]).cut(2) != Trail([1])
    assert Trail([1]) != [1]
    assert repr(Trail([1])) == "Trail([1])"
    with pytest.raises(TypeError):
        hash(Trail())
