"""`barograph config`: which settings are in effect, and where they come from."""

from typing import TYPE_CHECKING

import click

from barograph.cli._help import BarographCommand

if TYPE_CHECKING:
    from barograph.settings import Settings

_DERIVED = "policy.lifetime"


@click.command(
    cls=BarographCommand,
    examples=(
        ("barograph config show", "every setting in effect, in this folder"),
        ("barograph config show --origin", "and the file and line, or the variable, that set it"),
        ("BAROGRAPH_POLICY__TTL=1h barograph config show", "with one of them set for a while"),
    ),
)
@click.argument("action", type=click.Choice(["show"]))
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, origins included.")
def command(action: str, *, origin: bool, as_json: bool) -> None:
    """Show the settings in effect.

    From weak to strong: defaults; `config.toml` in $BAROGRAPH_HOME or the user's configuration
    folder; `barograph.toml`, or [tool.barograph] in pyproject.toml, the nearest from this folder
    upwards; variables such as BAROGRAPH_POLICY__TTL=1h; what a program gives to Barograph itself.
    """
    del action  # there is one so far
    from barograph.cli import _output as out
    from barograph.settings import current_settings

    settings = current_settings()
    rows = {**_values(settings), _DERIVED: settings.policy.lifetime}
    if as_json:
        out.print_json("barograph.config/1", {"settings": _documents(settings, rows)})
        return
    columns = [("setting", "left"), ("value", "left")]
    table = out.new_table(*columns, *([("origin", "left")] if origin else []))
    for key, value in sorted(rows.items()):
        shown = [key, _shown(value), *([_origin(settings, key)] if origin else [])]
        table.add_row(*map(out.cell, shown))
    out.print_table(out.open_console(), table)


def _values(settings: "Settings") -> dict[str, object]:
    """Every setting by its key, in plain values."""
    import msgspec

    tables = {"policy": settings.policy, "store": settings.store}
    return {
        f"{table}.{name}": str(value) if name == "path" else value
        for table, values in tables.items()
        for name, value in msgspec.structs.asdict(values).items()
    }


def _documents(settings: "Settings", rows: dict[str, object]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for key, value in rows.items():
        source = settings.origins[_source_of(settings, key)]
        place = {"layer": source.layer, "place": source.place or None, "line": source.line}
        found.append({"key": key, "value": value, "origin": place})
    return found


def _source_of(settings: "Settings", key: str) -> str:
    """The key that decides: the lifetime of entries is the profile's unless it is given."""
    if key != _DERIVED:
        return key
    return "policy.profile" if settings.policy.ttl is None else "policy.ttl"


def _origin(settings: "Settings", key: str) -> str:
    decides = _source_of(settings, key)
    origin = str(settings.origins[decides])
    return origin if decides == key else f"{decides} ({origin})"


def _shown(value: object) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "(empty)"
    return str(value)
