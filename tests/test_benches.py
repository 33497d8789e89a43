"""Benches that prove something run here too, shorter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


def bench(name, *arguments):
    command = [sys.executable, str(BENCH / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_an_agent_that_is_killed_25_times_loses_nothing_and_goes_on_as_its_twin_does():
    done = bench("kill.py", "--kills", "25")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 faults" in done.stdout
