"""Settings: where Barograph keeps its files, and every knob from file, environment and code.

The only module that reads the environment. Layers, weak to strong:

```
default       the values of `Policy` and `StoreSettings`
user          config.toml in `BAROGRAPH_HOME`, else in the user's configuration folder
project       barograph.toml, or [tool.barograph] in pyproject.toml: the nearest upwards
environment   BAROGRAPH_POLICY__TTL=1h: two underscores part table and key
code          load_settings(..., policy__ttl="1h")
```

A file has the tables `policy` and `store`. What is not known is refused: a misspelled knob that
does nothing would be worse than an error. A value is checked in every layer, also where a stronger
one hides it. Secrets do not belong here, and errors show none.
"""

import math
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, get_args, get_type_hints

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.errors import PolicyError, SettingsError
from barograph.core.masking import mask_text
from barograph.core.policy import Policy
from barograph.settings_layers import (
    Given,
    Origin,
    code_values,
    environment_values,
    project_values,
    user_values,
)

HOME_VARIABLE: Final = "BAROGRAPH_HOME"
NOT_SETTINGS: Final = frozenset(
    {HOME_VARIABLE, "BAROGRAPH_CORPUS", "BAROGRAPH_CASES", "BAROGRAPH_CASEKIT"}
)
"""Variables of our prefix that name folders, and set no knob."""

USER_FILE: Final = "config.toml"
_LONGEST_WAIT_SECONDS: Final = 3600
_SHOWN_CHARS: Final = 80
_NOT_SET: Final = "none"
"""How a file or a variable says that a knob has no value: TOML has no word for it."""


class StoreSettings(Struct, frozen=True, kw_only=True):
    """Where logs are kept, and how.

    Attributes:
        path: the store. In a file, a relative path starts at the folder of the file.
        synchronous: `normal` survives a killed process, `full` a power cut too.
        busy_timeout_seconds: how long to wait for another writer, from 0 to 3600.

    Raises:
        SettingsError: a value outside its range.
    """

    path: Path
    synchronous: Literal["normal", "full"] = "normal"
    busy_timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.synchronous not in ("normal", "full"):
            what = f"synchronous is {self.synchronous!r}."
            raise SettingsError(what, next_step="Choose one of 'normal', 'full'.")
        if not 0 <= self.busy_timeout_seconds <= _LONGEST_WAIT_SECONDS:
            what = f"busy_timeout_seconds is {self.busy_timeout_seconds}."
            raise SettingsError(what, next_step="Give seconds, a number from 0 to 3600.")


class Settings(Struct, frozen=True, kw_only=True):
    """The values in effect.

    Attributes:
        policy: how sessions are governed.
        store: where logs are kept.
        origins: where each value comes from, by its key: `policy.ttl`.
    """

    policy: Policy
    store: StoreSettings
    origins: Mapping[str, Origin]


_TABLES: Final[Mapping[str, type[Policy | StoreSettings]]] = {
    "policy": Policy,
    "store": StoreSettings,
}
_HINTS: Final = {
    f"{table}.{name}": hint
    for table, kind in _TABLES.items()
    for name, hint in get_type_hints(kind).items()
}


def home() -> Path:
    """The folder for all that Barograph keeps: `BAROGRAPH_HOME`, or the user's data folder.

    It is not created: what writes there creates it. An empty variable counts as unset.

    Raises:
        SettingsError: `BAROGRAPH_HOME` names a file, or the home of an unknown user.
    """
    return _home_in(os.environ) or Path(platformdirs.user_data_dir("barograph", appauthor=False))


def default_store_path() -> Path:
    """The store that is used where none is named.

    Raises:
        SettingsError: see `load_settings`.
    """
    return current_settings().store.path


def current_settings(**code: object) -> Settings:
    """The settings of this process, in its folder and environment. See `load_settings`.

    Raises:
        SettingsError: a file, a variable or a keyword cannot be used.
    """
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was deleted: there is no project here
        folder = home()
    return load_settings(folder, os.environ, **code)


def load_settings(cwd: Path, environ: Mapping[str, str], **code: object) -> Settings:
    """The settings that hold in a folder.

    Without `BAROGRAPH_HOME` in `environ`, the user's folders are those of this process.

    Args:
        cwd: the folder from which a project file is looked for, upwards.
        environ: the environment; empty variables count as unset.
        code: the strongest layer, by table and key: `policy__ttl="1h"`.

    Raises:
        SettingsError: a file cannot be read or is no TOML, a key is unknown, or a value is of the
            wrong type or outside its range. It names the place, the key, the value, and what is
            allowed.
    """
    own = _home_in(environ)
    data = own or Path(platformdirs.user_data_dir("barograph", appauthor=False))
    config = own or Path(platformdirs.user_config_dir("barograph", appauthor=False))
    defaults: dict[str, Policy | StoreSettings] = {
        "policy": Policy(),
        "store": StoreSettings(path=data / "sessions.db"),
    }
    values: dict[str, dict[str, Any]] = {table: {} for table in _TABLES}
    origins = dict.fromkeys(_HINTS, Origin(layer="default"))
    for given in chain(
        user_values(config / USER_FILE),
        project_values(cwd.absolute()),
        environment_values(environ, but=NOT_SETTINGS),
        code_values(code),
    ):
        if given.key in _TABLES and given.value == {}:
            continue
        _refuse_unknown(given)
        table, name = given.key.split(".")
        values[table][name] = _read_value(given, cwd, defaults[table])
        origins[given.key] = given.origin
    return Settings(
        policy=Policy(**values["policy"]),
        store=StoreSettings(**{"path": data / "sessions.db", **values["store"]}),
        origins=origins,
    )


def _refuse_unknown(given: Given) -> None:
    if given.key in _HINTS:
        return
    table = given.key.partition(".")[0]
    if given.key in _TABLES:
        raise _refusal(given, f"is a table, which has {_names_in(table)}")
    close = get_close_matches(given.key, _HINTS, n=1)
    hint = f"Did you mean {close[0]}? " if close else ""
    allowed = f"Table {table} has {_names_in(table)}"
    if table not in _TABLES:
        allowed = f"The tables are {' and '.join(_TABLES)}, with {', '.join(_HINTS)}"
    raise _refusal(given, "is no setting", f"{hint}{allowed}.")


def _read_value(given: Given, cwd: Path, default: Policy | StoreSettings) -> object:
    """The value as its field wants it, within its range.

    Raises:
        SettingsError: it is of the wrong type or outside its range.
    """
    value = _typed(given, cwd)
    name = given.key.partition(".")[2]
    try:
        replace(default, **{name: value})
    except (PolicyError, SettingsError) as error:
        raise _refusal(given, "cannot be used", error.next_step) from error
    return value


def _typed(given: Given, cwd: Path) -> object:
    """The value in the type of its field; choices are left to the field's own rule."""
    value, hint = given.value, _HINTS[given.key]
    if NoneType in get_args(hint):
        if value is None or (isinstance(value, str) and value.lower() == _NOT_SET):
            return None
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    if hint is Path:
        return _path(given, cwd)
    read = _READERS.get(hint)
    return read(given) if read else value


def _number(value: object) -> float:
    """A number; what is none is read as NaN, which every range refuses in its own words."""
    if isinstance(value, bool) or not isinstance(value, str | float | int):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _whole(value: object) -> float:
    """A whole number; what is none is read as NaN too."""
    number = _number(value)
    return int(number) if number.is_integer() else math.nan


def _whole_by_name(given: Given) -> Mapping[str, float]:
    if not isinstance(given.value, Mapping):
        raise _refusal(given, "cannot be used", "Give a table of names and whole numbers.")
    return {str(name): _whole(value) for name, value in given.value.items()}


def _numbers_by_model(given: Given) -> Mapping[str, Mapping[str, float]]:
    tables = given.value
    if not isinstance(tables, Mapping) or not all(isinstance(t, Mapping) for t in tables.values()):
        raise _refusal(given, "cannot be used", "Give a table of numbers for each model.")
    return {
        str(model): {str(name): _number(value) for name, value in table.items()}
        for model, table in tables.items()
    }


def _yes_or_no(given: Given) -> bool:
    known = {"true": True, "false": False}
    value = known.get(given.value.lower()) if isinstance(given.value, str) else given.value
    if not isinstance(value, bool):
        raise _refusal(given, "cannot be used", "Give true or false.")
    return value


def _path(given: Given, cwd: Path) -> Path:
    value, origin = given.value, given.origin
    base = Path(origin.place).parent if origin.layer in ("user", "project") else cwd
    try:
        if isinstance(value, str | Path) and str(value) and "\0" not in str(value):
            return base / Path(value).expanduser()
    except RuntimeError as error:
        raise _refusal(given, "names the home of a user who is not known") from error
    raise _refusal(given, "cannot be used", "Give the path of a file.")


def _names(given: Given) -> tuple[str, ...]:
    value = given.value
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if isinstance(items, list | tuple) and all(isinstance(item, str) for item in items):
        return tuple(item for item in items if item)
    raise _refusal(given, "cannot be used", "Give a list of names.")


_READERS: Final[Mapping[object, Callable[[Given], object]]] = {
    float: lambda given: _number(given.value),
    int: lambda given: _whole(given.value),
    bool: _yes_or_no,
    tuple[str, ...]: _names,
    Mapping[str, int]: _whole_by_name,
    Mapping[str, Mapping[str, float]]: _numbers_by_model,
}
"""By the type of a field, what makes a value of it."""


def _names_in(table: str) -> str:
    return ", ".join(key.partition(".")[2] for key in _HINTS if key.startswith(f"{table}."))


def _refusal(given: Given, how: str, next_step: str = "") -> SettingsError:
    """The error for a value: where it stands, and what is wrong with it."""
    written = f"{given.key} = {given.value!r}"
    shown = mask_text(written)
    if shown != written:
        next_step = f"Secrets do not belong in settings. {next_step}".strip()
    if len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}…"
    return SettingsError(
        f"{given.origin}: {shown} {how}.",
        next_step=next_step,
        key=given.key,
        place=given.origin.place,
        line=given.origin.line,
    )


def _home_in(environ: Mapping[str, str]) -> Path | None:
    given = environ.get(HOME_VARIABLE, "")
    if not given:
        return None
    try:
        folder = Path(given).expanduser()
    except RuntimeError as error:
        raise _unusable(given, "names the home of a user who is not known") from error
    if folder.exists() and not folder.is_dir():
        raise _unusable(given, "is a file, not a folder")
    return folder


def _unusable(given: str, how: str) -> SettingsError:
    return SettingsError(
        f"{HOME_VARIABLE} = {given!r} {how}.",
        next_step=f"Set {HOME_VARIABLE} to a folder, or unset it.",
        variable=HOME_VARIABLE,
        path=given,
    )
