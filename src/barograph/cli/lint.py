"""`barograph lint`: what an agent puts before the messages and should not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from barograph.cli._errors import FOUND
from barograph.cli._help import BarographCommand

if TYPE_CHECKING:
    from barograph.core.prefixlint import Finding


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph lint shop.agents:agent", "an agent that the module holds"),
        ("barograph lint shop.agents:make_agent", "one that a function makes"),
        ("barograph lint shop.agents:agent --json", "for a program; exit code 1 if anything is"),
    ),
)
@click.argument("agent", metavar="MODULE:AGENT")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document with a `schema` field."
)
@click.pass_context
def command(ctx: click.Context, agent: str, *, as_json: bool) -> None:
    """Find what changes in the system prompt and the tools of an agent.

    THE CODE OF THE MODULE IS RUN: it is imported, and its agent runs up to its first model call, in
    several processes of their own. That call is read and not sent: no model is asked, no key is
    needed, no store of Barograph and no checkpointer is written.

    What differs between the runs is proven: clocks, ids, addresses, sets in another order, other
    text. What one run alone makes suspect is said too. Exit code 1 says that something was found.
    """
    from rich.console import Console

    from barograph.cli import _output as out
    from barograph.cli._rehearsals import rehearse_agent
    from barograph.core.prefixlint import lint

    with Console(stderr=True).status(f"Rehearsing {agent} …"):
        readings = rehearse_agent(agent)
    findings = lint(readings)
    processes = len({reading.process for reading in readings})
    if as_json:
        fields = {"agent": agent, "runs": len(readings), "processes": processes}
        out.print_json("barograph.lint/1", {**fields, "findings": findings})
    else:
        _print(agent, findings, f"{len(readings)} runs in {processes} processes")
    if findings:
        ctx.exit(FOUND)


def _print(agent: str, findings: "Sequence[Finding]", runs: str) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import some

    console = out.open_console()
    if not findings:
        said = f": tools and system prompt are the same in {runs}."
        out.say(console, ("✓ ", "green"), (agent, "bold"), said)
        return
    said = f": {some(len(findings), 'finding')} in {runs}"
    out.say(console, ("✗ ", "bold red"), (agent, "bold"), said)
    for finding in findings:
        style = "red" if finding.grade == "proven" else "yellow"
        span = f", differs between {finding.between}" if finding.between else ""
        out.say(console, "")
        out.say(console, (f"{finding.label}: {finding.kind}", style), f" ({finding.grade}{span})")
        out.quote(console, finding.before)
        if finding.after:
            out.quote(console, finding.after)
        out.say(console, finding.fix, indent=2)
