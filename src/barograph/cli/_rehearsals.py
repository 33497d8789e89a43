"""Rehearse an agent in several processes of their own, each unlike the others.

A set has another order under another hash seed, and a clock shows another day in another time zone;
neither can be changed in a process that runs. So each process imports the module anew. The first
rehearses twice, more than a second apart.
"""

import os
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.errors import BarographError, UsageError
from barograph.core.prefixlint import Reading

PROCESSES: Final = 4
"""Two strings in a set stand in one order under all of these hash seeds with a chance of 1/8."""

_SHIFTED: Final = 2
"""Number of the process that is told another time zone."""

_SHIFT_SECONDS: Final = 24 * 3600 + 17 * 60
"""More than a day, so that the date is another; and not whole hours, so that the minute is."""

_PAUSE_SECONDS: Final = 1.1
_QUIET: Final = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
_KEYS: Final = {"ANTHROPIC_API_KEY": "rehearsal", "OPENAI_API_KEY": "rehearsal"}
"""Stand in where there are none: some clients insist on a key when they are made."""

_DAYS: Final = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"),
    *("%B {day}, %Y", "%B {day} %Y", "{day} %B %Y", "%b {day}, %Y", "%b {day} %Y", "{day} %b %Y"),
)


class _Heard(Struct, frozen=True, kw_only=True):
    """What a process has to say: its readings, or what went wrong."""

    readings: tuple[Reading, ...] = ()
    what: str = ""
    next_step: str = ""


def rehearse_agent(named: str, processes: int = PROCESSES) -> list[Reading]:
    """Readings of the first call of several runs of an agent.

    Args:
        named: `MODULE:agent`.
        processes: how many are started, all at once.

    Raises:
        UsageError: there is no such agent, or it cannot be run.
    """
    module, _, attribute = named.partition(":")
    if not module or not attribute:
        raise UsageError(
            f"{named!r} names no agent.",
            next_step="Write MODULE:NAME, such as shop.agents:agent.",
        )
    with TemporaryDirectory() as folder:
        started = [_start(named, number, Path(folder)) for number in range(1, processes + 1)]
        try:
            heard = [_wait(process, output) for process, output in started]
        finally:
            for process, _ in started:
                process.kill()
                process.wait()
    return [reading for one in heard for reading in one.readings]


def _start(named: str, number: int, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    output = folder / f"{number}.json"
    environment = {**_KEYS, **os.environ, **_QUIET, "PYTHONHASHSEED": str(number)}
    if number == _SHIFTED:
        environment["TZ"] = _shifted_zone(time.localtime().tm_gmtoff)
    command = [sys.executable, "-m", "barograph.cli._rehearsals", named, str(number), str(output)]
    with output.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and an agent that was asked for
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    return process, output


def _wait(process: "subprocess.Popen[bytes]", output: Path) -> _Heard:
    code = process.wait()
    if not output.exists():
        said = output.with_suffix(".log").read_text("utf-8", "replace").strip().splitlines()
        raise UsageError(
            f"The process that runs the agent ended with code {code}"
            + (f": {said[-1]}" if said else "."),
            next_step="Its module must be importable without ending the process.",
        )
    heard = msgspec.json.decode(output.read_bytes(), type=_Heard)
    if heard.what:
        raise UsageError(heard.what, next_step=heard.next_step)
    return heard


def _shifted_zone(east_seconds: int) -> str:
    """A time zone in which it is another day than in the one that is so far east of Greenwich."""
    # POSIX counts to the west, and no further than a day and some minutes
    is_east = east_seconds >= 0
    west_minutes = (_SHIFT_SECONDS - abs(east_seconds)) // 60
    return f"BGR{'' if is_east else '-'}{west_minutes // 60:02}:{west_minutes % 60:02}"


def _main(named: str, number: int, output: Path) -> None:
    try:
        heard = _Heard(readings=tuple(_rehearse(named, number)))
    except BarographError as error:
        heard = _Heard(what=error.what, next_step=error.next_step)
    part = output.with_suffix(".part")
    part.write_bytes(msgspec.json.encode(heard))
    part.replace(output)


def _rehearse(named: str, number: int) -> list[Reading]:
    from barograph.langchain.rehearsal import agent_of, rehearse, rehearsing

    readings: list[Reading] = []
    with rehearsing():
        agent = agent_of(_import(named))
    for _ in range(2 if number == 1 else 1):
        if readings:
            time.sleep(_PAUSE_SECONDS)
        at = time.time()
        is_shifted = number == _SHIFTED
        reading = rehearse(agent)
        readings.append(
            replace(reading, at=at, days=_days(at), process=number, is_shifted=is_shifted)
        )
    return readings


def _import(named: str) -> Any:
    """The object of that name.

    Raises:
        UsageError: its module cannot be imported, or has no such name.
    """
    module, _, attribute = named.partition(":")
    try:
        found: Any = import_module(module)
    except Exception as error:  # whatever a module raises, it is the answer
        raise UsageError(
            f"{module} cannot be imported: {type(error).__name__}: {error}",
            next_step="Run this where `python -c 'import MODULE'` works: in the folder and the "
            "environment of the agent.",
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise UsageError(
                f"{module} has no {attribute}.",
                next_step="Name a variable that holds an agent, or a function that makes one.",
            )
        found = getattr(found, name)
    return found


def _days(at: float) -> tuple[str, ...]:
    """Ways to write the date of a moment, here and in Greenwich."""
    written: dict[str, None] = {}
    for moment in (time.gmtime(at), time.localtime(at)):
        for form in _DAYS:
            for day in (f"{moment.tm_mday:02}", str(moment.tm_mday)):
                written[time.strftime(form.format(day=day), moment)] = None
    return tuple(written)


def _end(named: str, number: int, output: Path) -> NoReturn:
    """Do all of it, and end this process: a thread that a module began must not keep it."""
    code = 1
    try:
        _main(named, number, output)
        code = 0
    except BaseException:  # noqa: BLE001 - a module may even exit
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _end(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
