"""`barograph replay`: one document, one table, and errors that name the file."""

import json

import pytest
from click.testing import CliRunner

from barograph.cli import main

LINE = {
    "call": 1,
    "t": None,
    "model": None,
    "agent": "main",
    "system": None,
    "tools": None,
    "append": [{"role": "user", "content": "hello"}],
    "response": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": None,
    "events": [],
}
FIELDS = {
    "file",
    "calls",
    "rejected",
    "input_total_tokens",
    "read_tokens",
    "write_5m_tokens",
    "write_1h_tokens",
    "uncached_tokens",
    "hit_ratio",
    "reuse_ratio",
    "cost_usd",
    "limit_usd",
    "online_limit_usd",
    "cost_over_limit",
    "cost_over_online_limit",
    "max_breakpoints",
    "planned_breaks",
    "unplanned_breaks",
    "exact_calls",
    "derived_calls",
    "folds",
    "wall_seconds",
}


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(LINE) + "\n")
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_json_is_one_document_with_every_field(recording):
    ran = run(recording, "--direct", "--json", "--price", "1.25,0.1", "--price", "1.25,0.05")

    document = json.loads(ran.stdout)
    assert ran.exit_code == 0
    assert document["schema"] == "barograph.replay/1"
    assert document["policy"] == "off"
    (session,) = document["sessions"]
    assert session.keys() >= FIELDS
    assert document["total"].keys() >= FIELDS
    assert [price["price"] for price in session["prices"]] == ["1.25,0.1", "1.25,0.05"]
    assert session["exact_calls"] == session["derived_calls"] == session["calls"] == 1


def test_the_table_says_what_was_made_up(recording):
    ran = run(recording, "--direct")

    assert ran.exit_code == 0
    assert "one" in ran.stdout
    assert "Made up where the recording has none" in ran.stderr


def test_other_files_in_a_folder_are_passed_over(recording):
    (recording.parent / "notes.txt").write_text("not a recording")

    ran = run(recording.parent, "--direct", "--json")

    assert [one["file"] for one in json.loads(ran.stdout)["sessions"]] == ["one"]


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "empty"), ("{}\n", "line 1"), (json.dumps(LINE) + "\nnot json\n", "line 2")],
    ids=["empty", "another document", "torn"],
)
def test_what_is_no_recording_is_named_with_its_line(tmp_path, content, said):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)

    ran = run(path, "--direct")

    assert ran.exit_code == 2
    assert "bad.jsonl" in ran.stderr
    assert said in ran.stderr


@pytest.mark.parametrize("price", ["cheap", "1.25", "0.5,0.1", "1.25,2"])
def test_a_price_out_of_range_is_a_usage_error(recording, price):
    assert run(recording, "--price", price).exit_code == 2
