"""A coder that needs no model: everything it says and does is written down in advance.

It finds and repairs the defects of a sample project and then adds a feature to it, in two turns.
Only its replies are scripted. The tools that carry them out are real, so are the files they change
and the tests they run; that is what makes it a fair load for everything between agent and provider.
"""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from barograph.simulator.script import Reply

_HERE = files("barograph.agent")

# The sample is shipped with this suffix on its modules, so that no tool which looks for Python
# (a type checker, a test runner, an installer that compiles) takes it for a part of Barograph.
_PACKED = ".py.txt"


class Round(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply of the script.

    Attributes:
        say: the text of the reply; may be empty beside calls.
        calls: the arguments of each tool call, with the tool's name under `tool` and, where the
            call is meant to come back as an error, `fails = true`.
    """

    say: str = ""
    calls: tuple[dict[str, Any], ...] = ()


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user asks, and the rounds that answer it.

    Attributes:
        prompt: the user's message.
        rounds: all replies; only the last one makes no calls.
    """

    prompt: str
    rounds: tuple[Round, ...]


class _Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turns: tuple[Turn, ...]


def copy_sample(dest: Path) -> Path:
    """Copy the sample project, defects included, into a folder that may exist already.

    Args:
        dest: the folder that becomes the root of the project.

    Returns:
        The same folder.
    """
    _unpack(_HERE / "sample", dest)
    return dest


@cache
def turns() -> tuple[Turn, ...]:
    """The script itself, one entry for each user turn."""
    text = (_HERE / "script.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Script).turns


def prompts() -> tuple[str, ...]:
    """What the user says, one message for each turn."""
    return tuple(turn.prompt.strip() for turn in turns())


def system_prompt() -> str:
    """The standing instructions of the coder; the same bytes on every call and every day."""
    return (_HERE / "system.md").read_text(encoding="utf-8").strip()


def moves() -> list[Reply]:
    """All replies of both turns, in order, as the provider would send them."""
    rounds = [each for turn in turns() for each in turn.rounds]
    return [_reply(each, number) for number, each in enumerate(rounds, start=1)]


def intended_errors() -> frozenset[str]:
    """Ids of the tool calls whose result is meant to be an error."""
    rounds = [each for turn in turns() for each in turn.rounds]
    return frozenset(
        _call_id(number, position)
        for number, each in enumerate(rounds, start=1)
        for position, call in enumerate(each.calls, start=1)
        if call.get("fails")
    )


def _reply(each: Round, number: int) -> Reply:
    content: list[dict[str, Any]] = []
    if each.say:
        content.append({"type": "text", "text": each.say})
    content.extend(
        {
            "type": "tool_use",
            "id": _call_id(number, position),
            "name": call["tool"],
            "input": {key: call[key] for key in call if key not in {"tool", "fails"}},
        }
        for position, call in enumerate(each.calls, start=1)
    )
    return Reply(content=content, stop_reason="tool_use" if each.calls else "end_turn")


def _call_id(number: int, position: int) -> str:
    return f"toolu_demo_{number:02d}_{position:02d}"


def _unpack(source: Traversable, dest: Path) -> None:
    dest.mkdir(parents=True, exist_ok=True)
    for item in sorted(source.iterdir(), key=lambda each: each.name):
        target = dest / item.name
        if item.is_dir():
            _unpack(item, target)
        else:
            if item.name.endswith(_PACKED):
                target = target.with_suffix("")
            target.write_bytes(item.read_bytes())
