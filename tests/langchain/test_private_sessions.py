"""A private session leaves nothing: no file below the user's folders holds a word of it."""

import base64
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from private_agent import MODEL, SECRETS, TOOL

import barograph
from barograph.simulator import Reply, Simulator

PROGRAM = Path(__file__).with_name("private_agent.py")
SOURCE = Path(barograph.__file__).parent
DICTIONARIES = [
    None,
    *(zstandard.ZstdCompressionDict(one.read_bytes()) for one in SOURCE.rglob("*.zdict")),
]
EVENTFUL = {"Compacted", "SummaryAsked", "SourceKept", "AttemptFailed", "CallFailed", "ToolEnded"}
FRAME = b"\x28\xb5\x2f\xfd"


def answers(body, _index):
    """A model that calls the tool which the user names, and answers in words of its own."""
    blocks = body["messages"][-1]["content"]
    texts = [one["text"] for one in blocks if one["type"] == "text"]
    if any("replaced by a summary" in one for one in texts):
        return Reply(content=f"<summary>They read files of {MODEL}.</summary>")
    asked = texts[0].partition(":")[0] if texts else ""
    given = {
        "read": {"path": f"{MODEL}.txt"},
        "jot": {"what": f"{MODEL} was here"},
        "history_search": {"query": TOOL},
        "break_down": {"path": MODEL},
    }
    if asked in given:
        call = {"type": "tool_use", "id": f"t{_index}", "name": asked, "input": given[asked]}
        return Reply(content=[{"type": "text", "text": f"{MODEL} looks."}, call])
    return Reply(content=f"{MODEL} is done.")


def spellings(word):
    """A word as it may stand in a file: in other encodings, and in base64 at any place."""
    yield from (word.encode(one) for one in ("utf-8", "utf-16-le", "utf-32-le"))
    yield word.encode().hex().encode()
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + word.encode())[4:-4]


def haystacks(path):
    """What a file holds, as it is and unpacked: rows of a database, frames of Zstandard."""
    data = path.read_bytes()
    yield data
    yield from unpacked(data)
    if data.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in names.fetchall():
                for row in database.execute(f'SELECT * FROM "{name}"'):  # noqa: S608
                    for value in row:
                        blob = value.encode() if isinstance(value, str) else value
                        if isinstance(blob, bytes):
                            yield blob
                            yield from unpacked(blob)


def unpacked(data):
    start = data.find(FRAME)
    while start >= 0:
        for dictionary in DICTIONARIES:
            try:
                unpacker = zstandard.ZstdDecompressor(dict_data=dictionary).decompressobj()
                yield unpacker.decompress(data[start:])
            except zstandard.ZstdError:
                continue
        start = data.find(FRAME, start + 1)


def told_below(folder):
    """Whose words stand in any file below a folder, by the names of the files."""
    found = {}
    for path in (one for one in folder.rglob("*") if one.is_file()):
        held = list(haystacks(path))
        for who, word in SECRETS.items():
            needles = tuple(spellings(word))
            if any(needle in one for one in held for needle in needles):
                found.setdefault(who, []).append(path.name)
    return found


def ran(mode, home):
    """What an agent did in a process whose every folder lies below this one."""
    places = ("HOME", "BAROGRAPH_HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    places = (*places, "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "SQLITE_TMPDIR")
    folders = {name: home / name.lower() for name in places}
    for folder in folders.values():
        folder.mkdir(parents=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BAROGRAPH", "LANGSMITH", "LANGCHAIN", "XDG"))
    }
    kept |= {"PYTHONPATH": str(SOURCE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    with Simulator(answers) as simulator:
        simulator.fault("overflow", request=8)
        simulator.fault("server_error", request=12)
        done = subprocess.run(
            [sys.executable, str(PROGRAM), mode, simulator.url, str(home)],
            env={**kept, **{name: str(folder) for name, folder in folders.items()}},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("mode", "leaves"), [("private", set()), ("normal", set(SECRETS))])
def test_invariant_10_no_file_holds_a_word_of_a_private_session(mode, leaves, tmp_path):
    done = ran(mode, tmp_path)

    assert set(done["events"]) >= EVENTFUL
    assert done["failed"] == ["tool", "provider"]
    assert done["missed"] == ["pad"]
    assert ("hot memory" in done["told"]) == (mode == "normal")
    assert (tmp_path / "agent.log").stat().st_size > 0
    assert set(told_below(tmp_path)) == leaves
