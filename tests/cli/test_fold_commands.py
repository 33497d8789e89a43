"""`barograph compact` and `prune`: all of it, or a reason why not and nothing changed."""

import json

import pytest
from msgspec.structs import replace
from scanned import ROUNDS, found, log_of, run

from barograph.core.events import Compacted, Pruned
from barograph.store import SqliteStore
from barograph.store.lease import Lease


def events_of(path):
    return [event for _, event in log_of(path)]


@pytest.mark.parametrize(("command", "what"), [("compact", "a summary"), ("prune", "stubs")])
def test_a_dry_run_says_what_would_go_and_changes_nothing(path, command, what):
    before = events_of(path)
    shown = run(path, command, "latest", "--dry-run")
    assert shown.exit_code == 0
    assert f"would give way to {what}" in shown.stderr
    assert "Find it." not in shown.stdout  # the current request stays as it is
    assert events_of(path) == before


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
    assert isinstance(events_of(path)[-1], Compacted)


def test_where_nothing_is_worth_hiding_it_says_so_and_that_is_no_refusal(path):
    run(path, "compact", "latest")
    before = events_of(path)
    again = run(path, "compact", "latest")
    assert again.exit_code == 0
    assert "worth a summary" in again.stderr
    assert events_of(path) == before


def test_a_pass_takes_what_has_aged_and_all_of_it_is_read_back(path):
    shown = run(path, "prune", "latest", "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    done = document["pass"]
    assert document["schema"] == "barograph.prune/1"
    assert done["tokens_after"] < done["tokens_before"]
    assert done["entries"] == len(done["handles"]) == len(done["texts"]) > 0
    texts = [run(path, "unfold", "latest", handle).stdout[:-1] for handle in done["handles"]]
    assert set(texts) <= {found(number) for number in range(ROUNDS)}
    assert run(path, "verify").exit_code == 0
    last = events_of(path)[-1]
    assert isinstance(last, Pruned)
    assert last.cause == "manual"
    assert "manual" in run(path, "folds", "latest").stdout

    again = run(path, "prune", "latest")
    assert again.exit_code == 0
    assert "has aged" in again.stderr
    assert events_of(path)[-1] == last


@pytest.mark.parametrize("command", ["compact", "prune"])
def test_a_session_that_another_writer_holds_is_refused(path, command):
    store = SqliteStore(path)
    last = replace(events_of(path)[-1], at=1e9)
    lease = Lease(holder="elsewhere/1/0/abcd", until=4e9)
    seq = store.last_seq("scan")
    store.append("scan", [last], after=seq, lease=lease)
    store.close()
    before = events_of(path)
    refused = run(path, command, "latest", "--json")
    assert refused.exit_code == 4
    assert json.loads(refused.stdout or refused.stderr)["ids"]["reason"] == "held"
    assert events_of(path) == before


@pytest.mark.parametrize("command", ["compact", "prune"])
def test_an_agent_path_that_made_no_call_is_refused(path, command):
    refused = run(path, command, "latest", "--path", "main/nobody#1")
    assert refused.exit_code == 4
    assert "nothing changed" in refused.stderr
