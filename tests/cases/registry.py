"""The words that this harness knows: adapters by op, checks by property."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

OPS = {}
PROPERTIES = {}


class UnknownWordError(Exception):
    """A case uses a word that nobody here knows: a hole in the harness, never a skip."""


class Adapter(NamedTuple):
    """What runs an op, with the inputs, settings and forms that it understands."""

    run: Callable[..., Any]
    takes: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset({"anthropic"})


def adapter(op, *, takes=(), settings=(), forms=("anthropic",)):
    """Register what runs an op."""

    def register(function):
        OPS[op] = Adapter(function, frozenset(takes), frozenset(settings), frozenset(forms))
        return function

    return register


def check(function):
    """Register a property under the name of its function, which yields what does not hold."""
    PROPERTIES[function.__name__] = function
    return function


def load():
    """Import every adapter and every check."""
    for package in ("ops", "properties"):
        for module in iter_modules([str(Path(__file__).with_name(package))]):
            import_module(f"cases.{package}.{module.name}")
