"""`barograph context`: what fills the window."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.context import Composition, KindShare, LargePiece, Threshold
    from barograph.cli._grid import Column

_NAMES: Final = 8
_NAME_CHARS: Final = 40
_BAR_CHARS: Final = 30
_KINDS: Final = {
    "tools": "tools",
    "system": "system",
    "user": "user speech",
    "assistant": "assistant text",
    "thinking": "thinking",
    "arguments": "tool-call arguments",
    "results": "tool results",
    "stubs": "stubs",
    "summaries": "summaries",
    "images": "images",
    "documents": "documents",
    "other": "other",
}
_THRESHOLDS: Final = {
    "prune": "pruning",
    "compact": "compaction",
    "full": "no room left",
    "cliff": "price cliff",
}


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph context latest", "what fills the window of the last call"),
        ("barograph context latest --call 54", "of one call"),
        ("barograph context latest --path main/research#2", "of the last call of a subagent"),
        ("barograph context latest --json | jq '.kinds[]'", "for a program"),
    ),
)
@click.argument("session")
@click.option(
    "--call", type=click.IntRange(min=1), help="Number of the call; the last that left by default."
)
@click.option("--path", "agent_path", metavar="AGENT", help="The last call of this agent path.")
@reads_store
def command(
    session: str,
    call: int | None,
    agent_path: str | None,
    store_path: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print what the request of a call of SESSION is made of, and how full the window is.

    The whole is what the provider counted; what one kind, one tool or one block has of it is an
    estimate, marked `~`. Handles such as #12 are what `barograph unfold` takes.
    """
    from barograph.audit.context import compose, last_sent
    from barograph.audit.reading import read_session
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    if call is not None and agent_path is not None:
        raise click.UsageError("--call and --path exclude each other.")
    with open_to_read(store_path) as store:
        logged = read_session(store, resolve_session(store, session))
    chosen = last_sent(logged, agent_path) if call is None else logged.call(call)
    found = compose(logged, chosen)
    if as_json:
        fields = {name: getattr(found, name) for name in found.__struct_fields__}
        out.print_json("barograph.context/1", fields)
    else:
        _print(out.open_console(), found, logged.calls[-1].plan.call)


def _print(console: "Console", found: "Composition", calls: int) -> None:
    from barograph.cli import _output as out
    from barograph.cli._grid import print_grid, say_left_out

    _print_head(console, found, calls)
    console.print()
    left_out = print_grid(
        console, _share_columns(is_terminal=console.is_terminal), _lines(found), _style_of
    )
    console.print()
    out.say(console, ("The largest blocks", "bold"))
    left_out += print_grid(console, _piece_columns(), found.largest, lambda _: "")
    say_left_out(left_out)


def _print_head(console: "Console", found: "Composition", calls: int) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import count, percent

    place = f"{found.path} · turn {found.turn}, round {found.round}"
    title = f"Context of call {found.call} of {calls}"
    out.say(console, (title, "bold"), f" · session {found.session} · {place}")
    out.label(console, "model", found.model or "?")
    is_reported = found.counted == "reported"
    how = "as the provider counted" if is_reported else "estimated: no usage was reported"
    about = "" if is_reported else "~"
    out.label(console, "input", f"{about}{count(found.tokens)} tokens, {how}")
    share = percent(found.fixed_tokens / (found.tokens or 1))
    fixed = f"~{count(found.fixed_tokens)} tokens ({share}): tools and system, never folded"
    out.label(console, "fixed", fixed)
    is_assumed = found.priced_as == "unknown"
    window = f"{'~' if is_assumed else ''}{count(found.window_tokens)}"
    room = f"{window} less {count(found.reserve_tokens)} for the answer"
    note = "; assumed, for the model is not known" if is_assumed else ""
    out.label(console, "window", f"{room} = {count(found.usable_tokens)} usable tokens{note}")
    out.label(console, "pressure", f"{about}{found.pressure * 100:.1f} % of usable")
    for threshold in found.thresholds:
        style = "yellow" if threshold.left_tokens < 0 else ""
        out.label(console, "", _threshold(threshold, found), style)
    if found.mismatches:
        places = ", ".join(found.mismatches)
        out.label(console, "differs", f"from what the log derives, in: {places}", "yellow")


def _threshold(threshold: "Threshold", found: "Composition") -> str:
    from barograph.cli._text import count

    at = f"{_THRESHOLDS[threshold.name]} at {count(threshold.tokens)} tokens"
    if threshold.name in {"prune", "compact"}:
        at += f" ({found.policy})"
    left = threshold.left_tokens
    return f"{at}: passed by {count(-left)}" if left < 0 else f"{at}: {count(left)} to go"


class _Line(NamedTuple):
    """A row of the table: a kind, or a name within it."""

    name: str
    pieces: int
    tokens: int
    ratio: float
    is_kind: bool


def _lines(found: "Composition") -> list[_Line]:
    whole = found.tokens or 1
    lines = []
    for kind in found.kinds:
        lines.append(_Line(_KINDS[kind.kind], kind.pieces, kind.tokens, kind.ratio, is_kind=True))
        lines += _names(kind, whole)
    return lines


def _names(kind: "KindShare", whole: int) -> Iterator[_Line]:
    from barograph.cli._text import clip, plain

    shown, rest = kind.names[:_NAMES], kind.names[_NAMES:]
    for one in shown:
        name = f"  {clip(plain(one.name), _NAME_CHARS) or '?'}"
        yield _Line(name, one.pieces, one.tokens, one.tokens / whole, is_kind=False)
    if rest:
        tokens = sum(one.tokens for one in rest)
        pieces = sum(one.pieces for one in rest)
        yield _Line(f"  … {len(rest)} more", pieces, tokens, tokens / whole, is_kind=False)


def _share_columns(*, is_terminal: bool) -> "Sequence[Column[_Line]]":
    from barograph.cli._grid import Column
    from barograph.cli._text import count, percent

    columns: list[Column[_Line]] = [
        Column("part", lambda line: line.name, is_left=True),
        Column("blocks", lambda line: count(line.pieces), 1),
        Column("tokens", lambda line: f"~{count(line.tokens)}"),
        Column("share", lambda line: f"{percent(line.ratio)}"),
    ]
    if is_terminal:
        columns.append(Column("", lambda line: _bar(line) if line.is_kind else "", is_left=True))
    return columns


def _bar(line: _Line) -> str:
    return "█" * max(1, round(line.ratio * _BAR_CHARS))


def _style_of(line: _Line) -> str:
    return "cyan" if line.is_kind else ""


def _piece_columns() -> "Sequence[Column[LargePiece]]":
    from barograph.cli._grid import Column
    from barograph.cli._text import clip, count, percent, plain

    def place(piece: "LargePiece") -> str:
        return "" if piece.message is None else f"message {piece.message}"

    def what(piece: "LargePiece") -> str:
        kind = _KINDS[piece.kind]
        return f"{kind}: {clip(plain(piece.name), _NAME_CHARS)}" if piece.name else kind

    return [
        Column("handle", lambda piece: piece.handle or ""),
        Column("where", place, 1, is_left=True),
        Column("tokens", lambda piece: f"~{count(piece.tokens)}"),
        Column("share", lambda piece: percent(piece.ratio), 2),
        Column("what", what, 3, is_left=True),
        Column(
            "begins", lambda piece: plain(clip(" ".join(piece.begins.split()), 60)), is_left=True
        ),
    ]
