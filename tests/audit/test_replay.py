"""A replay: recorded sessions through the middleware and the client, against the limits."""

import json
import os
from pathlib import Path

import pytest
from recordings import NESTED, SESSION, call, result, use, user, write

from barograph.audit.recorded import find_recordings
from barograph.audit.replay import ReplayOptions, replay_file, total_of
from barograph.audit.score import Price
from barograph.core.policy import Policy
from barograph.store import SqliteStore

PRICES = tuple(Price(write_ratio=1.25, read_ratio=read) for read in (0.1, 0.05, 0.025))
MODES = ("invoke", "stream", "ainvoke", "astream", "direct")
SMALL = ("cc-haiku-16", "cc-packmind-15", "codex-10", "swe-agent-replace", "tau-airline-4")
CORPUS = os.environ.get("BAROGRAPH_CORPUS")
needs_corpus = pytest.mark.skipif(
    not CORPUS, reason="BAROGRAPH_CORPUS names no folder of recorded sessions"
)
FILES = sorted(Path(CORPUS).glob("*.jsonl.gz")) if CORPUS else [Path("none")]


def holds(one):
    """What must hold of every recording."""
    assert one.rejected == 0
    assert one.unplanned_breaks == 0
    assert one.exact_calls == one.derived_calls == one.calls
    assert one.tokens.reuse_ratio == 1.0
    assert one.max_breakpoints <= 4
    assert all(cost.cost_over_online_limit <= 1.001 for cost in one.costs)


@pytest.mark.parametrize("lines", [SESSION, NESTED], ids=["one agent", "agents in tool calls"])
def test_every_way_to_call_the_client_gives_the_same_figures(tmp_path, lines):
    path = write(tmp_path / "s.jsonl", lines)

    replayed = [replay_file(path, ReplayOptions(mode=mode, prices=PRICES)) for mode in MODES]

    for one in replayed:
        holds(one)
    assert len({one.tokens for one in replayed}) == 1


def test_a_recorded_rewrite_is_a_planned_break_and_can_be_ignored(tmp_path):
    path = write(tmp_path / "s.jsonl", SESSION)

    applied = replay_file(path, ReplayOptions(mode="direct"))
    ignored = replay_file(path, ReplayOptions(mode="direct", rewrites="ignore"))

    assert (applied.planned_breaks, applied.unplanned_breaks) == (1, 0)
    assert (ignored.planned_breaks, ignored.unplanned_breaks) == (0, 0)
    assert ignored.tokens.input_total_tokens > applied.tokens.input_total_tokens


@pytest.mark.parametrize("mode", ["direct", "invoke"])
def test_a_recording_that_repeats_itself_is_played_to_its_end(tmp_path, mode):
    """A policy may stop an agent that goes round in circles; what is recorded went on."""
    went_on = [call(1, [user("wait for it")], [use("w1", "poll")])]
    went_on += [
        call(n, [user(result(f"w{n - 1}", "not yet"))], [use(f"w{n}", "poll")])
        for n in range(2, 12)
    ]
    path = write(tmp_path / "s.jsonl", went_on)

    options = ReplayOptions(mode=mode, policy=Policy(cap_rounds=4))
    holds(replay_file(path, options))


def test_agents_inside_tool_calls_have_paths_of_their_own_in_one_log(tmp_path):
    path = write(tmp_path / "nested.jsonl", NESTED)
    kept = tmp_path / "kept.db"

    replay_file(path, ReplayOptions(store=kept))

    store = SqliteStore(kept)
    (info,) = store.sessions()
    paths = [e.path for _, e in store.read(info.session) if type(e).__name__ == "CallPlanned"]
    store.close()
    assert paths == [
        "main",
        "main/Task#1",
        "main/Task#2",
        "main/Task#1",
        "main/Task#2",
        "main",
    ]


def test_the_shared_header_is_written_once(tmp_path):
    path = write(tmp_path / "nested.jsonl", NESTED)

    one = replay_file(path, ReplayOptions(mode="direct"))

    # the filler alone is 4 500 tokens; three agents that wrote it would write 13 500
    assert one.tokens.write_5m_tokens < 2 * 4_500


def test_a_recording_can_be_kept_twice_in_one_store(tmp_path):
    path = write(tmp_path / "s.jsonl", SESSION)
    options = ReplayOptions(mode="direct", store=tmp_path / "kept.db")
    replay_file(path, options)

    again = replay_file(path, options)

    holds(again)
    store = SqliteStore(tmp_path / "kept.db")
    assert sorted(info.session for info in store.sessions()) == ["s/main", "s/main~2"]
    store.close()


def test_recorded_times_let_entries_expire(tmp_path):
    late = [dict(line) for line in SESSION[:3]]
    late[2]["t"] = "2026-01-01T02:00:00Z"
    path = write(tmp_path / "s.jsonl", late)

    frozen = replay_file(path, ReplayOptions(mode="direct"))
    recorded = replay_file(path, ReplayOptions(mode="direct", clock="recorded"))

    assert recorded.tokens.read_tokens < frozen.tokens.read_tokens


def test_recorded_files_hold_what_left_and_what_it_cost(tmp_path):
    path = write(tmp_path / "s.jsonl", SESSION)

    one = replay_file(path, ReplayOptions(record_dir=tmp_path / "out"))

    requests = sorted((tmp_path / "out" / "s").glob("*.request.json"))
    metas = [
        json.loads(file.read_text())
        for file in sorted((tmp_path / "out" / "s").glob("*.meta.json"))
    ]
    assert len(requests) == len(metas) == one.calls
    assert all(json.loads(file.read_text())["messages"] for file in requests)
    assert sum(meta["usage"]["read_tokens"] for meta in metas) == one.tokens.read_tokens


def test_the_total_is_made_of_sums(tmp_path):
    files = [write(tmp_path / f"{name}.jsonl", SESSION) for name in "ab"]
    rows = [replay_file(file, ReplayOptions(mode="direct", prices=PRICES)) for file in files]

    total = total_of(rows)

    assert total.calls == 10
    assert total.tokens.read_tokens == 2 * rows[0].tokens.read_tokens
    assert total.costs[0].cost_usd == pytest.approx(2 * rows[0].costs[0].cost_usd)


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("mode", MODES[:-1])
@pytest.mark.parametrize("name", SMALL)
def test_small_recordings_hold_over_http_in_every_mode(name, mode):
    (path,) = find_recordings([Path(CORPUS) / f"{name}.jsonl.gz"])

    holds(replay_file(path, ReplayOptions(mode=mode, prices=PRICES)))


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_every_recording_holds_in_process(path):
    holds(replay_file(path, ReplayOptions(mode="direct", prices=PRICES)))


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("name", ["cc-apierror", "cc-autonomous-118", "cc-packmind-120"])
def test_a_replay_that_prunes_breaks_once_a_pass_and_nowhere_else(name):
    policy = Policy(name="balanced", window_tokens=200_000)
    options = ReplayOptions(mode="direct", rewrites="ignore", policy=policy)
    one = replay_file(Path(CORPUS) / f"{name}.jsonl.gz", options)

    assert one.rejected == one.unplanned_breaks == 0
    assert one.folds == one.planned_breaks > 0
    assert one.exact_calls == one.derived_calls == one.calls
    assert one.max_breakpoints <= 4
