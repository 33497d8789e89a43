"""`barograph show`: exactly what the model saw."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand, reads_store

if TYPE_CHECKING:
    from rich.console import Console

    from barograph.audit.reading import LoggedCall, LoggedSession
    from barograph.audit.segments import SegmentView
    from barograph.core.readback import Request
    from barograph.store import Store


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph show latest", "the last call of the last session"),
        ("barograph show latest --call 54 --full", "one call, no text shortened"),
        ("barograph show latest --raw | jq .messages", "the exact bytes that left"),
    ),
)
@click.argument("session")
@click.option("--call", type=click.IntRange(min=1), help="Number of the call; the last by default.")
@click.option("--raw", is_flag=True, help="Write the exact bytes of the request, nothing else.")
@click.option("--full", is_flag=True, help="Do not shorten long texts.")
@reads_store
def command(
    session: str,
    call: int | None,
    store_path: Path | None,
    *,
    raw: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Print what the model saw on a call of SESSION, and how the call went.

    Segments stand in wire order and are numbered as in the request: `message 4` is messages[4].
    A pin such as ② is a cache marker, with its lifetime and the reason it stands there.
    """
    from barograph.audit.reading import read_session
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.store import resolve_session

    if raw and as_json:
        raise click.UsageError("--raw and --json exclude each other.")
    with open_to_read(store_path) as store:
        logged = read_session(store, resolve_session(store, session))
        shown = logged.last if call is None else logged.call(call)
        if raw:
            out.write_bytes([_exact_bytes(store, logged, shown)])
        elif as_json:
            _print_json(store, logged, shown)
        else:
            _print_call(store, logged, shown, chars=None if full else 600)


def _exact_bytes(store: "Store", session: "LoggedSession", call: "LoggedCall") -> bytes:
    from barograph.audit.segments import read_request
    from barograph.core.errors import LogCorrupt

    request = read_request(store, session, call)
    if request.is_exact:
        return request.exact
    raise LogCorrupt(
        f"The bytes of call {call.plan.call} do not have the hash recorded before they left.",
        next_step="Run `barograph verify`; without --raw, `show` prints what the log gives.",
        session=session.session,
        call=call.plan.call,
        seq=request.seq,
    )


def _print_json(store: "Store", session: "LoggedSession", call: "LoggedCall") -> None:
    from barograph.audit.explain import row_of
    from barograph.audit.segments import read_request, view_request
    from barograph.cli import _output as out
    from barograph.core.canonical import parse_json

    fields: dict[str, object] = {
        "session": session.session,
        "call": row_of(session.codec, call),
        "request": None,
    }
    if call.record is not None:
        request, header = read_request(store, session, call), call.sent and call.sent.header
        fields["request"] = {
            "seq": request.seq,
            "attempt": request.record.attempt,
            "hash": request.record.body_hash,
            "bytes": request.record.body_bytes,
            "is_exact": request.is_exact,
            "observed": request.record.observed,
            "mismatches": request.record.mismatches,
            "parameters": parse_json(header.parameters) if header else None,
            "segments": view_request(session, request),
        }
    out.print_json("barograph.show/1", fields)


def _print_call(
    store: "Store", session: "LoggedSession", call: "LoggedCall", *, chars: int | None
) -> None:
    from barograph.audit.segments import read_request, view_request
    from barograph.cli import _output as out
    from barograph.cli._text import plain

    console = out.open_console()
    request = None if call.record is None else read_request(store, session, call)
    _print_head(console, session, call, request)
    if request is None:
        left = [number for _, number in session.showings(call.plan.path)]
        if left:
            hint = f"The last request of {call.plan.path} that left is call {left[-1]}."
            click.echo(plain(hint), err=True)
        return
    pins = iter("①②③④⑤⑥⑦⑧⑨")
    for view in view_request(session, request):
        console.print()
        _print_segment(console, view, {id(b): next(pins, "●") for b in view.blocks if b.ttl}, chars)


def _print_head(
    console: "Console", session: "LoggedSession", call: "LoggedCall", request: "Request | None"
) -> None:
    from barograph.audit.explain import row_of
    from barograph.cli import _output as out
    from barograph.cli._text import count, moment, some
    from barograph.cli._words import (
        headline,
        outcome_in_words,
        recovery_in_words,
        style_of,
        tokens_in_words,
    )

    row, plan = row_of(session.codec, call), call.plan
    out.say(
        console,
        (f"Call {plan.call} of {session.calls[-1].plan.call}", "bold"),
        f" · session {session.session} · {plan.path} · turn {plan.turn}, round {plan.round}",
    )
    out.label(console, "model", row.model or "?")
    out.label(console, "began", moment(plan.at))
    if request is not None:
        record = request.record
        attempts = f"; attempt {record.attempt}" if record.attempt > 1 else ""
        how = "as seen on the wire" if record.observed else "as built, not seen on the wire"
        out.label(console, "body", f"{some(record.body_bytes, 'byte')}, {how}{attempts}")
        proof = "rebuilt and verified" if request.is_exact else "NOT what the log gives back"
        style = "" if request.is_exact else "bold red"
        out.label(console, "hash", f"{record.body_hash} ({proof})", style)
        if record.mismatches:
            places = ", ".join(record.mismatches)
            out.label(console, "differs", f"from what the log derives, in: {places}", "yellow")
        out.label(console, "settings", _parameters(call))
    out.label(console, "call", outcome_in_words(row), "" if row.outcome == "answered" else "red")
    if row.recovery is not None:
        style = "" if row.recovery == "succeeded" else "yellow"
        out.label(console, "recovery", recovery_in_words(row), style)
    if row.outcome == "answered":
        out.label(console, "tokens", tokens_in_words(row))
        out.label(console, "cache", headline(row), style_of(row.cause))
    if plan.foreign_breakpoints:
        out.label(console, "markers", f"{count(plan.foreign_breakpoints)} of the caller taken off")


def _parameters(call: "LoggedCall") -> str:
    from barograph.cli._text import clip
    from barograph.core.sent import object_items

    header = call.sent.header if call.sent else None
    items = object_items(header.parameters) if header else {}
    shown = (f"{key} {clip(value, 60)}" for key, value in items.items() if key != "model")
    return ", ".join(shown) or "none"


def _print_segment(
    console: "Console", view: "SegmentView", pins: dict[int, str], chars: int | None
) -> None:
    from barograph.cli import _output as out
    from barograph.cli._text import some

    facts = [view.role] if view.role else []
    if len(view.blocks) > 1:
        facts.append(some(len(view.blocks), "block" if view.level != "tools" else "tool"))
    facts.append(some(view.chars, "character"))
    facts.extend(_provenance(view))
    out.say(console, ("■ ", "bold"), (view.name, "bold"), f" · {' · '.join(facts)}")
    for block in view.blocks:
        pin = pins.get(id(block))
        title = f"{block.kind} {block.label}".strip()
        marker = f"{pin} cache marker, {block.ttl}" + (f", {block.slot}" if block.slot else "")
        if pin:
            out.say(console, (title, "cyan"), "  ", (marker, "magenta"), indent=2)
        elif title != "text":
            out.say(console, (title, "cyan"), indent=2)
        text = block.text if chars is None else block.text[:chars]
        out.quote(console, text)
        if len(text) < len(block.text):
            rest = f"… {some(len(block.text) - len(text), 'more character')}; --full shows all"
            out.say(console, (rest, "dim"), indent=2)


def _provenance(view: "SegmentView") -> list[str]:
    """Where a segment comes from, in words."""
    source = view.source
    if source is None:
        return ["not as the log derives it"] if view.level != "body" else []
    facts = []
    if source.event == "header_set":
        facts.append(f"event {source.seq}")
    elif source.event == "replaced":
        facts.append(f"in place of what event {source.seq} hides ({source.origin})")
    elif source.origin == "repair":
        facts.append(f"event {source.seq}, a repair: no result had come")
    else:
        held = "" if source.same_as is None else f", content of event {source.same_as}"
        facts.append(f"from the {source.origin}, event {source.seq}{held}")
    if view.since_call is not None:
        facts.append(f"since call {view.since_call}")
    return facts
