"""The recorded sessions that BAROGRAPH_CORPUS names, against the sums in their index."""

import os
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from barograph.audit.filler import FILLER_TOKENS_PER_CHAR, LEAST_BASE_TOKENS, synthesise
from barograph.audit.recorded import find_recordings, read_recording

FOLDER = os.environ.get("BAROGRAPH_CORPUS")

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(FOLDER is None, reason="BAROGRAPH_CORPUS names no folder of recordings"),
]


def blocks_of(recording):
    for call in recording.calls:
        for message in call.append:
            yield from message["content"]
        yield from call.response


def distinct_ids(recording, kind, key):
    return len({block[key] for block in blocks_of(recording) if block["type"] == kind})


@pytest.mark.parametrize("rewrites", ["apply", "ignore"])
def test_every_recording_adds_up_to_its_index(rewrites):
    folder = Path(FOLDER)
    index = msgspec.json.decode((folder / "index.json").read_bytes())
    entries = {entry["id"]: entry for entry in index["trajectories"]}
    recordings = [read_recording(path, rewrites=rewrites) for path in find_recordings([folder])]
    assert {recording.name for recording in recordings} == set(entries)
    for recording in recordings:
        check(recording, entries[recording.name], rewrites)


def check(recording, entry, rewrites):
    notes = Counter(recording.notes)
    by_agent = {track.agent: len(track.calls) for track in recording.agents}
    thinking = [
        block for call in recording.calls for block in call.response if block["type"] == "thinking"
    ]
    applied, ignored = notes["rewrites_applied"], notes["rewrites_ignored"]
    assert len(recording.calls) == entry["calls"] == sum(by_agent.values())
    assert by_agent["main"] == entry["calls_main"]
    assert len(by_agent) - 1 == entry["subagents"]
    assert distinct_ids(recording, "tool_result", "tool_use_id") == entry["tool_results"]
    assert set(entry["top_tools"]) <= set(recording.tool_names)
    # re-sent messages may end in thinking too, but none of these recordings has such
    assert len(thinking) + notes["trailing_thinking_dropped"] == entry["thinking_blocks"]
    assert {"apply": (applied, ignored), "ignore": (ignored, applied)}[rewrites] == (
        entry["rewrites"],
        0,
    )
    fit = entry["fit_recorded_tokens_vs_chars"] or {}
    assert recording.base_tokens == fit.get("base_tokens")
    assert recording.tokens_per_char == fit.get("tokens_per_char")
    timed = [call.t_seconds for call in recording.calls if call.t_seconds is not None]
    assert bool(timed) == entry["timestamps"]
    assert timed == sorted(timed)
    check_requests(recording)
    shortest_chars = min(map(len, synthesise(recording).systems.values()))
    wanted_tokens = max(recording.base_tokens or 0, LEAST_BASE_TOKENS)
    assert shortest_chars * FILLER_TOKENS_PER_CHAR >= wanted_tokens


def check_requests(recording):
    """Each cut lies within its history, and no request holds a tool id twice."""
    lengths = Counter()
    held_ids = {track.agent: set() for track in recording.agents}
    for call in recording.calls:
        ids = held_ids[call.agent]
        if call.cut is not None:
            assert 0 <= call.cut < lengths[call.agent]
            lengths[call.agent] = call.cut
            ids.clear()  # cautious: what stays before the cut is not looked at again
        lengths[call.agent] += len(call.append) + bool(call.response)
        for content in (*(message["content"] for message in call.append), call.response):
            for block in content:
                if block["type"] in {"tool_use", "tool_result"}:
                    identity = block["type"], block.get("id") or block["tool_use_id"]
                    assert identity not in ids
                    ids.add(identity)
