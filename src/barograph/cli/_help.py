"""Help that begins with examples, and the options that commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click


class ExamplesFirst(click.Command):
    """A command whose help begins with examples.

    Args:
        examples: what to type, and what it is good for.
    """

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, then what click writes."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl(self.examples)
            formatter.write_paragraph()
        super().format_help(ctx, formatter)


class BarographCommand(ExamplesFirst):
    """The class of every command."""


_JSON: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document with a `schema` field."
)
_STORE: Final = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The store to read; by default the one that `barograph config show` names.",
)


def reads_store(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options `--store` (as `store_path`) and `--json` (as `as_json`)."""
    return _STORE(_JSON(function))
