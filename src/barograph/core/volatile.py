"""What in two texts is not the same, and what kind of thing it is: a moment, an id, an order.

Whatever looks like a moment, an id or an address is masked in both texts. Where nothing but masked
pieces differs, they are paired one by one and each tells its kind, however many there are. What
differs otherwise is the same words in another order, or another text.

One text alone gives suspects at most: a moment with its time of day, a uuid, the repr of an object.
A date in prose is none, nor is a version or a time of opening.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from barograph.core.divergence import shared_chars

Kind: TypeAlias = Literal["moment", "id", "address", "order", "tools", "text"]

_CHARS_BEFORE: Final = 24
_CHARS_AFTER: Final = 56
_MASK: Final = "\0"
_DAY_SECONDS: Final = 86_400
_EPOCH_DIGITS: Final = 10
"""Of whole seconds since 1970; what has more counts milliseconds or finer."""

_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_NTH: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE: Final = (
    r"(?<!\d)(?:\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4})(?!\d)"
    rf"|\b{_MONTH} {_NTH},? \d{{4}}\b|(?<!\d){_NTH} {_MONTH},? \d{{4}}\b"
)
_TIME: Final = (
    r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?![\d:])(?: ?[AaPp]\.?[Mm]\b\.?)?"
    r"(?:Z\b|[+-]\d{2}:?\d{2}\b)?"
)
_CTIME: Final = rf"\b{_MONTH} {{1,2}}\d{{1,2}} {_TIME} \d{{4}}\b"
_COMPACT: Final = r"\b\d{8}T\d{6}(?:\.\d+)?Z?\b"
_WEEKDAY: Final = r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b"
_EPOCH: Final = r"(?<![\w.-])[12]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\w-])"

_PIECE: Final = re.compile(
    r"(?P<uuid>(?<![\w-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![\w-]))"
    r"|(?P<address>\b0x[0-9A-Fa-f]{6,16}\b)"
    rf"|(?P<stamp>{_CTIME}|{_COMPACT})|(?P<date>{_DATE})|(?P<time>{_TIME})"
    rf"|(?P<epoch>{_EPOCH})|(?P<hex>(?<![A-Za-z0-9])[0-9A-Fa-f]{{8,}}(?![A-Za-z0-9]))"
    rf"|(?P<day>{_WEEKDAY}|\b{_MONTH}(?!\w))"
)
_MOMENTS: Final = frozenset({"stamp", "date", "time", "epoch", "day"})
_STAMP: Final = re.compile(rf"(?:{_DATE})(?:T|,? (?:at )?){_TIME}|{_CTIME}|{_COMPACT}")
_OBJECT: Final = re.compile(r"<[^<>\n]{1,200} at (0x[0-9A-Fa-f]{6,16})>")
_WORD: Final = re.compile(rf"\w+|{_MASK}")


class Change(NamedTuple):
    """A piece that differs: its kind, and an excerpt of each side around it."""

    kind: Kind
    before: str
    after: str


class Suspect(NamedTuple):
    """A piece that may change: its kind, an excerpt, whether a second reading can clear it."""

    kind: Kind
    excerpt: str
    can_be_cleared: bool


class _Masked(NamedTuple):
    raw: str
    text: str
    pieces: Sequence[re.Match[str]]

    @property
    def words(self) -> list[str]:
        """The words of the raw text, each piece being one."""
        pieces = (piece.group() for piece in self.pieces)
        return [next(pieces) if word == _MASK else word for word in _WORD.findall(self.text)]

    def place_of(self, place: int) -> int:
        """Where a place of the masked text is in the raw one."""
        before = self.pieces[: self.text.count(_MASK, 0, place)]
        return place + sum(len(piece.group()) - 1 for piece in before)


def find_changes(before: str, after: str) -> Iterator[Change]:
    """Every kind of difference between two texts; the same kind may come again."""
    left, right = _mask(before), _mask(after)
    if _is_reordered(left.words, right.words):
        place = shared_chars(left.raw, right.raw)
        yield Change("order", _excerpt(left.raw, place), _excerpt(right.raw, place))
        return
    is_order = _is_reordered(_WORD.findall(left.text), _WORD.findall(right.text))
    lines = before.split("\n"), after.split("\n")
    if not is_order and len(lines[0]) == len(lines[1]) > 1:
        for one, other in zip(*lines, strict=True):
            if one != other:
                yield from find_changes(one, other)
        return
    head = shared_chars(left.text, right.text)
    rest = min(len(left.text), len(right.text)) - head
    tail = min(shared_chars(left.text[::-1], right.text[::-1]), rest)
    yield from _in_pieces(left, right, head, tail)
    if head + tail < max(len(left.text), len(right.text)):
        excerpts = (_excerpt(side.raw, side.place_of(head)) for side in (left, right))
        yield Change("order" if is_order else "text", *excerpts)


def find_suspects(text: str, *, at: float, days: Collection[str]) -> Iterator[Suspect]:
    """What in one text looks as if it was made for this call.

    Args:
        text: as it was read.
        at: when, in seconds since the epoch.
        days: ways to write the date of that moment.
    """
    for found in _STAMP.finditer(text):
        is_today = any(day in found.group() for day in days)
        yield Suspect("moment", _excerpt(text, found.start()), not is_today)
    for found in _OBJECT.finditer(text):
        yield Suspect("address", _excerpt(text, found.start(1)), can_be_cleared=False)
    for piece in _PIECE.finditer(text):
        kind, said = piece.lastgroup, piece.group()
        if kind == "uuid":
            yield Suspect("id", _excerpt(text, piece.start()), can_be_cleared=True)
        elif (kind == "date" and said in days) or (kind == "epoch" and _is_near(said, at)):
            yield Suspect("moment", _excerpt(text, piece.start()), can_be_cleared=False)


def _mask(text: str) -> _Masked:
    raw = text.replace(_MASK, " ")
    return _Masked(raw, _PIECE.sub(_MASK, raw), tuple(_PIECE.finditer(raw)))


def _in_pieces(left: _Masked, right: _Masked, head: int, tail: int) -> Iterator[Change]:
    """Differences between masked pieces that stand in the same place."""
    first = left.text.count(_MASK, 0, head)
    last = left.text.count(_MASK, len(left.text) - tail)
    paired = [
        *zip(left.pieces[:first], right.pieces[:first], strict=True),
        *zip(left.pieces[len(left.pieces) - last :], right.pieces[len(right.pieces) - last :],
             strict=True),
    ]  # fmt: skip
    for one, other in paired:
        if one.group() != other.group():
            excerpts = (_excerpt(left.raw, one.start()), _excerpt(right.raw, other.start()))
            yield Change(_kind_of(one, other), *excerpts)


def _kind_of(one: re.Match[str], other: re.Match[str]) -> Kind:
    kinds = {one.lastgroup, other.lastgroup}
    if kinds <= _MOMENTS:
        return "moment"
    if kinds == {"address"}:
        return "address"
    is_number = one.group().isdecimal() and other.group().isdecimal()
    # a random hex number has a letter as good as always; a counter never has
    return "text" if is_number or not kinds <= {"uuid", "hex", "epoch"} else "id"


def _is_reordered(one: Sequence[str], other: Sequence[str]) -> bool:
    return one != other and sorted(one) == sorted(other)


def _is_near(digits: str, at: float) -> bool:
    """Whether a number is that moment, give or take a day, in seconds or in finer units."""
    whole = digits.partition(".")[0]
    return abs(int(whole[:_EPOCH_DIGITS]) - at) <= _DAY_SECONDS


def _excerpt(text: str, place: int) -> str:
    return text[max(0, place - _CHARS_BEFORE) : place + _CHARS_AFTER]
