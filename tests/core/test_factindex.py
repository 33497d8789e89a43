from hypothesis import given
from hypothesis import strategies as st

from barograph.core.factindex import build_index, expand_index, printable
from barograph.core.facts import Fact, facts_in, rank
from barograph.core.texts import MARK_CLOSES, MARK_OPENS

SEGMENTS = st.text(st.sampled_from("abc.-_"), min_size=1, max_size=4)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)
PLACES = st.tuples(PATHS, st.integers(1, 99)).map(lambda it: f"{it[0]}:{it[1]}")


def facts_of(*texts, kind="path"):
    return [Fact(kind=kind, text=text, start_chars=at) for at, text in enumerate(texts)]


def test_paths_share_the_spelling_of_their_folders():
    facts = facts_of(
        "src/app.py", "src/core/a.py", "src/core/b.py", "src/app.py:12", "src/app.py:9"
    )
    assert build_index(facts, budget_chars=999) == "src/{app.py:12,9 core/{a.py b.py}}"


def test_each_group_of_facts_has_its_lines():
    text = "fatal: no\nsrc/a.py max_depth retries=3 exit code 1"
    assert build_index(facts_in(text), budget_chars=999).split("\n") == [
        "! fatal: no",
        "src/a.py",
        "max_depth",
        "retries=3; exit code 1",
    ]


@given(st.lists(PATHS | PLACES, max_size=12))
def test_every_path_can_be_read_out_of_the_index(paths):
    words = expand_index(build_index(facts_of(*paths), budget_chars=9_999)).split()
    for path in paths:
        assert any(w == path or w.startswith((path + "/", path + ":")) for w in words)


@given(st.lists(PATHS | PLACES, max_size=12), st.integers(0, 60))
def test_an_index_keeps_to_its_budget(paths, budget_chars):
    assert len(build_index(facts_of(*paths), budget_chars=budget_chars)) <= budget_chars


def test_braces_are_paid_for():
    facts = facts_of("q/a/x", "q/a/y", "q/b/x", "q/b/y", "r/a/x", "r/a/y", "r/b/x", "r/b/y")
    for budget_chars in range(90):
        assert len(build_index(facts, budget_chars=budget_chars)) <= budget_chars


def test_the_first_facts_get_in_and_all_stand_in_the_order_of_the_text():
    facts = facts_of("src/deep/a.py", "src/b.py", "src/c.py")
    assert build_index(facts[::-1], budget_chars=20) == "src/{b.py c.py}"
    assert build_index(facts[::-1], budget_chars=99) == "src/{deep/a.py b.py c.py}"


@given(st.text(max_size=300), st.integers(0, 200))
def test_an_index_of_any_text_keeps_to_its_budget(text, budget_chars):
    facts = [*rank(facts_in(text)), *facts_of(text, kind="error"), *facts_of(text[::-1], kind="id")]
    assert len(build_index(facts, budget_chars=budget_chars)) <= budget_chars


@given(st.text())
def test_nothing_in_an_index_ends_a_marker_or_a_line(text):
    clean = printable(text)
    assert clean.isprintable()
    assert len(clean) == len(text)
    assert not {MARK_OPENS, MARK_CLOSES} & set(clean)


def test_text_that_turns_or_hides_what_follows_is_made_harmless():
    assert printable("a\x1b[2J\u202eb\u200bc\x00") == "a [2J b c "
