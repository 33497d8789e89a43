"""What may enter a frame in which kind of run: the table of the documentation holds."""

import re
from pathlib import Path

import pytest

from barograph import frame
from barograph.core.state import State
from barograph.frame import Ask, Composer, Source
from barograph.store import MemoryStore

PAGE = Path(__file__).parents[2] / "docs/howto/frames.md"
ROWS = re.findall(
    r"^\| ([^|]+) \| (yes|no) \| (yes|no) \| (yes|no) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)
MAKERS = {
    "Knowledge": lambda store, _: frame.knowledge_source(frame.Knowledge(store.index.passages)),
    "Hot memory": lambda store, _: frame.hot_memory(store.index.passages),
    "Digest of other sessions": lambda store, _: frame.session_digest(store),
    "Working state": lambda *_: frame.working_state(),
    "Skills": lambda _, folder: frame.skills(folder),
    "One of your own": lambda *_: Source(name="own", compose=lambda _: "text"),
}


def test_the_table_has_every_ready_source():
    assert [row[0] for row in ROWS] == list(MAKERS)


@pytest.mark.parametrize(
    ("name", *("normal", "goal", "private")), ROWS, ids=[row[0] for row in ROWS]
)
def test_a_source_is_asked_in_the_modes_of_the_table(name, normal, goal, private, tmp_path):
    store = MemoryStore()
    source = MAKERS[name](store, tmp_path)
    for mode, told in (("normal", normal), ("goal", goal), ("private", private)):
        assert (mode in source.modes) == (told == "yes")
        ask = Ask(session="s", path="main", text="Hello.", at=0.0, mode=mode, state=State())
        assert len(Composer([source]).compose(ask).sections) == (told == "yes")
    store.close()
