"""Two readings of a prefix are compared: what differs, of which kind, and nothing that does not."""

import json
import random
import time
import uuid
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.prefixlint import Reading, compare, lint, suspect

PROSE = (
    "You help with orders placed since 2024-01-15 (see policy 3.11.2 and release v1.2.3).\n"
    "Hours are 09:00 to 17:00, on May 1st closed. Call +49 30 1234567, room 0x10.\n"
    "Scale 1:100; the constant is 6.02214076; commit 9fceb02d0ae598e95dc970b74767f19372d61af8."
)
NOW = 1_796_264_269.8
TODAY = ("2026-12-03", "December 3, 2026")


def system(*texts, **more):
    return Reading(system=texts, **more)


def tools(*definitions):
    return Reading(tools=json.dumps(definitions))


def tool(name, description="Does it.", **schema):
    return {"name": name, "description": description, "input_schema": schema}


def kinds(findings):
    return [(one.label, one.kind) for one in findings]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("2026-12-03T02:17:49.812902+00:00", "2026-12-03T02:17:51+00:00", "moment"),
        ("2026-12-03", "2026-12-04", "moment"),
        ("12/3/2026", "12/4/2026", "moment"),
        ("December 3, 2026", "December 4, 2026", "moment"),
        ("3rd Dec 2026", "4th Dec 2026", "moment"),
        ("Thursday, 2:17 PM", "Friday, 12:05 AM", "moment"),
        ("Thu Dec  3 02:17:49 2026", "Fri Dec  4 02:17:49 2026", "moment"),
        ("20261203T021749Z", "20261203T021750Z", "moment"),
        ("1796264269", "1796264270", "moment"),
        ("1796264269812", "1796264270990", "moment"),
        ("1796264269.81", "1796264271", "moment"),
        ("3f2b8c1e-0d4a-4f6b-9a57-1c2d3e4f5a6b", "0d4a8c1e-3f2b-4f6b-9a57-1c2d3e4f5a6b", "id"),
        ("a3f9c2d1", "12345678", "id"),
        ("<Shop object at 0x7f00aa11bb22>", "<Shop object at 0x7f00aa11cc33>", "address"),
        ("{'green', 'red'}", "{'red', 'green'}", "order"),
        ("Monday, Tuesday", "Tuesday, Monday", "order"),
        ("a3f9c2d1 and b3f9c2d1", "b3f9c2d1 and a3f9c2d1", "order"),
        ("red apple\n- green pear", "green pear\n- red apple", "order"),
        ("pid 4711", "pid 4712", "text"),
        ("call 12345678", "call 12345679", "text"),
        ("They like tea.", "They like coffee and tea.", "text"),
        ("", "They like tea.", "text"),
    ],
)
def test_what_differs_is_of_its_kind(before, after, kind):
    texts = (f"Be kind. {PROSE}\n{one}\n{PROSE}" for one in (before, after))
    (found,) = compare(*map(system, texts))

    assert (found.kind, found.where, found.grade) == (kind, "system", "proven")
    assert found.before != found.after
    assert found.fix.endswith(".")


def test_several_differences_in_one_text_are_all_named():
    text = "Request {}, it is {}.\nMails: {}\nTags: {}\nBe kind."
    before = text.format(uuid.UUID(int=1), "10:05", 7, "red, green")
    after = text.format(uuid.UUID(int=2), "10:06", 8, "green, red")

    found = compare(system(before), system(after))

    assert [one.kind for one in found] == ["id", "moment", "text", "order"]
    assert "Mails: 7" in found[2].before
    assert "Mails: 8" in found[2].after


def test_a_block_of_several_is_named_by_its_number():
    found = compare(system("Be kind.", "It is 10:05."), system("Be kind.", "It is 10:06."))

    assert kinds(found) == [("system prompt, block 2", "moment")]


def test_tools_in_another_order_are_named_in_both_orders():
    (found,) = compare(tools(tool("look"), tool("act")), tools(tool("act"), tool("look")))

    assert (found.label, found.kind) == ("order of the tools", "order")
    assert (found.before, found.after) == ("look, act", "act, look")
    assert "fixed order" in found.fix


def test_a_tool_more_or_less_is_named():
    found = compare(tools(tool("look")), tools(tool("act"), tool("look")))

    assert kinds(found) == [("tool act", "tools")]


def test_a_definition_is_compared_leaf_by_leaf():
    before = tool(
        "find", "Finds. As of 10:05.", properties={"in": {"enum": ["web", "mail", "disk"]}}
    )
    after = tool(
        "find", "Finds. As of 10:06.", properties={"in": {"enum": ["disk", "web", "mail"]}}
    )

    assert kinds(compare(tools(before), tools(after))) == [
        ("tool find, description", "moment"),
        ("tool find, input_schema.properties.in.enum", "order"),
    ]


def test_keys_of_a_schema_in_another_order_are_an_order():
    one = tool("find", properties={"words": {"type": "string"}, "most": {"type": "integer"}})
    other = tool("find", properties={"most": {"type": "integer"}, "words": {"type": "string"}})

    assert kinds(compare(tools(one), tools(other))) == [("tool find", "order")]


def test_a_parameter_more_is_another_text():
    one = tool("find", properties={"words": {"type": "string"}})
    other = tool("find", properties={"words": {"type": "string"}, "most": {"type": "integer"}})

    assert kinds(compare(tools(one), tools(other))) == [("tool find", "text")]


@given(st.lists(st.text()), st.lists(st.dictionaries(st.text(), st.text())))
def test_equal_readings_differ_in_nothing(texts, definitions):
    reading = Reading(system=tuple(texts), tools=json.dumps(definitions))

    assert compare(reading, reading) == ()
    assert lint([reading, reading]) == suspect(reading, is_compared=True)


@given(st.text(), st.text())
def test_any_two_texts_that_differ_are_told_apart(before, after):
    assert bool(compare(system(before), system(after))) == (before != after)


@given(
    st.lists(st.sampled_from(("alpha", "beta", "gamma", "2024-01-15", "a3f9c2d1")), unique=True),
    st.randoms(use_true_random=False),
    st.sampled_from([", ", "\n", "', '"]),
)
def test_a_shuffled_list_is_always_an_order(items, chance, comma):
    shuffled = items.copy()
    chance.shuffle(shuffled)
    texts = (f"{PROSE}\nOf {comma.join(each)}.\nGo." for each in (items, shuffled))

    found = compare(*map(system, texts))

    assert {one.kind for one in found} == ({"order"} if items != shuffled else set())


@given(st.datetimes(datetime(2002, 1, 1), datetime(2090, 1, 1)), st.integers(1, 10**6))  # noqa: DTZ001
def test_a_clock_is_a_moment_however_it_is_spelled(moment, later):
    other = datetime.fromtimestamp(moment.timestamp() + later, UTC).replace(tzinfo=None)
    for spelled in (
        "%Y-%m-%dT%H:%M:%S.%f",
        "%A, %d %B %Y, %H:%M:%S",
        "%c",
        "%b %d, %Y %I:%M:%S %p",
    ):
        texts = [each.strftime(spelled) for each in (moment, other)]
        found = compare(*(system(f"{PROSE} It is {text}. Be kind.") for text in texts))
        assert {one.kind for one in found} <= {"moment"}
        assert bool(found) == (texts[0] != texts[1])


@given(st.uuids(version=4), st.uuids(version=4))
def test_a_random_id_is_an_id(one, other):
    for spell in (str, lambda each: each.hex, lambda each: each.hex[:12]):
        found = compare(*(system(f"Session {spell(each)}: go") for each in (one, other)))
        assert {each.kind for each in found} <= {"id"}


def test_prose_is_no_suspect():
    reading = system(PROSE, at=NOW, days=TODAY)

    assert suspect(reading) == ()


@pytest.mark.parametrize(
    ("text", "kind", "can_be_cleared"),
    [
        ("Built at 2024-01-15T10:22:11Z.", "moment", True),
        ("It is Jan 15, 2024 at 10:22 AM.", "moment", True),
        ("It is Mon Jan 15 10:22:11 2024.", "moment", True),
        ("It is 2026-12-03 02:17.", "moment", False),
        ("Today is 2026-12-03.", "moment", False),
        ("Today is Thursday, December 3, 2026.", "moment", False),
        ("now=1796264200", "moment", False),
        ("now=1796264200123", "moment", False),
        ("You serve 3f2b8c1e-0d4a-4f6b-9a57-1c2d3e4f5a6b.", "id", True),
        ("Tools: <function look at 0x7f00aa11bb22>", "address", False),
    ],
)
def test_one_reading_gives_suspects(text, kind, can_be_cleared):
    reading = system(f"{PROSE}\n{text}", at=NOW, days=TODAY)
    (found,) = suspect(reading)

    assert (found.kind, found.grade, found.between) == (kind, "suspect", None)
    assert text[-20:] in found.before
    assert suspect(reading, is_compared=True) == (() if can_be_cleared else (found,))


def test_a_tool_is_suspect_too():
    reading = tools(
        tool("look", properties={"shop": {"default": "<Shop object at 0x7f00aa11bb22>"}})
    )

    assert kinds(suspect(reading)) == [
        ("tool look, input_schema.properties.shop.default", "address")
    ]


def test_what_differs_between_calls_is_not_told_of_processes_again():
    readings = [
        system("It is 10:05. Tags: red, green"),
        system("It is 10:07. Tags: green, red", process=2),
        system("It is 10:06. Tags: red, green"),
    ]

    found = lint(readings)

    assert [(one.kind, one.between) for one in found] == [
        ("moment", "calls"),
        ("order", "processes"),
    ]


def test_a_time_zone_of_another_name_is_no_finding():
    readings = [
        system("It is 10:05. The zone is CET."),
        system("It is 21:48. The zone is UTC-24.", process=2, is_shifted=True),
    ]

    assert [one.kind for one in lint(readings)] == ["moment"]
    assert lint([]) == ()


def test_a_long_prompt_is_compared_in_no_time():
    chance = random.Random(7)
    words = " ".join(
        chance.choice(["red", "2024-01-15", "<", "a3f9c2d1", "10:05"]) for _ in range(60_000)
    )
    start = time.process_time()

    found = compare(system(f"{words} 10:05 {words}"), system(f"{words} 10:06 {words}"))

    assert kinds(found) == [("system prompt", "moment")]
    assert time.process_time() - start < 5


def test_a_schema_too_deep_to_be_read_is_compared_as_text_and_hides_no_other_tool():
    schema = {}
    for _ in range(200):
        schema = {"properties": {"a": schema}}
    deep = {"name": "deep", "input_schema": schema}
    others = [{"name": "look", "description": f"It is 10:0{n}."} for n in range(2)]
    before, after = (
        tools(other, deep | {"description": "x" * n}) for n, other in enumerate(others)
    )

    found = [(one.label, one.kind) for one in compare(before, after)]

    assert found == [
        ("tool look, description", "moment"),
        ("tool that cannot be read", "text"),
    ]
    assert suspect(before) == ()
