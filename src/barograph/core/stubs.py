r"""Stubs: what stays of an old tool result, or of the long arguments of an old tool call.

A stub is head + marker + tail. The marker says how much is missing, holds an index of the facts in
the omitted middle that neither end shows, and names the handle that reads the original.

**Invariants.** A stub is clearly shorter than what it stands for, or there is none. The same text
gives the same stub. A stub is not stubbed again. No text of a tool can end our marker.

**Out of scope.** Which results are old, and when: see the relief ladder.
"""

import re
from typing import Any, Final

from msgspec import Struct

from barograph.core import texts
from barograph.core.canonical import clean_text, dump_json, parse_json
from barograph.core.factindex import build_index, expand_index
from barograph.core.facts import facts_in, rank
from barograph.core.graphemes import cut_after, cut_before

MOST_KEPT_RATIO: Final = 0.7
"""A stub that keeps more than this is not worth the change of the surface."""

_WORD: Final = re.compile(r"\w", re.ASCII)
# our own sentence as a pattern, so that the two cannot drift apart
_MARKER: Final = re.compile(
    re.escape(texts.stubbed(8, 9, "INDEX", "HANDLE"))
    .replace(r"8\ of\ 9\ ", r"(?P<omitted>[\d,]{1,30}) of (?P<total>[\d,]{1,30}) ")
    .replace(
        re.escape("; they hold:\nINDEX\n"),
        rf"(?:; they hold:\n(?P<index>[^{texts.MARK_OPENS}{texts.MARK_CLOSES}]*)\n|\. )",
    )
    .replace("HANDLE", r"(?P<handle>[^\"\n]{1,200})")
)


class StubShape(Struct, frozen=True, kw_only=True):
    """How much of a text its stub keeps.

    Attributes:
        head_chars: kept from the start, at most.
        tail_chars: kept from the end, at most.
        index_chars: room for the index of a short text.
        index_ratio: room for the index of a longer one, as a share of the text.
        index_most_chars: the largest index.
    """

    head_chars: int = 150
    tail_chars: int = 100
    index_chars: int = 150
    index_ratio: float = 0.12
    index_most_chars: int = 6_000

    def room_chars(self, total_chars: int) -> int:
        """Room for the index of a text of this length."""
        wanted = max(self.index_chars, int(total_chars * self.index_ratio))
        return min(wanted, self.index_most_chars)


DEFAULT: Final = StubShape()


def stub_text(text: str, *, handle: str, shape: StubShape = DEFAULT) -> str | None:
    """The stub of a tool result, or None if it would not be clearly shorter.

    Args:
        text: the result as the model saw it.
        handle: what the original is read back by.
        shape: how much to keep.
    """
    text = clean_text(text)
    total = len(text)
    least = len(texts.stubbed(total, total, "", handle))
    if least + shape.head_chars + shape.tail_chars > total * MOST_KEPT_RATIO:
        return None
    if _is_stub(text, handle):
        return None
    start, end = _head_end(text, shape.head_chars), _tail_start(text, total - shape.tail_chars)
    head, tail = text[:start], text[end:]
    facts = (f for f in facts_in(text) if not holds(head, f.text) and not holds(tail, f.text))
    index = build_index(rank(facts), budget_chars=shape.room_chars(total))
    stub = head + texts.stubbed(end - start, total, index, handle) + tail
    return stub if len(stub) <= total * MOST_KEPT_RATIO else None


def _head_end(text: str, at: int) -> int:
    """The end of the last whole line, unless that would give up half of the head."""
    line_end = text.rfind("\n", at // 2, at)
    return cut_before(text, at) if line_end < 0 else line_end


def _tail_start(text: str, at: int) -> int:
    line_start = text.find("\n", at, (at + len(text)) // 2) + 1
    return line_start or cut_after(text, at)


def stub_json(arguments: str, *, handle: str, shape: StubShape = DEFAULT) -> str | None:
    """Arguments of a tool call whose long texts are stubs, or None if it is not clearly shorter.

    Keys, numbers and short texts stay, so that what was called with what remains to be seen.

    Args:
        arguments: the JSON text of the arguments.
        handle: what the original is read back by.
        shape: how much to keep of each long text.
    """
    value = parse_json(arguments)
    stubbed = _stubbed(value, handle, shape)
    if stubbed == value:
        return None
    stub = clean_text(dump_json(stubbed).decode("utf-8", "surrogatepass"))
    return stub if len(stub) <= len(arguments) * MOST_KEPT_RATIO else None


def _stubbed(value: Any, handle: str, shape: StubShape) -> Any:
    match value:
        case str():
            return stub_text(value, handle=handle, shape=shape) or value
        case list():
            return [_stubbed(item, handle, shape) for item in value]
        case dict():
            return {key: _stubbed(item, handle, shape) for key, item in value.items()}
        case _:
            return value


def visible_text(stub: str, *, handle: str) -> str:
    """What a reader of a stub sees, with the paths of its index spelled out."""
    found = _marker(stub, handle)
    if found is None:
        return stub
    return (
        stub[: found.start()]
        + "\n"
        + expand_index(found["index"] or "")
        + "\n"
        + stub[found.end() :]
    )


def holds(text: str, fact: str) -> bool:
    """Whether a text holds a fact as a word of its own, not as a part of a longer one."""
    at = text.find(fact)
    while at >= 0:
        end = at + len(fact)
        joined_before = at > 0 and _WORD.match(text[at - 1]) and _WORD.match(fact)
        joined_after = end < len(text) and _WORD.match(text[end]) and _WORD.match(fact[-1])
        if not joined_before and not joined_after:
            return True
        at = text.find(fact, at + 1)
    return False


def _is_stub(text: str, handle: str) -> bool:
    """Whether it is our stub: the handle is ours to give, so no tool can have written it."""
    return _marker(text, handle) is not None


def _marker(text: str, handle: str) -> re.Match[str] | None:
    for found in _MARKER.finditer(text):
        omitted, total = (int(found[name].replace(",", "")) for name in ("omitted", "total"))
        around = found.start() + len(text) - found.end()
        if found["handle"] == handle and around + omitted == total:
            return found
    return None
