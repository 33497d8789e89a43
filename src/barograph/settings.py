"""Where Barograph keeps its files: the only module that reads the environment."""

import os
from pathlib import Path
from typing import Final

import platformdirs

from barograph.core.errors import SettingsError

HOME_VARIABLE: Final = "BAROGRAPH_HOME"


def home() -> Path:
    """The folder for all that Barograph keeps: `BAROGRAPH_HOME`, or the user's data folder.

    It is not created: what writes there creates it. An empty variable counts as unset.

    Raises:
        SettingsError: `BAROGRAPH_HOME` names a file, or the home of an unknown user.
    """
    given = os.environ.get(HOME_VARIABLE, "")
    if not given:
        return Path(platformdirs.user_data_dir("barograph", appauthor=False))
    try:
        folder = Path(given).expanduser()
    except RuntimeError as error:
        raise _unusable(given, "names the home of a user who is not known") from error
    if folder.exists() and not folder.is_dir():
        raise _unusable(given, "is a file, not a folder")
    return folder


def default_store_path() -> Path:
    """The store that is used where none is named.

    Raises:
        SettingsError: see `home`.
    """
    return home() / "sessions.db"


def _unusable(given: str, how: str) -> SettingsError:
    return SettingsError(
        f"{HOME_VARIABLE} = {given!r} {how}.",
        next_step=f"Set {HOME_VARIABLE} to a folder, or unset it.",
        variable=HOME_VARIABLE,
        path=given,
    )
