"""Every case in the folder that `BAROGRAPH_CASES` names holds, or is not possible yet."""

import re

import pytest

from cases import not_yet
from cases.kit import ABSENT, case_files, folder, read_case
from cases.registry import OPS, PROPERTIES, UnknownWordError, load

load()

if folder() is None:
    pytest.skip(ABSENT, allow_module_level=True)


@pytest.mark.parametrize("name", case_files())
def test_case(name, tmp_path):
    case = read_case(case_files()[name])
    check_vocabulary(case)
    blocked = not_yet.blocking(case.words())
    if blocked:
        pytest.skip(f"not yet: {reasons(blocked)}")
    run, _, _ = OPS[case.op]
    seen = run(case, tmp_path)
    words = case.words()
    if not_yet.relief_is_missed(case, seen.sent):
        words.add("relief:missed")
    waits = dict.fromkeys(not_yet.touched_by(words))
    touched = list(waits)
    held, faults = [], []
    for prop in case.properties:
        capability = not_yet.judged_elsewhere(prop, touched)
        if capability is not None:
            waits[capability] = None
            continue
        arguments = {key: value for key, value in prop.items() if key != "prop"}
        found = list(PROPERTIES[prop["prop"]](seen, **arguments))
        faults += [f"{prop['prop']}: {fault}" for fault in found]
        held.append(prop["prop"])
    assert not faults, "\n".join(faults)
    if waits:
        rest = f"; what holds: {', '.join(dict.fromkeys(held))}" if held else ""
        pytest.skip(f"not yet: {reasons(waits)}{rest}")


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


def check_vocabulary(case):
    """Fail on every word that nobody here knows."""
    waited = {word.partition(":")[0] for one in not_yet.NOT_YET for word in one.properties}
    unknown = [p["prop"] for p in case.properties if p["prop"] not in PROPERTIES.keys() | waited]
    unknown += [word for word in case.words() if not is_known(case.op, word)]
    if unknown:
        raise UnknownWordError(f"{case.id} uses {', '.join(sorted(unknown))}")


def is_known(op, word):
    """Whether an op understands an input or setting, or waits for a capability that will."""
    kind, _, name = word.partition(":")
    _, takes, settings = OPS.get(op, (None, (), ()))
    known = {
        "op": name in OPS,
        "form": name == "anthropic",
        "input": name.partition(":")[0] in takes,
        "setting": name in settings,
        "usage": name in ("anthropic", "langchain"),
    }
    is_waited = word in not_yet.known_words()
    return known[kind] or is_waited or not_yet.blocking({f"op:{op}"}) != []


def reasons(capabilities):
    return "; ".join(f"{one.name} ({one.reason})" for one in capabilities)
