"""Text for a terminal: what others wrote made harmless, and figures made readable.

Tool output is hostile text. An escape sequence in it could clear the screen, rename the window or
forge our own lines, and a direction override could show one command and mean another. So every
character that is not plainly visible is printed as its code.
"""

import math
from datetime import UTC, datetime
from typing import Final
from unicodedata import category

_MINUTE: Final = 60
_HOUR: Final = 3600


def plain(text: str, *, keep: str = "") -> str:
    """The text with every control, format and unassigned character printed as its code.

    Args:
        text: anything.
        keep: characters to leave as they are: newline and tab, where lines are wanted.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep or category(char) == "Zs" else _code(char)
        for char in text
    )


def plain_lines(text: str) -> list[str]:
    """The same for a text of several lines, with tabs as spaces."""
    return [line.expandtabs(4) for line in plain(text, keep="\n\t").split("\n")]


def clip(text: str, chars: int) -> str:
    """The text, cut to that many characters with an ellipsis as its last."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def count(number: int) -> str:
    """A count with its thousands set apart."""
    return f"{number:,}".replace(",", " ")


def some(number: int, noun: str, many: str = "") -> str:
    """A count with its noun in the right number."""
    return f"{count(number)} {noun if number == 1 else many or noun + 's'}"


def percent(ratio: float | None) -> str:
    """A ratio in per cent, rounded down: a partial hit never reads as 100 %."""
    if ratio is None:
        return "?"
    if 0 < ratio < 0.001:
        return "<0.1 %"
    # the tolerance keeps 0.929 from becoming 92.8 by its binary form
    return f"{math.floor(min(ratio, 1.0) * 1000 + 1e-9 * (ratio < 1)) / 10:.1f} %"


def usd(amount: float | None, *, is_estimate: bool = False) -> str:
    """An amount of US dollars; `~` marks one at prices that may not be the model's."""
    if amount is None:
        return "?"
    shown = "<$0.0001" if 0 < amount < 0.0001 else f"${amount:.{4 if amount < 1 else 2}f}"
    return f"~{shown}" if is_estimate else shown


def moment(at: float) -> str:
    """A time of the log, in UTC to the second."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s since the epoch"


def duration(seconds: float) -> str:
    """A span of time in its two largest units."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if seconds < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def _code(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
