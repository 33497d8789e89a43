"""`barograph knowledge`: files go in, are found, listed and forgotten; what is wrong is said."""

import builtins
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from everything import HOSTILE

from barograph.cli import main
from barograph.store import SqliteStore


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "home"))
    for name, text in (
        ("docs/keys.md", "# Keys\n\nRotate the signing keys every month.\n"),
        ("docs/more/leave.html", "<h1>Leave</h1><p>Ask a week before.</p>"),
        ("docs/picture.png", "no text"),
        ("paper.txt", "A study of keys.\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def run(folder):
    def invoke(*args):
        result = CliRunner().invoke(main, ["knowledge", *args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def run_json(run):
    def invoke(*args, exit_code=0):
        result = run(*args, "--json")
        assert result.exit_code == exit_code, result.stderr
        return json.loads(result.stdout)

    return invoke


def test_a_text_goes_in_as_it_is_and_another_takes_its_place(run, run_json):
    told = ("--domain", "hot", "--trust", "operator")
    (fact,) = run_json("add", "--text", "The office is in Oslo.", *told)["documents"]
    assert (fact["origin"], fact["document"]["trust"]) == ("", "operator")

    again = run("add", "--text", "The office is in Bergen.", *told, "--supersedes", "2")
    assert again.exit_code == 3, again.stderr
    known = fact["document"]["id"]
    again = run("add", "--text", "The office is in Bergen.", *told, "--supersedes", known[:8])
    assert again.exit_code == 0, again.stderr
    (entry,) = run_json("list")["documents"]
    assert entry["domain"] == "hot"
    assert run("search", "office").stdout.splitlines()[1].endswith("Bergen.")


@pytest.mark.parametrize("given", [(), ("paper.txt", "--text", "x"), ("--text", "  ")])
def test_either_files_or_a_text_that_says_something(run, given):
    refused = run("add", *given)
    assert refused.exit_code == 2
    assert "Give a" in refused.stderr


def test_a_folder_goes_in_and_its_passages_are_found(run):
    added = run("add", "docs", "--trust", "operator", "--domain", "house")
    assert added.exit_code == 0
    assert [line.split()[0] for line in added.stdout.splitlines()] == ["added", "added"]
    assert "1 file of other kinds left alone." in added.stderr
    found = run("search", "rotate keys").stdout
    assert "docs/keys.md · house · operator" in found
    assert "│ Rotate the signing keys every month." in found
    assert "leave" not in found


def test_every_document_is_json_with_its_schema(run_json):
    added = run_json("add", "docs", "paper.txt", "--namespace", "n", "--date", "2026-01-31")
    assert added["schema"] == "barograph.knowledge.add/1"
    assert list(added) == ["schema", "documents", "failed", "others"]
    assert [one["origin"] for one in added["documents"]] == [
        "docs/keys.md",
        "docs/more/leave.html",
        "paper.txt",
    ]
    assert (added["failed"], added["others"]) == ([], 1)
    assert added["documents"][0]["document"]["outcome"] == "added"
    found = run_json("search", "leave")
    assert list(found) == ["schema", "query", "items"]
    assert found["schema"] == "barograph.knowledge.search/1"
    assert found["items"][0]["text"] == "# Leave\n\nAsk a week before."
    listed = run_json("list", "--namespace", "n")
    assert (listed["schema"], len(listed["documents"])) == ("barograph.knowledge.list/1", 3)
    assert {one["date"] for one in listed["documents"]} == {"2026-01-31"}
    assert run_json("list", "--namespace", "other")["documents"] == []
    gone = run_json("forget", added["documents"][0]["document"]["id"][:8])
    assert gone["schema"] == "barograph.knowledge.forget/1"
    assert [one["origin"] for one in gone["documents"]] == ["docs/keys.md"]
    assert run_json("search", "rotate")["items"] == []


def test_the_scope_of_a_search_holds(run, run_json):
    run("add", "docs/keys.md", "--trust", "operator", "--domain", "house", "--namespace", "a")
    run("add", "paper.txt", "--domain", "law", "--namespace", "b")

    def origins(*args):
        return [item["origin"] for item in run_json("search", "keys", *args)["items"]]

    assert set(origins()) == {"docs/keys.md", "paper.txt"}
    assert origins("--floor", "derived") == origins("--domain", "house") == ["docs/keys.md"]
    assert origins("--namespace", "b") == ["paper.txt"]
    assert len(origins("--namespace", "a", "--namespace", "b")) == 2
    assert len(origins("--limit", "1")) == 1
    assert origins("--namespace", "a", "--domain", "law") == []


def test_a_changed_file_takes_the_place_of_its_earlier_version(run, folder):
    run("add", "paper.txt")
    assert run("add", "paper.txt").stdout.startswith("unchanged")
    (folder / "paper.txt").write_text("Another study of keys.\n")
    run("add", "paper.txt")
    assert len(run("list").stdout.splitlines()) == 2
    assert len(run("list", "--all").stdout.splitlines()) == 3
    assert "superseded by" in run("list", "--all").stdout


def test_supersedes_names_the_document_by_a_beginning_of_its_id(run, run_json):
    old = run_json("add", "paper.txt")["documents"][0]["document"]["id"]
    new = run_json("add", "docs/keys.md", "--supersedes", old[:6])["documents"][0]["document"]
    assert new["superseded"] == [old]
    assert run("add", "docs", "--supersedes", old).exit_code == 2
    assert run("add", "paper.txt", "--supersedes", "nothing").exit_code == 3


def test_trust_is_never_raised_and_that_is_said(run):
    run("add", "paper.txt")
    again = run("add", "paper.txt", "--trust", "operator")
    assert "unchanged" in again.stdout
    assert "paper.txt stays external" in again.stderr
    run("forget", "--origin", "paper.txt")
    assert "operator" in run("add", "paper.txt", "--trust", "operator").stdout


def test_what_is_trusted_less_takes_no_place(run, folder):
    run("add", "paper.txt", "--trust", "operator")
    (folder / "paper.txt").write_text("Somebody else's study.\n")
    refused = run("add", "paper.txt")
    assert refused.exit_code == 2
    assert "trusted as operator" in refused.stderr
    assert "study of keys" in run("search", "study").stdout


def test_files_that_cannot_be_read_are_said_and_the_others_go_in(run, run_json, folder):
    (folder / "docs/broken.pdf").write_text("no pdf")
    added = run("add", "docs")
    assert added.exit_code == 1
    assert len(added.stdout.splitlines()) == 2
    assert "Left out: docs/broken.pdf cannot be read" in added.stderr
    document = run_json("add", "docs", exit_code=1)
    assert [one["origin"] for one in document["failed"]] == ["docs/broken.pdf"]
    assert document["failed"][0]["next_step"]


@pytest.mark.parametrize(
    ("args", "exit_code", "words"),
    [
        (("add",), 2, "FILE"),
        (("add", "https://example.org/a.md"), 2, "Nothing is fetched"),
        (("add", "nowhere.md"), 2, "no file or folder"),
        (("add", "paper.txt", "--date", "soon"), 2, "is no date"),
        (("add", "paper.txt", "--trust", "mine"), 2, "mine"),
        (("add", "paper.txt", "--namespace", ""), 2, "namespace"),
        (("add", "docs/picture.bin"), 2, "no file or folder"),
        (("search", "keys"), 5, "no store"),
        (("list",), 5, "no store"),
        (("forget", "abc"), 5, "no store"),
        (("forget",), 2, "Nothing to forget"),
    ],
    ids=range(11),
)
def test_a_mistake_is_said_with_its_exit_code(run, args, exit_code, words):
    result = run(*args)
    assert result.exit_code == exit_code, result.stderr
    assert words in result.stderr
    assert result.stdout == ""


def test_forgetting_what_is_not_there_forgets_nothing(run, run_json):
    known = run_json("add", "paper.txt")["documents"][0]["document"]["id"]
    for args in ((known, "nothing"), (known, "--origin", "elsewhere")):
        refused = run("forget", *args)
        assert refused.exit_code == 3
        assert "knowledge list" in refused.stderr
    assert len(run_json("list")["documents"]) == 1


def test_a_missing_extra_says_what_to_install(run, monkeypatch):
    real = builtins.__import__

    def refuse(module, *args, **kwargs):
        if module == "bs4":
            raise ModuleNotFoundError("No module named 'bs4'", name="bs4")
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "bs4", raising=False)
    refused = run("add", "docs/more/leave.html")
    assert refused.exit_code == 2
    assert "pip install 'barograph[knowledge]'" in refused.stderr


def test_what_is_forgotten_is_not_in_the_file(run, folder):
    (folder / "paper.txt").write_text("zanzibarquux\n")
    run("add", "paper.txt")
    store = folder / "home" / "sessions.db"
    assert b"zanzibarquux" in b"".join(path.read_bytes() for path in store.parent.iterdir())
    assert "1 document forgotten" in run("forget", "--origin", "paper.txt").stderr
    assert b"zanzibarquux" not in b"".join(path.read_bytes() for path in store.parent.iterdir())


def test_hostile_text_is_printed_harmless(run, folder):
    (folder / "evil\x1b[2J.txt").write_text(f"words {HOSTILE}", "utf-8")
    for args in (("add", "evil\x1b[2J.txt"), ("search", "words"), ("list",)):
        shown = run(*args)
        assert shown.exit_code == 0
        assert not any(char in shown.output for char in "\x1b\x07\u202e\x08")


def test_a_name_that_is_no_unicode_is_refused_alone(run, folder):
    path = Path(str(folder / "docs").encode().decode(), "bad\udcff.txt")
    path.write_text("words")
    added = run("add", "docs")
    assert added.exit_code == 1
    assert "lone surrogate" in added.stderr
    assert len(added.stdout.splitlines()) == 2


def test_sessions_of_the_same_store_are_left_alone(run, folder):
    run("add", "paper.txt")
    store = SqliteStore(folder / "home" / "sessions.db")
    assert store.sessions() == []
    store.close()
    assert CliRunner().invoke(main, ["verify"]).exit_code == 0


@pytest.fixture
def damaged(run, folder):
    """A store of two documents, one of which lost its text, and no list of words."""
    run("add", "paper.txt", "docs/keys.md")
    with closing(sqlite3.connect(folder / "home" / "sessions.db")) as store, store:
        store.execute("UPDATE search_documents SET text = x'00' WHERE id = 1")
        store.execute("DELETE FROM search_words_data")
    return folder


def test_a_damaged_index_names_what_would_be_lost_and_changes_nothing(run, run_json, damaged):
    broken = run("search", "keys")
    assert broken.exit_code == 5
    assert "`barograph knowledge repair`" in broken.stderr
    told = run("repair")
    assert told.exit_code == 1
    assert "0 sessions, 0 events, left as they are" in told.stdout
    assert "1 whole, 1 lost" in told.stdout
    assert [line.split()[-1] for line in told.stdout.splitlines() if " lost  " in line] == [
        "paper.txt"
    ]
    assert "--yes" in told.stderr
    assert len(run_json("list")["documents"]) == 2


def test_a_damaged_index_is_made_anew_when_what_is_lost_may_go(run, run_json, damaged):
    made = run_json("repair", "--yes")
    assert made["schema"] == "barograph.knowledge.repair/1"
    assert (made["done"], [one["origin"] for one in made["lost"]]) == (True, ["paper.txt"])
    assert "keys.md" in run("search", "keys").stdout
    again = run("repair")
    assert again.exit_code == 0
    assert "made anew" in again.stderr
    run("add", "paper.txt")
    assert "paper.txt" in run("search", "study").stdout
