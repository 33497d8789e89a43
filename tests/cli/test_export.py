"""`barograph export`: transcript, page, events and bodies, masked and never written over."""

import hashlib
import json
import os
import re
from html.parser import HTMLParser

import msgspec
import pytest
from everything import CODE, HOSTILE
from test_cli_output import is_harmful, on_a_terminal

from barograph.core.events import Event
from barograph.core.masking import RULES
from barograph.store import SqliteStore
from talk import TOOLS, Talk

SECRETS = [rule.example for rule in RULES if not rule.optional]
KEY = "sk-ant-api03-Qm9ndXMtS2V5LUZvci1Eb2Nz-AbCdEfGh"
FORMS = ("transcript", "html", "jsonl")
PAGE = ("--format", "html")
EVIL = '</pre></details><script>alert(1)</script><img src="https://evil.example/x">'


@pytest.fixture
def leaky(tmp_path):
    """A session with a secret of every kind, and markup, wherever text can stand."""
    path = tmp_path / "leaky.db"
    store = SqliteStore(path)
    talk = Talk(store, "leaky")
    talk.system = f"Use {KEY}. {EVIL} " + "Be careful. " * 600
    talk.call(
        say=f"{EVIL} mail ada@example.org",
        reply=[("read", {"path": KEY, "note": "\n".join(SECRETS)}), ("search", {"words": EVIL})],
        results=["\n".join(SECRETS), EVIL + HOSTILE],
    )
    talk.tools = [TOOLS[0], TOOLS[1] | {"description": f"Search with {KEY} {EVIL}"}]
    talk.call(reply="done " + SECRETS[0])
    talk.call(path=f"main/{EVIL}", say="go", fails=(500, f"{EVIL} {KEY}"))
    store.close()
    return path


def survivors(text):
    """Pieces of secrets that can be seen."""
    pieces = ["Qm9ndXMtS2V5", "MIIEowIBAAKC", "dozjgNryP4J3", "AKIAQ3EGRVWT", "8f3kQ0vTzR5y"]
    return [piece for piece in [*pieces, "tr0ub4dor", "wJalrXUtnFEMI"] if piece in text]


def exported(run, *args, **kwargs):
    result = run("export", "latest", *args, **kwargs)
    assert result.exit_code == 0, result.stderr
    return result.stdout


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.open, self.shown = set(), [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href", "action"}]
        self.shown += [value for name, value in attrs if name.startswith("on")]
        if tag not in {"meta", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag == "rect" or self.open.pop() == tag


def parsed(page):
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


@pytest.mark.parametrize("store", ["recorded", "leaky"])
def test_the_page_is_self_contained_and_holds_no_markup_of_others(run, request, store):
    page = exported(run, *PAGE, store=request.getfixturevalue(store))
    tags = parsed(page)

    assert tags.tags <= {
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "div"),
        *("table", "tr", "th", "td", "svg", "rect", "section", "details", "summary", "pre", "a"),
    }
    assert all(re.fullmatch(r"#call-\d+", address) for address in tags.addresses)
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"url\(|@import", page)
    assert [char for char in page if is_harmful(char) and char != "\t"] == []


def test_the_page_shows_series_verdicts_diffs_and_segments(run):
    page = exported(run, *PAGE)

    assert page.count("<section id=") == 10
    assert "Broke: the tools changed. 0 of " in page
    assert "-  &quot;description&quot;: &quot;Search the documents.&quot;," in page
    assert "<td>proven</td><td>tools_changed</td>" in page
    assert "Where: segment 1 of 8, tools: search, after 39 equal" in page
    assert page.count("return sum(item.price for item in items)") == 60
    assert "message 2 · tool · " in page
    assert "cache marker, 5m, header" in page
    assert '<a href="#call-1">call 1</a>' in page
    assert "FAILED: ApiError: Overloaded" in page
    assert "NEVER LEFT" in page
    assert "main/researcher#1" in page


def test_a_page_grows_with_what_is_new_and_not_with_its_square(run, tmp_path):
    def size_of(calls):
        path = tmp_path / f"{calls}.db"
        store = SqliteStore(path)
        talk = Talk(store, "long")
        for number in range(calls):
            talk.call(say=f"question {number} " + "y" * 300)
        store.close()
        return len(exported(run, *PAGE, store=path))

    small, large = size_of(40), size_of(80)
    assert large < 2.2 * small


def test_jsonl_holds_every_event_with_its_content(run, recorded):
    head, *events = map(json.loads, exported(run, "--format", "jsonl").splitlines())
    store = SqliteStore(recorded)
    logged = list(store.read("refactor-billing"))
    store.close()

    assert list(head) == ["schema", "session", "masked"]
    assert head["schema"] == "barograph.export/1"
    assert [event["seq"] for event in events] == [seq for seq, _ in logged]
    assert CODE in [
        leaf["text"]
        for event in events
        for part in event.get("parts", [])
        for leaf in part.get("content", [])
    ]


def test_raw_lines_give_back_every_event_without_a_loss(run, recorded):
    _, *lines = map(json.loads, exported(run, "--format", "jsonl", "--raw").splitlines())
    store = SqliteStore(recorded)
    logged = list(store.read("refactor-billing"))
    store.close()

    assert [(line["seq"], msgspec.convert(line, Event)) for line in lines] == logged
    for line, (_, event) in zip(lines, logged, strict=True):
        assert set(line) == {"seq", "type", *event.__struct_fields__}


def test_without_a_format_it_is_a_transcript(run):
    shown = exported(run)

    assert shown.startswith("── session refactor-billing begins, logged by talk · event 1 · ")
    assert "■ user · main · event 3 · 2026-11-18 11:06:50 UTC\n  │ Fix the failing test" in shown
    assert '  calls read\n  │ {"path":"billing.py"}\n' in shown
    assert shown.count("return sum(item.price for item in items)") == 60


@pytest.mark.parametrize("store", ["recorded", "leaky"])
def test_nothing_in_a_transcript_acts_on_a_terminal_or_forges_a_line(run, request, store):
    shown = exported(run, store=request.getfixturevalue(store))

    assert [char for char in shown if is_harmful(char)] == []
    begins = ("── ", "■ ", "  │", "  calls ")
    assert [line for line in shown.splitlines() if line and not line.startswith(begins)] == []


def test_on_a_terminal_a_transcript_needs_no_excuse(recorded):
    shown, errors = on_a_terminal("export", "latest", "--store", str(recorded))

    assert "■ user · main" in shown
    assert errors == ""


@pytest.mark.parametrize("form", FORMS)
def test_secrets_are_masked_unless_they_are_asked_for(run, leaky, form):
    masked = exported(run, "--format", form, store=leaky)
    raw = exported(run, "--format", form, "--raw", store=leaky)

    assert survivors(masked) == []
    assert len(survivors(raw)) == 7
    assert "[masked api-key 32+]" in masked
    assert "ada@example.org" in masked
    assert "ada@example" not in exported(run, "--format", form, "--mask-emails", store=leaky)


@pytest.mark.parametrize("form", [*FORMS, "requests"])
def test_raw_is_said_on_stderr_wherever_it_goes(run, leaky, tmp_path, form):
    out = tmp_path / "out"
    told = run("export", "latest", "--format", form, "--raw", "--out", str(out), store=leaky)
    kept = run("export", "latest", "--format", form, "--out", str(out), "--force", store=leaky)

    assert "NOT masked" in told.stderr
    assert "NOT masked" not in kept.stderr
    if form != "requests":
        assert "NOT masked" in run("export", "latest", "--format", form, "--raw").stderr


def test_masked_json_is_json_and_so_is_what_it_holds(run, leaky):
    _, *events = map(json.loads, exported(run, "--format", "jsonl", store=leaky).splitlines())
    arguments = [
        json.loads(part["arguments"])
        for event in events
        for part in event.get("parts", [])
        if part["type"] == "tool_call"
    ]

    assert {"path": "[masked api-key 32+]"}.items() <= arguments[0].items()
    assert all(json.loads(e["tools"]) for e in events if e["type"] == "header_set")


def test_requests_are_the_exact_bytes_when_raw(run, recorded, tmp_path):
    folder = tmp_path / "bodies"
    result = run("export", "latest", "--format", "requests", "--raw", "--out", str(folder))
    store = SqliteStore(recorded)
    records = [e for _, e in store.read("refactor-billing") if hasattr(e, "body_hash")]
    store.close()
    files = sorted(folder.iterdir())

    assert result.exit_code == 0
    assert "Wrote 9 files" in result.stderr
    assert [file.name for file in files] == [f"{n:04}.request.json" for n in range(1, 10)]
    hashes = [f"b2:{hashlib.blake2b(f.read_bytes(), digest_size=32).hexdigest()}" for f in files]
    assert hashes == [record.body_hash for record in records]


def test_requests_are_masked_and_stay_json(run, leaky, tmp_path):
    folder = tmp_path / "bodies"
    run("export", "latest", "--format", "requests", "--out", str(folder), store=leaky)

    for file in folder.iterdir():
        assert survivors(file.read_text("utf-8")) == []
        assert json.loads(file.read_bytes())["messages"]


def test_what_was_written_is_told_to_programs(run_json, tmp_path):
    out = tmp_path / "page.html"
    document = run_json("export", "latest", *PAGE, "--out", str(out))

    assert document["schema"] == "barograph.exported/1"
    assert (document["format"], document["out"], document["files"]) == ("html", str(out), 1)
    assert "api-key" in document["masked"]
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_a_file_is_written_over_only_by_force(run, tmp_path):
    out = tmp_path / "page.html"
    out.write_text("mine")
    refused = run("export", "latest", "--out", str(out))

    assert (refused.exit_code, out.read_text()) == (4, "mine")
    assert "--force" in refused.stderr
    assert run("export", "latest", "--out", str(out), "--force").exit_code == 0
    assert out.read_text("utf-8") != "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_folder_is_written_into_only_when_empty_or_by_force(run, tmp_path):
    folder = tmp_path / "bodies"
    folder.mkdir()
    (folder / "mine").write_text("kept")
    args = ("export", "latest", "--format", "requests", "--out", str(folder))

    assert run(*args).exit_code == 4
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert run(*args, "--force").exit_code == 0
    assert (folder / "mine").read_text() == "kept"
    assert len(list(folder.iterdir())) == 10


@pytest.mark.parametrize("form", [*FORMS, "requests"])
def test_damage_leaves_nothing_half_written(run, damaged, tmp_path, form):
    path = damaged("UPDATE bodies SET data = ?, zstd = 0 WHERE session = 2", b'"x"')
    out = tmp_path / "out"
    result = run("export", "latest", "--format", form, "--out", str(out), store=path)

    assert result.exit_code == 5
    assert "was altered" in result.stderr
    assert not out.exists()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("latest", "--format", "xml"), 2),
        (("latest", "--format", "requests"), 2),
        (("latest", "--json"), 2),
        (("latest", "--raw", "--mask-emails"), 2),
        (("nope",), 3),
        (("latest", "--out", "/no/such/folder/page.html"), 2),
        (("latest", "--format", "requests", "--out", "/no/such/folder/bodies"), 2),
    ],
)
def test_bad_input(run, args, code):
    result = run("export", *args)

    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr


def test_a_store_that_is_not_there(run, tmp_path):
    out = tmp_path / "page.html"

    assert run("export", "latest", "--out", str(out), store=tmp_path / "no.db").exit_code == 5
    assert not out.exists()


def test_no_half_of_a_secret_is_left_where_only_the_spelling_changed(run, tmp_path):
    path = tmp_path / "respelled.db"
    store = SqliteStore(path)
    talk = Talk(store, "respelled")
    talk.call(say="go " * 900 + f"{KEY} é")
    edit = lambda body: body.replace("é".encode(), rb"\u00e9")  # noqa: E731
    talk.call(say="on", after=400, edit=edit)
    store.close()
    page = exported(run, "--format", "html", store=path)

    assert "<td>proven</td><td>history_changed</td>" in page
    for piece in ("Qm9ndXMt", "Nz-AbCdEfGh"):
        assert piece not in page
    assert "[masked api-key 32+] \\u00e9&quot;" in page


def test_force_replaces_what_a_link_leads_to_and_nothing_that_is_no_file(run, tmp_path):
    page, link, pipe = tmp_path / "page.html", tmp_path / "link", tmp_path / "pipe"
    page.write_text("mine")
    link.symlink_to(page)
    os.mkfifo(pipe)
    args = ("export", "latest", "--force", "--out")

    assert run(*args, str(link)).exit_code == 0
    assert link.is_symlink()
    assert page.read_text("utf-8") != "mine"
    for path in (pipe, tmp_path):
        refused = run(*args, str(path))
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "is not a file" in refused.stderr
    assert pipe.is_fifo()
    assert run(*args, str(page), "--format", "requests").exit_code == 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "page.html", "pipe"]
