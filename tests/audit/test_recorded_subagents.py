"""Recorded subagents, played where they ran: after its first call each reads all that it can."""

import os
from pathlib import Path

import msgspec
import pytest

from barograph.audit.limits import reuse_ceilings
from barograph.audit.recorded import find_recordings, read_recording
from barograph.audit.replay import ReplayOptions, _agents, _play
from barograph.audit.score import _prompts, most_breakpoints
from barograph.providers.anthropic.models import facts_of
from barograph.store import MemoryStore

FOLDER = os.environ.get("BAROGRAPH_CORPUS")

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(FOLDER is None, reason="BAROGRAPH_CORPUS names no folder of recordings"),
]


def recorded():
    """Names of the recordings in which subagents have calls of their own."""
    if FOLDER is None:
        return []
    index = msgspec.json.decode((Path(FOLDER) / "index.json").read_bytes())
    return [(e["id"], e["subagents"]) for e in index["trajectories"] if e["subagents"]]


def subagents_of(path):
    """The exchanges of each subagent of a recording, by its agent path."""
    recording, options, store = read_recording(path), ReplayOptions(), MemoryStore()
    played = _play(recording, _agents(recording, options, store), options, store, lambda: None)
    store.close()
    by_path = {}
    for each in played.exchanges:
        place = played.places[each.session][1]
        if place != "main":
            by_path.setdefault(place, []).append(each)
    return by_path


@pytest.mark.parametrize(("name", "subagents"), recorded())
def test_a_subagent_reuses_all_of_its_prefix_after_its_first_call(name, subagents):
    (path,) = (one for one in find_recordings([Path(FOLDER)]) if one.name.startswith(f"{name}."))
    played = subagents_of(path)
    assert len(played) == subagents
    for exchanges in played.values():
        minimum = facts_of(exchanges[0].model).minimum_tokens
        ceilings = list(reuse_ceilings(_prompts(exchanges), minimum_tokens=minimum))
        assert most_breakpoints(exchanges) <= 4
        assert all(each.status == 200 for each in exchanges)
        assert [each.usage.read_tokens for each in exchanges][1:] == ceilings[1:]
