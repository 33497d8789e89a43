"""What the commands print: content, order, schemas, and nothing that a terminal obeys."""

import hashlib
import json
import os
import pty
import re
import subprocess
import sys
from unicodedata import category

import pytest
from click.testing import CliRunner
from everything import CODE, HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from barograph import __version__
from barograph.cli import main
from barograph.cli._help import ExamplesFirst
from barograph.cli._text import count, duration, moment, percent, plain, plain_lines, some, usd
from barograph.store import SqliteStore

ALL = [
    ("sessions",),
    ("show", "latest"),
    ("show", "latest", "--call", "4", "--full"),
    ("show", "latest", "--call", "5"),
    ("show", "latest", "--call", "7"),
    ("why", "latest"),
    ("why", "latest", "5"),
    ("why", "latest", "7"),
    ("series", "latest"),
    ("series", "latest", "--csv"),
    ("ttl", "latest"),
    ("context", "latest"),
    ("context", "latest", "--call", "5"),
    ("diff", "latest", "5", "--full"),
    ("diff", "latest", "2"),
    ("diff", "latest", "6", "1"),
    ("verify",),
]


def lines(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_sessions_are_listed_the_most_recent_first(run):
    head, first, second = lines(run("sessions"))

    assert head.split() == ["session", "calls", "events", "began", "lasted"]
    assert first.split()[:2] == ["refactor-billing", "10"]
    assert second.split()[:2] == ["refactor-auth", "1"]
    assert "2026-11-18 11:06:50 UTC" not in second


def test_show_begins_with_the_facts_of_the_call(run):
    shown = lines(run("show", "latest", "--call", "2"))

    assert shown[0] == "Call 2 of 10 · session refactor-billing · main · turn 1, round 2"
    facts = dict(line.split(maxsplit=1) for line in shown[1:9])
    assert facts["model"] == "claude-opus-4-8"
    assert facts["body"].endswith("as seen on the wire")
    assert re.fullmatch(r"b2:[0-9a-f]{64} \(rebuilt and verified\)", facts["hash"])
    assert facts["settings"] == "max_tokens 100"
    assert facts["call"] == "answered in 1.5 s, stop reason tool_use"
    assert "read + " in facts["tokens"]
    assert facts["cache"].startswith("Held: ")


def test_show_prints_every_segment_in_wire_order_with_its_provenance(run):
    shown = lines(run("show", "latest", "--call", "2"))
    heads = [line for line in shown if line.startswith("■")]

    assert [head.split(" · ")[0] for head in heads] == [
        "■ tools",
        "■ system",
        "■ message 0",
        "■ message 1",
        "■ tool result 2.0",
        "■ tool result 2.1",
    ]
    assert "from the caller, event 3 · since call 1" in heads[2]
    assert "content of event" in heads[4]
    pins = [line for line in shown if "cache marker" in line]
    assert [pin.split("cache marker")[0].strip()[-1] for pin in pins] == list("①②③")
    assert "①" in pins[0]
    assert "5m, header" in pins[0]


def test_show_shortens_long_texts_and_says_by_how_much(run):
    short = run("show", "latest", "--call", "2").stdout
    full = run("show", "latest", "--call", "2", "--full").stdout

    assert f"… {count(len(CODE) - 600)} more characters; --full shows all" in short
    assert "more characters" not in full
    assert full.count("return sum(item.price for item in items)") == 60


def test_show_without_a_call_shows_the_last_one(run):
    result = run("show", "latest")

    assert lines(result)[0].startswith("Call 10 of 10")
    assert "NEVER LEFT" in result.stdout
    assert "call 9" in result.stderr


@pytest.mark.parametrize(
    ("call", "words"),
    [("7", "FAILED: ApiError: Overloaded"), ("9", "NO ANSWER"), ("8", "not reported")],
)
def test_show_says_how_the_call_went(run, call, words):
    assert words in run("show", "latest", "--call", call).stdout


def test_raw_is_the_exact_bytes_and_nothing_else(run, recorded):
    store = SqliteStore(recorded)
    records = [e for _, e in store.read("refactor-billing") if hasattr(e, "body_hash")]
    store.close()
    result = run("show", "latest", "--call", "5", "--raw")
    digest = hashlib.blake2b(result.stdout_bytes, digest_size=32).hexdigest()

    assert f"b2:{digest}" == records[4].body_hash
    assert result.stderr == ""


def test_why_of_a_session_begins_with_the_sum(run):
    shown = lines(run("why", "latest"))

    assert shown[0].startswith("10 calls of session refactor-billing: hit ratio ")
    assert shown[1] == "1 call reported no usage and counts nowhere."
    assert shown[2].startswith("2 unplanned breaks: ")
    assert "barograph why refactor-billing" in shown[3]
    table = shown[shown.index("") + 2 :]
    causes = [line.split("  ")[-1].strip() for line in table]
    assert causes[:6] == [
        "cold_start",
        "held",
        "cold_start",
        "held",
        "tools_changed (proven)",
        "expired (inferred)",
    ]
    assert causes[6].startswith("failed: ApiError")
    assert causes[7:] == ["not_comparable (unknown)", "unanswered", "not_sent"]
    assert table[7].count("?") == 6


def test_why_of_a_break_gives_verdict_then_evidence_then_remedy(run):
    shown = lines(run("why", "latest", "5"))

    assert shown[0] == "Call 5 of session refactor-billing · main"
    assert shown[1].startswith("Broke: the tools changed. 0 of ")
    assert "were paid again, $" in shown[1]
    facts = dict(line.split(maxsplit=1) for line in shown[3:] if line)
    assert facts["cause"] == "tools_changed (proven by the bytes we sent)"
    assert facts["compared"] == "with call 4, 10.0 s earlier"
    assert facts["log"].endswith("(header_set): tools changed")
    assert facts["where"].startswith("segment 1 of 8, tools: search, after ")
    assert "Search the documents." in facts["before"]
    assert "12:05" in facts["now"]
    assert shown[-1].startswith("Do        Freeze the names")


def test_why_of_a_call_that_held_and_of_one_that_failed(run):
    assert "Nothing to do" in run("why", "latest", "4").stdout
    failed = lines(run("why", "latest", "7"))
    assert failed[1].startswith("FAILED: ApiError: Overloaded")
    assert not any(line.startswith("Do") for line in failed)


def test_diff_collapses_what_is_the_same_and_shows_what_is_not(run):
    shown = lines(run("diff", "latest", "5"))

    assert shown[0] == "Call 4 → 5 of session refactor-billing · main"
    assert shown[1] == "The later request does not begin with the earlier one."
    assert shown[2].startswith("Broke: the tools changed.")
    assert "~ tools · changed" in shown[4]
    assert "    tool search" in shown
    assert any('│ -  "description": "Search the documents."' in line for line in shown)
    assert any(line.startswith("= system … tool result 4 · ") for line in shown)
    assert "+ message 6 · added, 13 characters" in shown
    assert shown[-3].startswith("= markers kept: system (5m, header)")
    assert shown[-2].startswith("+ markers added: ")
    assert shown[-1].startswith("- markers removed: ")


def test_diff_of_a_continuation(run):
    result = run("diff", "latest", "2", "--exit-code")

    assert lines(result)[1] == "The later request begins with the whole earlier one."
    assert run("diff", "latest", "1", "2").stdout == result.stdout


def test_diff_exits_with_a_finding_only_when_asked(run):
    assert run("diff", "latest", "5").exit_code == 0
    assert run("diff", "latest", "5", "--exit-code").exit_code == 1
    assert run("diff", "latest", "5", "--exit-code", "--json").exit_code == 1


def test_diff_across_paths_says_so_and_gives_no_verdict(run):
    shown = lines(run("diff", "latest", "2", "3"))

    assert shown[0].endswith("main → main/researcher#1")
    assert shown[2] == ""


def test_verify_of_a_sound_store(run):
    shown = lines(run("verify"))

    assert shown[0].startswith("✓ refactor-billing: ")
    assert "9 of 9 exact, 9 of 9 derived" in shown[1]
    assert shown[2].startswith("✓ refactor-auth: ")


SCHEMAS = {
    ("sessions",): ("barograph.sessions/1", ["schema", "store", "sessions"]),
    ("show", "latest", "--call", "5"): (
        "barograph.show/1",
        ["schema", "session", "call", "request"],
    ),
    ("why", "latest"): ("barograph.why/1", ["schema", "session", "calls", "totals"]),
    ("why", "latest", "5"): ("barograph.why/1", ["schema", "session", "calls", "totals"]),
    ("diff", "latest", "5"): (
        "barograph.diff/1",
        ["schema", "session", "verdict", "difference"],
    ),
    ("verify",): ("barograph.verify/1", ["schema", "sessions"]),
}


@pytest.mark.parametrize("args", SCHEMAS)
def test_json_is_one_document_of_a_stated_schema(run_json, args):
    schema, keys = SCHEMAS[args]
    document = run_json(*args)

    assert list(document) == keys
    assert document["schema"] == schema


def test_the_keys_of_the_documents_are_stable(run_json):
    row = run_json("why", "latest", "5")["calls"][0]
    shown = run_json("show", "latest", "--call", "5")
    difference = run_json("diff", "latest", "5")["difference"]
    found = run_json("verify", "latest")["sessions"][0]

    assert set(row) == {
        "call", "path", "turn", "round", "model", "at", "outcome", "attempts", "usage",
        "hit_ratio", "cost_usd", "priced_as", "latency_seconds", "stop_reason", "error",
        "request_id", "verdict", "provider_reason", "recovery",
    }  # fmt: skip
    assert set(row["verdict"]) == {
        "cause", "evidence", "also", "planned", "compared_with", "divergence", "named_by",
        "expected_tokens", "read_tokens", "lost_tokens", "break_usd", "idle_seconds", "advice",
    }  # fmt: skip
    assert set(row["verdict"]["divergence"]) == {
        "level", "label", "segment", "segments", "message", "block", "place", "offset", "before",
        "after", "before_seq", "after_seq",
    }  # fmt: skip
    assert shown["call"] == row
    assert set(shown["request"]) == {
        "seq", "attempt", "hash", "bytes", "is_exact", "observed", "mismatches", "parameters",
        "segments",
    }  # fmt: skip
    assert set(shown["request"]["segments"][0]) == {
        "level", "name", "role", "message", "chars", "blocks", "source", "since_call",
    }  # fmt: skip
    assert set(difference) == {
        "before", "after", "paths", "is_continuation", "parameters", "changes", "marks_before",
        "marks_after",
    }  # fmt: skip
    assert set(found) == {
        "session", "events", "calls", "requests", "observed", "exact", "derived", "unchecked",
        "findings", "notes",
    }  # fmt: skip


def test_json_keeps_hostile_text_to_the_letter(run_json):
    segments = run_json("show", "latest", "--call", "2")["request"]["segments"]

    assert segments[-1]["blocks"][0]["text"] == HOSTILE


def is_harmful(char):
    return char != "\n" and (category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"})


@pytest.mark.parametrize("args", ALL)
@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_others_wrote_reaches_the_terminal_raw(run, args, as_json):
    result = run(*args, *(["--json"] if as_json else []))

    assert [char for char in result.stdout + result.stderr if is_harmful(char)] == []


def test_markup_and_emoji_codes_of_others_are_text(run):
    shown = run("show", "latest", "--call", "2").stdout

    assert "[bold red]hi[/] [link=file:///x]y[/link]" in shown
    assert ":smile:" in shown
    assert "\\x1b[2J\\x1b]0;pwned\\x07\\x9b31m" in shown
    assert "\\u202egnp.exe\\u2066" in shown


def test_no_line_of_others_can_be_taken_for_one_of_ours(run):
    shown = lines(run("show", "latest", "--call", "2"))
    ours = re.compile(r"(■| {2}(text|tool|tool_use|tool_result)\b| {2}… |\w+ )|$")

    for line in shown:
        assert line.startswith("  │ ") or ours.match(line), line


def on_a_terminal(*args, columns=60):
    """Run the program with its output on a terminal."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", "from barograph.cli import main; main()", *args],
        stdout=follower,
        stderr=subprocess.PIPE,
        env=env,
    )
    os.close(follower)
    pieces = []
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    _, errors = process.communicate()
    os.close(leader)
    return b"".join(pieces).decode().replace("\r\n", "\n"), errors.decode()


STYLE = re.compile(r"\x1b\[[0-9;]*m")


def test_on_a_terminal_our_styles_are_the_only_codes(recorded):
    shown, _ = on_a_terminal("show", "latest", "--call", "2", "--store", str(recorded))

    assert STYLE.search(shown)
    assert [char for char in STYLE.sub("", shown) if is_harmful(char)] == []
    quoted = [line for line in STYLE.sub("", shown).splitlines() if line.startswith("  │")]
    assert max(map(len, quoted)) <= 60


def test_raw_on_a_terminal_is_shown_and_not_obeyed(recorded):
    shown, errors = on_a_terminal(
        "show", "latest", "--call", "2", "--raw", "--store", str(recorded)
    )

    assert [char for char in shown if is_harmful(char)] == []
    assert "redirect" in errors


def test_help_begins_with_examples_and_names_every_command():
    result = CliRunner().invoke(main, ["--help"])

    assert result.exit_code == 0
    assert result.output.startswith("Examples:\n  barograph sessions")
    for name in ("sessions", "show", "why", "diff", "verify"):
        assert re.search(rf"^  {name}\b", result.output, re.MULTILINE)
        helped = CliRunner().invoke(main, [name, "--help"])
        assert helped.output.startswith("Examples:\n  barograph ")
        assert "--store" in helped.output
        assert "--json" in helped.output


def test_version():
    result = CliRunner().invoke(main, ["--version"])

    assert result.output == f"barograph, version {__version__}\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from barograph.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('rich', 'sqlite3', 'zstandard', 'barograph.store', "
        "'barograph.core.surface', 'langchain', 'anthropic') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert shown.splitlines()[-1] == "[]"


@given(st.text())
def test_plain_text_is_harmless_and_plain_already(text):
    made = plain(text)

    assert not any(is_harmful(char) or char == "\n" for char in made)
    assert plain(made) == made
    assert len(plain_lines(text)) == text.count("\n") + 1


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (None, "?"),
        (0.0, "0.0 %"),
        (0.0004, "<0.1 %"),
        (0.929, "92.9 %"),
        (0.99999, "99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_partial_hit_never_reads_as_a_full_one(ratio, shown):
    assert percent(ratio) == shown


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_per_cent_is_never_rounded_up(read, rest):
    total = read + rest
    shown = percent(read / total)

    assert shown != "100.0 %"
    if not shown.startswith("<"):
        assert float(shown.removesuffix(" %")) <= 100 * read / total + 1e-6


def test_figures():
    assert count(1234567) == "1 234 567"
    assert (some(1, "call"), some(2, "call")) == ("1 call", "2 calls")
    assert usd(None) == "?"
    assert usd(0.0) == "$0.0000"
    assert usd(0.00001) == "<$0.0001"
    assert usd(1.005, is_estimate=True) in {"~$1.00", "~$1.01"}
    assert (duration(0.04), duration(61), duration(7384)) == ("0.0 s", "1 min 1 s", "2 h 3 min")
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert "since the epoch" in moment(1e30)


def test_what_is_printed_parses_where_it_is_piped_to(run):
    raw = run("show", "latest", "--call", "4", "--raw").stdout

    assert json.loads(raw)["model"] == "claude-opus-4-8"


def test_every_module_without_an_underscore_is_a_command():
    names = main.list_commands(None)

    assert {"sessions", "show", "why", "diff", "verify"} <= set(names)
    for name in names:
        command = main.get_command(None, name)
        assert isinstance(command, ExamplesFirst), name
        assert command.examples, name
        assert command.help, name


def test_a_narrow_terminal_shows_the_figures_that_matter_and_says_what_it_left_out(recorded):
    shown, errors = on_a_terminal("why", "latest", "--store", str(recorded), columns=60)
    plain = STYLE.sub("", shown).splitlines()
    head = next(number for number, line in enumerate(plain) if line.startswith("call "))

    assert plain[head].split() == ["call", "read", "write", "cost", "lost", "cache"]
    assert max(map(len, plain[head:])) <= 60
    assert any(line.endswith("failed: ApiError: Overl…") for line in plain)
    assert "Left out for want of room: path, turn, uncached, out, hit." in errors
