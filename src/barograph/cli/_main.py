"""The `barograph` command: finds its subcommands, and turns errors into exit codes."""

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click

import barograph
from barograph.cli._errors import REFUSED, exit_code_of, report
from barograph.cli._help import ExamplesFirst
from barograph.core.errors import BarographError, UsageError

_PACKAGE = "barograph.cli"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class _Commands(ExamplesFirst, click.Group):
    """A group whose commands are the modules of this package, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the modules that hold a command."""
        del ctx
        path = import_module(_PACKAGE).__path__
        return sorted(found.name for found in iter_modules(path) if not found.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"{_PACKAGE}.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether errors are to be JSON: an error may come before the option is read."""
        ctx.obj = {"json": "--json" in args}
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; the one place where an error becomes an exit code."""
        as_json = bool(ctx.obj["json"])
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except BarographError as error:
            report(error, as_json=as_json)
            ctx.exit(exit_code_of(error))
        except OSError as error:
            if error.errno not in _FULL:  # a closed pipe is no error, and click ends it so
                raise
            _give_stdout_up()
            report(_unwritten(error), as_json=as_json)
            ctx.exit(REFUSED)
        except click.UsageError as error:
            if not as_json:
                raise
            command = ctx.invoked_subcommand or ""
            next_step = f"See `barograph {command} --help`."
            report(UsageError(error.format_message(), next_step=next_step), as_json=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)


def _unwritten(error: OSError) -> BarographError:
    return BarographError(
        f"The output could not be written: {error}.",
        next_step="Make room, or send the output to another place.",
    )


def _give_stdout_up() -> None:
    """Let what still waits for stdout go nowhere, else Python fails over it once more at exit."""
    with suppress(OSError, ValueError):  # a stream that is no file has nothing to fail over
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.command(
    cls=_Commands,
    examples=(
        ("barograph sessions", "what was recorded"),
        ("barograph show latest", "what the model saw on the last call"),
        ("barograph why latest", "every call: what it read from the cache, what it cost"),
        ("barograph why latest 54", "why the cache held or broke on call 54"),
        ("barograph series latest", "every call in a chart and a table"),
        ("barograph context latest", "what fills the window"),
        ("barograph diff latest 54", "what changed from the call before"),
        ("barograph verify", "prove that every request can be rebuilt to the byte"),
    ),
    epilog=(
        "SESSION is an id, a prefix of one that fits no other, or `latest`. Exit codes: 0 done, "
        "1 something was found, 2 usage, 3 not found, 4 refused, 5 store unavailable or busy, "
        "130 interrupted."
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(barograph.__version__, prog_name="barograph")
def main() -> None:
    """See what an LLM agent's model saw, and why each call cost what it did."""
