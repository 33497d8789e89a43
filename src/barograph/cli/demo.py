"""`barograph demo`: what caching discipline saves, on your own machine, without a key."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barograph.cli._errors import FOUND
from barograph.cli._help import BarographCommand, reads_store
from barograph.cli._text import count, percent

if TYPE_CHECKING:
    from barograph.agent.race import Lane
    from barograph.store import Store

_LEAST_HIT = 0.8
_BARS = "▁▂▃▄▅▆▇█"


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph demo", "a scripted coder against the simulator; under a minute"),
        ("barograph demo --live", "the same agent on the real provider, with your key"),
    ),
)
@click.option("--live", is_flag=True, help="Use the real provider; needs ANTHROPIC_API_KEY.")
@reads_store
@click.pass_context
def command(ctx: click.Context, store_path: Path | None, *, live: bool, as_json: bool) -> None:
    """Let a coder fix a small project three times, and compare what it costs.

    The agent, its tools and the client are real; the model is scripted and the provider is the
    simulator, so every lane makes the same moves. The log of Barograph's lane stays in the store.
    Exit code 1 says that its hit ratio is below 80 % or that its prefix broke unplanned.
    """
    from barograph.cli._store import store_path_of
    from barograph.store import open_store

    path = store_path_of(store_path)
    store = open_store(path)
    try:
        session = _new_session(store)
        if live:
            _run_live(store, session, path, is_default=store_path is None)
        else:
            _run_race(ctx, store, session, path if store_path else None, as_json=as_json)
    finally:
        store.close()


def _new_session(store: "Store") -> str:
    taken = {info.session for info in store.sessions()}
    return next(name for n in range(1, len(taken) + 2) if (name := f"demo-{n}") not in taken)


def _run_race(
    ctx: click.Context, store: "Store", session: str, path: Path | None, *, as_json: bool
) -> None:
    from rich.console import Console

    from barograph.agent.race import run_race

    errors = Console(stderr=True)
    with errors.status("Starting the simulator …") as status:
        lanes = run_race(store, session, begin=lambda name: status.update(f"Running {name} …"))
    ours = lanes[-1]
    passed = ours.tokens.hit_ratio >= _LEAST_HIT and not ours.unplanned_breaks and not ours.refused
    if as_json:
        _print_json(lanes, session, passed=passed)
    else:
        _print_tables(lanes)
        _print_next(ours, path, passed=passed)
    if not passed:
        ctx.exit(FOUND)


def _print_json(lanes: "Sequence[Lane]", session: str, *, passed: bool) -> None:
    from barograph.cli import _output as out

    fields: dict[str, Any] = {"session": session, "passed": passed}
    fields["lanes"] = [
        {
            "name": lane.name,
            "calls": lane.calls,
            "refused": lane.refused,
            "input_total_tokens": lane.tokens.input_total_tokens,
            "read_tokens": lane.tokens.read_tokens,
            "write_tokens": lane.tokens.write_5m_tokens + lane.tokens.write_1h_tokens,
            "uncached_tokens": lane.tokens.uncached_tokens,
            "hit_ratio": lane.tokens.hit_ratio,
            "reuse_ratio": lane.tokens.reuse_ratio,
            "cost_usd": lane.cost.cost_usd,
            "cost_over_limit": lane.cost.cost_over_limit,
            "planned_breaks": lane.planned_breaks,
            "unplanned_breaks": lane.unplanned_breaks,
            "seconds": lane.seconds,
        }
        for lane in lanes
    ]
    out.print_json("barograph.demo/1", fields)


def _print_tables(lanes: "Sequence[Lane]") -> None:
    from barograph.cli import _output as out

    columns = ("calls", "input", "read", "write", "uncached", "hit", "reuse", "cost", "/limit")
    table = out.new_table(("", "left"), *((name, "right") for name in columns))
    for lane in lanes:
        tokens = lane.tokens
        figures = (
            lane.name,
            str(lane.calls),
            count(tokens.input_total_tokens),
            count(tokens.read_tokens),
            count(tokens.write_5m_tokens + tokens.write_1h_tokens),
            count(tokens.uncached_tokens),
            percent(tokens.hit_ratio),
            percent(tokens.reuse_ratio),
            f"${lane.cost.cost_usd:.2f}",
            f"{lane.cost.cost_over_limit:.3f}",
        )
        style = "bold" if lane is lanes[-1] else ""
        table.add_row(*(out.cell(text, style) for text in figures))
    console = out.open_console()
    console.print(table)
    out.say(console, "")
    out.say(console, "Cost of each call, in plain input tokens:")
    top = max(value for lane in lanes for value in lane.per_call)
    width = max(len(lane.name) for lane in lanes)
    for lane in lanes:
        most = f"  up to {count(round(max(lane.per_call)))}"
        out.say(console, f"{lane.name:<{width}}  {_spark(lane.per_call, top)}", (most, "dim"))


def _print_next(ours: "Lane", path: Path | None, *, passed: bool) -> None:
    store = f" --store {path}" if path else ""
    breaks = "no unplanned break" if not ours.unplanned_breaks else "UNPLANNED BREAKS"
    word = "Passed" if passed else "FAILED"
    click.echo(
        f"\n{word}: hit {percent(ours.tokens.hit_ratio)} (at least {_LEAST_HIT:.0%}), {breaks}.\n"
        "\nNext:"
    )
    for typed, use in (
        (f"barograph show latest --call 16{store}", "what the model saw on call 16"),
        (f"barograph why latest{store}", "on which call the cache held or broke, and why"),
        (f"barograph folds latest{store}", "what was taken out of sight, and whether it paid"),
        (f"barograph verify latest{store}", "every request, rebuilt from the log"),
    ):
        click.echo(f"  {typed:<{40 + len(store)}}{use}")


def _run_live(store: "Store", session: str, path: Path, *, is_default: bool) -> None:
    from barograph.agent.race import run_live
    from barograph.core.errors import SettingsError

    if not os.environ.get("ANTHROPIC_API_KEY"):
        raise SettingsError(
            "--live needs ANTHROPIC_API_KEY, which is not set.",
            next_step="Set it, or run `barograph demo` against the simulator.",
        )
    run_live(store, session)
    where = "" if is_default else f" --store {path}"
    click.echo(f"Session {session} is logged. Next: barograph why {session}{where}")


def _spark(values: Iterable[float], top: float) -> str:
    last = len(_BARS) - 1
    return "".join(_BARS[round(value / top * last)] for value in values)
