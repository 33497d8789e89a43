"""The tools: what they say, where they stop, and that they say it the same way every time."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barograph.agent import tools as tools_module
from barograph.agent.tools import MATCHES_SHOWN, build_tools
from barograph.agent.unittests import steady


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "a.py").write_bytes(b"one = 1\ntwo = 2\n\nthree = 3\n")
    (root / "README.md").write_bytes(b"# Title\n")
    (root / "logo.bin").write_bytes(b"\xff\x00\xfe")
    (root / ".hidden").write_bytes(b"one\n")
    return root


@pytest.fixture
def call(root):
    bench = {tool.name: tool for tool in build_tools(root)}

    def invoke(tool, **args):
        message = bench[tool].invoke(
            {"type": "tool_call", "id": "toolu_1", "name": tool, "args": args}
        )
        return message.status, message.content

    return invoke


def test_the_five_tools_come_in_a_fixed_order_with_described_arguments(root):
    bench = build_tools(root)
    assert [tool.name for tool in bench] == [
        "list_files",
        "read_file",
        "search",
        "edit_file",
        "run_tests",
    ]
    assert all(tool.description for tool in bench)
    assert all(each["description"] for tool in bench for each in tool.args.values())
    assert "Args:" not in "".join(tool.description for tool in bench)


def test_list_files_is_sorted_and_leaves_noise_out(call):
    status, text = call("list_files")
    assert status == "success"
    assert text == "README.md  1 lines\nlogo.bin   not text\npkg/a.py   4 lines"
    assert call("list_files", folder="pkg") == ("success", "pkg/a.py  4 lines")


def test_read_file_numbers_its_lines(call):
    status, text = call("read_file", path="pkg/a.py", start=2, lines=2)
    assert (status, text) == ("success", "pkg/a.py, lines 2-3 of 4\n2  two = 2\n3")


def test_search_takes_globs_with_and_without_folders(call):
    for glob in ("*", "*.py", "**/*.py", "pkg/*", "a.py"):
        assert call("search", pattern="^two", glob=glob) == ("success", "pkg/a.py:2: two = 2")
    assert call("search", pattern="^two", glob="*.md") == ("success", "no matches")


def test_search_says_how_much_it_left_out(call, root):
    (root / "many.txt").write_text("x\n" * (MATCHES_SHOWN + 3), encoding="utf-8")
    _, text = call("search", pattern="^x$")
    assert text.endswith("\n... and 3 more; narrow the pattern or the glob")
    assert text.count("\n") == MATCHES_SHOWN


def test_edit_file_replaces_once_and_shows_the_place(call, root):
    status, text = call("edit_file", path="pkg/a.py", old="two = 2\n", new="two = 22\n")
    assert status == "success"
    assert text.splitlines()[:3] == ["edited pkg/a.py; it now reads", "1  one = 1", "2  two = 22"]
    assert (root / "pkg" / "a.py").read_bytes() == b"one = 1\ntwo = 22\n\nthree = 3\n"


def test_edit_file_keeps_foreign_line_ends(call, root):
    (root / "dos.txt").write_bytes(b"a\r\nb\r\n")
    assert call("edit_file", path="dos.txt", old="b", new="c")[0] == "success"
    assert (root / "dos.txt").read_bytes() == b"a\r\nc\r\n"


def test_edit_file_creates_but_never_overwrites(call, root):
    made = call("edit_file", path="docs/new.md", old="", new="a\nb\n")
    assert made == ("success", "created docs/new.md, 2 lines")
    status, text = call("edit_file", path="docs/new.md", old="", new="c\n")
    assert status == "error"
    assert "exists already" in text
    assert (root / "docs" / "new.md").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize(
    ("tool", "args", "reason"),
    [
        ("read_file", {"path": "nowhere.py"}, "no such file"),
        ("read_file", {"path": "pkg"}, "no such file"),
        ("read_file", {"path": "logo.bin"}, "not a text file"),
        ("read_file", {"path": "pkg/a.py", "start": 9}, "has 4 lines"),
        ("read_file", {"path": "pkg/a.py", "start": 0}, "counted from 1"),
        ("read_file", {"path": "bad\0name"}, "not a usable path"),
        ("read_file", {}, "wrong arguments: path"),
        ("read_file", {"path": "pkg/a.py", "lines": "many"}, "wrong arguments: lines"),
        ("list_files", {"folder": "nowhere"}, "no such folder"),
        ("search", {"pattern": "("}, "not a regular expression"),
        ("edit_file", {"path": "pkg/a.py", "old": "four", "new": "4"}, "does not contain"),
        ("edit_file", {"path": "pkg/a.py", "old": " = ", "new": "="}, "3 times"),
        ("edit_file", {"path": "pkg/a.py", "old": "one", "new": "one"}, "are the same"),
        ("edit_file", {"path": "pkg/a.py", "old": "one", "new": "\ud800"}, "not UTF-8"),
        ("edit_file", {"path": "README.md/x", "old": "", "new": "x"}, "cannot write"),
        ("run_tests", {"target": "--help"}, "not a test"),
        ("run_tests", {"target": "../other.py"}, "not a test"),
    ],
)
def test_mistakes_of_the_model_come_back_as_error_results(call, root, tool, args, reason):
    status, text = call(tool, **args)
    assert status == "error"
    assert text.startswith("error: ")
    assert reason in text
    assert str(root) not in text


@pytest.mark.parametrize("path", ["../secret.txt", "pkg/../../secret.txt", "link.txt", "folder/x"])
def test_no_path_leads_out_of_the_workspace(call, root, path):
    (root.parent / "secret.txt").write_text("secret\n", encoding="utf-8")
    (root.parent / "out").mkdir()
    (root.parent / "out" / "x").write_text("secret\n", encoding="utf-8")
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent / "out")
    for tool, more in (("read_file", {}), ("edit_file", {"old": "secret", "new": "open"})):
        status, text = call(tool, path=path, **more)
        assert status == "error"
        assert "outside the workspace" in text
    assert call("search", pattern="secret") == ("success", "no matches")
    assert "link" not in call("list_files")[1]
    assert "folder" not in call("list_files")[1]


def test_absolute_paths_and_rings_of_links_are_refused(call, root):
    (root / "ring").symlink_to(root / "ring")
    assert call("read_file", path=str(root / "README.md"))[0] == "error"
    assert call("read_file", path="ring")[0] == "error"
    assert call("list_files", folder="/")[0] == "error"
    assert call("list_files")[0] == "success"


def test_parallel_edits_of_one_file_all_arrive(call, root):
    names = [f"name{number:02d}" for number in range(20)]
    (root / "list.txt").write_text("\n".join(names), encoding="utf-8")

    def shout(name):
        return call("edit_file", path="list.txt", old=name, new=name.upper())[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(shout, names)) == {"success"}
    assert (root / "list.txt").read_text(encoding="utf-8") == "\n".join(names).upper()


async def test_the_tools_work_asynchronously(root):
    reader = build_tools(root)[1]
    assert await reader.ainvoke({"path": "README.md"}) == "README.md, lines 1-1 of 1\n1  # Title"


def test_run_tests_sees_an_edit_at_once_and_leaves_no_trace(call, root):
    body = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        "
    (root / "test_it.py").write_text(f"{body}self.assertEqual(1, 2)\n", encoding="utf-8")
    before = call("run_tests")
    assert before[0] == "success"
    assert before[1].startswith("tests failed (exit code 1)\n")
    assert 'File "test_it.py", line 6' in before[1]
    call("edit_file", path="test_it.py", old="1, 2", new="2, 2")
    for target in ("", "test_it", "test_it.py", "test_it.T.test"):
        passed = "tests passed\n\n.\n" + "-" * 70 + "\nRan 1 test\n\nOK\n"
        assert call("run_tests", target=target) == ("success", passed)
    assert not list(root.rglob("__pycache__"))


def test_run_tests_keeps_the_callers_environment_from_the_tests(call, root, monkeypatch):
    monkeypatch.setenv("PROVIDER_API_KEY", "hush")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    (root / "test_it.py").write_text("import os\nraise OSError(dict(os.environ))\n", "utf-8")
    text = call("run_tests")[1]
    assert "OSError" in text
    assert "hush" not in text
    assert "elsewhere" not in text


def test_run_tests_gives_up_in_time(call, root, monkeypatch):
    monkeypatch.setattr(tools_module, "TEST_TIMEOUT_SECONDS", 0.5)
    (root / "test_it.py").write_text("import time\ntime.sleep(60)\n", "utf-8")
    assert call("run_tests") == ("error", "error: no result after 0.5 seconds; stopped")


def test_a_steady_report_holds_nothing_of_its_run():
    root = Path.cwd()
    library = Path(sys.modules["unittest"].__file__)
    report = (
        f'  File "{root / "tests" / "test_x.py"}", line 3, in test\n'
        "    self.check(one, two)\n"
        "    ~~~~~~~~~~^^^^^^^^^^\n"
        f'  File "{library}", line 1\n'
        "AssertionError: <object object at 0x7f21c8a0b1c0>\n"
        "Ran 12 tests in 0.034s\n"
    )
    assert (
        steady(report, root)
        == (
            f'  File "{Path("tests") / "test_x.py"}", line 3, in test\n'
            "    self.check(one, two)\n"
            f'  File "{Path("<python>") / "unittest" / "__init__.py"}", line 1\n'
            "AssertionError: <object object at 0x…>\n"
            "Ran 12 tests\n"
        ).lstrip()
    )
