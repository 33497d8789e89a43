"""What stays visible of old tool results, at which price, for different stubs.

Reads the recorded sessions that BAROGRAPH_CORPUS names, takes every tool result above 1 000
characters and stubs it. Facts are those of `facts_in`, taken from the original and then searched
for in the stub as whole words; the paths of an index are spelled out first by its own rule.

A *late reference* is a fact that a tool result showed first, that nobody used for ten rounds, and
that then an action (text or tool call of the model) or the user names. *Shown once* are those of
them that no newer result has shown again, so that only stubs can hold them.

The last column counts with other patterns, plain and overlapping, that the index knows nothing of.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field, structs

from barograph.audit.recorded import RecordedCall, find_recordings, read_recording
from barograph.core.facts import facts_in
from barograph.core.stubs import StubShape, holds, stub_text, visible_text

_LEAST_CHARS: Final = 1_000
_ROUNDS: Final = 10
_HANDLE: Final = "r123"
_PLAIN: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:[\w.~@-]*/)+[\w.@-]+",
        r"https?://[^\s\"'<>)]+",
        r"\b(?=[0-9]*[a-f])[0-9a-f]{7,40}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b",
        r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b",
        r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b",
        r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b",
        r"\b\w+\s?[:=]\s?-?\d+(?:\.\d+)?\b",
        r"(?m)^.*(?:[Ee]rror|ERROR|FAIL|Exception|Traceback|panic|fatal).*$",
        r"exit(?:ed)?(?: with)?(?: code| status)? \d+",
    )
)


class Result(Struct, kw_only=True):
    """One tool result: its facts by both definitions, and those used late."""

    text: str
    facts: frozenset[str]
    plain: frozenset[str]
    late: set[str] = field(default_factory=set)


class Late(Struct, kw_only=True):
    """A fact that only old results show, and which."""

    fact: str
    results: list[int]


class Corpus(Struct, kw_only=True):
    """All long tool results, and the late references to them."""

    results: list[Result] = field(default_factory=list)
    shown_once: list[Late] = field(default_factory=list)


Stub = Callable[[str], str]
Sighting = tuple[int, int | None]


class Reader:
    """Follows one agent through its rounds."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._seen: dict[str, list[Sighting]] = {}
        self._used: set[str] = set()
        self._round = 0

    def call(self, call: RecordedCall) -> None:
        """Take in what a call showed the model, and what the model did."""
        blocks = [block for message in call.append for block in message["content"]]
        for block in blocks:
            if block["type"] == "tool_result":
                self._result("\n".join(_strings(block.get("content"))))
        said = [block["text"] for block in blocks if block["type"] == "text"]
        for text in (*said, *_actions(call.response)):
            self._use(text)
        self._round += 1

    def _result(self, text: str) -> None:
        facts = frozenset(fact.text for fact in facts_in(text))
        number = None
        if len(text) > _LEAST_CHARS:
            number = len(self._corpus.results)
            plain = frozenset(_plain_facts(text))
            self._corpus.results.append(Result(text=text, facts=facts, plain=plain))
        for fact in facts:
            self._seen.setdefault(fact, []).append((self._round, number))

    def _use(self, text: str) -> None:
        for fact in {fact.text for fact in facts_in(text)} - self._used:
            self._used.add(fact)
            if sightings := self._seen.get(fact):
                self._refer(fact, sightings)

    def _refer(self, fact: str, sightings: list[Sighting]) -> None:
        (first, number), (last, _) = sightings[0], sightings[-1]
        if number is not None and self._round - first >= _ROUNDS:
            self._corpus.results[number].late.add(fact)
        numbers = [number for _, number in sightings if number is not None]
        if self._round - last >= _ROUNDS and len(numbers) == len(sightings):
            self._corpus.shown_once.append(Late(fact=fact, results=numbers))


def _actions(response: tuple[dict[str, Any], ...]) -> Iterator[str]:
    for block in response:
        if block["type"] in ("text", "tool_use"):
            yield from _strings(block.get("text") or block.get("input"))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case {"type": "text", "text": text}:
            yield text
        case {"type": "image" | "document"}:
            return
        case dict():
            for item in value.values():
                yield from _strings(item)
        case int() | float():
            yield json.dumps(value)
        case _:
            return


def _plain_facts(text: str) -> Iterator[str]:
    for pattern in _PLAIN:
        for found in pattern.finditer(text):
            if fact := found.group().strip()[:200]:
                yield fact


def read_corpus(folder: Path, names: Callable[[str], bool]) -> Corpus:
    """The long results of the sessions whose name is wanted."""
    corpus = Corpus()
    for path in find_recordings([folder]):
        if not names(path.name):
            continue
        for agent in read_recording(path, rewrites="ignore").agents:
            reader = Reader(corpus)
            for call in agent.calls:
                reader.call(call)
    return corpus


def ends(head_chars: int, tail_chars: int) -> Stub:
    """Plain head and tail."""

    def stub(text: str) -> str:
        if len(text) <= head_chars + tail_chars:
            return text
        return text[:head_chars] + "\n[...]\n" + text[len(text) - tail_chars :]

    return stub


def indexed(shape: StubShape) -> Stub:
    """Ours."""
    return lambda text: stub_text(text, handle=_HANDLE, shape=shape) or text


class Shares(Struct, frozen=True, kw_only=True):
    """What a stub costs and shows, each as a share of the whole."""

    chars: float
    facts: float
    late: float
    shown_once: float
    plain: float


def measure(corpus: Corpus, stub: Stub) -> Shares:
    """Stub every result and look for every fact."""
    results = corpus.results
    stubs = [stub(result.text) for result in results]
    seen = [visible_text(text, handle=_HANDLE) for text in stubs]

    def held(facts: Callable[[Result], Iterable[str]]) -> float:
        found = [
            holds(text, fact)
            for text, result in zip(seen, results, strict=True)
            for fact in facts(result)
        ]
        return _share(found)

    return Shares(
        chars=sum(map(len, stubs)) / max(sum(len(result.text) for result in results), 1),
        facts=held(lambda result: result.facts),
        late=held(lambda result: result.late),
        shown_once=_share(
            [any(holds(seen[n], late.fact) for n in late.results) for late in corpus.shown_once]
        ),
        plain=held(lambda result: result.plain),
    )


def _share(found: list[bool]) -> float:
    return sum(found) / max(len(found), 1)


def row(name: str, shares: Shares) -> str:
    """One line of the table."""
    return f"{name:<44}" + "".join(f"{share:>11.1%}" for share in structs.astuple(shares))


def main() -> int:
    """Print the table; arguments are beginnings of session names, all by default."""
    folder = os.environ.get("BAROGRAPH_CORPUS")
    if not folder:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: nothing to measure.")
        return 0
    wanted = tuple(sys.argv[1:])
    corpus = read_corpus(Path(folder), lambda name: not wanted or name.startswith(wanted))
    print(
        f"{len(corpus.results):,} tool results above {_LEAST_CHARS:,} characters, "
        f"{sum(len(result.text) for result in corpus.results):,} characters, "
        f"{sum(len(result.facts) for result in corpus.results):,} facts, "
        f"{sum(len(result.late) for result in corpus.results):,} late references, "
        f"{len(corpus.shown_once):,} shown once, "
        f"{sum(len(result.plain) for result in corpus.results):,} facts by plain patterns"
    )
    titles = ("chars", "facts", "late", "shown once", "plain")
    print(f"{'stub':<44}" + "".join(f"{title:>11}" for title in titles))
    print(row("mask", measure(corpus, lambda _: "")))
    for chars in (150, 300, 800):
        print(row(f"head + tail {chars}/{chars}", measure(corpus, ends(chars, chars))))
    for shape in SHAPES:
        name = (
            f"index {shape.head_chars}/{shape.tail_chars}, {shape.index_chars} or "
            f"{shape.index_ratio:.0%}, at most {shape.index_most_chars}"
        )
        mark = " *" if shape == StubShape() else ""
        print(row(name + mark, measure(corpus, indexed(shape))))
    print("* the default")
    return 0


SHAPES: Final = (
    StubShape(),
    *(
        StubShape(
            head_chars=head,
            tail_chars=tail,
            index_chars=least,
            index_ratio=ratio,
            index_most_chars=most,
        )
        for head, tail, least, ratio, most in (
            (100, 60, 100, 0.04, 6_000),
            (100, 60, 100, 0.06, 6_000),
            (100, 60, 150, 0.08, 6_000),
            (150, 100, 150, 0.08, 6_000),
            (150, 100, 150, 0.10, 6_000),
            (100, 60, 150, 0.12, 6_000),
            (150, 100, 150, 0.12, 2_000),
            (200, 150, 150, 0.10, 6_000),
        )
    ),
)

if __name__ == "__main__":
    sys.exit(main())
