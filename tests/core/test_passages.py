"""Passages cover a text exactly, within their limit, and keep together what belongs together."""

from hypothesis import given
from hypothesis import strategies as st

from barograph.core.passages import LEAST_CHARS, MOST_CHARS, cut_passages

LINES = st.sampled_from(
    ("# Title", "## Part", "words of a line", "", "", "```", "~~~", "   ", "- item", "x" * 50, "\r")
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(LINES, max_size=60).map("\n".join))


@given(TEXTS, st.integers(1, 120))
def test_passages_joined_are_the_text_and_none_is_longer_than_the_limit(text, most):
    passages = cut_passages(text, most)
    assert "".join(passages) == text
    assert all(0 < len(passage) <= most for passage in passages)


def test_a_short_text_is_one_passage():
    assert cut_passages("One.\n\nTwo.\n") == ("One.\n\nTwo.\n",)
    assert cut_passages("") == ()


def test_a_heading_begins_a_passage_and_stays_with_what_follows():
    part = "Some words of this part. " * 20
    text = f"# All\n\n{part}\n\n## One\n\n{part}\n\n## Two\n{part}\n"
    assert [passage.splitlines()[0] for passage in cut_passages(text)] == [
        "# All",
        "## One",
        "## Two",
    ]
    assert len(part) > LEAST_CHARS


def test_a_heading_is_not_left_behind_when_what_follows_is_too_long_for_both():
    text = "a" * 80 + "\n\n## Two\n\n" + "b" * 80 + "\n"
    assert [len(passage) for passage in cut_passages(text, 100)] == [82, 89]


def test_a_sign_in_code_is_no_heading():
    code = "```sh\n" + "# a comment\nrun it\n\n" * 30 + "```\n"
    assert cut_passages(f"Before.\n\n{code}\nAfter.\n") == (f"Before.\n\n{code}\nAfter.\n",)


def test_paragraphs_are_kept_whole_where_they_fit():
    text = "\n\n".join(f"{number} " + "word " * 100 for number in range(9))
    passages = cut_passages(text)
    assert all(passage[0].isdigit() for passage in passages)
    assert len(passages) == 5


def test_a_long_paragraph_is_cut_behind_a_sentence_and_no_character_is_parted():
    text = "This is a sentence of some words. " * 100
    assert all(passage.endswith("words. ") for passage in cut_passages(text))
    family = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    assert all(set(p.split(family)) == {""} for p in cut_passages(family * 700, MOST_CHARS - 1))
