"""One simulator for a module, and a fresh store and session for each test."""

import asyncio
import itertools

import pytest

from barograph.simulator import Simulator
from barograph.store import MemoryStore

_numbers = itertools.count()


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as running:
        yield running


@pytest.fixture
def store():
    kept = MemoryStore()
    yield kept
    kept.close()


@pytest.fixture
def session():
    return f"thread-{next(_numbers)}"


@pytest.fixture(scope="module")
def loop():
    """One event loop: the stock client keeps its connections for all models of one address."""
    with asyncio.Runner() as runner:
        yield runner
