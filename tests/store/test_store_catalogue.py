"""Every event type of every past schema can be read, and the present form has not moved."""

import msgspec
import pytest
from golden import FIXTURES, encode, examples, load, path_of
from vocabulary import EVENT_TYPES, tag_of

from barograph.core.events import SCHEMA
from barograph.store.codec import decode_record

EXAMPLES = dict(examples())
STORED = sorted(FIXTURES.rglob("*.json"))


def test_every_schema_up_to_the_present_one_has_fixtures():
    folders = {path.name for path in FIXTURES.iterdir()}
    assert folders == {f"schema-{number}" for number in range(1, SCHEMA + 1)}


def test_every_event_type_has_a_fixture_of_the_present_schema():
    names = {path.stem for path in path_of("any").parent.iterdir()}
    assert names == set(EXAMPLES)
    assert {tag_of(kind) for kind in EVENT_TYPES} <= names


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_event_is_stored_in_the_bytes_of_its_fixture(name):
    assert path_of(name).read_bytes() == encode(EXAMPLES[name])


def test_a_default_is_nothing_or_one_of_these_and_never_changes():
    """Another default would give another meaning to every event that was stored without it."""
    told = {
        (tag_of(kind), name, repr(default))
        for kind in EVENT_TYPES
        for name, default in zip(
            reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False
        )
        if default is not msgspec.NODEFAULT and default not in {None, (), "", 0}
    }
    assert told == {
        ("session_opened", "mode", "'normal'"),
        ("summary_asked", "cause", "'pressure'"),
        ("pinned", "holds", "True"),
    }


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_event_of_any_schema_decodes(path):
    golden = load(path)
    event = decode_record("golden", 1, golden.record, golden.body)
    assert type(event) in EVENT_TYPES
    assert tag_of(type(event)) == path.stem.removesuffix(".large")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fixture_of_the_present_schema_decodes_to_its_event(name):
    golden = load(path_of(name))
    assert decode_record("golden", 1, golden.record, golden.body) == EXAMPLES[name]
