"""The words that this harness knows: adapters by op, checks by property."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

OPS = {}
PROPERTIES = {}


class UnknownWordError(Exception):
    """A case uses a word that nobody here knows: a hole in the harness, never a skip."""


def adapter(op, *, takes=(), settings=()):
    """Register what runs an op, with the inputs and settings that it understands."""

    def register(function):
        OPS[op] = (function, frozenset(takes), frozenset(settings))
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
