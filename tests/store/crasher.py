"""A program that writes to a store until it is killed.

For each line on its input it forks a writer, warm and at once: the writer prints its process id,
then each seq that the store acknowledged. When it is dead, `gone` is printed.
"""

import os
import sys
from itertools import count

from vocabulary import LARGE_CHARS, message, turn

from barograph.store import SqliteStore


def event_at(seq):
    """What every writer puts at that seq: small, large and repeated bodies."""
    if seq % 5 == 0:
        return message("the same in many events " * LARGE_CHARS)
    return message(f"{seq} " * LARGE_CHARS) if seq % 3 == 0 else turn(seq)


def say(word):
    # One write to a pipe, so that a kill cannot cut it in two.
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


def write_for_ever(path):
    store = SqliteStore(path)
    last = store.last_seq("s")
    for size in count(1):
        batch = [event_at(last + place) for place in range(1, 2 + size % 4)]
        last = store.append("s", batch, after=last).seq
        say(last)


def main(path):
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            say(os.getpid())
            write_for_ever(path)
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    main(sys.argv[1])
