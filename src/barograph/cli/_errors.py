"""Errors on the command line: which exit code, and which words.

The one place where the error tree meets the exit codes: 0 done, 1 something was found, 2 usage,
3 not found, 4 refused, 5 store unavailable or busy, 130 interrupted.
"""

import json
from collections.abc import Mapping
from typing import Final

import click

from barograph.cli._text import plain
from barograph.core.errors import (
    BarographError,
    LogError,
    PinRefused,
    SchemaTooNew,
    StoreError,
    SurfaceError,
    UnknownCall,
    UnknownDocument,
    UnknownHandle,
    UnknownSession,
    UnknownTurn,
    UsageError,
)

FOUND: Final = 1
REFUSED: Final = 4

_EXIT_CODES: Final[Mapping[type[BarographError], int]] = {
    UsageError: 2,
    PinRefused: REFUSED,
    UnknownSession: 3,
    UnknownCall: 3,
    UnknownTurn: 3,
    UnknownHandle: 3,
    UnknownDocument: 3,
    SchemaTooNew: REFUSED,
    LogError: 5,
    SurfaceError: 5,
    StoreError: 5,
}


def exit_code_of(error: BarographError) -> int:
    """The exit code of the nearest class in the tree; what no class claims was refused."""
    codes = (_EXIT_CODES[kind] for kind in type(error).__mro__ if kind in _EXIT_CODES)
    return next(codes, REFUSED)


def report(error: BarographError, *, as_json: bool) -> None:
    """Say on stderr what happened and what to do next."""
    if not as_json:
        click.secho(f"Error: {plain(error.what)}", fg="red", err=True)
        if error.next_step:
            click.echo(plain(error.next_step), err=True)
        return
    document = {
        "schema": "barograph.error/1",
        "code": error.code,
        "what": error.what,
        "next_step": error.next_step,
        "ids": error.ids,
        "exit_code": exit_code_of(error),
    }
    click.echo(json.dumps(document, default=str), err=True)
