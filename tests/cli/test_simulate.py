"""`barograph simulate`: it serves until Ctrl-C, and says what is wrong before it serves."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from barograph.cli import main

# A shell may have told its background jobs to ignore Ctrl-C, and they hand that down.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from barograph.cli import main; main()"
)
BODY = json.dumps(
    {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}
).encode()


@contextmanager
def running(*args):
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START, "simulate", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == "Interrupted.\n"


def lines_until(process, last):
    lines = []
    while not lines or not lines[-1].startswith(last):
        lines.append(process.stdout.readline())
        assert lines[-1], "it ended"
    return [line.rstrip("\n") for line in lines]


def ask(url, **headers):
    request = Request(f"{url}/v1/messages", BODY, headers)  # noqa: S310 - our own address
    with urlopen(request, timeout=10) as response:  # noqa: S310 - same
        return json.load(response)["content"][0]["text"]


def test_it_prints_where_it_is_and_what_to_set_and_answers_until_ctrl_c():
    with running() as process:
        first, url, key, sessions, end = lines_until(process, "Ctrl-C")
        base = first.removeprefix("Simulator at ")
        assert base.startswith("http://127.0.0.1:")
        assert url == f"  export ANTHROPIC_BASE_URL={base}"
        assert key == "  export ANTHROPIC_API_KEY=any"
        assert sessions.startswith("Sessions: default, which answers everything.")
        assert end == "Ctrl-C ends it."
        assert [ask(base) for _ in range(2)] == ["This is the simulator."] * 2


def test_it_plays_a_scenario_on_a_port_and_records(tmp_path):
    scenario = tmp_path / "door.toml"
    scenario.write_text('[sessions.door]\nreplies = [{ text = "Open." }]\n', "utf-8")
    facts = tmp_path / "facts.toml"
    facts.write_text("[claude-opus-4-8]\nminimum_tokens = 1\n", "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--port", port, "--model-facts", facts, "--record", tmp_path / "calls", "--json")
    with running(scenario, *options) as process:
        printed = json.loads("".join(lines_until(process, "}")))
        assert printed == {
            "schema": "barograph.simulate/1",
            "url": f"http://127.0.0.1:{port}",
            "environment": {
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
                "ANTHROPIC_API_KEY": "any",
            },
            "sessions": ["door"],
        }
        assert ask(printed["url"], **{"x-sim-session": "door"}) == "Open."
    assert (tmp_path / "calls" / "0001.request.json").read_bytes() == BODY


def refused(*args):
    result = CliRunner().invoke(main, ["simulate", *map(str, args)])
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr


def test_a_wrong_scenario_is_refused_before_it_serves(tmp_path):
    path = tmp_path / "door.toml"
    path.write_text("[session]\n", "utf-8")
    assert refused(path).splitlines() == [
        f"Error: {path} has no key 'session'.",
        "Allowed: sessions, faults, switches, tokens.",
    ]
    assert "cannot be read" in refused(tmp_path / "missing.toml")
    assert "cannot be read" in refused("--model-facts", tmp_path / "missing.toml")


def test_a_taken_port_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Port {port} cannot be used" in refused("--port", port)


@pytest.mark.parametrize("port", ["-1", "65536", "eight"])
def test_a_port_that_is_none_is_refused(port):
    assert "--port" in refused("--port", port)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert "cannot be written" in refused("--record", tmp_path / "file" / "calls")


def test_a_missing_extra_says_what_to_install(monkeypatch):
    for name in list(sys.modules):
        if name in ("barograph.simulator.server", "barograph.simulator.transport"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'barograph[simulator]'" in refused()
