import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.facts import MOST_CHARS, facts_in, rank


def found(text):
    return [(fact.kind, fact.text) for fact in facts_in(text)]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("see src/core/app.py.", [("path", "src/core/app.py")]),
        ("(./a/b.ts)", [("path", "./a/b.ts")]),
        ("open 'state.go'", [("path", "state.go")]),
        ("/var/log/app", [("path", "/var/log/app")]),
        (r"at C:\work\app now", [("path", r"C:\work\app")]),
        (
            "src/app.py:12:5: x",
            [("path", "src/app.py"), ("place", "src/app.py:12")],
        ),
        ("src/a.ts(12,5): x", [("path", "src/a.ts"), ("place", "src/a.ts(12,5)")]),
        ("cmd/a/state.go-35-\tx := y", [("path", "cmd/a/state.go")]),
        ("https://a.org/b?c=d, then", [("url", "https://a.org/b?c=d")]),
        ("commit 21bfe4f9f", [("id", "21bfe4f9f")]),
        ("PROJ-1234 is done", [("id", "PROJ-1234")]),
        (
            "id 9b2f8a50-1c1e-4f5a-8d3e-2f6a7b8c9d0e",
            [("id", "9b2f8a50-1c1e-4f5a-8d3e-2f6a7b8c9d0e")],
        ),
        ("maxDepth and max_depth", [("name", "maxDepth"), ("name", "max_depth")]),
        ("os.MkdirAll(x)", [("name", "MkdirAll")]),
        ("self.client.run_all()", [("name", "run_all")]),
        ("process.env.HOME", [("name", "process.env.HOME")]),
        ("retries = 3", [("value", "retries = 3")]),
        ("see app.yaml:12", [("path", "app.yaml"), ("place", "app.yaml:12")]),
        ('"port": 8080,', [("value", 'port": 8080')]),
        ("Process exited with code 2", [("exit", "exited with code 2")]),
        ("   12→fatal: bad", [("error", "fatal: bad")]),
        ("--- FAIL: x (0.1s)", [("error", "--- FAIL: x (0.1s)")]),
        ("\x1b[31msrc/a.py\x1b[0m", [("path", "src/a.py")]),
    ],
)
def test_a_fact_is_told_by_its_form(text, facts):
    assert found(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "and/or",
        "input/output is plain prose, e.g. this",
        "// a comment",
        "if err != nil { return err }",
        "at 12:30 on 2026-01-02",
        "12345678",
        "</div>",
        "...",
        "",
    ],
)
def test_plain_words_are_no_facts(text):
    assert found(text) == []


def test_a_fact_is_there_once_where_it_stands_first():
    (fact,) = facts_in("a max_depth b max_depth")
    assert fact.start_chars == 2


def test_a_word_that_is_too_long_to_name_holds_no_facts():
    assert found("+".join(["max_depth"] * 30)) == []


TEXTS = st.text(st.sampled_from("aZ0_./\\:-=@~#{}\"' \n\t\x1b[m→é🎉⟦⟧"), max_size=300)


@given(TEXTS)
def test_every_fact_is_a_piece_of_its_text(text):
    facts = facts_in(text)
    assert all(text[f.start_chars :].startswith(f.text) and f.text for f in facts)
    assert all(len(f.text) <= MOST_CHARS for f in facts)
    assert len({f.text for f in facts}) == len(facts)


@given(TEXTS)
def test_ranking_loses_and_invents_nothing_and_does_not_depend_on_the_order(text):
    facts = facts_in(text)
    assert sorted(rank(facts), key=facts.index) == list(facts)
    assert rank(reversed(facts)) == rank(facts)


def test_the_first_of_alike_errors_leads_and_the_others_come_last():
    facts = rank(facts_in("fatal: disk 1\nfatal: disk 2\nmax_depth\nfatal: no power"))
    assert [fact.text for fact in facts] == [
        "fatal: disk 1",
        "fatal: no power",
        "max_depth",
        "fatal: disk 2",
    ]


HOSTILE = [
    "a", "a.", "a/", "a-", "a_", "aA", "0", "0f", "/", "\\", "C:\\a", "http://", "a://", ":", "a:",
    "a=", "a: 1", "x.py:1:", "x.py-1-", "exit ", "exited with code ", "error ", "Error:", "[",
    "\x1b[", "E", "A1-", "{", "@/", "../", "data:a/b;base64,", "a: -1.", " ", "\n", "E   ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_time_is_linear_in_the_text_whatever_it_repeats(unit):
    def seconds(chars):
        text = unit * (chars // len(unit))
        return min(timed(text) for _ in range(3))

    def timed(text):
        start = time.thread_time()
        facts_in(text)
        return time.thread_time() - start

    # twice the text may take twice the time; four times would be the square
    assert seconds(80_000) < 3.2 * seconds(40_000) + 0.02
    assert seconds(80_000) < 2
