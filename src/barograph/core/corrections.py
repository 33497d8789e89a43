"""Which statements of the user a later one has made invalid.

**What it does.** A digest that repeats a value which the user has since corrected misleads. A later
statement takes the place of an earlier one in three cases:

1. *Restated.* Both have the same words, and differ in a value that follows `is` or the like.
2. *Changed.* The later one announces a change ("now", "moved to", "no longer"), has a value of the
   same kind, and shares a subject. Of several earlier ones the nearest in words gives way.
3. *Set once.* Both name a thing of which a conversation has one: the time zone, the system of
   units, the tone of answers.

**What always holds.** Only short statements of the user take part, on both sides: nothing that a
tool or a model says makes one invalid. Pinned text never gives way. A prohibition gives way only to
a rule. What gives way stays in the log, and the digest names it.

**Out of scope.** Paraphrases that announce no change: two statements about the same subject may
both hold, and keeping one too many is the lesser harm.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from barograph.core.notes import label_of, rules_in

MOST_CHARS: Final = 300
"""The longest statement that takes part."""

_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
)
# What a value looks like, by kind; what is matched is no subject.
_KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "money": re.compile(
        r"[$\u20ac\u00a3]\s?\d[\d,.]*|(?:[a-z0-9-]+\s){0,2}(?:dollars?|euros?|pounds?|usd|eur|gbp)\b",
        re.IGNORECASE,
    ),
    "date": re.compile(
        rf"\b\d{{4}}-\d\d-\d\d\b|\b(?:{_MONTHS})\s\d{{1,2}}\b|\b\d\d?-\d\d\b", re.IGNORECASE
    ),
    "branch": re.compile(r"\b[\w-]+/[\w-]*\w(?![\w./])"),
    "code": re.compile(r"\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])\w{2,}(?:-\w+)*\b"),
    "person": re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b"),
    "number": re.compile(r"(?<![\w.-])\d+(?:\.\d+)?\s?(?:%|[a-z]{1,3}\b)?"),
}
# Things of which a conversation has one.
_SETTINGS: Final[Mapping[str, re.Pattern[str]]] = {
    "zone": re.compile(
        r"\b(?:UTC|GMT|[A-Z][DS]?T|(?:pacific|central|eastern|mountain) time|Zone/\w+"
        r"|(?:America|Europe|Asia|Africa|Australia)/\w+)\b",
        re.IGNORECASE,
    ),
    "units": re.compile(r"\b(?:metric|imperial)\b", re.IGNORECASE),
    "tone": re.compile(
        r"\b(?:terse|brief|concise|short|verbose|detailed|playful|warm|formal|casual|friendly)\b"
        r"(?=.{0,60}\b(?:answers?|repl(?:y|ies)|responses?)\b)|"
        r"\b(?:answers?|repl(?:y|ies)|responses?)\b(?=.{0,60}\b(?:terse|brief|concise|short"
        r"|verbose|detailed|playful|warm|formal|casual|friendly)\b)",
        re.IGNORECASE,
    ),
}
_ABOUT_ZONE: Final = re.compile(
    r"\b(?:times?|clocks?|timestamps?|dates?|time ?zone)\b", re.IGNORECASE
)
_CHANGES: Final = re.compile(
    r"\b(?:update|updated|correction|actually|instead|rather|no longer|from now on|as of"
    r"|changed|changes|moved|switched|rebased|rotated|rotation|replaced|renamed|retired|new)\b"
    r"|(?<!^)(?<![.:!] )\bnow\b",
    re.IGNORECASE,
)
_IMPLIED: Final[Mapping[str, str]] = {"rebased": "branch", "checked out": "branch"}
_STATES: Final = re.compile(
    r"\b(?:is|are|was|will be|must|should|wants?|stays?|keep|never|always|lives|runs|belongs"
    r"|equals|owns)\b|=",
    re.IGNORECASE,
)
_PREDICATE: Final = re.compile(
    r"(?<!there )\b(?:is|are|was|will be|must be|should be|equals|stands at)\b|=", re.IGNORECASE
)
_PROHIBITS: Final = re.compile(r"\b(?:never|always|do not|don't|must not|mustn't)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z]{3,}")
# fmt: off
# Words that name a kind of value or carry no subject.
_NO_SUBJECT: Final = frozenset((
    "the", "and", "for", "this", "that", "with", "from", "not", "any", "all", "has", "have", "been",
    "are", "was", "will", "now", "new", "old", "update", "quick", "chang", "mov", "switch", "keep",
    "stay", "must", "never", "alway", "should", "user", "want", "please", "make", "use", "our",
    "their", "them", "they", "you", "your", "next", "step", "under", "over", "below", "above",
    "cap", "limit", "ceil", "budget", "cost", "spend", "expens", "price", "total",
    "date", "deadline", "day", "week", "time", "schedul",
    "code", "label", "codename", "name", "number", "valu", "without", "explicit", "approval",
    "longer", "call", "work", "first", "last", "month", "year", "there", "which", "when", "than",
))
# fmt: on


class Statement(Struct, frozen=True):
    """A statement of the user: where it stands, and what it says."""

    seq: int
    text: str
    pinned: bool = False


class _Read(Struct, frozen=True, kw_only=True):
    statement: Statement
    form: str
    kinds: frozenset[str]
    settings: dict[str, str]
    subjects: frozenset[str]
    is_rule: bool
    is_changing: bool
    states: bool
    prohibits: bool
    describes: bool


def corrected(statements: Sequence[Statement]) -> dict[int, int]:
    """Which statements are no longer valid, by index, and the index of what took their place.

    >>> corrected([Statement(1, "The limit is 30 s."), Statement(2, "The limit is 60 s.")])
    {0: 1}
    """
    read = [
        (index, _read(one))
        for index, one in enumerate(statements)
        if len(one.text) <= MOST_CHARS and not one.text.rstrip().endswith("?")
    ]
    common = Counter(word for _, one in read for word in one.subjects)
    by_form: dict[str, int] = {}
    gone: dict[int, int] = {}
    for place, (index, later) in enumerate(read):
        previous = by_form.get(later.form) if _has_predicate(later.form) else None
        found = set[int]() if previous is None else {previous}
        if later.settings or later.is_changing:
            earlier = [pair for pair in read[:place] if not _protects(pair[1], later)]
            found |= {other for other, one in earlier if _sets_otherwise(one, later)}
            found |= _changed(earlier, later, common) if later.is_changing else set()
        by_form[later.form] = index
        for other in found:
            same_text = statements[other].text == statements[index].text
            if not statements[other].pinned and not same_text:
                gone.setdefault(other, index)
    return gone


def _changed(
    earlier: Sequence[tuple[int, _Read]], later: _Read, common: Mapping[str, int]
) -> set[int]:
    best: tuple[float, int] | None = None
    for index, one in earlier:
        shared = one.subjects & later.subjects
        if not shared or not (one.kinds & later.kinds) or not one.states:
            continue
        weight = sum(1 / common[word] for word in shared)
        if best is None or (weight, index) > best:
            best = (weight, index)
    return set() if best is None else {best[1]}


def _sets_otherwise(earlier: _Read, later: _Read) -> bool:
    """Whether both set a thing of which there is one. To say how something is sets nothing."""
    return not later.describes and any(
        earlier.settings.get(name, value) != value for name, value in later.settings.items()
    )


def _protects(earlier: _Read, later: _Read) -> bool:
    """A prohibition does not give way to a remark."""
    return earlier.prohibits and not later.is_rule


def _read(statement: Statement) -> _Read:
    label = label_of(statement.text)
    body = statement.text.split(":", 1)[1] if label else statement.text
    form, rest, kinds = body, body, set[str]()
    for kind, pattern in _KINDS.items():
        if pattern.search(rest):
            kinds.add(kind)
            rest = pattern.sub(" ", rest)
            form = pattern.sub(f"<{kind}>", form)
    settings = {
        name: value.group().lower()
        for name, pattern in _SETTINGS.items()
        if (value := pattern.search(body)) and (name != "zone" or _ABOUT_ZONE.search(body))
    }
    is_changing = bool(_CHANGES.search(statement.text))
    low = rest.lower()
    words = {_stem(word) for word in _WORD.findall(low)}
    words |= {implied for said, implied in _IMPLIED.items() if said in low}
    return _Read(
        statement=statement,
        form=label + " ".join(form.lower().split()),
        kinds=frozenset(kinds),
        settings=settings,
        subjects=frozenset(words - _NO_SUBJECT),
        is_rule=bool(rules_in(statement.text)),
        is_changing=is_changing,
        states=bool(label) or bool(_STATES.search(statement.text)),
        prohibits=bool(_PROHIBITS.search(statement.text)),
        describes=bool(_PREDICATE.search(body)) and not label and not is_changing,
    )


def _has_predicate(form: str) -> bool:
    """Whether its first value follows a word that makes it a value."""
    start = form.find("<")
    return start >= 0 and bool(_PREDICATE.search(form[:start]))


def _stem(word: str) -> str:
    for suffix in ("ings", "ing", "ers", "er", "ies", "es", "ed", "s", "ly", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word
