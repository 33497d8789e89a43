"""Recordings replayed with their own clock: what the cache lost to time is called expiry."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from barograph.audit.explain import list_calls
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.store import SqliteStore

FOLDER = os.environ.get("BAROGRAPH_CORPUS")
LIFE_SECONDS = 300.0

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(FOLDER is None, reason="BAROGRAPH_CORPUS names no folder of recordings"),
]


@pytest.mark.parametrize(
    ("name", "expiries"), [("cc-haiku-16", 2), ("codex-10", 1), ("cc-apierror", 4)]
)
def test_every_expiry_is_named_as_one_and_nothing_else_is(name, expiries, tmp_path):
    path = tmp_path / "log.db"
    options = ReplayOptions(mode="direct", clock="recorded", store=path)
    replay_file(Path(FOLDER) / f"{name}.jsonl.gz", options)

    with closing(SqliteStore(path)) as store:
        rows = [row for info in store.sessions() for row in list_calls(store, info.session)]
    lost = [row.verdict for row in rows if row.verdict.lost_tokens]
    expired = [verdict for verdict in lost if verdict.cause == "expired"]
    idle = [verdict for verdict in lost if verdict.idle_seconds > LIFE_SECONDS]
    assert len(expired) == expiries
    assert expired == idle
    assert {verdict.evidence for verdict in expired} == {"inferred"}
