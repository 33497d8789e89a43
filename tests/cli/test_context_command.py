"""`barograph context`: what fills the window, for people and for programs."""

import re

import pytest
from everything import HOSTILE
from scanned import BALANCED, play
from test_cli_output import STYLE, is_harmful, on_a_terminal

from barograph.audit.context import Composition
from barograph.store import SqliteStore
from talk import Talk


def lines(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def rows_of(shown, head):
    start = next(number for number, line in enumerate(shown) if line.startswith(head))
    rows = shown[start + 1 :]
    return rows[: rows.index("")] if "" in rows else rows


def test_the_head_gives_the_whole_and_how_far_it_is_to_each_threshold(run):
    shown = lines(run("context", "latest", "--call", "5"))
    title = "Context of call 5 of 10 · session refactor-billing · main · turn 2, round 1"

    assert shown[0] == title
    facts = dict(line.split(maxsplit=1) for line in shown[1:6])
    assert facts["model"] == "claude-opus-4-8"
    assert re.fullmatch(r"4 \d{3} tokens, as the provider counted", facts["input"])
    assert re.fullmatch(
        r"~2 \d{3} tokens \(\d\d\.\d %\): tools and system, never folded", facts["fixed"]
    )
    assert facts["window"] == "1 000 000 less 100 for the answer = 999 900 usable tokens"
    assert re.fullmatch(r"0\.\d % of usable", facts["pressure"])
    assert "no room left at 999 900 tokens: 99" in "\n".join(shown[6:9])


def test_a_row_for_each_kind_with_its_tools_beneath(run):
    shown = lines(run("context", "latest", "--call", "5"))
    rows = rows_of(shown, "part ")

    assert [re.split(r"  +", row.strip())[0] for row in rows] == [
        *("tools", "search", "read", "system", "user speech", "assistant text"),
        *("tool-call arguments", "read", "search", "tool results", "read", "search"),
    ]
    assert all("~" in row for row in rows)


def test_the_largest_blocks_have_handles_that_unfold_takes(run):
    shown = lines(run("context", "latest", "--call", "5"))
    rows = rows_of(shown, "handle ")
    handle = next(row.split()[0] for row in rows if "tool results: read" in row)

    assert run("unfold", "latest", handle).stdout.startswith("def total(items):")


def test_without_a_call_it_is_the_last_that_left(run):
    shown = lines(run("context", "latest"))

    assert shown[0].startswith("Context of call 9 of 10")
    assert "estimated: no usage was reported" in shown[2]
    assert shown[2].split()[1].startswith("~")
    assert "pressure  ~0." in "\n".join(shown)


def test_one_agent_path(run):
    shown = lines(run("context", "latest", "--path", "main/researcher#1"))

    assert shown[0].startswith("Context of call 3 of 10")
    assert " main/researcher#1 " in shown[0]


def test_stubs_have_a_row_of_their_own(run, tmp_path):
    play(tmp_path / "scan.db", BALANCED)
    shown = lines(run("context", "latest", store=tmp_path / "scan.db"))

    assert any(row.startswith("stubs ") for row in shown)
    assert any("stubs: scan" in row for row in shown)


def test_a_price_cliff_that_is_passed_is_said(run, tmp_path):
    store = SqliteStore(tmp_path / "cliff.db")
    talk = Talk(store, "cliff")
    talk.model = "claude-haiku-5-5"
    talk.call(say="word " * 100_000)
    store.close()
    shown = lines(run("context", "cliff", store=tmp_path / "cliff.db"))

    assert any(re.search(r"price cliff at 100 000 tokens: passed by \d+ \d{3}$", x) for x in shown)


def test_many_tools_are_shortened_in_the_table_and_whole_in_the_document(run, run_json, tmp_path):
    path = tmp_path / "tools.db"
    store = SqliteStore(path)
    talk = Talk(store, "tools")
    talk.tools = [
        {"name": f"tool_{n}", "description": "d" * (50 * n), "input_schema": {}} for n in range(12)
    ]
    talk.call(say="hello")
    store.close()
    names = [row.split()[0] for row in rows_of(lines(run("context", "tools", store=path)), "part")]

    assert names[1:9] == [f"tool_{n}" for n in range(11, 3, -1)]
    assert names[9] == "…"
    assert len(run_json("context", "tools", store=path)["kinds"][0]["names"]) == 12


def test_an_unknown_model_has_an_assumed_window(run, tmp_path):
    store = SqliteStore(tmp_path / "unknown.db")
    talk = Talk(store, "unknown")
    talk.model = "somebody-elses-model"
    talk.call(say="hello")
    store.close()
    shown = "\n".join(lines(run("context", "unknown", store=tmp_path / "unknown.db")))

    assert "~200 000 less 100 for the answer" in shown
    assert "assumed, for the model is not known" in shown


def test_json_is_one_document_of_a_stated_schema(run_json):
    document = run_json("context", "latest", "--call", "5")

    assert list(document) == ["schema", *Composition.__struct_fields__]
    assert document["schema"] == "barograph.context/1"
    assert sum(kind["tokens"] for kind in document["kinds"]) == document["tokens"]
    assert list(document["kinds"][0]) == ["kind", "pieces", "tokens", "ratio", "names"]
    assert list(document["kinds"][0]["names"][0]) == ["name", "pieces", "tokens"]
    assert list(document["thresholds"][0]) == ["name", "tokens", "left_tokens"]
    assert list(document["largest"][0]) == [
        *("kind", "name", "tokens", "ratio", "handle", "message", "begins"),
    ]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("latest", "--call", "0"), 2),
        (("latest", "--call", "2", "--path", "main"), 2),
        (("nope",), 3),
        (("latest", "--call", "99"), 3),
        (("latest", "--call", "10"), 3),
        (("latest", "--path", "main/nobody"), 3),
    ],
)
def test_bad_input(run, args, code):
    result = run("context", *args)

    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr


def test_a_store_that_is_not_there(run, tmp_path):
    assert run("context", "latest", store=tmp_path / "none.db").exit_code == 5


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nothing_that_others_named_or_wrote_can_act_on_a_terminal(run, tmp_path, flags):
    store = SqliteStore(tmp_path / "hostile.db")
    talk = Talk(store, "hostile")
    talk.model = f"claude-opus-4-8{HOSTILE}"
    talk.tools = [{"name": HOSTILE, "description": HOSTILE, "input_schema": {}}]
    talk.call(path=f"main/{HOSTILE}", say=HOSTILE, reply=[(HOSTILE, {})], results=[HOSTILE])
    talk.call(path=f"main/{HOSTILE}", reply=HOSTILE)
    store.close()
    result = run("context", "hostile", *flags, store=tmp_path / "hostile.db")

    assert result.exit_code == 0
    assert [char for char in result.stdout + result.stderr if is_harmful(char)] == []


def test_a_store_that_an_agent_writes_to_is_read_and_left_alone(run, tmp_path):
    path = tmp_path / "live.db"
    store = SqliteStore(path)
    talk = Talk(store, "live")
    talk.call(say="hello")
    before = list(store.read("live"))
    shown = lines(run("context", "live", store=path))
    assert list(store.read("live")) == before
    talk.call(say="still there?")
    store.close()

    assert shown[0].startswith("Context of call 1 of 1")
    assert lines(run("context", "live", store=path))[0].startswith("Context of call 2 of 2")


def test_on_a_terminal_there_are_bars_and_the_tables_fit(recorded):
    shown, _ = on_a_terminal("context", "latest", "--call", "5", "--store", str(recorded))
    plain = STYLE.sub("", shown).splitlines()
    tables = plain[next(i for i, line in enumerate(plain) if line.startswith("part ")) :]

    assert any(line.startswith("system") and "█" in line for line in tables)
    assert max(map(len, tables)) <= 60
