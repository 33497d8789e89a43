"""`barograph series`: a row for each call, a chart on a terminal, figures for programs."""

import csv
import io
import re

import pytest
from test_cli_output import STYLE, is_harmful, on_a_terminal

from barograph.audit.series import SeriesRow
from barograph.cli._chart import draw_chart
from barograph.cli.series import series_columns
from barograph.core.policy import Policy
from barograph.store import SqliteStore
from talk import Talk

HOSTILE_PATH = 'main/\x1b[2J\u202eevil,"x"\n=1+1'


def lines(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_the_head_keeps_peak_last_and_sum_apart(run):
    shown = lines(run("series", "latest"))

    assert shown[0].startswith("10 calls of session refactor-billing: hit ratio 4")
    assert re.search(r"\$0\.\d+; \$0\.\d+ without a cache: \$0\.\d+ saved$", shown[0])
    assert shown[1] == "1 call reported no usage and counts nowhere."
    assert re.fullmatch(
        r"Input peak 4 \d{3} \(call 6\), last 4 \d{3} \(call 6\), sum 2\d \d{3} tokens\.", shown[2]
    )
    assert shown[3].startswith("2 unplanned breaks: 8 ")


def test_a_row_for_each_call_with_subagents_apart(run):
    shown = lines(run("series", "latest"))
    heads = [line for line in shown if line.startswith("call  ")]
    numbers = [int(line.split()[0]) for line in shown if re.match(r" +\d", line)]

    assert heads[0].split() == [
        *("call", "turn", "time", "(UTC)", "gap", "input", "read", "write", "5m", "write", "1h"),
        *("uncached", "output", "hit", "window", "expected", "lost", "cost", "no", "cache"),
        *("latency", "tries", "evidence", "cache"),
    ]
    assert numbers == [1, 2, 4, 5, 6, 7, 8, 9, 10, 3]
    assert any(line.startswith("main/researcher#1 · peak 2 ") for line in shown)
    row = next(line for line in shown if line.startswith("   5 "))
    assert "2.1  2026-11-18 11:07:30" in row
    assert row.endswith("  proven    tools_changed")


def test_what_was_not_reported_is_a_question_mark(run):
    shown = lines(run("series", "latest"))
    row = next(line for line in shown if line.startswith("   8 "))

    assert row.count("?") == 10
    assert " 0 " not in row


def test_one_path(run):
    shown = lines(run("series", "latest", "--path", "main/researcher#1"))

    assert shown[0].startswith("1 call of session")
    assert shown[-1].startswith("   3 ")


def test_csv_has_a_line_for_each_call(run):
    rows = list(csv.DictReader(io.StringIO(run("series", "latest", "--csv").stdout)))

    assert [row["call"] for row in rows] == [str(number) for number in range(1, 11)]
    assert rows[4]["cause"] == "tools_changed"
    assert rows[7]["input_total_tokens"] == ""


def test_json_is_one_document_of_a_stated_schema(run_json):
    document = run_json("series", "latest")

    assert list(document) == ["schema", "session", "calls", "paths", "total"]
    assert document["schema"] == "barograph.series/1"
    assert list(document["calls"][0]) == list(SeriesRow.__struct_fields__)
    assert document["calls"][7]["read_tokens"] is None
    assert document["total"]["unreported"] == 1
    assert [path["path"] for path in document["paths"]] == ["main", "main/researcher#1"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("latest", "--csv", "--json"), 2),
        ((), 2),
        (("latest", "--nope"), 2),
        (("nope",), 3),
        (("refactor",), 3),
        (("latest", "--path", "main/nobody"), 3),
    ],
)
def test_bad_input(run, args, code):
    result = run("series", *args)

    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr


def test_a_store_that_is_not_there(run, tmp_path):
    assert run("series", "latest", store=tmp_path / "none.db").exit_code == 5


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / "hostile.db"
    store = SqliteStore(path)
    Talk(store, "hostile").call(path=HOSTILE_PATH, say="hello")
    store.close()
    return path


@pytest.mark.parametrize("flags", [(), ("--csv",), ("--json",)])
def test_no_path_can_act_on_a_terminal_or_forge_a_row(run, hostile, flags):
    result = run("series", "latest", *flags, store=hostile)

    assert result.exit_code == 0
    assert [char for char in result.stdout if is_harmful(char)] == []
    if flags == ("--csv",):
        [row] = csv.DictReader(io.StringIO(result.stdout))
        assert row["path"] == 'main/\\x1b[2J\\u202eevil,"x"\n=1+1'


def test_on_a_terminal_there_is_a_chart_and_the_table_fits(recorded):
    shown, errors = on_a_terminal("series", "latest", "--store", str(recorded))
    plain = STYLE.sub("", shown).splitlines()

    assert any("┤" in line and "█" in line for line in plain)
    assert any("✕✕" in line for line in plain)
    assert any("█ read  ▓ write  ░ uncached" in line for line in plain)
    table = plain[next(i for i, line in enumerate(plain) if line.startswith("call ")) :]
    assert max(len(line) for line in table[:10]) <= 60
    assert "Left out for want of room: " in errors
    assert "What is piped has all." in errors


def test_what_matters_most_fits_into_80_columns(run, tmp_path):
    path = tmp_path / "plain.db"
    store = SqliteStore(path)
    talk = Talk(store, "plain")
    for number in range(30):
        talk.call(say=f"question {number}")
    store.close()
    shown, _ = on_a_terminal("series", "plain", "--store", str(path), columns=80)
    plain = STYLE.sub("", shown).splitlines()
    head = next(line for line in plain if line.startswith("call "))

    assert max(map(len, plain[2:])) <= 80
    for name in ("read", "write 5m", "uncached", "output", "window", "cost", "cache"):
        assert name in head
    assert "lost" not in head  # nothing was
    assert "lost" in run("series", "plain", store=path).stdout


def test_an_unknown_model_has_estimates_only_and_more_than_its_window_is_said(run, tmp_path):
    path = tmp_path / "unknown.db"
    store = SqliteStore(path)
    talk = Talk(store, "unknown")
    talk.model = "somebody-elses-model"
    talk.call(say="hello")
    store.close()
    shown = lines(run("series", "unknown", store=path))

    assert re.search(r" ~\d\.\d %  .* ~\$0\.\d+", shown[-1])
    [window] = [one for one in series_columns([]) if one.name == "window"]
    assert window.text(row(1, 10, pressure=1.25, priced_as="unknown")) == "~125.0 %"
    assert window.text(row(1, 10, pressure=None)) == "?"


def test_the_lifetime_that_is_written_has_room_before_the_one_that_is_not(tmp_path):
    path = tmp_path / "fleet.db"
    store = SqliteStore(path)
    talk = Talk(store, "fleet", policy=Policy(profile="fleet"))
    for number in range(5):
        talk.call(say=f"question {number}")
    store.close()
    shown, _ = on_a_terminal("series", "fleet", "--store", str(path), columns=80)
    head = next(line for line in STYLE.sub("", shown).splitlines() if line.startswith("call "))

    assert "write 1h" in head
    assert "write 5m" not in head
    for name in ("read", "uncached", "output", "window", "cost", "latency"):
        assert name in head


def test_a_session_without_any_usage_says_so_once(run, tmp_path):
    path = tmp_path / "unreported.db"
    store = SqliteStore(path)
    talk = Talk(store, "unreported")
    talk.call(say="a", fails=(500, "no"))
    talk.call(say="b", usage=False)
    store.close()
    shown = lines(run("series", "unreported", store=path))

    assert shown[0] == "2 calls of session unreported: no usage was reported."
    assert shown[1] == ""
    assert [line.split()[0] for line in shown[3:]] == ["1", "2"]
    assert " 0 " not in "".join(shown[3:])


def test_a_session_without_calls_says_so(run, tmp_path):
    path = tmp_path / "empty.db"
    store = SqliteStore(path)
    Talk(store, "empty")
    store.close()

    assert lines(run("series", "empty", store=path)) == ["Session empty has no calls yet."]


# The chart


def row(call, read=0, write=0, uncached=0, **fields):
    total = read + write + uncached
    return SeriesRow(
        call=call,
        path="main",
        turn=1,
        round=call,
        at=0.0,
        input_total_tokens=total,
        read_tokens=read,
        write_5m_tokens=write,
        write_1h_tokens=0,
        uncached_tokens=uncached,
        **fields,
    )


def drawn(rows, width=40, **options):
    return ["".join(text for text, _ in line) for line in draw_chart(rows, width, **options)]


def test_the_parts_stand_one_over_the_other():
    rows = [row(1, 0, 80, 0), row(2, 40, 20, 20), row(3, 10, 0, 0), row(4, 0, 0, 80)]

    assert drawn(rows, height=4) == [
        "80 ┤▓░ ░",
        "   ┤▓▓ ░",
        "   ┤▓█ ░",
        "   ┤▓██░",
        " 0 ┼────",
        "    █ read  ▓ write  ░ uncached  ",
    ]


def test_breaks_folds_and_the_unreported_are_marked():
    blank = SeriesRow(call=4, path="main", turn=1, round=4, at=0.0, outcome="answered")
    rows = [
        row(1, 9),
        row(2, 0, 9, lost_tokens=9, planned=False),
        row(3, 0, 9, lost_tokens=9, planned=True),
        blank,
    ]
    *_, marks, legend = drawn(rows)

    assert marks.endswith("─✕▼?")
    assert legend.strip().endswith("✕ unplanned break  ▼ planned fold  ? not reported")


@pytest.mark.parametrize("calls", [1, 33, 34, 1000, 10_000])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_calls_are_grouped_where_they_exceed_the_width(calls, width):
    rows = [row(number, number, 1) for number in range(1, calls + 1)]
    *chart, legend = drawn(rows, width)

    assert max(map(len, chart)) <= width
    assert ("each column is the mean of" in legend) == (calls > width - 4 - len(str(calls)))


def test_one_lost_call_in_a_group_is_not_averaged_away():
    rows = [row(number, 10) for number in range(1, 1001)]
    rows[500] = row(501, 0, 10, lost_tokens=10, planned=False)

    assert drawn(rows)[-2].count("✕") == 1


def test_nothing_reported_is_no_chart():
    assert draw_chart([], 80) == []
    assert draw_chart([SeriesRow(call=1, path="main", turn=1, round=1, at=0.0)], 80) == []
