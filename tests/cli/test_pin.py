"""`barograph pin`: a message is kept, or there is a reason why not and nothing changed."""

import json

from scanned import log_of, run

from barograph.core.events import Pinned


def request_of(path):
    """The event that brought the user's words."""
    return next(str(seq) for seq, event in log_of(path) if getattr(event, "role", "") == "user")


def test_a_pin_is_listed_and_stands_in_the_summary_and_can_be_taken_away(path):
    shown = run(path, "pin", "latest", request_of(path))
    assert shown.exit_code == 0
    assert "Find it." in shown.stdout
    assert isinstance(log_of(path)[-1].event, Pinned)
    assert run(path, "verify").exit_code == 0

    listed = json.loads(run(path, "pin", "latest", "--json").stdout)
    assert listed["schema"] == "barograph.pin/1"
    assert [pin["handle"] for pin in listed["pins"]] == [f"#{request_of(path)}"]

    undone = run(path, "pin", "latest", f"#{request_of(path)}", "--undo")
    assert undone.exit_code == 0
    assert undone.stdout == ""
    assert "is pinned" in undone.stderr


def test_what_is_too_long_is_refused_with_the_way_to_find_it_and_nothing_changes(path):
    before = log_of(path)
    longest = max(
        (seq for seq, event in before if getattr(event, "role", "") == "tool"), key=lambda seq: seq
    )
    refused = run(path, "pin", "latest", str(longest))
    assert refused.exit_code == 4
    assert "history_search" in refused.stderr
    assert log_of(path) == before


def test_what_is_no_message_is_not_found(path):
    for handle in ("1", "99999", "x"):
        assert run(path, "pin", "latest", handle).exit_code == 3
    assert run(path, "pin", "latest", "--undo").exit_code == 2
