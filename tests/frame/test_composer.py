"""Sources of others' making: whatever one does or gives, the turn goes on with the rest."""

import asyncio
import threading
import time

import pytest
from msgspec.structs import replace

from barograph.core.errors import UsageError
from barograph.core.state import State
from barograph.core.trust import Item
from barograph.frame import MODES, Ask, Composer, Source, SourceTool

ASK = Ask(session="s", path="main", text="hello", at=0.0, mode="normal", state=State())
GOOD = Source(name="good", compose=lambda _: "Fine.", trust="operator")


class Wordless(Exception):
    def __str__(self):
        raise ValueError("no words")


def _name(error):
    return type(error).__name__


def raising(error):
    def compose(_):
        raise error

    return compose


def araising(error):
    async def compose(_):
        raise error

    return compose


def both(*sources):
    """What a sync and an async agent are offered."""
    yield Composer(sources).compose(ASK)
    yield asyncio.run(Composer(sources).acompose(ASK))


ERRORS = [
    ValueError("\ud800"),
    Wordless(),
    StopIteration(),
    SystemExit(2),
    asyncio.CancelledError(),
    TimeoutError("upstream"),
]


@pytest.mark.parametrize("error", [*ERRORS, KeyboardInterrupt(), GeneratorExit()], ids=_name)
def test_whatever_a_source_raises_is_its_own(error):
    for offer in both(Source(name="bad", compose=raising(error)), GOOD):
        assert [one.source for one in offer.sections] == ["good"]
        assert offer.missed[0].reason.startswith(type(error).__name__)
        offer.missed[0].reason.encode()


@pytest.mark.parametrize(
    "error", [one for one in ERRORS if not isinstance(one, StopIteration)], ids=_name
)
def test_whatever_a_coroutine_raises_is_its_own(error):
    for offer in both(Source(name="bad", compose=araising(error)), GOOD):
        assert [one.source for one in offer.sections] == ["good"]
        assert offer.missed[0].reason.startswith(type(error).__name__)


def endless():
    while True:
        yield Item(id="a", text="x")


NO_ANSWERS = {
    "generator": endless(),
    "bytes": b"bytes",
    "dict": {"a": "b"},
    "text in a list": ["text"],
    "id": [Item(id=3, text="x")],
    "text": [Item(id="a", text=b"x")],
    "origin": [Item(id="a", text="x", origin=None)],
    "trust": [Item(id="a", text="x", trust="system")],
}


@pytest.mark.parametrize("given", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_text_and_no_items_is_missed(given):
    for offer in both(Source(name="odd", compose=lambda _: given), GOOD):
        assert [one.source for one in offer.sections] == ["good"]
        assert "no text and no items" in offer.missed[0].reason


def test_text_that_utf_8_cannot_carry_is_mended():
    items = [Item(id="a\ud800", text="x\ud800", origin="o\ud800")]
    plain = Source(name="plain", compose=lambda _: "x\ud800", trust="operator")

    for offer in both(plain, Source(name="items", compose=lambda _: items)):
        text, recalled = offer.sections
        assert text.text == "x\ufffd"
        assert recalled.items == (Item(id="a\ufffd", text="x\ufffd", origin="o\ufffd"),)


def test_turns_at_the_same_time_ask_a_source_side_by_side():
    together = threading.Barrier(3, timeout=10)

    def slow(_):
        together.wait()
        return "Fine."

    composer = Composer([Source(name="slow", compose=slow, timeout_seconds=20)])
    offers = []
    turns = [
        threading.Thread(target=lambda: offers.append(composer.compose(ASK))) for _ in range(3)
    ]
    for turn in turns:
        turn.start()
    for turn in turns:
        turn.join()

    assert [offer.missed for offer in offers] == [()] * 3


def test_a_turn_that_is_cancelled_ends_at_once_and_its_source_is_not_asked_again_meanwhile():
    release, began, asked = threading.Event(), threading.Event(), []

    def hang(_):
        asked.append(1)
        began.set()
        release.wait(20)

    composer = Composer([Source(name="hang", compose=hang, timeout_seconds=20)])

    async def play():
        turn = asyncio.create_task(composer.acompose(ASK))
        await asyncio.to_thread(began.wait)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return await composer.acompose(ASK)

    at = time.monotonic()
    offer = asyncio.run(play())
    release.set()

    assert time.monotonic() - at < 10
    assert len(asked) == 1
    assert "earlier turn" in offer.missed[0].reason


def test_a_coroutine_that_will_not_be_cancelled_costs_a_turn_its_timeout_and_no_more():
    async def cling(_):
        until = time.monotonic() + 3
        while time.monotonic() < until:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    composer = Composer([Source(name="cling", compose=cling, timeout_seconds=0.05), GOOD])

    async def play():
        at = time.monotonic()
        offer = await composer.acompose(ASK)
        return offer, time.monotonic() - at

    with asyncio.Runner() as runner:
        offer, taken_seconds = runner.run(play())

    assert taken_seconds < 1
    assert [one.source for one in offer.sections] == ["good"]
    assert "within 0.05 s" in offer.missed[0].reason


def test_a_source_that_answers_when_its_event_loop_is_gone_is_heard_by_nobody(caplog):
    release = threading.Event()
    composer = Composer(
        [Source(name="late", compose=lambda _: str(release.wait(10)), timeout_seconds=0.05)]
    )
    offer = asyncio.run(composer.acompose(ASK))
    release.set()
    for thread in threading.enumerate():
        if thread.name == "barograph-frame-late":
            thread.join(10)

    assert "within 0.05 s" in offer.missed[0].reason
    assert caplog.records == []


def offered(given, budget_chars, **more):
    source = Source(name="s", compose=lambda _: given, budget_chars=budget_chars, **more)
    [section] = Composer([source]).compose(ASK).sections
    return section


def test_a_budget_too_small_for_a_note_still_shows_a_text():
    assert offered("words and words", 5, trust="operator").text == "words"


def test_a_crowd_of_items_is_held_to_the_budget_with_its_envelopes():
    crowd = [Item(id=f"k{number}", text="x", origin="a/b.md") for number in range(20_000)]

    section = offered(crowd, 4_000)

    assert 10 < len(section.items) < 100
    assert offered([Item(id="k", text=" "), *crowd[:1]], 4_000).items == tuple(crowd[:1])


def test_of_a_name_as_much_is_kept_as_is_shown():
    [item] = offered([Item(id="k" * 1_000_000, text="x", origin="o" * 500)], 4_000).items

    assert (len(item.id), len(item.origin)) == (120, 120)


def named(*names):
    return [Source(name=name, compose=lambda _: "Same.") for name in names]


@pytest.mark.parametrize(
    "names",
    [("goal", "goal"), ("a&b", "a_b"), ('a"b', "a<b"), ("n" * 120 + "1", "n" * 120 + "2")],
    ids=["the same", "one cleaned", "both cleaned", "cut alike"],
)
def test_names_that_a_model_sees_alike_are_refused(names):
    with pytest.raises(UsageError) as caught:
        Composer(named("other", *names))
    assert caught.value.ids["sources"] == names


def test_names_that_differ_as_the_model_sees_them_are_taken():
    sources = Composer(named("goal", "Goal", "goal 2", "a&b", "a&c")).compose(ASK).sections
    assert len(sources) == 5


@pytest.mark.parametrize(
    "modes",
    [{"goals"}, {"normal", "Private"}, "private"],
    ids=["unknown", "one of them", "no set"],
)
def test_a_source_for_modes_that_there_are_not_would_never_be_asked_and_is_refused(modes):
    with pytest.raises(UsageError, match="modes of the source goal"):
        Source(name="goal", compose=lambda _: "x", modes=modes)


def test_a_source_is_asked_in_the_modes_that_it_names_and_in_no_other():
    source = Source(name="goal", compose=lambda _: "x", modes={"goal", "private"})
    asked = [
        mode
        for mode in sorted(MODES)
        if Composer([source]).compose(replace(ASK, mode=mode)).sections
    ]
    assert asked == ["goal", "private"]


@pytest.mark.parametrize("name", ["", "a\ud800"], ids=["none", "surrogate"])
def test_a_name_that_no_section_could_have_is_refused(name):
    with pytest.raises(UsageError, match="source of the frame"):
        Source(name=name, compose=lambda _: "x")


def test_a_trust_that_no_log_could_hold_is_refused():
    with pytest.raises(UsageError, match="trust of the source goal is 'system'"):
        Source(name="goal", compose=lambda _: "x", trust="system")


async def _async_jot(caller):
    """Write something down."""
    return "Written down."


@pytest.mark.parametrize(
    ("name", "run", "said"),
    [
        ("jot down", lambda _: "x", "has the name 'jot down'"),
        ("jot", _async_jot, "is a coroutine function"),
        ("jot", lambda: "x", "no parameter for its caller"),
        ("jot", lambda *, _: "x", "no parameter for its caller"),
    ],
    ids=["a name", "a coroutine", "no parameter", "a keyword"],
)
def test_a_tool_that_no_agent_could_call_is_refused(name, run, said):
    with pytest.raises(UsageError, match=said):
        SourceTool(name=name, run=run)
