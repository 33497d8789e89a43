"""The command line: one file a command, each with its `command`.

Modules whose names begin with an underscore are shared by the commands; any other module here is
found by its name, so adding a command is adding a file.
"""

from barograph.cli._main import main

__all__ = ["main"]
