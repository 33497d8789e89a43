"""Ops about the store: real files, real processes, real bytes on disk."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from barograph.core.engine import Engine
from barograph.core.errors import LogError
from barograph.core.events import HeaderSet
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.core.readback import derive_body
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import SqliteStore
from barograph.store.session import Session
from cases.kit import kit
from cases.observed import Observed, read_log
from cases.provider import MODEL
from cases.registry import UnknownWordError, adapter
from cases.writer import note

_WRITER = Path(__file__).parents[1] / "writer.py"


@adapter(
    "concurrent",
    takes=(
        "processes",
        "same_thread",
        "threads_distinct",
        "each_appends",
        "start",
        "hold_write_lock_seconds",
        "store",
    ),
)
def concurrent(case, folder):
    """Processes that all read the tail, then append as fast as they can.

    Each value is a list by thread. With `hold_write_lock_seconds` one more process holds the
    database's write lock meanwhile.
    """
    given, path = case.given, folder / "log.db"
    if given.get("store", "sqlite") not in ("sqlite", "file"):
        raise UnknownWordError(f"store {given['store']!r}")
    threads = _threads(given)
    with closing(SqliteStore(path)) as store:
        for thread in dict.fromkeys(threads):
            store.append(thread, [note("begun")], after=0)
    writers = [
        _start("append", path, thread, f"writer-{i}", given["each_appends"])
        for i, thread in enumerate(threads)
    ]
    holders = []
    if given.get("hold_write_lock_seconds"):
        holders.append(_start("hold", path, given["hold_write_lock_seconds"]))
    for one in (*holders, *writers):
        _read_ready(one)
    for one in (*holders, *writers):
        one.stdin.write("go\n")
        one.stdin.flush()
    acknowledged = {thread: {} for thread in threads}
    for one, thread in zip(writers, threads, strict=True):
        acknowledged[thread].update(_kept(one))
    for one in holders:
        _kept(one)
    seen = Observed(case, store=path)
    seen.values["threads"] = [read_log(path, thread) for thread in acknowledged]
    seen.values["acknowledged"] = list(acknowledged.values())
    return seen


def _threads(given):
    """The thread of each process: one for all, names that the case gives, or one each."""
    distinct, number = given.get("threads_distinct"), given["processes"]
    if isinstance(distinct, list):
        return [distinct[i % len(distinct)] for i in range(number)]
    if given.get("same_thread", not distinct):
        return ["case"] * number
    return [f"case-{i}" for i in range(number)]


def _read_ready(process):
    if not process.stdout.readline().startswith("ready"):
        raise RuntimeError(process.communicate()[1])


def _kept(process):
    """What a writer was promised, text by number, once it has ended."""
    said, failed = process.communicate()
    if process.returncode:
        raise RuntimeError(failed)
    lines = [line.split() for line in said.splitlines()]
    return {text: int(seq) for _, seq, text in (line for line in lines if line[0] == "kept")}


def _start(*arguments):
    return subprocess.Popen(
        [sys.executable, str(_WRITER), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@adapter("growth", takes=("blob_chars", "per_step_chars", "steps", "prompt_snapshots"))
def growth(case, folder):
    """A thread that says something new at each step, with a fixed blob in every request.

    The text is incompressible, so that no compression hides what is stored twice. Every request is
    recorded: there is no log without them.
    """
    given, path = case.given, folder / "log.db"
    text = kit().expand({"b64": given["blob_chars"]})
    more = kit().expand(
        {"b64": given["blob_chars"] + given["per_step_chars"] * max(given["steps"])}
    )
    seen = Observed(case, store=path)
    seen.values["bytes"] = {}
    with closing(SqliteStore(path)) as store:
        talk = _Talk(store, text)
        for step in range(1, max(given["steps"]) + 1):
            start = given["blob_chars"] + (step - 1) * given["per_step_chars"]
            talk.step(more[start : start + given["per_step_chars"]])
            if step in given["steps"]:
                seen.values["bytes"][step] = _size(folder)
    return seen


def _size(folder):
    return sum(one.stat().st_size for one in folder.iterdir())


class _Talk:
    """Calls of one agent straight into the engine; half of each step is the user's word."""

    def __init__(self, store, blob):
        self._codec = AnthropicCodec()
        self._session = Session.open(
            store, "case", Engine(self._codec, Policy()), at=0.0, made_by="case"
        )
        self._header = Header(model=MODEL, system=(Text(blob),))
        self._assumed = HeaderSet(
            at=0.0,
            path="main",
            model=MODEL,
            system=self._header.system,
            tools="",
            parameters=f'{{"model":"{MODEL}"}}',
            changed=(),
        )
        self._new = []
        self._known = 0
        self._at = 0.0

    def step(self, text):
        self._at += 10.0
        half = len(text) // 2
        self._new.append(Incoming("user", (Text(text[:half]),)))
        send, _ = self._session.want(
            CallWanted(
                at=self._at,
                path="main",
                header=self._header,
                messages=tuple(self._new),
                known=self._known,
            )
        )
        plan = self._session.state.path("main").planned
        surface = replace(send.surface, header=self._assumed)
        derived = derive_body(self._codec, surface, plan, ("model", "system", "messages"))
        body = self._codec.join_body(derived)
        self._session.leave(at=self._at, path="main", header=self._header, body=body, observed=True)
        parts = (Text(text[half:]),)
        self._session.take(
            Answered(at=self._at, path="main", parts=parts, stop_reason="end_turn", usage=None)
        )
        self._known, self._new = send.seen, [Incoming("assistant", parts)]


@adapter(
    "reopen",
    takes=(
        "format",
        "good_records",
        "good_records_after",
        "middle",
        "tail",
        "variants",
        "then_append",
    ),
)
def reopen(case, folder):
    """A file that a writer left torn.

    The log is a database with a write-ahead log, so a *line* is a transaction there and the torn
    tail is an append that died on its way to disk: the last frames of that file are cut inside the
    record, inside a character of it, at its very end, or are followed by blank lines; or the whole
    file is empty. A record that is broken in the middle of the good ones is a row whose bytes were
    altered on disk.
    """
    given = case.given
    seen = Observed(case, store=folder)
    for number, variant in enumerate(given.get("variants") or ["cut inside JSON"]):
        place = folder / f"variant-{number}"
        place.mkdir()
        path = place / "log.db"
        if "middle" in given:
            _alter_middle(path, given)
        else:
            _tear(path, given["good_records"], _tail_text(given.get("tail", "")), variant)
        seen.variants[variant] = _reopened(path, given.get("then_append", 0))
    return seen


def _tail_text(tail):
    return tail.decode("utf-8", "replace") if isinstance(tail, bytes) else tail


TORN = "torn-record caf\u00e9 \u00e9\u00e9\u00e9"


def _tear(path, good, tail, variant):
    """Write the good records, and a last one of which only a part reaches the disk."""
    with closing(SqliteStore(path)) as store:
        store.append("case", [note("record-1")], after=0)
        for number in range(1, good):
            store.append("case", [note(f"record-{number + 1}")], after=number)
        wal = path.with_name("log.db-wal")
        before = wal.stat().st_size
        text = f"{TORN} {tail}"
        store.append("case", [note(text)], after=good)
        with closing(sqlite3.connect(path)) as reader:
            [(stored,)] = reader.execute("SELECT data FROM events ORDER BY id DESC LIMIT 1")
        database, log = path.read_bytes(), wal.read_bytes()
    # what a kill leaves: both files as they were, cut as the variant says
    place = log.index(stored, before) + len(stored) // 2
    torn = {
        "cut inside JSON": log[:place],
        "cut inside a UTF-8 sequence": log[: place + 1],
        "whole record without its newline": log,
        "tail of blank lines": log[:before] + b"\n" * 512,
        "tail of NUL bytes": log[:before] + bytes(512),
    }
    for leftover in path.parent.iterdir():
        leftover.unlink()
    if variant == "empty file":
        path.touch()
    elif variant in torn:
        path.write_bytes(database)
        wal.write_bytes(torn[variant])
    else:
        raise UnknownWordError(f"a file that is left as {variant!r}")


def _alter_middle(path, given):
    good, after = given["good_records"], given.get("good_records_after", 0)
    with closing(SqliteStore(path)) as store:
        for number in range(good + 1 + after):
            store.append("case", [note(f"record-{number + 1}")], after=number)
    middle = given["middle"]
    raw = middle if isinstance(middle, bytes) else str(middle).encode()
    with closing(sqlite3.connect(path)) as connection, connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM events ORDER BY id")]
        connection.execute("UPDATE events SET data = ? WHERE id = ?", (raw, ids[good]))


def _reopened(path, appends):
    """Open, read, append, read; and open and read once more."""
    found = {"loaded": 0, "loud": "", "after_append": 0, "appended": 0}
    with closing(SqliteStore(path)) as store:
        found["loaded"], found["loud"], found["texts"] = _load(store)
        last = store.last_seq("case")
        for number in range(appends):
            last = store.append("case", [note(f"new-{number}")], after=last)
            found["appended"] += 1
    with closing(SqliteStore(path)) as store:
        found["after_append"], _, found["texts_after"] = _load(store)
    with closing(SqliteStore(path)) as store:
        found["again"] = _load(store)[2]
    return found


def _load(store):
    texts, loud = [], ""
    try:
        if store.last_seq("case"):
            for one in store.read("case"):
                texts.append(one.event.parts[0].text)  # noqa: PERF401 - those before damage count
    except LogError as error:
        loud = str(error)
    return len(texts), loud, texts
