"""Scenarios: a simulator described in a file, for tests in any language.

```toml
[sessions.default]
replies = [
  { text = "I look.", tool_calls = [{ name = "look", input = { at = "door" } }] },
  { thinking = "It is open.", text = "The door is open." },
]

[[faults]]
kind = "overloaded"
index = 1

[switches]
first_token_seconds = 2.0
```

A JSON file has the same keys. An unknown key is an error that names the file, the key and the
allowed ones.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.errors import SettingsError, UsageError
from barograph.core.model import ModelFacts
from barograph.providers.anthropic.models import facts_of
from barograph.simulator.faults import Fault, fault_from
from barograph.simulator.script import Reply, Script
from barograph.simulator.switches import Switches
from barograph.simulator.tokens import TokenRule

_Kind = TypeVar("_Kind", bound=Struct)


class Scenario(Struct, frozen=True, kw_only=True):
    """What a simulator is to do.

    Attributes:
        sessions: the script of each session.
        faults: faults to come.
        switches: undocumented behaviour.
        rule: how tokens are counted.
    """

    sessions: dict[str, Script]
    faults: tuple[Fault, ...] = ()
    switches: Switches = Switches()
    rule: TokenRule = TokenRule()


class _Call(Struct, kw_only=True):
    name: str
    input: dict[str, Any] = {}
    id: str | None = None


class _Reply(Struct, kw_only=True):
    thinking: str | None = None
    text: str | None = None
    tool_calls: list[dict[str, Any]] = []
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    output_tokens: int | None = None


class _Session(Struct, kw_only=True):
    replies: list[dict[str, Any]]
    when_over: Literal["stop", "repeat"] = "stop"


class _File(Struct, kw_only=True):
    sessions: dict[str, dict[str, Any]] = {}
    faults: list[dict[str, Any]] = []
    switches: dict[str, Any] = {}
    tokens: dict[str, Any] = {}


_FACTS: Final = tuple(field.name for field in msgspec.structs.fields(ModelFacts))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Args:
        path: a TOML or JSON file.

    Raises:
        SettingsError: the file cannot be read, or a key or a value in it is wrong.
    """
    top = _read(_File, _load(path), path, "")
    sessions = {
        name: _script(table, path, f"sessions.{name}") for name, table in top.sessions.items()
    }
    return Scenario(
        sessions=sessions,
        faults=tuple(_fault(table, path, f"faults.{at}") for at, table in enumerate(top.faults)),
        switches=_read(Switches, top.switches, path, "switches"),
        rule=_read(TokenRule, top.tokens, path, "tokens"),
    )


def load_model_facts(path: Path) -> Callable[[str], ModelFacts]:
    """Read facts of models that differ from the table: `[claude-opus-4-8]`, `window_tokens = 9000`.

    Args:
        path: a TOML or JSON file: a table for each model id.

    Returns:
        The facts of a model id, what the file does not say taken from the table.

    Raises:
        SettingsError: the file cannot be read, or a key or a value in it is wrong.
    """
    changed: dict[str, ModelFacts] = {}
    for model, table in _load(path).items():
        if not isinstance(table, dict):
            raise _wrong(path, model, "is no table of facts", _FACTS)
        known = msgspec.to_builtins(facts_of(model))
        _check_keys(table, _FACTS, path, model)
        changed[model] = _read(ModelFacts, known | table, path, model)

    def facts(model: str) -> ModelFacts:
        return changed.get(model) or facts_of(model)

    return facts


def _load(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
        loaded = (
            msgspec.json.decode(data)
            if path.suffix == ".json"
            else tomllib.loads(data.decode("utf-8"))
        )
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}.", next_step="Check the path.", path=path
        ) from error
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        form = "JSON" if path.suffix == ".json" else "TOML"
        raise SettingsError(
            f"{path} is not valid {form}: {error}.", next_step="Mend the file.", path=path
        ) from error
    if not isinstance(loaded, dict):
        raise SettingsError(f"{path} holds no object.", next_step="Mend the file.", path=path)
    return loaded


def _read(kind: type[_Kind], table: Mapping[str, Any], path: Path, where: str) -> _Kind:
    """A table as a struct; what is wrong with it is said with its place in the file."""
    allowed = tuple(field.name for field in msgspec.structs.fields(kind))
    _check_keys(table, allowed, path, where)
    try:
        return msgspec.convert(dict(table), kind)
    except (msgspec.ValidationError, UsageError) as error:
        raise _wrong(path, where, f"cannot be read: {error}", allowed) from error


def _check_keys(table: object, allowed: Sequence[str], path: Path, where: str) -> None:
    if not isinstance(table, Mapping):
        raise _wrong(path, where, "is no table", allowed)
    for key in table:
        if key not in allowed:
            raise _wrong(path, where, f"has no key '{key}'", allowed)


def _wrong(path: Path, where: str, what: str, allowed: Sequence[str]) -> SettingsError:
    place = f"{path}: {where}" if where else f"{path}"
    return SettingsError(
        f"{place} {what}.", next_step=f"Allowed: {', '.join(allowed)}.", path=path, key=where
    )


def _fault(table: Mapping[str, Any], path: Path, where: str) -> Fault:
    try:
        return fault_from(table)
    except UsageError as error:
        raise SettingsError(
            f"{path}: {where}: {error.what}", next_step=error.next_step, path=path, key=where
        ) from error


def _script(table: Mapping[str, Any], path: Path, where: str) -> Script:
    session = _read(_Session, table, path, where)
    replies = [
        _reply(_read(_Reply, reply, path, f"{where}.replies.{at}"), path, f"{where}.replies.{at}")
        for at, reply in enumerate(session.replies)
    ]
    if session.when_over == "stop" or not replies:
        return replies
    return lambda _body, index: replies[index % len(replies)]


def _reply(reply: _Reply, path: Path, where: str) -> Reply:
    if reply.content is not None:
        given = [name for name in ("thinking", "text", "tool_calls") if getattr(reply, name)]
        if given:
            raise _wrong(path, where, f"has content, so it takes no {given[0]}", ("content",))
    content = list(reply.content or ())
    if reply.thinking is not None:
        content.append({"type": "thinking", "thinking": reply.thinking})
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    for at, table in enumerate(reply.tool_calls):
        call = _read(_Call, table, path, f"{where}.tool_calls.{at}")
        call_id = call.id or "toolu_" + "_".join((*where.split(".")[1::2], str(at)))
        content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": call.input})
    made = Reply(content=content)
    return replace(made, stop_reason=reply.stop_reason, output_tokens=reply.output_tokens)
