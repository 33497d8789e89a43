r"""The index of facts that a stub carries, and how to read it.

Facts stand in up to four groups, each on lines of its own: error lines, behind `! `; paths; names,
ids and URLs; numbers and exit codes, parted by `; `. Paths that share a folder share its spelling,
as in a shell: `src/{app.py:12,40 core/{a.py b.py}}` reads `src/app.py:12`, `src/app.py:40`,
`src/core/a.py` and `src/core/b.py`. `expand_index` undoes this.

A fact comes from text that anybody may have written: what cannot be printed, and the brackets of
our markers, do not get in.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from barograph.core.facts import Fact, Kind
from barograph.core.texts import MARK_CLOSES, MARK_OPENS

Group: TypeAlias = Literal["error", "word", "value"]

ERROR_SIGN: Final = "! "
_GROUPS: Final[dict[Kind, Group]] = {"error": "error", "value": "value", "exit": "value"}


def build_index(ranked: Iterable[Fact], *, budget_chars: int) -> str:
    """As many of these facts as fit, the first ones first, in the order of the text."""
    room = _Index()
    chosen: list[Fact] = []
    for fact in ranked:
        cost_chars = room.cost_chars(fact)
        if cost_chars <= budget_chars:
            budget_chars -= cost_chars
            room.add(fact)
            chosen.append(fact)
    index = _Index()
    for fact in sorted(chosen, key=lambda fact: fact.start_chars):
        index.add(fact)
    return index.render()


def expand_index(index: str) -> str:
    """The index with every path spelled out."""
    return "\n".join(
        line if line.startswith(ERROR_SIGN) else " ".join(_expand(line))
        for line in index.split("\n")
    )


def printable(text: str) -> str:
    """Text that can neither end a marker nor a line, nor hide or turn what follows it."""
    clean = text.replace(MARK_OPENS, "[").replace(MARK_CLOSES, "]")
    return clean if clean.isprintable() else "".join(c if c.isprintable() else " " for c in clean)


class _Index:
    """What was chosen so far."""

    def __init__(self) -> None:
        self._groups: dict[Group, dict[str, None]] = {"error": {}, "word": {}, "value": {}}
        self._tree = Node("")

    def cost_chars(self, fact: Fact) -> int:
        """What one more fact costs at most."""
        text = printable(fact.text)
        if _is_in_tree(fact):
            path, _, line = text.partition(":")
            return self._tree.cost_chars(path.split("/"), line)
        return len(text) + 2 + (len(ERROR_SIGN) if fact.kind == "error" else 0)

    def add(self, fact: Fact) -> None:
        """Take a fact in."""
        text = printable(fact.text)
        if _is_in_tree(fact):
            path, _, line = text.partition(":")
            self._tree.add(path.split("/"), line)
        else:
            self._groups[_GROUPS.get(fact.kind, "word")][text] = None

    def render(self) -> str:
        """The lines of the index; none is empty."""
        groups = (
            "\n".join(ERROR_SIGN + error for error in self._groups["error"]),
            " ".join(word for node in self._tree.below.values() for word in node.render()),
            " ".join(self._groups["word"]),
            "; ".join(self._groups["value"]),
        )
        return "\n".join(group for group in groups if group)


class Node:
    """A folder or file in the tree of paths, with the line numbers that are named."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.below: dict[str, Node] = {}
        self.lines: dict[str, None] = {}

    def add(self, segments: Iterable[str], line: str) -> None:
        """Enter a path from here on."""
        node = self
        for segment in segments:
            node = node.below.setdefault(segment, Node(segment))
        if line:
            node.lines[line] = None

    def cost_chars(self, segments: Sequence[str], line: str) -> int:
        """What a further path costs at most, the space behind it included."""
        node = self
        line_chars = len(line) + 1 if line else 0
        for depth, segment in enumerate(segments):
            if segment not in node.below:
                new_chars = sum(len(name) + 1 for name in segments[depth:])
                braces = 2 if depth and len(node.below) == 1 else 0
                return new_chars + line_chars + braces + node.split_chars(bool(node.lines), depth)
            node = node.below[segment]
        if not line:
            return 0
        return line_chars + node.split_chars(bool(node.below), len(segments))

    def split_chars(self, is_other_taken: bool, depth: int) -> int:
        """The price of being named twice, once with lines and once as a folder."""
        is_split = bool(self.below) and bool(self.lines)
        return len(self.name) + 3 if depth and is_other_taken and not is_split else 0

    def render(self) -> Iterator[str]:
        """The words that spell what is here."""
        if self.lines or not self.below:
            yield self.name + (":" + ",".join(self.lines) if self.lines else "")
        if self.below:
            inner = [word for node in self.below.values() for word in node.render()]
            yield f"{self.name}/" + (inner[0] if len(inner) == 1 else "{" + " ".join(inner) + "}")


def _is_in_tree(fact: Fact) -> bool:
    return fact.kind in ("path", "place") and "\\" not in fact.text


def _expand(line: str) -> Iterator[str]:
    """Every path of a line, spelled out, in order."""
    above, word = [""], ""
    for char in line + " ":
        if char == "{":
            above.append(above[-1] + word)
            word = ""
        elif char in " }":
            if word:
                yield from _numbered(above[-1] + word)
            word = ""
            if char == "}" and len(above) > 1:
                above.pop()
        else:
            word += char


def _numbered(path: str) -> Iterator[str]:
    stem, _, numbers = path.partition(":")
    if "," in numbers and "//" not in path:
        yield from (f"{stem}:{number}" for number in numbers.split(","))
    else:
        yield path
