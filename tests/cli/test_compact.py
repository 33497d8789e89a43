"""`barograph compact`: all of it, or a reason why not and nothing changed."""

import json

from msgspec.structs import replace
from scanned import ROUNDS, found, log_of, run

from barograph.core.events import Compacted
from barograph.store import SqliteStore
from barograph.store.lease import Lease


def events_of(path):
    return [event for _, event in log_of(path)]


def test_a_dry_run_says_what_would_go_and_changes_nothing(path):
    before = events_of(path)
    shown = run(path, "compact", "latest", "--dry-run")
    assert shown.exit_code == 0
    assert "would give way to a summary" in shown.stderr
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


def test_a_session_that_another_writer_holds_is_refused(path):
    store = SqliteStore(path)
    last = replace(events_of(path)[-1], at=1e9)
    lease = Lease(holder="elsewhere/1/0/abcd", until=4e9)
    seq = store.last_seq("scan")
    store.append("scan", [last], after=seq, lease=lease)
    store.close()
    before = events_of(path)
    refused = run(path, "compact", "latest", "--json")
    assert refused.exit_code == 4
    assert json.loads(refused.stdout or refused.stderr)["ids"]["reason"] == "held"
    assert events_of(path) == before


def test_an_agent_path_that_made_no_call_is_refused(path):
    refused = run(path, "compact", "latest", "--path", "main/nobody#1")
    assert refused.exit_code == 4
    assert "nothing changed" in refused.stderr
