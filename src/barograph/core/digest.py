"""The digest of a span: what stands in its place, computed from the log without a model.

**What it does.** A digest is written from the notes of the original messages, never from an earlier
digest. Its sections come in one order: pinned text and the rules that the user stated, what the
user said, what a model summed up, the plan, files, open errors, the answers of the model, facts in
tool results.

**What always holds.** It is never longer than its budget and the same in every process. What it
quotes of the user is quoted whole; a message that does not fit is named by its handle. What a tool
said stands in the sections of tool results only, each on one line, so that it can neither open a
section nor speak as the user. A statement that the user has corrected does not stand in it.

**How a budget is spent.** Each section is sure of a share; what one leaves is given to the others
in their order. Within a section the shorter rules, and the newer messages, come first. Of
what is left over after that, the first sections have the first choice, so with less room facts go
first, then answers, errors, files and the plan, then messages of the user, the long ones first, and
last rules and pinned text.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from barograph.core.corrections import MOST_CHARS, Statement, corrected
from barograph.core.digestlines import Calls, Line, guarded, one_line, quoted
from barograph.core.notes import Note, is_marked_rule, label_of
from barograph.core.texts import (
    DIGEST_CLOSES,
    DIGEST_HEADINGS,
    DIGEST_OPENS,
    DIGEST_SAYS,
    left_out_of_digest,
    made_elsewhere,
    superseded,
)

NARRATIVE_RATIO: Final = 0.40
"""Of the budget, the most that is the narrative's, heading included."""

# Of the budget, what each section is sure of.
_SHARES: Final = {
    "pinned": 1.0,
    "rules": 0.25,
    "narrative": NARRATIVE_RATIO,
    "said": 0.25,
    "plan": 0.05,
    "files": 0.08,
    "errors": 0.07,
    "answers": 0.04,
    "facts": 0.06,
}
LEAST_CHARS: Final = len(DIGEST_OPENS) + 1 + len(DIGEST_CLOSES)
"""The shortest digest: it says that something gave way, and no more."""

_SHARED_FROM_CHARS: Final = 600
_SAYS_FROM_CHARS: Final = 3_000
_NAMED_RATIO: Final = 0.05
_NAMED_CHARS: Final = 56
_SHORT_CHARS: Final = 280
_HEADING_CHARS: Final = max(len(heading) + 2 for heading in DIGEST_HEADINGS.values())
_ANSWER_CHARS: Final = 240
_ANSWER_LEAST_CHARS: Final = 80


class _Page:
    """A digest in the making."""

    def __init__(self, budget_chars: int) -> None:
        self.left_chars = budget_chars - len(DIGEST_OPENS) - 1 - len(DIGEST_CLOSES)
        self._sections: dict[str, list[Line]] = {}

    def add(self, section: str, line: Line, room_chars: int) -> int:
        """Put a line in where it fits into the room; what that cost, or 0."""
        cost_chars = len(line.text) + 1
        if section not in self._sections:
            cost_chars += len(DIGEST_HEADINGS[section]) + 1
        if cost_chars > min(room_chars, self.left_chars):
            return 0
        self._sections.setdefault(section, []).append(line)
        self.left_chars -= cost_chars
        return cost_chars

    def render(self, says: str, after: Sequence[str]) -> str:
        """The digest."""
        lines = [DIGEST_OPENS, *([says] if says else [])]
        for section, heading in DIGEST_HEADINGS.items():
            if section in self._sections:
                found = sorted(self._sections[section], key=lambda line: line.order)
                lines += [heading, *(line.text for line in found)]
        return "\n".join([*lines, *after, DIGEST_CLOSES])


def write_digest(notes: Sequence[Note], *, budget_chars: int, narrative: str = "") -> str:
    """The digest of the messages that these notes are of.

    Args:
        notes: notes of the original messages of a span, in their order.
        budget_chars: the most characters it may have; less than `LEAST_CHARS` counts as that.
        narrative: what a model wrote about the span; it is cut to `NARRATIVE_RATIO`.
    """
    page = _Page(max(budget_chars, LEAST_CHARS))
    says = DIGEST_SAYS if budget_chars >= _SAYS_FROM_CHARS else ""
    page.left_chars -= len(says) + 1 if says else 0
    said, gone = _valid(notes)
    named_chars = min(page.left_chars, max(_NAMED_CHARS, int(budget_chars * _NAMED_RATIO)))
    page.left_chars -= named_chars
    calls = Calls(notes)
    offers: dict[str, Sequence[Line]] = {
        "pinned": _pinned(notes),
        "rules": _rules(said),
        "narrative": _narrative(
            narrative, int(budget_chars * _SHARES["narrative"]) - _HEADING_CHARS
        ),
        "said": _said(said, set(gone.values())),
        "plan": calls.plan(),
        "files": calls.files(),
        "errors": calls.errors(),
        "answers": _answers(notes),
        "facts": calls.facts(most_chars=budget_chars // 4),
    }
    shown = _fill(page, offers, budget_chars)
    page.left_chars += named_chars
    after = _named(page, said, gone, shown, notes)
    return page.render(says, after)


def pinned_room_chars(notes: Sequence[Note]) -> int:
    """What pinned text takes in a digest, heading included; 0 where there is none."""
    lines = _pinned(notes)
    return _HEADING_CHARS + sum(len(line.text) + 1 for line in lines) if lines else 0


def _fill(
    page: _Page, offers: dict[str, Sequence[Line]], budget_chars: int
) -> set[tuple[str, int]]:
    """Spend the room; the section and the number of each line that is in."""
    taken: set[Line] = set()
    shown: set[tuple[str, int]] = set()
    for is_first in (True, False) if budget_chars >= _SHARED_FROM_CHARS else (False,):
        for section, lines in offers.items():
            room_chars = int(budget_chars * _SHARES[section]) if is_first else page.left_chars
            for line in lines:
                if line in taken:
                    continue
                cost_chars = page.add(section, line, room_chars)
                room_chars -= cost_chars
                if cost_chars:
                    taken.add(line)
                    shown.add((section, line.order))
    return shown


def _named(
    page: _Page,
    said: Sequence[Note],
    gone: dict[int, int],
    shown: set[tuple[str, int]],
    notes: Sequence[Note],
) -> list[str]:
    """The lines that name what is not shown, as far as there is room."""
    missing = {note.seq for note in said if not _is_shown(note, shown)}
    lines = []
    if gone:
        line = superseded(", ".join(f"#{old} by #{new}" for old, new in sorted(gone.items())))
        if len(line) < page.left_chars / 2:
            lines.append(line)
        else:
            missing |= gone.keys()
    if missing:
        whole = left_out_of_digest(" ".join(f"#{seq}" for seq in sorted(missing)))
        brief = left_out_of_digest(f"{len(missing)} messages, #{min(missing)} to #{max(missing)}")
        lines.append(whole if len(whole) < page.left_chars / 2 else brief)
    lines += [made_elsewhere(f"#{note.seq}") for note in notes if note.kind == "recap"]
    kept = []
    for line in lines:
        if len(line) + 1 <= page.left_chars:
            page.left_chars -= len(line) + 1
            kept.append(line)
    return kept


def _is_shown(note: Note, shown: set[tuple[str, int]]) -> bool:
    section = "pinned" if note.pinned else ("rules" if _is_one_rule(note) else "said")
    return note.kind == "nod" or (section, note.seq) in shown


def _is_one_rule(note: Note) -> bool:
    return note.rules == (note.text.strip(),)


def _valid(notes: Sequence[Note]) -> tuple[list[Note], dict[int, int]]:
    """What the user said and has not corrected, each text once; and what was corrected, by what."""
    latest = {note.text: note for note in notes if note.kind in ("said", "nod")}
    said = sorted(latest.values(), key=lambda note: note.seq)
    statements = [Statement(note.seq, note.text, note.pinned) for note in said]
    invalid = corrected(statements)
    gone = {said[old].seq: said[new].seq for old, new in invalid.items()}
    kept = [note for index, note in enumerate(said) if index not in invalid]
    return kept, gone


def _pinned(notes: Sequence[Note]) -> list[Line]:
    """Pinned text, the newest first. What a tool said is marked as that, line by line."""
    lines = []
    for note in reversed(notes):
        if not note.pinned or not note.text or note.kind not in ("said", "nod", "answer", "result"):
            continue
        text = guarded(note.text)
        if note.kind == "result":
            text = "\n".join(f"tool| {quoted(line)}" for line in note.text.split("\n"))
        lines.append(Line(order=note.seq, text=f"#{note.seq} {text}"))
    return lines


def _rules(said: Sequence[Note]) -> list[Line]:
    """Marked rules first, then those of short messages, the shorter first."""
    found: dict[str, Note] = {}
    for note in said:
        if not note.pinned:
            found.update(dict.fromkeys(note.rules, note))
    ranked = sorted(
        found.items(),
        key=lambda item: (
            not is_marked_rule(item[0]),
            len(item[1].text) > MOST_CHARS,
            len(item[0]),
            -item[1].seq,
        ),
    )
    return [Line(order=note.seq, text=f"#{note.seq} {guarded(rule)}") for rule, note in ranked]


def _said(said: Sequence[Note], correcting: AbstractSet[int]) -> list[Line]:
    """Messages of the user that are more than their rules.

    First those with a label and those that correct another, the shorter first; then the others, the
    newest first; then long ones; nods last.
    """
    more = [note for note in said if not note.pinned and not _is_one_rule(note)]

    def worth(note: Note) -> tuple[int, int, int]:
        chars = len(note.text)
        if note.kind == "nod":
            return 3, 0, -note.seq
        if chars > _SHORT_CHARS:
            return 2, 0, -note.seq
        is_statement = bool(label_of(note.text)) or note.seq in correcting
        return (0, chars, -note.seq) if is_statement else (1, 0, -note.seq)

    ranked = sorted(more, key=worth)
    return [Line(order=note.seq, text=f"#{note.seq} {guarded(note.text)}") for note in ranked]


def _narrative(narrative: str, most_chars: int) -> list[Line]:
    """What a model wrote, cut at the end of a line where it is too long."""
    text = guarded(narrative.strip())
    if len(text) > most_chars:
        text = text[: max(0, most_chars - 2)].rpartition("\n")[0]
        text = f"{text}\n\u2026" if text else ""
    return [Line(order=0, text=text)] if text else []


def _answers(notes: Sequence[Note]) -> list[Line]:
    answers = [
        note
        for note in notes
        if note.kind == "answer" and not note.pinned and len(note.text) >= _ANSWER_LEAST_CHARS
    ]
    return [
        Line(order=note.seq, text=f"#{note.seq} {one_line(note.text, _ANSWER_CHARS)}")
        for note in reversed(answers)
    ]
