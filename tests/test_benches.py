"""Benches that prove something run here too, shorter."""

import json
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


def recording(*, pauses):
    lines, seconds = [], 0
    for number in range(40):
        seconds += 1200 if pauses and number % 6 == 5 else 12
        begin = {"type": "text", "text": "begin"}
        answer = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "x\n" * 400}
        line = {
            "call": number + 1,
            "t": f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z",
            "model": "claude-opus-4-5",
            "agent": "main",
            "append": [{"role": "user", "content": [answer if number else begin]}],
            "response": [{"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}],
            "stop_reason": "tool_use",
        }
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def test_lifetimes_chosen_by_pauses_keep_to_the_better_fixed_ones(tmp_path, monkeypatch):
    (tmp_path / "slow.jsonl").write_text(recording(pauses=True))
    (tmp_path / "quick.jsonl").write_text(recording(pauses=False))
    monkeypatch.setenv("BAROGRAPH_CORPUS", str(tmp_path))

    done = bench("ttl.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no dearer in total: yes" in done.stdout
