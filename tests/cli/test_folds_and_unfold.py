"""`folds` and `unfold`: what was taken out of sight, and the way back to it."""

import json

import pytest
from click.testing import CliRunner
from scanned import BALANCED, ROUNDS, found, play

from barograph.cli import main
from barograph.core.policy import Policy


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("folds") / "sessions.db"
    play(file, BALANCED)
    return file


def run(path, *arguments):
    return CliRunner().invoke(main, [*arguments, "--store", str(path)])


def test_every_pass_is_a_row_with_its_price_and_its_return(path):
    shown = run(path, "folds", "latest")
    assert shown.exit_code == 0
    head, *rows = shown.stdout.splitlines()
    assert head.split() == [
        *("call", "path", "kind", "why", "entries", "before", "after"),
        *("rewritten", "pays", "after", "calls", "since"),
    ]
    assert rows
    assert all(" rent " in row and "~" in row for row in rows)


def test_what_folds_names_unfold_gives_back_whole(path):
    document = json.loads(run(path, "folds", "latest", "--json").stdout)
    handles = [handle for fold in document["folds"] for handle in fold["handles"]]
    assert document["schema"] == "barograph.folds/1"
    whole = {found(number) for number in range(ROUNDS)}
    for handle in handles:
        shown = run(path, "unfold", "latest", handle)
        assert shown.exit_code == 0
        assert shown.stdout.removesuffix("\n") in whole
        as_json = json.loads(run(path, "unfold", "latest", handle, "--json").stdout)
        assert as_json["text"] in whole


def test_a_handle_that_is_not_there_is_not_found(path):
    refused = run(path, "unfold", "latest", "#99999")
    assert refused.exit_code == 3
    assert "no original '#99999'" in refused.stderr


def test_a_session_without_passes_says_so(tmp_path):
    play(tmp_path / "off.db", Policy())
    shown = run(tmp_path / "off.db", "folds", "latest")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "Nothing was folded in session scan." in shown.stderr
