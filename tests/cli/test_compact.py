"""`barograph compact`: all of it, or a reason why not and nothing changed."""

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from scanned import ROUNDS, found, play

from barograph.cli import main
from barograph.core.events import Compacted
from barograph.core.policy import Policy
from barograph.store import SqliteStore
from barograph.store.lease import Lease


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "sessions.db"
    play(file, Policy())
    return file


def run(path, *arguments):
    return CliRunner().invoke(main, [*arguments, "--store", str(path)])


def log_of(path):
    store = SqliteStore(path)
    try:
        return [event for _, event in store.read("scan")]
    finally:
        store.close()


def test_a_dry_run_says_what_would_go_and_changes_nothing(path):
    before = log_of(path)
    shown = run(path, "compact", "latest", "--dry-run")
    assert shown.exit_code == 0
    assert "would give way to a summary" in shown.stderr
    assert "Find it." not in shown.stdout  # the current request stays as it is
    assert log_of(path) == before


def test_what_it_hides_is_read_back_whole_and_the_request_is_shorter(path):
    shown = run(path, "compact", "latest", "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    done = document["compaction"]
    assert document["schema"] == "barograph.compact/1"
    assert done["tokens_after"] < 0.3 * done["tokens_before"]
    texts = {run(path, "unfold", "latest", handle).stdout[:-1] for handle in done["handles"]}
    assert {found(number) for number in range(ROUNDS - 2)} <= texts
    assert run(path, "verify").exit_code == 0
    assert isinstance(log_of(path)[-1], Compacted)


def test_where_nothing_is_worth_hiding_it_says_so_and_that_is_no_refusal(path):
    run(path, "compact", "latest")
    before = log_of(path)
    again = run(path, "compact", "latest")
    assert again.exit_code == 0
    assert "worth a summary" in again.stderr
    assert log_of(path) == before


def test_a_session_that_another_writer_holds_is_refused(path):
    store = SqliteStore(path)
    last = replace(log_of(path)[-1], at=1e9)
    lease = Lease(holder="elsewhere/1/0/abcd", until=4e9)
    seq = store.last_seq("scan")
    store.append("scan", [last], after=seq, lease=lease)
    store.close()
    before = log_of(path)
    refused = run(path, "compact", "latest", "--json")
    assert refused.exit_code == 4
    assert json.loads(refused.stdout or refused.stderr)["ids"]["reason"] == "held"
    assert log_of(path) == before


def test_an_agent_path_that_made_no_call_is_refused(path):
    refused = run(path, "compact", "latest", "--path", "main/nobody#1")
    assert refused.exit_code == 4
    assert "nothing changed" in refused.stderr
