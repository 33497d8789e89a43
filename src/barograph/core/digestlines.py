"""The lines of a digest, and those that tell what tool calls did.

What a tool or a model wrote is hostile: it stands on one line, behind a handle, and nothing in it
can be printed that ends a line, closes a digest or reads as one of its headings.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from barograph.core.factindex import build_index, printable
from barograph.core.facts import Fact, facts_in, rank
from barograph.core.ledger import settle
from barograph.core.notes import Note, has_failed
from barograph.core.texts import DIGEST_FILES, DIGEST_HEADINGS, DIGEST_OPENS

_ERROR_CHARS: Final = 300
_FACTS_CHARS: Final = 240
_PATHS_CHARS: Final = 160
_SCANNED_CHARS: Final = 400_000
_OURS: Final = re.compile(rf"<(?=\s{{0,8}}/?\s{{0,8}}{DIGEST_OPENS[1:-1]})", re.IGNORECASE)
_HEADING: Final = re.compile(
    r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))"
    rf"(?=(?:{'|'.join(map(re.escape, DIGEST_HEADINGS.values()))})\s*$)",
    re.MULTILINE,
)


class Line(Struct, frozen=True, kw_only=True):
    """What may go into a section: where it goes there, and the text."""

    order: int
    text: str


class Calls:
    """The calls of a span with their results."""

    def __init__(self, notes: Sequence[Note]) -> None:
        asked: dict[str, Note] = {}
        self._done: list[tuple[Note, Note, bool]] = []
        for note in notes:
            if note.kind == "called":
                asked[note.call_id] = note
            elif note.kind == "result" and note.call_id in asked:
                call = asked[note.call_id]
                self._done.append((call, note, has_failed(call.tool, note)))

    def plan(self) -> list[Line]:
        """The steps of the last plan that was set."""
        plans = [call for call, _, failed in self._done if call.plan and not failed]
        if not plans:
            return []
        steps = sorted(
            enumerate(plans[-1].plan), key=lambda item: (item[1].startswith("[x]"), item[0])
        )
        return [Line(order=order, text=one_line(step, _ERROR_CHARS)) for order, step in steps]

    def files(self) -> list[Line]:
        """A line for each kind of touch that still matters; of those read, the last ones."""
        ledger = settle(
            (call.effects, result.text) for call, result, failed in self._done if not failed
        )
        lines: list[Line] = []
        for kind, head in DIGEST_FILES.items():
            paths = [quoted(path) for path in getattr(ledger, kind)]
            if kind == "read":
                paths.reverse()  # the last ones matter most
            lines += (
                Line(order=len(lines) + place, text=head + part)
                for place, part in enumerate(_lists(paths))
            )
        return lines

    def errors(self) -> list[Line]:
        """Calls that failed and did not succeed since, the newest first."""
        still: dict[bytes, tuple[Note, Note]] = {}
        for call, result, failed in self._done:
            still.pop(call.about, None)
            if failed:
                still[call.about] = (call, result)
        return [
            Line(
                order=result.seq,
                text=f"#{result.seq} {quoted(call.tool)}: {_error_in(result.text)}",
            )
            for call, result in reversed(still.values())
        ]

    def facts(self, *, most_chars: int) -> list[Line]:
        """What results name, each fact once where it stands last; of a value the last one."""
        known: set[str] = set()
        lines = []
        scanned_chars = 0
        for call, result, _ in reversed(self._done):
            scanned_chars += len(result.text)
            if scanned_chars > _SCANNED_CHARS or most_chars < 0:
                break
            fresh = [fact for fact in facts_in(result.text) if _key(fact) not in known]
            known.update(map(_key, fresh))
            index = build_index(rank(fresh), budget_chars=_FACTS_CHARS)
            if index:
                text = one_line(index.replace("\n", " | "), 2 * _FACTS_CHARS)
                text = f"#{result.seq} {quoted(call.tool)}: {text}"
                lines.append(Line(order=result.seq, text=text))
                most_chars -= len(text)
        return lines


def _lists(paths: Iterable[str]) -> Iterator[str]:
    """Paths in lists of a line each."""
    line = ""
    for path in paths:
        if line and len(line) + len(path) > _PATHS_CHARS:
            yield line
            line = ""
        line += f", {path}" if line else path
    if line:
        yield line


def _key(fact: Fact) -> str:
    """What makes a fact new: of a number given to a name, the name."""
    return re.split(r"[:=]", fact.text)[0].strip() if fact.kind == "value" else fact.text


def _error_in(text: str) -> str:
    errors = [fact.text for fact in facts_in(text[:_SCANNED_CHARS]) if fact.kind == "error"]
    return one_line(" | ".join(errors[:3]) or text, _ERROR_CHARS)


def quoted(text: str) -> str:
    """Foreign text that neither ends a line nor opens or closes anything."""
    return guarded(printable(text))


def one_line(text: str, most_chars: int) -> str:
    """Foreign text on one line, with nothing in it that could end or open a part of a digest."""
    line = " ".join(quoted(text[: 4 * most_chars]).split())
    return line if len(line) <= most_chars else line[: most_chars - 1] + "\u2026"


def guarded(text: str) -> str:
    """Text that can neither close nor open a digest, nor stand as one of its headings."""
    return _HEADING.sub("\\\\", _OURS.sub("&lt;", text))
