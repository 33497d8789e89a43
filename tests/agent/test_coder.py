"""The script of the coder, played against the real tools and the real sample project."""

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import msgspec
import pytest

from barograph.agent.coder import (
    copy_sample,
    intended_errors,
    moves,
    prompts,
    system_prompt,
    turns,
)
from barograph.agent.tools import build_tools

DEFECTS = {
    "test_a_negative_amount_is_split_like_its_mirror_image",
    "test_a_credit_note_undoes_its_invoice_to_the_cent",
    "test_a_short_month_shortens_only_its_own_date",
    "test_yearly_on_leap_day_comes_back_to_leap_day",
    "test_an_invoice_paid_in_part_takes_only_what_is_outstanding",
    "test_two_instalments_and_a_surplus",
    "test_buckets_include_both_ends",
    "test_aging",
}


def calls_of(reply):
    return [block for block in reply.content if block["type"] == "tool_use"]


def play(root):
    """Carry out every call of the script and give the results in order."""
    bench = {tool.name: tool for tool in build_tools(copy_sample(root))}
    return [
        bench[call["name"]].invoke(
            {"type": "tool_call", "id": call["id"], "name": call["name"], "args": call["input"]}
        )
        for reply in moves()
        for call in calls_of(reply)
    ]


def test_the_script_repairs_the_sample_and_two_plays_are_equal_to_the_byte(tmp_path):
    with ThreadPoolExecutor(2) as pool:  # in folders of different name and length
        first, second = pool.map(play, (tmp_path / "one", tmp_path / "the" / "other"))
    assert [item.content for item in first] == [item.content for item in second]
    assert str(tmp_path) not in "".join(item.content for item in first)

    failed = {item.tool_call_id for item in first if item.status == "error"}
    assert failed == intended_errors()

    reports = [item.content for item in first if item.name == "run_tests"]
    assert set(re.findall(r"^(?:FAIL|ERROR): (\w+)", reports[0], re.MULTILINE)) == DEFECTS
    assert reports[0].startswith("tests failed (exit code 1)\n")
    assert reports[-1].startswith("tests passed\n")
    assert "Ran 78 tests\n" in reports[-1]

    last_of_turn_one = [call for each in turns()[0].rounds for call in each.calls][-1]
    assert last_of_turn_one == {"tool": "run_tests"}
    position = sum(len(each.calls) for each in turns()[0].rounds) - 1
    assert first[position].content.startswith("tests passed\n")
    assert "Ran 70 tests\n" in first[position].content


def test_the_script_has_two_turns_that_end_in_plain_answers():
    assert len(turns()) == len(prompts()) == 2
    endings = [index for index, reply in enumerate(moves()) if reply.stop_reason == "end_turn"]
    assert endings == [len(turns()[0].rounds) - 1, len(moves()) - 1]
    for reply in moves():
        assert reply.stop_reason == ("tool_use" if calls_of(reply) else "end_turn")
        assert reply.content
        assert all(block["text"].strip() for block in reply.content if block["type"] == "text")


def test_the_script_is_long_and_has_one_very_wide_round():
    widths = [len(calls_of(reply)) for reply in moves()]
    assert len(widths) >= 44
    assert sum(width == 12 for width in widths) == 1
    assert sum(width in {2, 3} for width in widths) >= 5
    assert max(width for width in widths if width != 12) <= 3
    wide = calls_of(moves()[widths.index(12)])
    assert {call["name"] for call in wide} == {"read_file"}


def test_call_ids_are_fixed_unique_and_legal():
    ids = [call["id"] for reply in moves() for call in calls_of(reply)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"toolu_[A-Za-z0-9_]+", each) for each in ids)
    assert intended_errors() < set(ids)
    assert 1 <= len(intended_errors()) <= 3


def test_parallel_calls_never_depend_on_each_other():
    for reply in moves():
        calls = calls_of(reply)
        edited = [call["input"]["path"] for call in calls if call["name"] == "edit_file"]
        assert len(set(edited)) == len(edited)
        assert not edited or len(edited) == len(calls)


def test_no_reply_carries_the_notes_of_the_script():
    wire = msgspec.json.encode([reply.content for reply in moves()])
    assert b'"fails"' not in wire
    assert b'"tool":' not in wire


def test_the_system_prompt_is_a_page_without_clock_or_ids():
    text = system_prompt()
    assert 1200 <= len(text) // 4 <= 1800
    assert not re.search(r"\d{4}-\d\d|[0-9a-f]{8}-|toolu_", text)
    assert text == system_prompt()


def test_the_sample_is_shipped_as_data_and_unpacked_as_code(tmp_path):
    root = copy_sample(tmp_path / "deep" / "project")
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    assert 14 <= len(names) <= 20
    assert "daybook/money.py" in names
    assert not [name for name in names if name.endswith(".txt")]
    assert 45_000 <= sum((root / name).stat().st_size for name in names) <= 70_000
    shipped = files("barograph.agent") / "sample" / "daybook"
    assert all(item.name.endswith(".py.txt") for item in shipped.iterdir())


def test_copying_twice_restores_the_sample(tmp_path):
    root = copy_sample(tmp_path)
    original = (root / "daybook" / "money.py").read_bytes()
    (root / "daybook" / "money.py").write_bytes(b"")
    assert (copy_sample(tmp_path) / "daybook" / "money.py").read_bytes() == original


@pytest.mark.parametrize("word", ["TODO", "FIXME", "\t", "\r"])
def test_the_sample_is_tidy(tmp_path, word):
    root = copy_sample(tmp_path)
    assert not [path for path in root.rglob("*.*") if word in path.read_bytes().decode("utf-8")]
