"""Lifetimes in a session: what a pause teaches, and what it finds alive afterwards."""

from barograph.core.events import CallPlanned, ResponseCame
from barograph.core.policy import Policy
from barograph.simulator import SimulatedProvider
from barograph.simulator.switches import Switches
from barograph.store import MemoryStore
from talk import Talk

PAUSE = 1_500.0


def talking(*, policy=None, **switches):
    talk = Talk(MemoryStore(), policy=policy or Policy(name="off"))
    talk.provider = SimulatedProvider(switches=Switches(**switches))
    talk.call(say="begin " * 500, reply=[("read", {"path": "a"})], results=["text " * 2_000])
    return talk


def go_on(talk, *, calls=1, after=10.0, chars=40):
    for _ in range(calls):
        call = ("read", {"path": f"{talk.at}"})
        talk.call(after=after, reply=[call], results=["x" * chars])


def plans(talk):
    return [event for _, event in talk.store.read("s1") if isinstance(event, CallPlanned)]


def tails(talk):
    return [plan.breakpoints[-1].ttl for plan in plans(talk)]


def read_share(talk):
    answers = [event for _, event in talk.store.read("s1") if isinstance(event, ResponseCame)]
    usage = answers[-1].usage
    return usage.read_tokens / usage.input_total_tokens


def test_all_is_short_until_the_session_pauses_and_the_next_small_tail_lasts():
    talk = talking()
    go_on(talk, calls=5)
    assert set(tails(talk)) == {"5m"}

    go_on(talk, after=PAUSE)
    assert read_share(talk) == 0.0
    go_on(talk, calls=2)
    assert tails(talk)[-3:] == ["5m", "1h", "5m"]

    go_on(talk, after=PAUSE)
    assert read_share(talk) > 0.95


def test_what_is_expected_is_had_from_the_start():
    talk = talking(policy=Policy(name="off", pause_ratio=0.01))
    go_on(talk, calls=3)
    go_on(talk, after=PAUSE)
    assert read_share(talk) > 0.95


def test_gaps_that_no_entry_outlives_teach_nothing():
    talk = talking()
    go_on(talk, calls=3, after=10_000.0)
    go_on(talk, calls=3)
    assert set(tails(talk)) == {"5m"}


def test_a_long_entry_outlives_an_hour_of_work_because_it_is_named_again():
    talk = talking(reads_refresh_shorter=False, markers_refresh_shorter=True)
    go_on(talk, after=PAUSE)
    go_on(talk)
    assert tails(talk)[-1] == "1h"
    go_on(talk, calls=20, after=200.0, chars=4_000)
    assert tails(talk)[-20:].count("1h") <= 3
    go_on(talk, after=PAUSE)
    assert read_share(talk) > 0.3


def test_a_restart_changes_nothing():
    once, twice = talking(), talking()
    for talk in (once, twice):
        go_on(talk, calls=2)
        go_on(talk, after=PAUSE)
    twice.restart()
    for talk in (once, twice):
        go_on(talk, calls=3)
    assert plans(once) == plans(twice)
    assert "1h" in tails(once)


def test_a_provider_that_lets_short_prefixes_die_is_found_out_and_gets_all_long_or_all_short():
    talk = talking(long_needs_long=True)
    go_on(talk, after=PAUSE)
    go_on(talk, calls=2)
    assert "1h" in tails(talk)
    go_on(talk, after=PAUSE)
    assert read_share(talk) == 0.0
    assert talk.session.state.path("main").pauses.is_doubted
    go_on(talk, calls=40)
    go_on(talk, calls=3, after=PAUSE)
    assert set(tails(talk)[-3:]) == {"1h"}
    assert read_share(talk) > 0.95
