"""`barograph simulate`: a provider on this machine, for your own tests."""

from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand
from barograph.core.errors import UsageError

if TYPE_CHECKING:
    from barograph.simulator import Simulator
    from barograph.simulator.scenario import Scenario

_GREETING = "This is the simulator."


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph simulate", "answer every request with the same text"),
        ("barograph simulate door.toml --port 8787", "play a scenario on a fixed port"),
        ("barograph simulate --record calls", "keep every request with its bill"),
    ),
)
@click.argument("scenario", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port on 127.0.0.1; by default any that is free.",
)
@click.option(
    "--model-facts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Limits and prices that differ from the table: a TOML or JSON file, a table for a model.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="A folder for three files of every exchange.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document with a `schema` field."
)
def command(
    scenario: Path | None,
    port: int,
    model_facts: Path | None,
    record: Path | None,
    *,
    as_json: bool,
) -> None:
    """Run a provider with scripted models until Ctrl-C.

    Stock clients use it by its base URL. SCENARIO is a TOML or JSON file with sessions, faults and
    switches; without one, the session `default` answers everything. It listens on this machine
    only, and its clock is the time since it started unless a request says `x-sim-now`.
    """
    simulator = _simulator(scenario, port, model_facts, record)
    try:
        simulator.start()
    except OSError as error:
        raise UsageError(
            f"Port {port} cannot be used: {error.strerror}.", next_step="Choose another --port."
        ) from error
    try:
        _print(simulator, scenario, as_json=as_json)
        _wait()
    finally:
        simulator.stop()


def _simulator(
    path: Path | None, port: int, model_facts: Path | None, record: Path | None
) -> "Simulator":
    try:
        from barograph.simulator import Simulator
    except ImportError as error:
        raise UsageError(
            "The simulator's server is not installed.",
            next_step="Run: pip install 'barograph[simulator]'",
        ) from error
    from barograph.simulator.scenario import load_model_facts

    scenario = _scenario(path)
    started = monotonic()
    try:
        simulator = Simulator(
            rule=scenario.rule,
            switches=scenario.switches,
            faults=scenario.faults,
            clock=lambda: monotonic() - started,
            facts=load_model_facts(model_facts) if model_facts is not None else None,
            keep_bodies=False,
            record_dir=record,
            port=port,
        )
    except OSError as error:
        raise UsageError(
            f"{record} cannot be written: {error.strerror}.", next_step="Choose another --record."
        ) from error
    for session, script in scenario.sessions.items():
        simulator.play(session, script)
    return simulator


def _scenario(path: Path | None) -> "Scenario":
    from barograph.simulator import Reply
    from barograph.simulator.scenario import Scenario, load_scenario

    if path is not None:
        return load_scenario(path)
    return Scenario(sessions={"default": lambda _body, _index: Reply(content=_GREETING)})


def _print(simulator: "Simulator", scenario: Path | None, *, as_json: bool) -> None:
    from barograph.cli import _output as out

    environment = {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "any"}
    if as_json:
        fields = {"url": simulator.url, "environment": environment, "sessions": simulator.sessions}
        out.print_json("barograph.simulate/1", fields)
        return
    console = out.open_console()
    out.say(console, "Simulator at ", (simulator.url, "bold"))
    for name, value in environment.items():
        out.say(console, f"export {name}={value}", indent=2)
    played = ", ".join(simulator.sessions) or "none"
    source = f"from {scenario}" if scenario is not None else "which answers everything"
    out.say(console, f"Sessions: {played}, {source}. A request names its own in x-sim-session.")
    out.say(console, "Ctrl-C ends it.")


def _wait() -> None:
    """Until Ctrl-C; in pieces, because a wait without end cannot be interrupted everywhere."""
    never = Event()
    while not never.wait(3600.0):
        pass
