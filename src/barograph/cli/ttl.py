"""`barograph ttl`: which lifetime of cache entries a session should have had."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from barograph.audit.lifetimes import Choice, TtlAdvice


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph ttl latest", "what 5 minutes, an hour and `auto` would have cost"),
        ("barograph ttl latest --json | jq .saved_usd", "for a program"),
    ),
)
@click.argument("session")
@reads_store
def command(session: str, store_path: Path | None, *, as_json: bool) -> None:
    """Say which lifetime of cache entries SESSION should have had, and what that would have saved.

    Its own calls are planned and billed anew, at the times they were made, with entries of 5
    minutes, of an hour, and as `auto` chooses. What was really paid stands beside them: where it
    differs from the line of the lifetime that was in force, the estimate is off by as much.
    """
    from barograph.audit.lifetimes import advise_ttl
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    with open_to_read(store_path) as store:
        advice = advise_ttl(store, resolve_session(store, session))
    if as_json:
        fields = {name: getattr(advice, name) for name in advice.__struct_fields__}
        out.print_json("barograph.ttl/1", fields)
    else:
        _print(advice)


def _print(advice: "TtlAdvice") -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import count, some, usd

    console = out.open_console()
    if not advice.calls:
        out.say(console, f"Session {advice.session} has no calls that reported usage.")
        return
    title = f"{some(advice.calls, 'call')} of session {advice.session}"
    out.say(console, (title, "bold"), f": {_gaps(advice)}")
    table = out.new_table(
        ("lifetime", "left"),
        ("cost", "right"),
        ("against paid", "right"),
        ("read", "right"),
        ("write 5m", "right"),
        ("write 1h", "right"),
        ("expired", "right"),
    )
    for choice in (advice.recorded, *advice.choices):
        is_best = choice is advice.choices[advice.best]
        cells = (
            _name(choice),
            usd(choice.cost_usd, is_estimate=advice.is_guess),
            _against(choice, advice),
            count(choice.read_tokens),
            count(choice.write_5m_tokens),
            count(choice.write_1h_tokens),
            "" if choice.expiries is None else count(choice.expiries),
        )
        table.add_row(*(out.cell(text, "green" if is_best else "") for text in cells))
    out.print_table(console, table)
    out.say(console, _recommendation(advice))


def _gaps(advice: "TtlAdvice") -> str:
    from barograph.cli._text import percent, some

    pauses = some(advice.pauses, "pause")
    longer = f", {some(advice.longer, 'gap')} above 60" if advice.longer else ""
    return f"{pauses} of 5 to 60 minutes ({percent(advice.pause_ratio)} of the gaps){longer}"


def _name(choice: "Choice") -> str:
    if choice.pause_ratio:
        return f"{choice.ttl}, pause_ratio {choice.pause_ratio:.3f}"
    return choice.ttl


def _against(choice: "Choice", advice: "TtlAdvice") -> str:
    paid = advice.recorded.cost_usd
    if choice is advice.recorded or not paid:
        return ""
    return f"{100 * (choice.cost_usd / paid - 1):+.1f} %"


def _recommendation(advice: "TtlAdvice") -> str:
    from barograph.cli._text import usd

    best = advice.choices[advice.best]
    if not advice.is_worth_it:
        return "Leave it as it is: no other lifetime would have saved a hundredth of the cost."
    knobs = f'ttl="{best.ttl}"'
    if best.pause_ratio:
        knobs += f", pause_ratio={best.pause_ratio:.3f}"
    saved = usd(advice.saved_usd, is_estimate=advice.is_guess)
    return f"Policy({knobs}) would have saved {saved}."
