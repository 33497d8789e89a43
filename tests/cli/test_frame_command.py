"""`barograph frame`: what entered a turn, for people and for programs."""

import json

import pytest
from everything import HOSTILE
from test_cli_output import STYLE, is_harmful, on_a_terminal

from barograph.audit.frames import ToldSection, TurnFrame
from barograph.core.events import FrameMissed
from barograph.core.frames import Offer, Offered
from barograph.core.trust import Item
from barograph.store import SqliteStore
from talk import Talk

GOAL = Offered(source="goal", text="Ship it.")


def item(name, text="Never on Fridays.", **more):
    return Item(id=name, text=text, **more)


@pytest.fixture(scope="module")
def framed(tmp_path_factory):
    """Four turns: all new, one change and a failure, none asked, and all of it hostile."""
    path = tmp_path_factory.mktemp("framed") / "sessions.db"
    store = SqliteStore(path)
    talk = Talk(store, "framed")
    talk.at = 1_795_000_000.0
    notes = item("k1", origin="notes.md", date="2026-01-02", domain="law", trust="derived")
    recalled = Offered(source="notes", items=(notes, item("k2")), adds=True)
    place = Offered(source="place", text="Berlin")
    talk.call(say="one", frame=Offer(sections=(GOAL, place, recalled)))
    gone = (FrameMissed("place", "TimeoutError: gone"),)
    talk.call(say="two", frame=Offer(sections=(Offered(source="goal"),), missed=gone))
    talk.call(say="three")
    odd = item(HOSTILE, HOSTILE, origin=HOSTILE, date=HOSTILE, domain=HOSTILE)
    bad = Offered(source=HOSTILE, items=(odd,))
    worse = (FrameMissed(HOSTILE, HOSTILE), *gone)
    talk.call(say="four", frame=Offer(sections=(bad,), missed=worse))
    talk.call(path="main/look#1", say="look", frame=Offer(sections=(GOAL,)))
    store.close()
    return path


@pytest.fixture
def shown(run, framed):
    def invoke(*args):
        result = run("frame", "framed", *args, store=framed)
        assert result.exit_code == 0, result.stderr
        return result.stdout.splitlines()

    return invoke


def test_each_section_is_a_line_with_a_line_for_each_item(shown):
    title, began, *rest = shown("1")

    assert title == "Frame of turn 1 of 4 · session framed · main"
    assert began == "began     2026-11-18 11:06:50 UTC"
    heads = [line for line in rest if line.startswith("■")]
    came = "event 4"
    assert heads[0].startswith(f"■ goal · new · 93 characters · {came} · superseded by event ")
    assert heads[1].startswith("■ place · new · ")
    assert heads[1].endswith(" · in force")
    assert heads[2].endswith(f" · {came} · beside earlier ones · in force")
    assert rest[-2:] == [
        "  k1 · origin notes.md · date 2026-01-02 · domain law · trust derived",
        "  k2 · trust external",
    ]


def test_what_failed_and_what_is_carried_stand_below(shown):
    lines = shown("2")

    assert lines[3].startswith("■ goal · removed · ")
    failed = lines.index("Gave nothing; what they gave before still held")
    assert lines[failed + 1] == "  place: TimeoutError: gone"
    carried = lines.index("In force from earlier turns")
    assert [line.split(" · ")[0] for line in lines[carried + 1 :] if "■" in line] == [
        "  ■ place",
        "  ■ notes",
    ]
    assert "since turn 1, event 4" in lines[carried + 1]


def test_a_turn_without_a_frame_says_so_and_what_it_carried(shown):
    lines = shown("3")

    assert lines[2] == "Turn 3 has no frame: no source of context had anything to say."
    assert "  ■ place" in lines[5]


def test_the_last_turn_and_those_of_another_path(shown):
    assert shown("latest")[0].startswith("Frame of turn 4 of 4")
    assert shown("latest", "--path", "main/look#1")[0] == (
        "Frame of turn 1 of 1 · session framed · main/look#1"
    )


def test_text_is_what_the_model_saw_and_nothing_else(run, framed):
    store = SqliteStore(framed)
    talk = Talk(store, "framed")
    parts = [part.text for part in talk.entries()[1].parts]
    store.release("framed", talk.session._tail.writer.holder)
    store.close()
    result = run("frame", "framed", "1", "--text", store=framed)

    assert result.stdout == "".join(f"{text}\n" for text in parts)
    assert parts[0].startswith('<context from="goal" turn="1">')
    none = run("frame", "framed", "3", "--text", store=framed)
    assert (none.exit_code, none.stdout) == (0, "")
    assert none.stderr == "Turn 3 has no frame: no source of context had anything to say.\n"


def test_json_is_one_document_of_a_stated_schema(run_json, framed):
    document = run_json("frame", "framed", "1", store=framed)

    assert list(document) == ["schema", *TurnFrame.__struct_fields__]
    assert document["schema"] == "barograph.frame/1"
    assert list(document["sections"][0]) == list(ToldSection.__struct_fields__)
    assert document["sections"][2]["items"][0] == {
        "id": "k1",
        "digest": document["sections"][2]["items"][0]["digest"],
        "trust": "derived",
        "origin": "notes.md",
        "domain": "law",
        "date": "2026-01-02",
    }
    second = run_json("frame", "framed", "2", store=framed)
    assert second["missed"] == [{"source": "place", "reason": "TimeoutError: gone"}]
    assert [(one["source"], one["turn"]) for one in second["carried"]] == [
        ("place", 1),
        ("notes", 1),
    ]


@pytest.mark.parametrize("more", [(), ("--text",), ("--json",)], ids=["table", "text", "json"])
def test_no_text_of_others_reaches_the_terminal(framed, more):
    shown, errors = on_a_terminal("frame", "framed", "4", *more, "--store", str(framed))

    assert shown
    assert not any(map(is_harmful, STYLE.sub("", shown) + errors))


def test_no_text_of_others_begins_a_line_or_styles_one(shown):
    lines = shown("4")

    assert "[bold red]hi[/]" in "".join(lines)
    assert not any(map(is_harmful, "".join(lines)))
    assert sum(line.startswith("■") for line in lines) == 1


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("framed",), 2),
        (("framed", "0"), 2),
        (("framed", "first"), 2),
        (("framed", "1", "--text", "--json"), 2),
        (("framed", "5"), 3),
        (("framed", "1", "--path", "main/nobody"), 3),
        (("nope", "1"), 3),
    ],
)
def test_bad_input(run, framed, args, code):
    result = run("frame", *args, store=framed)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr


def test_an_unknown_turn_names_the_range_that_there_is(run, framed):
    assert "it has turns 1 to 4" in run("frame", "framed", "5", store=framed).stderr
    failed = run("frame", "framed", "5", "--json", store=framed)
    error = json.loads(failed.stderr)
    assert (error["code"], error["exit_code"]) == ("unknown_turn", 3)
    assert error["ids"] == {"session": "framed", "path": "main", "turn": 5}
