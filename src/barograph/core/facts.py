"""The facts in a text: what a later action may need word for word.

**Theory of operation.** A text is scanned once, left to right, for words: runs of characters that
paths and names are made of. A word is then told apart by its form: a path, an id, a name. Error
lines, numbers given to a name and exit codes have a scan of their own. A fact is an exact piece of
the text, so it can be searched for.

**Invariants.** Time is linear in the text, whatever it holds: no repetition in a pattern can be
tried in more than one way without a fixed bound, and what is longer than `MOST_CHARS` is no fact.
The same text gives the same facts in the same order.

**Out of scope.** What a text means. A name in plain prose, such as `parser`, is no fact.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["error", "exit", "place", "path", "url", "id", "name", "value"]

MOST_CHARS: Final = 200
"""The longest fact."""


class Fact(Struct, frozen=True, kw_only=True):
    """Something that a later action may name.

    Attributes:
        kind: `error` a line that reports one, `exit` an exit code, `place` a path with a line
            number, `path`, `url`, `id`, `name` a snake, camel or dotted identifier, `value` a
            number given to a name.
        text: as it stands in the text.
        start_chars: where it stands first.
    """

    kind: Kind
    text: str
    start_chars: int


_ANSI: Final = r"\x1b\[[0-9;]{0,16}[A-Za-z]"
_URL: Final = (
    r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,14}://"
    r"[^\s\"'`<>|(){}\[\]\\,;\x00-\x1f\x7f]++"
)
_DRIVE: Final = r"(?<!\w)[A-Za-z]:(?:\\{1,2}[\w.-]++)++"
_SCAN: Final = re.compile(
    rf"{_ANSI}|(?P<url>{_URL})|(?P<drive>{_DRIVE})|(?P<word>[\w@~./+#-]++)", re.ASCII
)
_ERROR: Final = re.compile(
    r"(?<![\"'`\w.])(?:"
    r"[A-Z]\w{0,60}(?:Error|Exception)\b:|[Ee]rror(?:\[\w{1,12}\]|[ ]\w{1,12})?:|ERROR\b|npm ERR!"
    r"|FAIL(?:ED|URE)?\b|(?:[Ff]atal|panic|[Cc]aused by|FATAL|CRITICAL|stderr): ?\S"
    r"|Traceback \(most|Exception in thread|[✗✘❌])"
    r"|\"error\": ?\"|: (?:No such file or directory|Permission denied|command not found)"
    r"|^E {2,6}\S"
)
_NUMBERED: Final = re.compile(r"\s{0,12}\d{1,7}(?:→|\t|: )")
_EXIT: Final = re.compile(
    r"\b[Ee]xit(?:ed)?(?: with)?(?: non-zero)?(?: exit)?(?: code| status)?[ :=]{1,3}-?\d{1,5}\b"
)
_VALUE: Final = re.compile(
    r"(?<![\w./-])[A-Za-z_][\w-]{2,60}+[\"']? ?(?::=|[:=]) ?[\"']?"
    r"-?\d{1,20}(?:\.\d{1,20}){0,3}(?:%|[A-Za-z]{1,3})?(?![\w.:/-])",
    re.ASCII,
)
_NAME: Final = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+", re.ASCII)
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_DIGITS: Final = re.compile(r"\d+")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX: Final = re.compile(r"(?:0x)?(?=[0-9a-f]{0,64}[0-9])(?=[0-9a-f]{0,64}[a-f])[0-9a-f]{7,64}")
_TICKET: Final = re.compile(r"[A-Za-z]{2,10}-(?=[A-Za-z0-9]{0,12}\d)[A-Za-z0-9]{3,12}(?:\.\d+)?")
_LONG_ID: Final = re.compile(r"(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Z])(?=\w{0,80}[a-z])[\w-]{20,80}")
_PLACE: Final = re.compile(r":(\d{1,7})(?::\d{1,5})?(?!\w)|\(\d{1,7},\d{1,5}\)")
_IN_CONTEXT: Final = re.compile(r"(.{1,190}?\.[A-Za-z]\w{0,5})-\d{1,7}(?:-|$)")
# fmt: off
_SUFFIXES: Final = frozenset((
    "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "db", "env", "go", "gz", "h", "hpp",
    "html", "ini", "ipynb", "java", "jpeg", "jpg", "js", "json", "jsonl", "jsx", "kt", "lock",
    "log", "lua", "map", "md", "mdx", "mjs", "mod", "php", "png", "proto", "ps1", "py", "pyi",
    "rb", "rs", "rst", "scala", "scss", "sh", "sql", "sqlite", "sum", "svelte", "svg", "swift",
    "tar", "tf", "toml", "ts", "tsv", "tsx", "txt", "vue", "xml", "yaml", "yml", "zip",
))
# fmt: on


def facts_in(text: str) -> tuple[Fact, ...]:
    """The distinct facts of a text, in the order in which they stand there.

    >>> [(fact.kind, fact.text) for fact in facts_in("src/app.py:12: call max_depth(root)")]
    [('path', 'src/app.py'), ('place', 'src/app.py:12'), ('name', 'max_depth')]
    """
    first: dict[str, Piece] = {}
    for piece in _pieces(text):
        first.setdefault(piece[1], piece)
    facts = (
        Fact(kind=kind, text=piece, start_chars=start)
        for kind, piece, start in first.values()
        if len(piece) <= MOST_CHARS
    )
    return tuple(sorted(facts, key=lambda fact: (fact.start_chars, fact.text)))


Piece: TypeAlias = tuple[Kind, str, int]


def _pieces(text: str) -> Iterator[Piece]:
    yield from _error_lines(text)
    for found in _EXIT.finditer(text):
        yield "exit", found.group(), found.start()
    for found in _VALUE.finditer(text):
        yield "value", found.group(), found.start()
    for found in _SCAN.finditer(text):
        piece, start = found.group(), found.start()
        match found.lastgroup:
            case "url":
                yield "url", piece.rstrip(".:!?*_"), start
            case "drive":
                yield "path", piece.rstrip("."), start
            case "word" if len(piece) <= MOST_CHARS:
                yield from _word(text, piece, start)
            case _:
                pass


def _error_lines(text: str) -> Iterator[Piece]:
    start = 0
    for line in text.split("\n"):
        head = line[:MOST_CHARS]
        if _ERROR.search(head):
            numbered = _NUMBERED.match(head)
            skipped = numbered.end() if numbered else len(head) - len(head.lstrip())
            body = head[skipped:].strip()
            if len(line) > MOST_CHARS:
                body = body.rsplit(" ", 1)[0]
            if body:
                yield "error", body, start + head.find(body)
        start += len(line) + 1


def _word(text: str, word: str, start: int) -> Iterator[Piece]:
    if word.isalpha() and word[1:].islower():
        return  # most words
    core = word.rstrip("./+#~@-")
    path = core.lstrip("-+#")
    if "/" in path and (context := _IN_CONTEXT.match(path)):
        path = context.group(1)
    if _is_path(path):
        start += len(core) - len(core.lstrip("-+#"))
        yield "path", path, start
        yield from _place(text, path, start)
        return
    bare = core.lstrip("./+#~@-")
    shift = start + len(core) - len(bare)
    if _is_id(bare):
        yield "id", bare, shift
        return
    for found in _NAME.finditer(bare):
        yield from _names(found.group(), shift + found.start())


def _place(text: str, path: str, start: int) -> Iterator[Piece]:
    end = start + len(path)
    if (found := _PLACE.match(text, end)) and "." in path:
        stop = found.end(1) if found.group(1) else found.end()
        yield "place", text[start:stop], start


def _is_path(word: str) -> bool:
    if word.startswith("//") or "://" in word:
        return False
    if "/" not in word:
        return _is_file(word)
    segments = [segment for segment in word.split("/") if segment.strip(".~")]
    if not segments or not any(c.isalpha() for c in word):
        return False
    rooted = word.startswith(("/", "./", "../", "~/", "@"))
    return (rooted and len(segments) > 1) or len(segments) > 2 or _is_file(segments[-1])


def _is_file(word: str) -> bool:
    stem, dot, suffix = word.rpartition(".")
    return bool(dot) and suffix.lower() in _SUFFIXES and any(c.isalnum() for c in stem)


def _is_id(word: str) -> bool:
    if not _DIGITS.search(word):
        return False
    return any(form.fullmatch(word) for form in (_HEX, _UUID, _TICKET, _LONG_ID))


def _names(chain: str, start: int) -> Iterator[Piece]:
    segments = chain.split(".")
    if len(segments) > 1 and segments[0] in ("this", "self"):
        start += len(segments[0]) + 1
        segments = segments[1:]
    if len(segments) > 2:
        yield "name", ".".join(segments), start
        return
    for segment in segments:
        if _is_name(segment):
            yield "name", segment, start
        start += len(segment) + 1


def _is_name(word: str) -> bool:
    if len(word) < 4:
        return False
    return "_" in word.strip("_") or bool(_CAMEL.search(word))


# What a later action names, by kind, and what a reader needs to see at all: the first errors.
_WEIGHTS: Final[dict[Kind, float]] = {
    "exit": 3.0,
    "path": 2.0,
    "id": 1.5,
    "name": 1.5,
    "value": 0.7,
    "url": 0.5,
    "place": 0.3,
}
_FIRST_ERROR: Final = 0.3
_ERRORS_UNTIL_HALF: Final = 8


def rank(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts by what a character spent on them is worth, the best first.

    Errors lead in their order and lose weight with their number. One that differs from an earlier
    one in digits only comes after everything else.
    """
    told: set[str] = set()
    worth: dict[Fact, float] = {}
    for fact in sorted(facts, key=lambda fact: (fact.start_chars, fact.text)):
        if fact.kind != "error":
            worth[fact] = _WEIGHTS[fact.kind] / _own_chars(fact)
            continue
        form = _DIGITS.sub("0", fact.text)
        worth[fact] = 0 if form in told else _FIRST_ERROR / (1 + len(told) / _ERRORS_UNTIL_HALF)
        told.add(form)
    return tuple(sorted(worth, key=lambda fact: (-worth[fact], fact.start_chars, fact.text)))


def _own_chars(fact: Fact) -> int:
    """What a fact costs: of a path its end, since others share its folders."""
    if fact.kind in ("path", "place"):
        return len(fact.text.rsplit("/", 1)[-1]) + 6
    return len(fact.text) + 1
