"""The identity block: first, exact and alone, whatever the system message looked like."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.identity import identified, stable_blocks
from barograph.core.parts import Text

IDENTITY = "You are A, the agent of B."
ALONE = Text(IDENTITY)


def texts(*said):
    return tuple(map(Text, said))


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ((), ()),
        (("Be brief.",), ("Be brief.",)),
        ((IDENTITY,), ()),
        ((IDENTITY, "Be brief."), ("Be brief.",)),
        ((f"{IDENTITY}\n\nBe brief.",), ("Be brief.",)),
        ((f"{IDENTITY} Be brief.", "Be kind."), (" Be brief.", "Be kind.")),
        ((f"{IDENTITY}\n",), ()),
        ((IDENTITY[:9], IDENTITY[9:], "Be brief."), ("Be brief.",)),
        ((IDENTITY[:9], f"{IDENTITY[9:]}\nBe brief."), ("Be brief.",)),
        ((IDENTITY[:9], "Be brief."), (IDENTITY[:9], "Be brief.")),
        ((f"Be brief. {IDENTITY}",), (f"Be brief. {IDENTITY}",)),
    ],
)
def test_it_is_first_and_alone_however_the_blocks_were_cut(said, rest):
    assert identified(texts(*said), IDENTITY) == (ALONE, *texts(*rest))


def test_without_an_identity_nothing_changes():
    system = texts("a", "b")
    assert identified(system, None) is system


@given(
    rest=st.text().filter(lambda text: not text.startswith(("\r", "\n")) and text.strip()),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
def test_it_is_the_same_when_done_twice_or_cut_anywhere(rest, cuts):
    once = identified(texts(rest), IDENTITY)
    assert identified(once, IDENTITY) == once
    whole = IDENTITY + rest
    places = [0, *sorted(min(cut, len(IDENTITY)) for cut in cuts), len(whole)]
    pieces = [whole[one:other] for one, other in pairwise(places)]
    assert identified(texts(*filter(None, pieces)), IDENTITY) == (ALONE, Text(rest))


def test_the_marker_never_stands_on_it():
    assert stable_blocks((ALONE,), IDENTITY) == 0
    assert stable_blocks((ALONE, Text("rest")), IDENTITY) == 2
    assert stable_blocks((ALONE,), None) == 1
