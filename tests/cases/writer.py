"""A process that appends to a log, and prints what was acknowledged.

It reads the tail, says so, waits for a word on its input, and then appends one event after the
other. Where another writer was first it reads the tail again.
"""

import sqlite3
import sys
import time

from barograph.core.errors import SequenceConflict, StoreBusy
from barograph.core.events import MessageSeen
from barograph.core.parts import Text
from barograph.store import SqliteStore


def note(text, at=1.0):
    """An event with that text."""
    return MessageSeen(at=at, path="main", role="user", origin="caller", parts=(Text(text),))


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def append_all(path, session, name, number):
    store = SqliteStore(path, busy_timeout_seconds=30.0)
    last = store.last_seq(session)
    say("ready", last)
    sys.stdin.readline()
    refused = 0
    for index in range(number):
        while True:
            try:
                last = store.append(session, [note(f"{name}-{index}")], after=last).seq
            except SequenceConflict:
                refused += 1
                last = store.last_seq(session)
            except StoreBusy:
                refused += 1
            else:
                break
        say("kept", last, f"{name}-{index}")
    say("refused", refused)
    store.close()


def hold_lock(path, seconds):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("ready 0")
    sys.stdin.readline()
    time.sleep(seconds)
    connection.execute("COMMIT")
    connection.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append", path, session, name, number]:
            append_all(path, session, name, int(number))
        case ["hold", path, seconds]:
            hold_lock(path, float(seconds))
