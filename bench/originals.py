"""Whether every text of a session comes back, however often it was folded.

Every recording is replayed under `balanced` in windows that hold a share of its largest history, so
that most of it gives way to stubs and summaries. Then each message that the log took in is read
back by its handle, twice: with the model's own tool `read_original`, piece by piece, and with
`barograph unfold`. What comes back is compared, by its hash, with what the recording has: each tool
result under the id of its call, each message of the user, each message of the model with the
arguments of its calls. Thinking, pictures and documents are no text that a tool could show; they
are looked up in the log. Exit code 1 says that something is lost.

    BAROGRAPH_CORPUS=... python bench/originals.py [PATH...] --share 0.2
"""

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from click.testing import CliRunner

from barograph.audit.recorded import Recording, find_recordings, read_recording
from barograph.audit.replay import ReplayOptions, replay_file
from barograph.cli.unfold import command as unfold
from barograph.core.canonical import dump_json, hash_body
from barograph.core.engine import Engine
from barograph.core.events import (
    Compacted,
    Event,
    MessageLeftOut,
    MessageSeen,
    Pruned,
    ResponseCame,
)
from barograph.core.parts import Document, Image, Opaque, Parts, Thinking, ToolResult, texts_in
from barograph.core.policy import Policy
from barograph.core.texts import excerpt_head
from barograph.langchain.places import PARENT, Parent
from barograph.langchain.tools import RECALL
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import SqliteStore
from barograph.store.originals import MOST_CHARS, parts_of
from barograph.store.session import Session

SHARES: Final = (0.6, 0.35, 0.2)
BALANCED: Final = Policy(name="balanced")
_HANDLE: Final = re.compile(r'read_original\("(#\d+)"')
_RESULT, _CALL, _THINKING = "tool_result", "tool_use", "thinking"


class Text(NamedTuple):
    """What is to come back: the tool call that it answers, or who says it; and its hash."""

    of: str
    hash: str


class Sum(NamedTuple):
    """One recording or several.

    Attributes:
        texts: that are to come back.
        chars: in them.
        others: thinking, pictures and documents.
        hidden: messages for which a stub or a summary stood at least once.
        named: handles that stubs named to the model.
        lost: what did not come back as it was, by the way that was tried; `handle` counts stubs
            that name another original than their own.
    """

    texts: int
    chars: int
    others: int
    hidden: int
    named: int
    lost: Counter[str]


class Recorded:
    """What a recording says, as it is to come back."""

    def __init__(self, recording: Recording) -> None:
        self.texts: Counter[Text] = Counter()
        self.others: Counter[str] = Counter()
        self.chars = 0
        for call in recording.calls:
            for message in call.append:
                self._message(message["role"], message["content"])
            self._message("assistant", call.response)

    def _message(self, role: str, blocks: Sequence[Mapping[str, Any]]) -> None:
        for block in blocks:
            if block["type"] == _RESULT:
                self._text(block["tool_use_id"], _texts(block.get("content") or []))
        said = [block for block in blocks if block["type"] != _RESULT]
        if said:
            self._text(role, _texts(said))
        self.others.update(_other_hashes(blocks))

    def _text(self, of: str, texts: Iterator[str]) -> None:
        text = "\n".join(texts)
        self.chars += len(text)
        self.texts[Text(of, _hash(text))] += 1


def _texts(content: str | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == _CALL:
            yield dump_json(block["input"]).decode()


def _other_hashes(content: str | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for block in () if isinstance(content, str) else content:
        if block["type"] == _RESULT:
            yield from _other_hashes(block.get("content") or [])
        elif block["type"] == _THINKING:
            yield _hash(block.get("thinking") or "")
        elif block["type"] not in ("text", _CALL):
            yield _hash(dump_json(block).decode())


def _hash(text: str) -> str:
    return hash_body(text.encode("utf-8", "replace"))


class Reader:
    """Reads a kept store as a model and as a person do."""

    def __init__(self, place: Path, store: SqliteStore) -> None:
        self._place, self._store = place, store
        (self._tool,) = (one for one in RECALL if one.name == "read_original")
        self._runner = CliRunner()

    @contextmanager
    def inside(self, session: str) -> Iterator[None]:
        """Where the tool runs: in a tool call of that session."""
        engine = Engine(AnthropicCodec(), BALANCED)
        opened = Session.open(self._store, session, engine, at=0.0, made_by="bench/originals.py")
        token = PARENT.set(Parent(opened, "main", ""))
        try:
            yield
        finally:
            PARENT.reset(token)

    def by_tool(self, handle: str) -> str:
        """Piece by piece, as far as the head of each says that there is more."""
        text, total = "", 1
        while len(text) < total:
            asked = {"id": handle, "start": len(text), "length": MOST_CHARS}
            head, found, piece = self._tool.invoke(asked).partition("]\n")
            total = int(head.rpartition(" of ")[2].rstrip(".").replace(",", ""))
            if head + found != excerpt_head(len(text), len(piece), total) or not (piece or text):
                return text
            text += piece
        return text

    def by_command(self, session: str, handle: str) -> str:
        """What `barograph unfold` prints."""
        done = self._runner.invoke(unfold, [session, handle, "--store", str(self._place)])
        return done.stdout_bytes.decode().removesuffix("\n")


class Findings:
    """What a store gives back of a recording."""

    def __init__(self, recording: Recording, place: Path, store: SqliteStore) -> None:
        self._store, self._reader = store, Reader(place, store)
        self._recorded = Recorded(recording)
        self._left = {way: Counter(self._recorded.texts) for way in ("tool", "command")}
        self._others = Counter(self._recorded.others)
        self._hidden: set[tuple[str, int]] = set()
        self._named: set[tuple[str, str]] = set()
        self._strange = 0
        for info in store.sessions():
            self._answers: dict[str, int] = {}
            with self._reader.inside(info.session):
                for seq, event in list(store.read(info.session)):
                    self._take(info.session, seq, event)
                for seq in self._answers.values():
                    self._read(info.session, seq, "assistant")

    @property
    def sum(self) -> Sum:
        """In figures."""
        lost = {way: sum((+texts).values()) for way, texts in self._left.items()}
        lost |= {"log": sum((+self._others).values()), "handle": self._strange}
        return Sum(
            texts=sum(self._recorded.texts.values()),
            chars=self._recorded.chars,
            others=sum(self._recorded.others.values()),
            hidden=len(self._hidden),
            named=len(self._named),
            lost=Counter(lost),
        )

    def _take(self, session: str, seq: int, event: Event) -> None:
        match event:
            case Pruned():
                self._hidden |= {(session, stub.seq) for stub in event.stubs}
                for stub in event.stubs:
                    handles = set(_handles(stub.parts))
                    self._named |= {(session, handle) for handle in handles}
                    self._strange += bool(handles - {f"#{stub.seq}"})
            case Compacted():
                self._hidden |= {(session, one) for one in event.shadows}
            case MessageSeen(origin="caller" | "model" | "tool") | MessageLeftOut():
                if event.role == "assistant":
                    self._answers.pop(event.path, None)
                self._read(session, seq, event.role)
            case ResponseCame() if event.parts:
                self._answers[event.path] = seq  # until it is shown again; the last one never is
            case _:
                pass

    def _read(self, session: str, seq: int, role: str) -> None:
        parts, handle = parts_of(self._store, session, seq), f"#{seq}"
        first = parts[0] if parts else None
        of = first.call_id if isinstance(first, ToolResult) else role
        by_tool, by_command = self._reader.by_tool(handle), self._reader.by_command(session, handle)
        self._left["tool"][Text(of, _hash(by_tool))] -= 1
        self._left["command"][Text(of, _hash(by_command))] -= 1
        self._others.subtract(_other_parts(parts))


def _handles(parts: Parts) -> Iterator[str]:
    for text in texts_in(parts):
        yield from _HANDLE.findall(text)


def _other_parts(parts: Parts) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ToolResult):
            yield from _other_parts(part.content)
        elif isinstance(part, Thinking):
            yield _hash(part.text)
        elif isinstance(part, Image | Document | Opaque):
            yield _hash(part.block)


def main() -> int:
    """Print a row for each window."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--share", type=float, action="append", dest="shares")
    given = parser.parse_args()
    folder = os.environ.get("BAROGRAPH_CORPUS")
    paths = given.paths or ([Path(folder)] if folder else [])
    if not paths:
        print("BAROGRAPH_CORPUS names no folder of recorded sessions: originals skipped.")
        return 0
    print("| window | texts | characters | hidden | named in stubs | other blocks | lost |")
    print("|---|---|---|---|---|---|---|")
    lost = 0
    for share in given.shares or SHARES:
        found = total_of(sweep(path, share) for path in find_recordings(paths))
        lost += found.lost.total()
        ways = ", ".join(f"{n} by {way}" for way, n in found.lost.items() if n)
        print(
            f"| f{share:g} | {found.texts:,} | {found.chars:,} | {found.hidden:,} | "
            f"{found.named:,} | {found.others:,} | {ways or 0} |",
            flush=True,
        )
    return int(bool(lost))


def sweep(path: Path, share: float) -> Sum:
    """Replay a recording, and read all of it back."""
    with tempfile.TemporaryDirectory(prefix="barograph-originals-") as folder:
        place = Path(folder) / "sessions.db"
        replay_file(
            path,
            ReplayOptions(
                policy=BALANCED, window_share=share, mode="direct", rewrites="ignore", store=place
            ),
        )
        with closing(SqliteStore(place)) as store:
            return Findings(read_recording(path, rewrites="ignore"), place, store).sum


def total_of(sums: Iterable[Sum]) -> Sum:
    """All together."""
    columns = zip(*sums, strict=True)
    return Sum(*(sum(column, type(column[0])()) for column in columns))


if __name__ == "__main__":
    sys.exit(main())
