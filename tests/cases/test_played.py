"""Runs of cases that are written here: what frames and private sessions show to the checks."""

import pytest

from cases.kit import Case
from cases.registry import OPS, PROPERTIES, load

load()

TURNS = [{"user": f"secret {n}", "model": [{"role": "assistant", "content": "ok"}]} for n in "abc"]
AGAIN = {"restart_process": True}


def played(op, folder, *, settings=None, **given):
    given = {"turns": TURNS, "settings": settings or {}, **given}
    return OPS[op].run(Case("c", op, "anthropic", given, ()), folder)


def faults(seen, prop, /, **arguments):
    return list(PROPERTIES[prop](seen, **arguments))


def clock(*values):
    return [{"name": "clock", "values": list(values)}]


@pytest.mark.parametrize("values", [("one", "two"), ("one",)], ids=["changing", "constant"])
def test_a_source_is_read_once_a_turn_and_its_last_value_repeats(tmp_path, values):
    seen = played("request_sequence", tmp_path, volatile_sources=clock(*values))

    assert seen.reads == {"clock": 3}
    assert faults(seen, "source_read_count", name="clock", eq=3) == []
    assert faults(seen, "text_absent", text=values[0], where="system") == []
    said = [str(body["messages"]).count(f"\\n{values[-1]}\\n") for body in seen.bodies()]
    assert said == ([0, 1, 1] if len(values) > 1 else [1, 1, 1])


def test_a_source_that_is_not_there_is_no_source_that_was_never_read(tmp_path):
    seen = played("request_sequence", tmp_path)

    with pytest.raises(LookupError):
        faults(seen, "source_read_count", name="clock", eq=0)


def test_a_source_goes_on_where_it_was_after_a_restart(tmp_path):
    turns = [TURNS[0], AGAIN, TURNS[1]]
    sources = clock("one", "two", "three")
    seen = played("request_sequence", tmp_path, turns=turns, volatile_sources=sources)

    assert seen.reads == {"clock": 2}
    assert faults(seen, "text_present", text="two", where="messages") == []


def test_a_private_session_leaves_nothing_and_another_does(tmp_path):
    places = {one: tmp_path / str(one) for one in (True, False)}
    found = {}
    for is_private, place in places.items():
        place.mkdir()
        turns = [*TURNS[:2], AGAIN, TURNS[2]]
        seen = played("privacy", place, turns=turns, settings={"private": is_private})
        checks = ("disk_absent", {"text": "secret"}), ("thread_absent_after_restart", {})
        found[is_private] = [bool(faults(seen, name, **more)) for name, more in checks]
        assert "secret a" in str(seen.bodies()[1])
        assert ("secret a" in str(seen.bodies()[2])) is not is_private

    assert found == {True: [False, False], False: [True, True]}
    assert list(places[True].iterdir()) == []
