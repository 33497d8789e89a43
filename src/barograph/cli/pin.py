"""`barograph pin`: keep a message, whatever is folded around it."""

from pathlib import Path

import click

from barograph.cli._help import BarographCommand, reads_store


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph pin latest 12", "keep what event 12 brought"),
        ("barograph pin latest 12 --undo", "let it go"),
        ("barograph pin latest", "what is pinned"),
    ),
)
@click.argument("session")
@click.argument("handle", required=False)
@click.option("--undo", is_flag=True, help="Take the pin away.")
@reads_store
def command(
    session: str, handle: str | None, store_path: Path | None, *, undo: bool, as_json: bool
) -> None:
    """Keep a message of SESSION: no stub takes its place, and every summary quotes it.

    HANDLE is the number of the event that brought the message, as `show` names it; without one,
    print what is pinned. All pinned text of an agent path together has a limit, and what would
    exceed it is refused.
    """
    import time

    from msgspec.structs import replace

    from barograph.audit.reading import codec_of
    from barograph.cli import _output as out
    from barograph.cli._store import open_to_read
    from barograph.cli._text import clip, count, plain
    from barograph.core.engine import Engine
    from barograph.core.pins import MOST_CHARS, list_pins
    from barograph.settings import current_settings
    from barograph.store import resolve_session
    from barograph.store.pinning import pin_message
    from barograph.store.session import Session

    if undo and handle is None:
        raise click.UsageError("--undo needs the handle of a pinned message.")
    with open_to_read(store_path) as store:
        name = resolve_session(store, session)
        policy = replace(current_settings().policy, on_store_error="stop")
        engine, at = Engine(codec_of(name, store.read(name))[0], policy), time.time()
        opened = Session.open(store, name, engine, at=at, made_by="")
        if handle is None:
            pins = list_pins(opened.state)
        else:
            pins = pin_message(opened, handle, at=at, holds=not undo)
    if as_json:
        document = {"session": name, "pins": pins, "most_chars": MOST_CHARS}
        out.print_json("barograph.pin/1", document)
        return
    if not pins:
        click.echo(f"Nothing in session {name} is pinned.", err=True)
    for pin in pins:
        said = clip(" ".join(pin.text[:400].split()), 60)
        click.echo(plain(f"{pin.handle} {pin.path}, {count(len(pin.text))} characters: {said}"))
