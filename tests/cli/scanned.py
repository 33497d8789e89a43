"""A session whose every round finds much."""

from click.testing import CliRunner

from barograph.cli import main
from barograph.core.policy import Policy
from barograph.store import SqliteStore
from rounds import play_rounds

ROUNDS = 16
BALANCED = Policy(name="balanced", prune_after_rounds=2)


def found(number):
    return "\n".join(f"src/part{number}/file_{line}.py:{line}: hit" for line in range(200))


def play(path, policy):
    """So many calls, each but the first of which shows what the one before it found."""
    store = SqliteStore(path)
    results = [found(number) for number in range(ROUNDS - 1)]
    play_rounds(store, policy, results, system="Scan. " * 900)
    store.close()


def run(path, *arguments):
    return CliRunner().invoke(main, [*arguments, "--store", str(path)])


def log_of(path):
    store = SqliteStore(path)
    try:
        return list(store.read("scan"))
    finally:
        store.close()
