"""What an error of a model call is about: its kind, and the figures that it names.

**What it does.** An adapter gives what it can see of an exception, without its SDK: names, status,
codes, texts. The answer says whether a smaller request would have been taken. The evidence is read
in this order: names of exception classes, codes and types, the status, words
(`barograph.providers.wordings`).

**What always holds.** A limit of rate or of money is never an overflow, however it speaks of
tokens: relief would cost a warm cache and help nothing. Nor is a parameter that asks for more
output than the model gives. Only what a provider says is read, not what it quotes of the request.
The cost is bounded, whatever the text.

**Out of scope.** A request that was cut or that ended without an error: `stop_reason` and usage.
"""

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from barograph.core.canonical import parse_json
from barograph.providers.anthropic.refusals import marker_fault
from barograph.providers.figures import figures_in
from barograph.providers.wordings import (
    INPUT,
    LIMITED,
    LIMITED_CODES,
    LIMITED_NAMES,
    OUTPUT,
    OVERFLOW,
    OVERFLOW_CODES,
    OVERFLOW_NAMES,
    OVERLOADED,
    OVERLOADED_CODES,
    QUOTA,
    QUOTA_CODES,
    ROOM,
    TOO_LARGE,
    TOO_LARGE_CODES,
    TOO_LARGE_NAMES,
    VAGUE,
    says,
)

FaultKind: TypeAlias = Literal[
    "overflow",
    "max_tokens_room",
    "too_large",
    "rate_limited",
    "quota",
    "overloaded",
    "markers_over_limit",
    "markers_unsupported",
    "other",
]

_HEAD_CHARS: Final = 8_000
_TAIL_CHARS: Final = 2_000
_PARSED_CHARS: Final = 200_000
_DEEPEST: Final = 12
_MOST_PIECES: Final = 200
_MOST_TOKENS: Final = 10**9
# Statuses that speak of money, of rights or of names, never of how much.
_NEVER_SIZE: Final = frozenset({402, 403, 404})
# Where vague words may be meant of a prompt.
_MAYBE_SIZE: Final = frozenset({None, 200, 400, 413, 422, 500})
# Where these say it of a prompt, they mean it, even beside words about rates.
_OUTSPOKEN: Final = frozenset({400, 422, 500, 502, 503})
_OVERLOADED_STATUSES: Final = frozenset({503, 529})
# What a provider quotes of the request, and what is no sentence of its own.
_QUOTED: Final = frozenset({"input", "ctx", "loc", "url", "request", "messages", "prompt", "param"})
_CODES: Final = frozenset({"code", "type", "status", "reason", "error_code", "__type"})
_BLANK: Final = re.compile(r"\s+")
_TAG: Final = re.compile(r"<[^<>]{0,200}>")


class Refusal(Struct, frozen=True, kw_only=True):
    """What can be seen of an exception without the SDK that raised it.

    Attributes:
        names: names of its classes, the bases' included.
        status: HTTP status; None where there was none, 200 for an error inside a stream.
        code: the provider's code.
        type: the provider's type.
        message: its text.
        body: text of the response.
    """

    names: tuple[str, ...] = ()
    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""
    body: str = ""


class Fault(Struct, frozen=True, kw_only=True):
    """What an error is about.

    Attributes:
        kind: `overflow`, more input than the model takes; `max_tokens_room`, the input fits and
            less `max_tokens` suffices; `too_large`, more bytes than the server or a proxy takes;
            `rate_limited`; `quota`, money or a plan; `overloaded`; `markers_over_limit` and
            `markers_unsupported`, about cache markers; `other`.
        window_tokens: the limit that the error names.
        input_tokens: the input that it names; some servers count only up to the limit.
        max_tokens: the room for output that it names.
        excess_markers: cache markers beyond what is taken; None where none is taken, or where it
            is about something else.
    """

    kind: FaultKind
    window_tokens: int | None = None
    input_tokens: int | None = None
    max_tokens: int | None = None
    excess_markers: int | None = None


class _Evidence(Struct, frozen=True):
    names: frozenset[str]
    codes: frozenset[str]
    status: int | None
    text: str
    counts: dict[str, int]


def read_refusal(refusal: Refusal) -> Fault:
    """What an error of a model call is about."""
    seen = _gather(refusal)
    if _is_overflow(seen):
        return _overflow(seen)
    markers = marker_fault(seen.status, seen.text)
    if markers is not None:
        if markers.excess is None:
            return Fault(kind="markers_unsupported")
        return Fault(kind="markers_over_limit", excess_markers=markers.excess)
    return Fault(kind=_kind_of_rest(seen))


def _is_overflow(seen: _Evidence) -> bool:
    if seen.codes & OVERFLOW_CODES:
        return True
    if seen.status in _NEVER_SIZE or seen.codes & QUOTA_CODES:
        return False
    is_said = bool(seen.names & OVERFLOW_NAMES) or says(OVERFLOW, seen.text)
    # Integrations name a class by loose words too, so a name alone may not overrule these.
    if _is_about_output(seen.text):
        return False
    if says(LIMITED, seen.text) or says(QUOTA, seen.text) or _is_limited(seen):
        return is_said and not _is_limited(seen) and seen.status in _OUTSPOKEN
    return is_said or (seen.status in _MAYBE_SIZE and says(VAGUE, seen.text))


def _is_limited(seen: _Evidence) -> bool:
    """Whether name, code or status call it a limit of rate, in words of rates."""
    named = seen.status == 429 or seen.names & LIMITED_NAMES or seen.codes & LIMITED_CODES
    return bool(named) and says(LIMITED + QUOTA, seen.text + " " + " ".join(seen.codes))


def _is_about_output(text: str) -> bool:
    """Whether it is about the room asked for alone: folding would not help."""
    return says(OUTPUT, text) and not says(INPUT, text)


def _overflow(seen: _Evidence) -> Fault:
    named = figures_in(seen.text)
    window = seen.counts.get("n_ctx", named.window)  # llama.cpp gives these as fields
    given = seen.counts.get("n_prompt_tokens", named.given)
    if window is not None and given is not None and named.most is not None:
        is_room = not named.is_floor and given < window
    else:
        is_room = says(ROOM, seen.text)
    return Fault(
        kind="max_tokens_room" if is_room else "overflow",
        window_tokens=window,
        input_tokens=given,
        max_tokens=named.most,
    )


def _kind_of_rest(seen: _Evidence) -> FaultKind:
    """The kind of an error that is neither about the context nor about markers."""
    if seen.status == 402 or seen.codes & QUOTA_CODES:
        return "quota"
    is_timed = says(LIMITED, seen.text)
    if says(QUOTA, seen.text) and not is_timed:
        return "quota"
    is_busy = seen.status in _OVERLOADED_STATUSES or seen.codes & OVERLOADED_CODES
    if is_busy or (says(OVERLOADED, seen.text) and seen.status != 429):
        return "overloaded"
    if is_timed or seen.status == 429 or seen.codes & LIMITED_CODES or seen.names & LIMITED_NAMES:
        return "rate_limited"
    if seen.status == 413 or seen.codes & TOO_LARGE_CODES or seen.names & TOO_LARGE_NAMES:
        return "too_large"
    return "too_large" if says(TOO_LARGE, seen.text) else "other"


def _gather(refusal: Refusal) -> _Evidence:
    """The provider's own words and codes, from the body where it can be read, else the message."""
    codes = {_plain(each) for each in (refusal.code, refusal.type) if each}
    counts: dict[str, int] = {}
    texts = list(_leaves(refusal.body, codes, counts))
    if not texts:
        texts = list(_leaves(refusal.message, codes, counts)) or [refusal.message]
        texts.append(_without_tags(refusal.body))
    return _Evidence(
        names=frozenset(_plain(name) for name in refusal.names),
        codes=frozenset(codes),
        status=refusal.status,
        text=_plain(" \n ".join(texts)),
        counts=counts,
    )


def _leaves(text: str, codes: set[str], counts: dict[str, int]) -> Iterator[str]:
    """Sentences in a JSON text, its codes and counts noted on the way; none if it is no JSON."""
    # the outermost first: a wrapper's sentence stands before what it wraps
    waiting: deque[tuple[str, object, int]] = deque([("", _parsed(text), 0)])
    for _ in range(_MOST_PIECES):
        if not waiting:
            return
        key, value, depth = waiting.popleft()
        if isinstance(value, str) and (inner := _parsed(value)) is not None:
            value = inner
        if isinstance(value, dict | list):
            if depth < _DEEPEST:
                waiting.extend(_children(key, value, depth + 1))
        elif isinstance(value, str) and key in _CODES:
            codes.add(_plain(value))
        elif isinstance(value, str):
            yield value
        elif type(value) is int and 0 < value <= _MOST_TOKENS:
            counts[key] = value


def _children(
    key: str, value: dict[Any, Any] | list[Any], depth: int
) -> Iterator[tuple[str, object, int]]:
    pairs = value.items() if isinstance(value, dict) else ((key, each) for each in value)
    for name, each in islice(pairs, _MOST_PIECES):
        if (name := str(name).lower()) not in _QUOTED:  # botocore writes them in capitals
            yield name, each, depth


def _parsed(text: str) -> object:
    """The object or array that a text is, or that an event of a stream carries; else None."""
    text = text[:_PARSED_CHARS].strip()
    if text.startswith(("event:", "data:")):
        _, _, text = text.partition("data:")
        text = text.strip().partition("\n\n")[0]
    return parse_json(text) if text.startswith(("{", "[")) else None


def _without_tags(text: str) -> str:
    return _TAG.sub(" ", _cut(text))


def _cut(text: str) -> str:
    """A text of bounded length: errors say it at the beginning, wrapped ones at the end."""
    if len(text) <= _HEAD_CHARS + _TAIL_CHARS:
        return text
    return text[:_HEAD_CHARS] + " " + text[-_TAIL_CHARS:]


def _plain(text: str) -> str:
    """One spelling: lower case, single spaces, and no marks of an escaped quotation."""
    text = _cut(text).replace("\\n", " ").replace("\\", "").replace("\u2019", "'")
    return _BLANK.sub(" ", text.lower()).strip()
