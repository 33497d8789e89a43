"""`barograph demo`: the promise of the first page, run whole."""

import json

import pytest
from click.testing import CliRunner

from barograph.cli import main


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    store = tmp_path_factory.mktemp("demo") / "sessions.db"
    result = CliRunner().invoke(main, ["demo", "--json", "--store", str(store)])
    return store, result


def test_three_coders_make_the_same_moves(ran):
    _, result = ran

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["schema"] == "barograph.demo/1"
    bare, builtin, ours = document["lanes"]
    assert bare["calls"] == builtin["calls"] == ours["calls"] == 50
    assert bare["input_total_tokens"] == builtin["input_total_tokens"]
    assert bare["read_tokens"] == 0
    assert ours["hit_ratio"] >= 0.8
    assert ours["reuse_ratio"] == 1.0
    assert ours["unplanned_breaks"] == ours["refused"] == 0
    assert 1 <= ours["planned_breaks"] <= 3
    assert ours["cost_usd"] < bare["cost_usd"] / 9
    assert ours["cost_usd"] < 0.85 * builtin["cost_usd"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["show", "latest", "--call", "16"], "Call 16"),
        (["why", "latest"], "planned_fold"),
        (["folds", "latest"], "rent"),
        (["verify", "latest"], "50 of 50 exact, 50 of 50 derived"),
    ],
    ids=["show", "why", "folds", "verify"],
)
def test_what_it_says_to_try_next_works(ran, command, said):
    store, _ = ran

    result = CliRunner().invoke(main, [*command, "--store", str(store)])

    assert result.exit_code == 0
    assert said.lower() in result.stdout.lower()


def test_live_without_a_key_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    result = CliRunner().invoke(main, ["demo", "--live", "--store", str(tmp_path / "s.db")])

    assert result.exit_code == 2
    assert "ANTHROPIC_API_KEY" in result.stderr
