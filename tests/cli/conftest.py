"""A recorded session, and a way to run the command line on it."""

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from everything import record
from scanned import play

from barograph.cli import main
from barograph.core.policy import Policy
from barograph.store import SqliteStore
from talk import Talk


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "sessions.db"
    store = SqliteStore(path)
    other = Talk(store, "refactor-auth")
    other.call(say="hello")
    record(store)
    store.close()
    return path


@pytest.fixture
def damaged(recorded, tmp_path):
    """A copy of the store, and a way to alter it."""
    path = tmp_path / "sessions.db"
    path.write_bytes(Path(recorded).read_bytes())

    def alter(statement, *values):
        connection = sqlite3.connect(path)
        with connection:
            assert connection.execute(statement, values).rowcount
        connection.close()
        return path

    return alter


@pytest.fixture
def run(recorded, monkeypatch, tmp_path):
    """Run a command line on the recorded store, or on another one."""
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def invoke(*args, store=recorded):
        where = [] if store is None else ["--store", str(store)]
        result = CliRunner().invoke(main, [*args, *where])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def run_json(run):
    """Run a command with `--json` and return the document."""

    def invoke(*args, exit_code=0, **kwargs):
        result = run(*args, "--json", **kwargs)
        assert result.exit_code == exit_code, result.stderr
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def path(tmp_path):
    """The store of a session whose every round finds much."""
    file = tmp_path / "sessions.db"
    play(file, Policy())
    return file
