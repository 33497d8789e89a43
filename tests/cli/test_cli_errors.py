"""Every bad input ends with its exit code, in words that name the next step."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from barograph.cli import main
from barograph.cli._errors import exit_code_of
from barograph.core import errors
from barograph.store import SqliteStore

READERS = ["show", "why", "diff", "verify"]


def args_for(command, session="refactor-billing", call="1"):
    return (command, session, call) if command == "diff" else (command, session)


@pytest.mark.parametrize("command", READERS)
def test_an_unknown_session(run, command):
    result = run(*args_for(command, "nope"))

    assert result.exit_code == 3
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first == "Error: No session 'nope' in this store."
    assert "barograph sessions" in second


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("args", [("why", "latest"), ("show", "latest", "--call", "1", "--raw")])
def test_a_full_disk_behind_stdout_is_one_clear_line(recorded, args):
    program = [sys.executable, "-c", "from barograph.cli import main; main()"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*program, *args, "--store", str(recorded)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 4
    first, second = ended.stderr.splitlines()
    assert first.startswith("Error: The output could not be written: ")
    assert second == "Make room, or send the output to another place."


@pytest.mark.parametrize("command", READERS)
def test_an_ambiguous_prefix(run, command):
    result = run(*args_for(command, "refactor"))

    assert result.exit_code == 3
    assert "2 sessions start with 'refactor'" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_a_prefix_that_fits_one_and_the_latest(run, command):
    for name in ("refactor-b", "latest"):
        assert run(*args_for(command, name, "2")).exit_code == 0


@pytest.mark.parametrize(
    "args",
    [
        ("show", "latest", "--call", "99"),
        ("show", "latest", "--call", "99", "--raw"),
        ("why", "latest", "99"),
        ("diff", "latest", "99"),
        ("diff", "latest", "1", "99"),
        ("diff", "latest", "99", "1"),
    ],
)
def test_an_unknown_call_names_the_calls_there_are(run, args):
    result = run(*args)

    assert result.exit_code == 3
    assert "no call 99: it has calls 1 to 10" in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("diff", "latest", "1"), "the first of main"),
        (("diff", "latest", "3"), "the first of main/researcher#1"),
        (("diff", "latest", "10"), "never left"),
        (("show", "latest", "--call", "10", "--raw"), "never left"),
    ],
)
def test_nothing_to_compare_or_to_write(run, args, words):
    result = run(*args)

    assert result.exit_code == 3
    assert words in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("show",),
        ("why", "latest", "0"),
        ("why", "latest", "-1"),
        ("why", "latest", "x"),
        ("diff", "latest"),
        ("show", "latest", "--raw", "--json"),
        ("show", "latest", "--nope"),
        ("nope",),
        ("_errors",),
    ],
)
def test_a_mistake_on_the_command_line(run, args):
    result = run(*args)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr or "schema" in result.stderr


@pytest.mark.parametrize("command", [*READERS, "sessions"])
def test_a_store_that_is_not_there_is_not_created(run, tmp_path, command):
    path = tmp_path / "nowhere" / "sessions.db"
    args = (command,) if command == "sessions" else args_for(command)
    result = run(*args, store=path)

    assert result.exit_code == 5
    assert f"no store at {path}" in result.stderr
    assert "--store PATH" in result.stderr
    assert not path.parent.exists()


def test_the_default_store_that_is_not_there(run):
    listed = run("sessions", store=None)

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "No sessions yet" in listed.stderr
    assert json.loads(run("sessions", "--json", store=None).stdout)["sessions"] == []
    assert run("show", "latest", store=None).exit_code == 5


def test_a_home_that_cannot_be_used(run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "file"))
    result = run("show", "latest", store=None)

    assert result.exit_code == 2
    assert "BAROGRAPH_HOME" in result.stderr


@pytest.mark.parametrize("content", [b"not a database at all, only text " * 50, b""])
def test_a_file_that_is_no_store(run, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    result = run("show", "latest", store=path)

    # an empty file is a new store for SQLite, which holds no session
    assert result.exit_code == (5 if content else 3)
    assert result.stderr.startswith("Error: ")


def test_a_folder_is_no_store(run, tmp_path):
    assert run("verify", store=tmp_path).exit_code == 5


def test_a_damaged_file(run, damaged):
    path = damaged("DELETE FROM meta WHERE key = 'nope' OR 1 = 1")

    assert run("sessions", store=path).exit_code == 5


def test_a_store_of_a_newer_layout(run, damaged):
    result = run("show", "latest", store=damaged("UPDATE meta SET value = 99 WHERE key = 'layout'"))

    assert result.exit_code == 4
    assert "Upgrade Barograph" in result.stderr


def test_a_log_of_a_newer_schema(run, damaged):
    path = damaged("UPDATE events SET schema = 99 WHERE id >> 32 = 2")

    for command in ("show", "why", "diff"):
        result = run(*args_for(command, call="2"), store=path)
        assert result.exit_code == 4
        assert "newer than this Barograph" in result.stderr
    assert run("verify", "latest", store=path).exit_code == 1


def test_a_store_that_is_busy_while_it_is_opened(run, damaged, monkeypatch):
    path = damaged("UPDATE sessions SET calls = calls")
    monkeypatch.setenv("BAROGRAPH_STORE__BUSY_TIMEOUT_SECONDS", "0.05")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    result = run("sessions", store=path)
    holder.close()

    assert result.exit_code == 5
    assert "locked" in result.stderr


def test_an_altered_body_is_a_finding_for_verify_and_an_error_for_readers(run, damaged):
    path = damaged("UPDATE bodies SET data = ?, zstd = 0 WHERE session = 2", b'"x"')
    verified = run("verify", "latest", store=path)
    shown = run("show", "latest", store=path)

    assert verified.exit_code == 1
    assert "log_corrupt" in verified.stdout
    assert "was altered" in verified.stdout
    assert "Traceback" not in verified.output
    assert (shown.exit_code, shown.stdout) == (5, "")
    assert "was altered" in shown.stderr
    assert len(shown.stderr.splitlines()) == 2


def test_one_damaged_session_does_not_hide_the_others(run_json, damaged):
    path = damaged("UPDATE bodies SET data = ?, zstd = 0 WHERE session = 2", b'"x"')
    document = run_json("verify", store=path, exit_code=1)

    assert [bool(one["findings"]) for one in document["sessions"]] == [True, False]


def test_bytes_without_their_hash_are_not_written_as_exact(run, damaged):
    store = SqliteStore(damaged("UPDATE sessions SET calls = calls"))
    logged = dict(store.read("refactor-auth"))
    store.close()
    [seq] = [seq for seq, event in logged.items() if hasattr(event, "body_hash")]
    forged = replace(logged[seq], body_hash=logged[seq].body_hash.replace("b2:", "b2:00"))
    # It was appended together with the header that it names.
    row = [logged[seq - 1], forged]
    path = damaged(
        "UPDATE events SET dictionary = 0, data = ? WHERE count = 2 AND id = (1 << 32) + ?",
        msgspec.json.encode(row),
        seq,
    )
    result = run("show", "refactor-auth", "--raw", store=path)

    assert (result.exit_code, result.stdout) == (5, "")
    assert "hash" in result.stderr
    assert "NOT what the log gives back" in run("show", "refactor-auth", store=path).stdout
    assert "not_exact" in run("verify", "refactor-auth", store=path).stdout


@pytest.mark.parametrize(
    ("args", "exit_code", "code"),
    [
        (("show", "nope"), 3, "unknown_session"),
        (("why", "latest", "99"), 3, "unknown_call"),
        (("show", "latest", "--call", "x"), 2, "usage"),
        (("show",), 2, "usage"),
    ],
)
def test_with_json_an_error_is_one_json_object(run, args, exit_code, code):
    result = run(*args, "--json")
    document = json.loads(result.stderr)

    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert list(document) == ["schema", "code", "what", "next_step", "ids", "exit_code"]
    assert document["schema"] == "barograph.error/1"
    assert (document["code"], document["exit_code"]) == (code, exit_code)
    assert document["what"]
    assert document["next_step"]


def test_an_interrupt(run, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteStore, "sessions", interrupt)
    result = run("sessions")

    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_every_error_of_the_tree_has_an_exit_code():
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BarographError)
    ]
    codes = {kind.__name__: exit_code_of(kind("what")) for kind in kinds}

    assert set(codes.values()) == {2, 3, 4, 5}
    assert codes["UsageError"] == codes["PolicyError"] == codes["SettingsError"] == 2
    assert codes["UnknownSession"] == codes["UnknownCall"] == 3
    assert codes["SchemaTooNew"] == 4
    assert codes["StoreBusy"] == codes["StoreUnavailable"] == codes["LogCorrupt"] == 5


def test_a_session_id_from_the_command_line_cannot_act_on_the_terminal():
    result = CliRunner().invoke(main, ["show", "\x1b[31mred\u202e", "--store", "/nonexistent/x"])

    assert "\x1b" not in result.stderr
    assert "\u202e" not in result.stderr
