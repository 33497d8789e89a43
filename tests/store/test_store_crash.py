"""What was acknowledged survives the death of the process at any moment."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from crasher import event_at

from barograph.store import SqliteStore

KILLS = 15


def acknowledged(crasher, delay_seconds):
    """Let a writer run, kill it, and return the last seq it was promised."""
    crasher.stdin.write("go\n")
    crasher.stdin.flush()
    writer = int(crasher.stdout.readline())
    time.sleep(delay_seconds)
    os.kill(writer, signal.SIGKILL)
    said = list(iter(crasher.stdout.readline, "gone\n"))
    return int(said[-1]) if said else 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_invariant_1_a_killed_writer_loses_nothing_that_was_acknowledged(path):
    # Delays that reach from the first opening to beyond the first checkpoint.
    delays = [random.uniform(0, 0.004) * 2 ** (place % 6) for place in range(KILLS)]
    promised = 0
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("crasher.py")), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as crasher:
        for delay_seconds in delays:
            promised = max(promised, acknowledged(crasher, delay_seconds))
            with closing(SqliteStore(path)) as store:
                assert store.last_seq("s") >= promised, delays
        crasher.stdin.close()
    assert promised > 0, delays
    with closing(SqliteStore(path)) as store:
        stored = list(store.read("s"))
    assert [seq for seq, _ in stored] == list(range(1, len(stored) + 1))
    assert [event for _, event in stored] == [event_at(seq) for seq, _ in stored]
