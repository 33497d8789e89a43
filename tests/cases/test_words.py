"""Every word that a case may use is played, or waited for by name."""

import re

import pytest

from cases import not_yet
from cases.kit import ABSENT, folder
from cases.registry import OPS, PROPERTIES, load
from cases.words import is_known

load()

if folder() is None:
    pytest.skip(ABSENT, allow_module_level=True)


def test_every_word_of_the_readme_is_known():
    """A word that the cases may use is either played or waited for, by name."""
    readme = folder() / "README.md"
    if not readme.is_file():
        pytest.skip("the folder of the cases has no README.md")
    text = readme.read_text("utf-8")
    properties = re.findall(
        r"^\| (\w+) \|", text.split("| property |")[1].split("| op |")[0], re.MULTILINE
    )
    ops = re.findall(r"^\| (\w+) \| (.+) \|$", text.rsplit("| op |", 1)[1], re.MULTILINE)
    waited = {word.partition(":")[0] for one in not_yet.NOT_YET for word in one.properties}
    assert len(properties) > 100
    assert [one for one in properties if one not in PROPERTIES and one not in waited] == []
    unknown = []
    for op, keys in ops:
        for key in keys.split(", "):
            if key not in ("op", "form", "settings"):
                word = f"setting:{key[9:]}" if key.startswith("settings.") else f"input:{key}"
                unknown += [(op, word)] if not is_known(op, word) else []
    assert unknown == []


def test_what_is_waited_for_is_not_there():
    """The list of what is not possible yet, printed, and held to the code: nothing on it exists."""
    for one in not_yet.NOT_YET:
        print(f"not yet: {one.name}: {one.reason}")  # noqa: T201 - the list is the point
    grown = [one.name for one in not_yet.NOT_YET if not_yet.is_grown(one)]
    assert grown == [], "these exist now: write their adapters and take them off the list"
    blocked = {word for one in not_yet.NOT_YET for word in one.blocks}
    assert [op for op in OPS if f"op:{op}" in blocked] == []
    waited = {word for one in not_yet.NOT_YET for word in one.properties if ":" not in word}
    assert sorted(waited & PROPERTIES.keys()) == []
