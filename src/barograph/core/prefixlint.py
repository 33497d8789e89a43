"""What changes in front of the messages from call to call, and so costs the whole cache.

A prefix is tools, then system, then messages: one byte that differs in the first two is read from
no cache, and all behind it is paid again. Readings of the same agent are compared piece by piece; a
difference is *proven*. What only looks as if it would change is *suspect*.

Out of scope: the model and the parameters, and the messages, which may grow.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import dump_json, parse_json
from barograph.core.sent import array_items
from barograph.core.tooling import tool_names
from barograph.core.volatile import Kind, find_changes, find_suspects

Grade: TypeAlias = Literal["proven", "suspect"]
Between: TypeAlias = Literal["calls", "processes"]

_FRAME: Final = "give it with the turn: `Barograph(frame=[Source(...)])`."
_FIXES: Final[dict[tuple[str, Kind], str]] = {
    ("system", "moment"): f"Leave the clock out of the system prompt; {_FRAME}",
    ("system", "id"): f"Leave ids out of the system prompt; {_FRAME}",
    ("system", "address"): "Write a name instead of the repr of an object.",
    ("system", "order"): "Sort it before it becomes text: a set has another order in each process.",
    ("system", "text"): f"Keep the system prompt the same on every call; what changes, {_FRAME}",
    ("tools", "moment"): "Leave the clock out of the tools; a result may tell the time.",
    ("tools", "id"): "Leave ids out of the tools; let the model pass them as arguments.",
    ("tools", "address"): "Write a name instead of the repr of an object, as in a default.",
    ("tools", "order"): "Sort what the schema is made of: a set has another order in each process.",
    ("tools", "tools"): (
        "Offer the same tools on every call; `Policy(base_tools=...)` names those that are needed "
        "from the start, and the others are found later."
    ),
    ("tools", "text"): f"Keep name, description and schema of a tool; what changes, {_FRAME}",
}
_UNREAD: Final = "that cannot be read"
_IN_ORDER: Final = "Pass the tools in a fixed order, such as by name."


class Reading(Struct, frozen=True, kw_only=True):
    """What stood before the messages of one call, without cache markers.

    Attributes:
        system: texts of the system blocks.
        tools: JSON array of the tool definitions; empty where there are none.
        at: when it was read, seconds since the epoch.
        days: ways to write the date of that moment.
        process: number of the process that made it.
        is_shifted: whether that process was told another time zone than the first. Then what it
            says of a zone differs rightly, and only moments, ids and orders count.
    """

    system: tuple[str, ...] = ()
    tools: str = ""
    at: float = 0.0
    days: tuple[str, ...] = ()
    process: int = 1
    is_shifted: bool = False


class Finding(Struct, frozen=True, kw_only=True):
    """A piece of the prefix that changes.

    Attributes:
        where: `tools` or `system`.
        label: which piece, in words.
        kind: `moment`, `id`, `address`, `order`, `tools` (one more or less) or `text`.
        grade: `proven` by two readings that differ, or `suspect` by what one says.
        between: what it differs between: `calls` of one process, or only `processes`; None for a
            suspect.
        before: excerpt of the earlier reading.
        after: the same of the later one; empty for a suspect.
        fix: what to do, in a sentence.
    """

    where: Literal["tools", "system"]
    label: str
    kind: Kind
    grade: Grade
    between: Between | None = None
    before: str
    after: str = ""
    fix: str


def lint(readings: Sequence[Reading]) -> tuple[Finding, ...]:
    """All that is known of readings of one agent: what differs, then what is suspect.

    The first is compared with each of the others. What could have changed and did not is no
    suspect any more.
    """
    if not readings:
        return ()
    first, *others = readings
    found: dict[tuple[str, Kind], Finding] = {}
    for other in sorted(others, key=lambda one: one.process != first.process):
        between: Between = "calls" if other.process == first.process else "processes"
        for finding in compare(first, other, between=between):
            if not (other.is_shifted and finding.kind in {"text", "tools"}):
                found.setdefault((finding.label, finding.kind), finding)
    for finding in suspect(first, is_compared=bool(others)):
        found.setdefault((finding.label, finding.kind), finding)
    return tuple(found.values())


def compare(before: Reading, after: Reading, *, between: Between = "calls") -> tuple[Finding, ...]:
    """What differs between two readings, each kind once for each piece, in wire order."""
    found: dict[tuple[str, Kind], Finding] = {}
    for finding in (*_in_tools(before.tools, after.tools), *_in_system(before, after)):
        found.setdefault((finding.label, finding.kind), finding)
    return tuple(replace(one, between=between) for one in found.values())


def suspect(reading: Reading, *, is_compared: bool = False) -> tuple[Finding, ...]:
    """What in one reading looks as if it would change, each kind once for each piece.

    Args:
        reading: what to look at.
        is_compared: whether others were compared with it: then only that counts which they cannot
            clear, such as the date of the day.
    """
    found: dict[tuple[str, Kind], Finding] = {}
    for where, label, text in _texts_in(reading):
        for one in find_suspects(text, at=reading.at, days=reading.days):
            if not (is_compared and one.can_be_cleared):
                finding = _finding(where, label, one.kind, one.excerpt, grade="suspect")
                found.setdefault((label, one.kind), finding)
    return tuple(found.values())


def _in_system(before: Reading, after: Reading) -> Iterator[Finding]:
    blocks = max(len(before.system), len(after.system))
    pairs = zip_longest(before.system, after.system, fillvalue="")
    for number, (one, other) in enumerate(pairs, start=1):
        yield from _in_text("system", _block(number, blocks), one, other)


def _in_tools(before: str, after: str) -> Iterator[Finding]:
    left, right = _tools(before), _tools(after)
    for name in dict.fromkeys((*left, *right)):
        if name not in left or name not in right:
            label = f"tool {name}"
            yield _finding("tools", label, "tools", left.get(name, ""), right.get(name, ""))
        elif left[name] != right[name]:
            yield from _in_tool(name, left[name], right[name])
    orders = [
        [name for name in one if name in other] for one, other in ((left, right), (right, left))
    ]
    if orders[0] != orders[1]:
        names = (", ".join(one) for one in (left, right))
        yield _finding("tools", "order of the tools", "order", *names, fix=_IN_ORDER)


def _in_tool(name: str, before: str, after: str) -> Iterator[Finding]:
    """Differences between two definitions of a tool: by their texts, or in the order of keys."""
    read = [parse_json(one) for one in (before, after)]
    if None in read:
        yield from _in_text("tools", f"tool {name}", before, after)
        return
    left, right = (dict(_leaves(one, "")) for one in read)
    if left == right:
        yield from _in_text("tools", f"tool {name}", before, after, kind="order")
        return
    if left.keys() != right.keys():
        yield from _in_text("tools", f"tool {name}", before, after)
        return
    for path, text in left.items():
        yield from _in_text("tools", f"tool {name}, {path}", text, right[path])


def _in_text(
    where: Literal["tools", "system"],
    label: str,
    before: str,
    after: str,
    *,
    kind: Kind | None = None,
) -> Iterator[Finding]:
    if before != after:
        for change in find_changes(before, after):
            yield _finding(where, label, kind or change.kind, change.before, change.after)


def _finding(
    where: Literal["tools", "system"],
    label: str,
    kind: Kind,
    before: str,
    after: str = "",
    *,
    grade: Grade = "proven",
    fix: str = "",
) -> Finding:
    return Finding(
        where=where,
        label=label,
        kind=kind,
        grade=grade,
        before=before,
        after=after,
        fix=fix or _FIXES[where, kind],
    )


def _texts_in(reading: Reading) -> Iterator[tuple[Literal["tools", "system"], str, str]]:
    """Every text of a reading, with its piece."""
    for name, definition in _tools(reading.tools).items():
        for path, text in _leaves(parse_json(definition), ""):
            yield "tools", f"tool {name}, {path}", text
    for number, text in enumerate(reading.system, start=1):
        yield "system", _block(number, len(reading.system)), text


def _tools(tools: str) -> dict[str, str]:
    """Definitions as spelled, by name; a name that comes again has its number."""
    found: dict[str, str] = {}
    for definition in array_items(tools):
        # by itself: a schema that is too deep to be read says nothing of the other tools
        name = next(iter(tool_names(f"[{definition}]")), _UNREAD)
        number = sum(known.partition("#")[0] == name for known in found)
        found[f"{name}#{number + 1}" if number else name] = definition
    return found


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Texts of a JSON value by where they stand; a list of plain values is one text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}.{number}")
    elif isinstance(value, list):
        yield path, "\n".join(map(_plain, value))
    else:
        yield path, _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()


def _block(number: int, blocks: int) -> str:
    return f"system prompt, block {number}" if blocks > 1 else "system prompt"
