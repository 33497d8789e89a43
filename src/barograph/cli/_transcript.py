"""A transcript as text: our lines begin with a sign, those of others stand behind a bar."""

from collections.abc import Iterable, Iterator, Sequence

from barograph.audit.transcript import Entry
from barograph.cli._output import QUOTE
from barograph.cli._text import moment, plain, plain_lines
from barograph.core.masking import Rule, mask_text


def transcript_lines(entries: Iterable[Entry], rules: Sequence[Rule]) -> Iterator[bytes]:
    """The lines of a transcript, secrets masked and nothing in them that a terminal obeys."""
    for entry in entries:
        facts = [*filter(None, (entry.who, entry.what, entry.path))]
        sign = "■" if entry.who else "──"
        place = f"event {entry.seq} · {moment(entry.at)}"
        lines = [f"{sign} {plain(mask_text(' · '.join(facts), rules))} · {place}"]
        for piece in entry.pieces:
            if piece.title:
                lines.append(f"  {plain(mask_text(piece.title, rules))}")
            if piece.text:
                shown = plain_lines(mask_text(piece.text, rules))
                lines += [f"  {QUOTE}{line}".rstrip() for line in shown]
        yield "".join(f"{line}\n" for line in (*lines, "")).encode("utf-8", "backslashreplace")
