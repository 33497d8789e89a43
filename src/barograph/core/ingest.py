"""Recognise what a caller hands us, and put it into an order that a provider accepts.

Callers pass their whole history at each call. What we already know is recognised by content and
position; the rest becomes *units*: one speaker, one kind. Each unit either enters the surface or is
left out with a reason, and a tool call that nobody answered is closed with a repair, so that in
every request each call has its result right after it (invariant 5).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import digest, one_spelling
from barograph.core.model import Codec
from barograph.core.parts import (
    Part,
    Parts,
    Role,
    Text,
    ToolCall,
    ToolResult,
    calls_in,
    encode_parts,
)
from barograph.core.texts import NO_RESULT


class Incoming(Struct, frozen=True):
    """A message as the adapter hands it over."""

    role: Role
    parts: Parts
    native_id: str | None = None


class Unit(Struct, frozen=True):
    """A message or a part of one, ready to be recognised.

    Attributes:
        key: digest of who speaks and what is said; equal keys mean the same message.
        parts: what may be sent of it.
    """

    key: bytes
    role: Role
    parts: Parts
    native_id: str | None


Verdict = Literal["enter", "repair", "no_content", "orphan_result", "second_result"]


class Ruling(Struct, frozen=True):
    """What becomes of a unit, or a repair that must come before the next."""

    verdict: Verdict
    role: Role
    parts: Parts
    native_id: str | None = None
    key: bytes = b""


def units_of(codec: Codec, messages: Sequence[Incoming]) -> list[Unit]:
    """Take messages apart into units, tool results before other user content of their group."""
    units: list[Unit] = []
    group: list[Unit] = []
    for message in messages:
        parts = codec.sendable(message.parts)
        if message.role == "assistant":
            units.extend(_results_first(group))
            group = []
            units.append(_unit("assistant", parts, message.native_id))
        else:
            group.extend(_user_units(parts, message))
    units.extend(_results_first(group))
    return units


def matching(known: Iterable[bytes], units: Sequence[Unit]) -> int:
    """How many leading units are the known ones, in order."""
    count = 0
    for key, unit in zip(known, units, strict=False):
        if key != unit.key:
            break
        count += 1
    return count


def rule(
    units: Sequence[Unit], open_calls: Sequence[str], closed_calls: Sequence[str] = ()
) -> Iterator[Ruling]:
    """Decide each unit in turn, given the last calls of the surface: still open, or answered."""
    pending = list(open_calls)
    answered = set(closed_calls)
    for unit in units:
        if unit.role == "tool":
            yield _rule_result(unit, pending, answered)
            continue
        if not unit.parts:
            yield _ruling("no_content", unit)
            continue
        yield from _repairs(pending)
        pending, answered = [], set()
        yield _ruling("enter", unit)
        if unit.role == "assistant":
            pending = list(dict.fromkeys(calls_in(unit.parts)))
    yield from _repairs(pending)


def unit_key(role: Role, parts: Parts) -> bytes:
    """Digest by which a message is recognised, blind to how its arguments are spelled."""
    if role == "tool":  # results have no arguments
        return digest(b"tool", encode_parts(parts))
    from_text = [_spelled_alike(part) for part in parts]
    if role == "assistant" and from_text and isinstance(from_text[-1], Text):
        from_text[-1] = Text(from_text[-1].text.rstrip())
    return digest(role.encode(), encode_parts(from_text))


def _rule_result(unit: Unit, pending: list[str], answered: set[str]) -> Ruling:
    (result,) = unit.parts
    call = result.call_id if isinstance(result, ToolResult) else ""
    if call in pending:
        pending.remove(call)
        answered.add(call)
        return _ruling("enter", unit)
    return _ruling("second_result" if call in answered else "orphan_result", unit)


def _repairs(pending: Iterable[str]) -> Iterator[Ruling]:
    for call in pending:
        yield Ruling("repair", "tool", (ToolResult(call, (Text(NO_RESULT),), is_error=True),))


def _ruling(verdict: Verdict, unit: Unit) -> Ruling:
    return Ruling(verdict, unit.role, unit.parts, unit.native_id, unit.key)


def _user_units(parts: Parts, message: Incoming) -> Iterator[Unit]:
    speech = tuple(part for part in parts if not isinstance(part, ToolResult))
    for part in parts:
        if isinstance(part, ToolResult):
            yield _unit("tool", (part,), message.native_id)
    if speech or (message.role == "user" and not parts):
        yield _unit("user", speech, message.native_id)


def _results_first(group: Sequence[Unit]) -> list[Unit]:
    return [u for u in group if u.role == "tool"] + [u for u in group if u.role != "tool"]


def _unit(role: Role, parts: Parts, native_id: str | None) -> Unit:
    return Unit(unit_key(role, parts), role, parts, native_id)


def _spelled_alike(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    return replace(part, arguments=one_spelling(part.arguments))
