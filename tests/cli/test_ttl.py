"""`barograph ttl`: which lifetime a session should have had, with money."""

import json

import pytest
from click.testing import CliRunner

from barograph.cli import main
from barograph.core.policy import Policy
from barograph.store import SqliteStore
from talk import Talk

HOUR = 'Policy(ttl="'


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("ttl") / "sessions.db"
    store = SqliteStore(file)
    for name, gap in (("quick", 10.0), ("slow", 900.0)):
        talk = Talk(store, name, policy=Policy(name="off", ttl="5m"))
        talk.call(say="begin", reply=[("read", {"path": "a"})], results=["text " * 2_000])
        for number in range(8):
            call = ("read", {"path": f"{number}"})
            talk.call(after=gap, reply=[call], results=[f"line {number}"])
    Talk(store, "empty")
    store.close()
    return file


def run(path, *arguments):
    return CliRunner().invoke(main, ["ttl", *arguments, "--store", str(path)])


def test_each_lifetime_is_a_row_and_the_best_is_recommended_with_money(path):
    shown = run(path, "slow")
    assert shown.exit_code == 0
    title, head, *rows, advice = shown.stdout.splitlines()
    assert title.startswith("9 calls of session slow: 8 pauses of 5 to 60 minutes (100.0 %")
    assert head.split()[:2] == ["lifetime", "cost"]
    names = [row.split("$")[0].strip() for row in rows]
    assert names == ["as recorded", "5m", "1h", "auto", "auto, pause_ratio 1.000"]
    assert [row.split()[-1] for row in rows[1:3]] == ["8", "0"]
    assert advice.startswith(HOUR)
    assert " would have saved $0." in advice


def test_where_nothing_would_have_saved_a_hundredth_it_says_so(path):
    shown = run(path, "quick")
    assert "0 pauses of 5 to 60 minutes" in shown.stdout
    assert "Leave it as it is" in shown.stdout


def test_a_session_without_calls_says_so(path):
    assert "no calls that reported usage" in run(path, "empty").stdout


def test_json_is_one_document_of_a_stated_schema(path):
    document = json.loads(run(path, "slow", "--json").stdout)
    assert list(document)[:3] == ["schema", "session", "calls"]
    assert document["schema"] == "barograph.ttl/1"
    assert [choice["ttl"] for choice in document["choices"]] == ["5m", "1h", "auto", "auto"]
    assert document["saved_usd"] > 0


def test_a_session_that_is_not_there_is_not_found(path):
    assert run(path, "nobody").exit_code == 3
