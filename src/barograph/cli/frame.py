"""`barograph frame`: what entered a turn beside the user's message."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.frames import ToldSection, TurnFrame
    from barograph.core.events import FrameItem

_FATES: Final = {
    "in_force": "in force",
    "superseded": "superseded",
    "retired": "retired",
    "folded": "folded away",
    "undone": "undone",
    "lost": "lost with a gap of the log",
}


def _number(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """The number of a turn; None for the last."""
    return None if value == "latest" else click.IntRange(min=1)(value, param, ctx)


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph frame latest 3", "what entered turn 3 of the main agent"),
        ("barograph frame latest latest --path main/research#1", "the last turn of a subagent"),
        ("barograph frame latest 3 --text", "exactly what the model saw of it"),
        ("barograph frame latest 3 --json | jq '.sections[].items[].id'", "ids of what it recalls"),
    ),
)
@click.argument("session")
@click.argument("turn", callback=_number)
@click.option(
    "--path", "agent_path", metavar="AGENT", default="main", help="Agent path. Default: `main`."
)
@click.option("--text", "as_text", is_flag=True, help="Print exactly what the model saw of it.")
@reads_store
def command(
    session: str,
    turn: int | None,
    agent_path: str,
    store_path: Path | None,
    *,
    as_text: bool,
    as_json: bool,
) -> None:
    """Print what entered turn TURN of SESSION beside the user's message.

    Sections are those of the turn's frame: what its sources said that was new. What was said in an
    earlier turn, and still held, stands below.
    """
    from barograph.audit.frames import read_frame
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    if as_text and as_json:
        raise click.UsageError("--text and --json exclude each other.")
    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        found = read_frame(name, store.read(name), path=agent_path, turn=turn)
    if as_json:
        fields = {name: getattr(found, name) for name in found.__struct_fields__}
        out.print_json("barograph.frame/1", fields)
    elif as_text:
        out.write_bytes(f"{one.text}\n".encode("utf-8", "replace") for one in found.sections)
        if not found.sections:
            click.echo(_nothing(found), err=True)
    else:
        _print(out.open_console(), found)


def _print(console: "Console", found: "TurnFrame") -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import moment

    title = f"Frame of turn {found.turn} of {found.turns}"
    out.say(console, (title, "bold"), f" · session {found.session} · {found.path}")
    out.label(console, "began", moment(found.began_at))
    if not found.sections:
        out.say(console, _nothing(found))
    for section in found.sections:
        console.print()
        _print_section(console, section, f"event {section.seq}")
    if found.missed:
        console.print()
        out.say(console, ("Gave nothing; what they gave before still held", "bold"))
        for missed in found.missed:
            out.say(console, (missed.source, "yellow"), f": {missed.reason}", indent=2)
    if found.carried:
        console.print()
        out.say(console, ("In force from earlier turns", "bold"))
        for section in found.carried:
            origin = f"since turn {section.turn}, event {section.seq}"
            _print_section(console, section, origin, indent=2)


def _nothing(found: "TurnFrame") -> str:
    what = "nothing new was said" if found.frames else "no source of context had anything to say"
    return f"Turn {found.turn} has no frame: {what}."


def _print_section(
    console: "Console", section: "ToldSection", came: str, *, indent: int = 0
) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import some

    by = "" if section.fate_seq is None else f" by event {section.fate_seq}"
    fate, style = f"{_FATES[section.fate]}{by}", "" if section.fate == "in_force" else "yellow"
    facts = [section.change, some(section.chars, "character"), came]
    if section.adds:
        facts.append("beside earlier ones")
    head = ("■ ", "bold"), (section.source, "bold")
    out.say(console, *head, f" · {' · '.join(facts)} · ", (fate, style), indent=indent)
    for item in section.items:
        facts = _facts_of(item)
        out.say(console, (item.id, "cyan"), f" · {' · '.join(facts)}", indent=indent + 2)


def _facts_of(item: "FrameItem") -> list[str]:
    given = {"origin": item.origin, "date": item.date, "domain": item.domain, "trust": item.trust}
    return [f"{name} {value}" for name, value in given.items() if value]
