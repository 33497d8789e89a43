"""Stores for tests. A new backend joins the contract with one line in `BACKENDS`."""

import pytest

from barograph.store import MemoryStore, SqliteStore

BACKENDS = {
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "sessions.db"),
}


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=BACKENDS)
def new_store(request, tmp_path):
    """Opens any number of fresh stores, for tests that try many examples."""
    opened = []

    def make():
        folder = tmp_path / str(len(opened))
        opened.append(BACKENDS[request.param](folder))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


@pytest.fixture
def sqlite(path):
    opened = SqliteStore(path)
    yield opened
    opened.close()
