"""Run a project's own unittest suite and report it in the same bytes every time.

A test report is full of things that change without meaning: timings, the folder it ran in,
object addresses, the marks under a traceback line. A model learns nothing from them, and a text
that differs between two equal runs can neither be compared nor replayed. They are removed here.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from barograph.agent.workspace import Refused

# What an interpreter needs to start. The rest stays here: the code under test was written by a
# model, and the environment is where keys live.
_HANDED_ON = ("HOME", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")

# No bytecode: two edits within one clock tick could otherwise run the older version.
_FIXED = {
    "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
}

_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_REWRITES = (
    (re.compile(r"^(Ran \d+ tests?) in [\d.]+s$", re.MULTILINE), r"\1"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "0x…"),
    # 3.11, 3.12 and 3.13 underline different parts of a line
    (re.compile(r"(?<=\n) {4,}[~^][~^ ]*\n"), ""),
)


def run_unittests(root: Path, target: str, timeout_seconds: float) -> str:
    """Run the suite below a folder, or one module, class or method of it.

    This runs the code of the workspace with the rights of the caller. It is no sandbox.

    Args:
        root: the folder to run in.
        target: a dotted name, or the path of a test module; empty for everything.
        timeout_seconds: when to stop waiting.

    Returns:
        The outcome in the first line, then the report.

    Raises:
        Refused: the target is not a name, or the time is up.
    """
    command = [sys.executable, "-m", "unittest"]
    if target:
        name = target.removesuffix(".py").replace("/", ".") if target.endswith(".py") else target
        if not _TARGET.fullmatch(name):  # a leading dash would be an option of unittest
            raise Refused(f"not a test: {target!r}. Name a module as tests.test_name, or nothing.")
        command.append(name)
    environment = {key: os.environ[key] for key in _HANDED_ON if key in os.environ} | _FIXED
    # a file, not a pipe: a child left behind by a test cannot keep us waiting on it
    with tempfile.TemporaryFile() as output:
        try:
            code = subprocess.run(  # noqa: S603 - our own interpreter, a checked name
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise Refused(f"no result after {timeout_seconds:g} seconds; stopped") from error
        output.seek(0)
        report = output.read().decode("utf-8", errors="replace")
    outcome = "tests passed" if code == 0 else f"tests failed (exit code {code})"
    return f"{outcome}\n\n{steady(report, root)}"


def steady(report: str, root: Path) -> str:
    """A test report without what differs between two equal runs."""
    text = report.replace("\r\n", "\n")
    for place in dict.fromkeys((str(root.resolve()), str(root))):
        text = text.replace(place + os.sep, "")
    for place in dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))):
        text = text.replace(place, "<python>")
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text.strip() + "\n"
