"""`barograph replay`: what recorded sessions cost, and what they could have cost."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barograph.cli._errors import FOUND
from barograph.cli._help import BarographCommand
from barograph.cli._text import percent

if TYPE_CHECKING:
    from barograph.audit.replay import Replayed, ReplayOptions
    from barograph.audit.score import Cost, Price


class _PriceType(click.ParamType["Price"]):
    """`w,r`: the price of a written and of a read token, a plain one being 1."""

    name = "w,r"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Price":
        """Two numbers with 0 <= r <= 1 <= w."""
        from barograph.audit.score import Price

        try:
            write, read = (float(number) for number in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not two numbers such as 1.25,0.1.", param, ctx)
        if not 0 <= read <= 1 <= write:
            self.fail(f"{value!r} is out of range: 0 <= r <= 1 <= w.", param, ctx)
        return Price(write_ratio=write, read_ratio=read)


class _WindowType(click.ParamType["int | str"]):
    """A number of tokens, or `f` and a share of the largest history of a recording."""

    name = "TOKENS|fSHARE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "int | str":
        """A whole number above 0, or f with a number above 0."""
        text = str(value)
        try:
            number = float(text[1:]) if text.startswith("f") else int(text)
        except ValueError:
            self.fail(f"{text!r} is neither a number of tokens nor, as f0.6, a share.", param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f"{text!r} is out of range: it must be above 0.", param, ctx)
        return text if text.startswith("f") else int(number)


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph replay session.jsonl", "through the middleware and the real client"),
        ("barograph replay recordings/ --direct", "a folder, quickly: without client and HTTP"),
        ("barograph replay s.jsonl.gz --price 1.25,0.05 --json", "other prices, for a program"),
        ("barograph replay s.jsonl --store kept.db", "then: barograph show latest --store kept.db"),
    ),
)
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option("--model", default="claude-opus-4-8", show_default=True, help="Model of every call.")
@click.option(
    "--policy",
    type=click.Choice(["balanced", "fixed", "bound-once", "off"]),
    default="off",
    show_default=True,
    help="How the sessions are governed. `off` folds nothing.",
)
@click.option(
    "--window",
    type=_WindowType(),
    help="The window to keep to, in tokens or, as f0.6, as a share of the largest history. "
    "By default the model's.",
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    type=_PriceType(),
    help="Price ratios; repeatable. By default those of the model.",
)
@click.option(
    "--rewrites",
    type=click.Choice(["apply", "ignore"]),
    default="apply",
    show_default=True,
    help="Rewrite the history where the recording did, or never.",
)
@click.option(
    "--clock",
    type=click.Choice(["frozen", "recorded"]),
    default="frozen",
    show_default=True,
    help="Let nothing expire, or use the recorded times.",
)
@click.option(
    "--mode",
    type=click.Choice(["invoke", "stream", "ainvoke", "astream"]),
    default="invoke",
    show_default=True,
    help="How the client is called.",
)
@click.option("--direct", is_flag=True, help="Drive engine and simulator in process, for speed.")
@click.option(
    "--recorded-tokens", is_flag=True, help="Count with the tokens per character of the recording."
)
@click.option(
    "--record",
    "record_dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every request, response and clock as numbered files.",
)
@click.option(
    "--store", "store_path", type=click.Path(path_type=Path), metavar="PATH", help="Keep the logs."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, paths: tuple[Path, ...], *, as_json: bool, **given: Any) -> None:
    """Replay recorded sessions against the simulator, and measure them against the limits.

    PATH is a `.jsonl` or `.jsonl.gz` file, or a folder of them. What a recording lacks is made up:
    a tool definition for each tool name, and a system prompt of filler text. Exit code 1 says that
    a request was refused, broke the prefix unplanned, or could not be rebuilt.
    """
    from barograph.audit.recorded import find_recordings
    from barograph.audit.replay import total_of

    options = _options(given)
    replayed = _replay(find_recordings(paths), options)
    total = total_of(replayed)
    if as_json:
        _print_json(replayed, total, options)
    else:
        _print_table(replayed, total, options)
    is_whole = total.exact_calls == total.derived_calls == total.calls
    if total.rejected or total.unplanned_breaks or not is_whole:
        ctx.exit(FOUND)


def _options(given: dict[str, Any]) -> "ReplayOptions":
    from barograph.audit.replay import ReplayOptions
    from barograph.core.policy import Policy

    window = given["window"]
    share = isinstance(window, str)
    return ReplayOptions(
        model=given["model"],
        policy=Policy(name=given["policy"]),
        window_tokens=None if share else window,
        window_share=float(window[1:]) if share else None,
        mode="direct" if given["direct"] else given["mode"],
        rewrites=given["rewrites"],
        clock=given["clock"],
        prices=given["prices"],
        recorded_tokens=given["recorded_tokens"],
        record_dir=given["record_dir"],
        store=given["store_path"],
    )


def _replay(files: Sequence[Path], options: "ReplayOptions") -> "list[Replayed]":
    from rich.console import Console
    from rich.progress import Progress

    from barograph.audit.recorded import read_recording
    from barograph.audit.replay import replay_file

    errors = Console(stderr=True)
    replayed = []
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        for file in files:
            calls = len(read_recording(file, rewrites=options.rewrites).calls)
            task = progress.add_task(file.name, total=calls)
            replayed.append(replay_file(file, options, advance=partial(progress.advance, task)))
            progress.remove_task(task)
    return replayed


def _print_json(
    replayed: "Sequence[Replayed]", total: "Replayed", options: "ReplayOptions"
) -> None:
    from barograph.cli import _output as out

    fields = {
        "policy": options.policy.name,
        "model": options.model,
        "mode": options.mode,
        "rewrites": options.rewrites,
        "clock": options.clock,
        "sessions": [_row(one) for one in replayed],
        "total": _row(total),
    }
    out.print_json("barograph.replay/1", fields)


def _row(one: "Replayed") -> dict[str, Any]:
    tokens = one.tokens
    return {
        "file": one.file,
        "calls": one.calls,
        "window_tokens": one.window_tokens,
        "rejected": one.rejected,
        "input_total_tokens": tokens.input_total_tokens,
        "read_tokens": tokens.read_tokens,
        "write_5m_tokens": tokens.write_5m_tokens,
        "write_1h_tokens": tokens.write_1h_tokens,
        "uncached_tokens": tokens.uncached_tokens,
        "hit_ratio": tokens.hit_ratio,
        "reuse_ratio": tokens.reuse_ratio,
        **_cost(one.costs[0]),
        "max_breakpoints": one.max_breakpoints,
        "planned_breaks": one.planned_breaks,
        "unplanned_breaks": one.unplanned_breaks,
        "exact_calls": one.exact_calls,
        "derived_calls": one.derived_calls,
        "folds": one.folds,
        "wall_seconds": one.wall_seconds,
        "prices": [{"price": cost.price, **_cost(cost)} for cost in one.costs],
        "synthesised": one.synthesised,
    }


def _cost(cost: "Cost") -> dict[str, float]:
    return {
        "cost_usd": cost.cost_usd,
        "limit_usd": cost.limit_usd,
        "online_limit_usd": cost.online_limit_usd,
        "cost_over_limit": cost.cost_over_limit,
        "cost_over_online_limit": cost.cost_over_online_limit,
    }


def _print_table(
    replayed: "Sequence[Replayed]", total: "Replayed", options: "ReplayOptions"
) -> None:
    from barograph.cli import _output as out

    columns = ("calls", "refused", "hit", "reuse", "cost", "/limit", "/online", "breaks", "rebuilt")
    table = out.new_table(("recording", "left"), *((name, "right") for name in columns))
    rows = [*replayed, total] if len(replayed) > 1 else list(replayed)
    for one in rows:
        for cost in one.costs:
            label = one.file if len(one.costs) == 1 else f"{one.file} ({cost.price})"
            cells = (
                label,
                str(one.calls),
                str(one.rejected),
                percent(one.tokens.hit_ratio),
                percent(one.tokens.reuse_ratio),
                f"${cost.cost_usd:.4f}",
                f"{cost.cost_over_limit:.4f}",
                f"{cost.cost_over_online_limit:.4f}",
                f"{one.planned_breaks}+{one.unplanned_breaks}",
                f"{one.exact_calls}/{one.derived_calls}",
            )
            style = "bold" if one is total else ""
            table.add_row(*(out.cell(text, style) for text in cells))
    out.open_console().print(table)
    click.echo(
        "\nbreaks: planned+unplanned. rebuilt: calls read back exact/derived from the log in a "
        "fresh process.\nMade up where the recording has none: tool definitions and a system "
        f"prompt of filler text; every call names {options.model}.",
        err=True,
    )
