"""Tools of a coding agent, bound to one folder.

The model's mistakes come back as tool results with status `error`; nothing it can type raises.
Order and wording depend on the files alone, so a run can be repeated to the byte.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from threading import Lock

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from barograph.agent.unittests import run_unittests
from barograph.agent.workspace import Refused, Workspace

MATCHES_SHOWN = 200
LINE_CHARS_SHOWN = 400
CONTEXT_LINES = 3
TEST_TIMEOUT_SECONDS = 60.0


def build_tools(root: Path) -> list[BaseTool]:
    """The tools `list_files`, `read_file`, `search`, `edit_file` and `run_tests`.

    Args:
        root: the folder they are confined to.
    """
    bench = _Bench(Workspace(root))
    return [
        _tool(verb)
        for verb in (
            bench.list_files,
            bench.read_file,
            bench.search,
            bench.edit_file,
            bench.run_tests,
        )
    ]


class _Bench:
    """The verbs themselves. Their docstrings are what the model reads."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        # parallel tool calls run in threads of their own: two edits of one file must not
        # both start from the same old text
        self._lock = Lock()

    def list_files(self, folder: str = ".") -> str:
        """List all files below a folder of the workspace, with their number of lines.

        Args:
            folder: Path of the folder, relative to the root of the workspace.
        """
        with self._lock:
            names = list(self._workspace.files(folder))
            counts = [self._lines(name) for name in names]
        if not names:
            return "no files"
        width = max(len(name) for name in names)
        return "\n".join(
            f"{name.ljust(width)}  {count}" for name, count in zip(names, counts, strict=True)
        )

    def read_file(self, path: str, start: int = 1, lines: int = 400) -> str:
        """Read a text file with line numbers.

        Args:
            path: Path of the file, relative to the root of the workspace.
            start: First line to show, counted from 1.
            lines: How many lines to show.
        """
        if start < 1 or lines < 1:
            raise Refused("start and lines are counted from 1")
        with self._lock:
            content = _lines_of(self._workspace.read(path))
        if not content:
            return f"{path} is empty"
        if start > len(content):
            raise Refused(f"{path} has {len(content)} lines, cannot start at {start}")
        shown = content[start - 1 : start - 1 + lines]
        last = start - 1 + len(shown)
        head = f"{path}, lines {start}-{last} of {len(content)}"
        return "\n".join([head, *_numbered(shown, start)])

    def search(self, pattern: str, glob: str = "*") -> str:
        """Find lines that match a regular expression.

        Args:
            pattern: A regular expression in Python's syntax.
            glob: Which files to look in, such as *.py or tests/*; a * also matches a slash.
        """
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise Refused(f"not a regular expression: {pattern!r}: {error}") from error
        wanted = glob.removeprefix("**/") or "*"
        found: list[str] = []
        with self._lock:
            for name in self._workspace.files():
                if fnmatchcase(name, wanted) or fnmatchcase(name, f"*/{wanted}"):
                    found.extend(self._matches(name, compiled))
        if not found:
            return "no matches"
        hidden = len(found) - MATCHES_SHOWN
        more = [f"... and {hidden} more; narrow the pattern or the glob"] if hidden > 0 else []
        return "\n".join(found[:MATCHES_SHOWN] + more)

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a piece of text that occurs exactly once, or create a file.

        Args:
            path: Path of the file, relative to the root of the workspace.
            old: The text to replace, exactly as it stands in the file; empty to create the file.
            new: The text to put in its place.
        """
        with self._lock:
            if not old:
                return self._create(path, new)
            before = self._workspace.read(path)
            times = before.count(old)
            if times == 0:
                raise Refused(f"{path} does not contain the old text; read the lines again")
            if times > 1:
                raise Refused(f"{path} contains the old text {times} times; give more of it")
            if old == new:
                raise Refused("the old and the new text are the same")
            position = before.index(old)
            after = before[:position] + new + before[position + len(old) :]
            self._workspace.write(path, after)
        first = before.count("\n", 0, position) + 1
        last = first + new.rstrip("\n").count("\n")
        begin = max(first - CONTEXT_LINES, 1)
        shown = _lines_of(after)[begin - 1 : last + CONTEXT_LINES]
        return "\n".join([f"edited {path}; it now reads", *_numbered(shown, begin)])

    def run_tests(self, target: str = "") -> str:
        """Run the unittest suite of the workspace, or a part of it.

        Args:
            target: Dotted name of a test module, class or method; empty for the whole suite.
        """
        return run_unittests(self._workspace.root, target, TEST_TIMEOUT_SECONDS)

    def _create(self, path: str, text: str) -> str:
        if self._workspace.locate(path).exists():
            raise Refused(f"{path} exists already; name the old text to replace")
        self._workspace.write(path, text)
        return f"created {path}, {len(_lines_of(text))} lines"

    def _lines(self, name: str) -> str:
        try:
            return f"{len(_lines_of(self._workspace.read(name)))} lines"
        except Refused:
            return "not text"

    def _matches(self, name: str, pattern: re.Pattern[str]) -> list[str]:
        try:
            content = _lines_of(self._workspace.read(name))
        except Refused:
            return []
        return [
            f"{name}:{number}: {line[:LINE_CHARS_SHOWN]}"
            for number, line in enumerate(content, start=1)
            if pattern.search(line)
        ]


def _tool(verb: Callable[..., str]) -> BaseTool:
    @wraps(verb)
    def guarded(*args: object, **kwargs: object) -> str:
        try:
            return verb(*args, **kwargs)
        except Refused as refused:
            # the one exception that LangChain turns into a result with status "error"
            raise ToolException(f"error: {refused}") from refused

    return StructuredTool.from_function(
        guarded,
        parse_docstring=True,
        handle_tool_error=True,
        handle_validation_error=_explain_arguments,
    )


def _explain_arguments(error: object) -> str:
    details = getattr(error, "errors", None)
    if not callable(details):
        return f"error: {error}"
    wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in details()]
    return f"error: wrong arguments: {'; '.join(wrong)}"


def _lines_of(text: str) -> list[str]:
    # not splitlines(): it also cuts at form feeds and the like, where editors count no line
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _numbered(lines: list[str], start: int) -> list[str]:
    width = len(str(start + len(lines) - 1))
    return [
        f"{str(number).rjust(width)}  {line}" if line else str(number).rjust(width)
        for number, line in enumerate(lines, start=start)
    ]
