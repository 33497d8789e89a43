"""Conformance: every rule of the provider's cache page, with the page's own examples."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_prompts import ONE_PER_CHAR, Driver, assistant, call, parts, result, text, user

from barograph.core.errors import UsageError
from barograph.simulator import PromptBlock, Reply, SimulatedProvider, Switches
from barograph.simulator.cache import reach_of


def blocks(count, *marked):
    """One user message of numbered blocks, from 1; ten tokens each."""
    return user(
        *(text(f"block {n:04d}", "5m" if n in marked else None) for n in range(1, count + 1))
    )


# Reading and lookback


def test_the_documented_lookback_example_misses_an_entry_21_positions_back():
    driver = Driver()
    driver.send(blocks(15, 15))
    assert parts(driver.send(blocks(35, 35))) == (0, 0, 350, 0)


def test_the_documented_second_marker_at_the_entry_hits_it():
    driver = Driver()
    driver.send(blocks(15, 15))
    exchange = driver.send(blocks(35, 15, 35))
    assert parts(exchange) == (150, 0, 200, 0)
    assert exchange.hit == 14


@pytest.mark.parametrize(("marker_at", "read"), [(34, 150), (35, 0)])
def test_a_marker_looks_back_twenty_positions_counting_itself(marker_at, read):
    driver = Driver()
    driver.send(blocks(15, 15))
    assert parts(driver.send(blocks(marker_at, marker_at)))[0] == read


def test_entries_exist_only_where_a_marker_was():
    driver = Driver()
    driver.send(blocks(10, 10))
    assert parts(driver.send(blocks(9, 9))) == (0, 0, 90, 0)


def test_the_longest_hit_wins():
    driver = Driver()
    driver.send(blocks(12, 4, 8, 12))
    assert parts(driver.send(blocks(14, 4, 14))) == (120, 0, 20, 0)


def test_an_earlier_marker_is_tried_when_a_later_one_finds_nothing():
    driver = Driver()
    driver.send(blocks(5, 5))
    assert parts(driver.send(blocks(60, 20, 60)))[0] == 50


def test_a_request_without_markers_reads_nothing():
    driver = Driver()
    driver.send(blocks(5, 5))
    assert parts(driver.send(blocks(5))) == (0, 0, 0, 50)


def fan_out(width, *, ttl_on_call=None, ttl_on_tail=None):
    names = [f"t{n}" for n in range(width)]
    return (
        user(text("start", ttl_on_call)),
        assistant(*(call(name) for name in names)),
        user(*(result(name, ttl_on_tail if name == names[-1] else None) for name in names)),
    )


def test_a_run_of_tool_calls_is_one_position_and_a_run_of_results_is_one():
    driver = Driver()
    driver.send(fan_out(1, ttl_on_call="5m")[0])
    exchange = driver.send(*fan_out(30, ttl_on_tail="5m"))
    assert exchange.hit == 0


def test_runs_count_block_by_block_where_the_switch_says_so():
    driver = Driver(switches=Switches(collapse_runs=False))
    driver.send(fan_out(1, ttl_on_call="5m")[0])
    exchange = driver.send(*fan_out(30, ttl_on_tail="5m"))
    assert exchange.hit is None


def test_a_marker_inside_a_run_writes_there_and_is_found_there():
    driver = Driver()
    start = user(text("start")), assistant(*(call(f"t{n}") for n in range(3)))

    def results(at):
        return user(*(result(f"t{n}", "5m" if n == at else None) for n in range(3)))

    driver.send(*start, results(1))
    assert driver.send(*start, results(2)).hit == 5
    assert driver.send(*start, results(0)).hit is None


def row(*kinds):
    return [
        PromptBlock(
            prefix_key=b"", tokens=1, level="messages", kind=kind, eligible=True, marker=None
        )
        for kind in kinds
    ]


@pytest.mark.parametrize(
    ("kinds", "positions", "first"),
    [
        (["text"] * 30, 20, 10),
        (["text"] * 5, 20, 0),
        (["text", "tool_use", "tool_use", "tool_result", "tool_result"], 2, 1),
        (["text", "tool_use", "tool_use", "tool_result", "tool_result"], 1, 3),
        (["tool_use", "text", "tool_use"], 2, 1),
    ],
)
def test_the_reach_of_the_last_marker_is_counted_in_positions(kinds, positions, first):
    reach = reach_of(row(*kinds), len(kinds) - 1, positions=positions, collapse_runs=True)
    assert list(reach) == list(range(len(kinds) - 1, first - 1, -1))


def test_text_between_two_calls_ends_the_run():
    def conversation(ttl_first, ttl_tail):
        pairs = [block for n in range(10) for block in (text(f"then {n}"), call(f"t{n}"))]
        results = [result(f"t{n}", ttl_tail if n == 9 else None) for n in range(10)]
        return user(text("start", ttl_first)), assistant(*pairs), user(*results)

    driver = Driver()
    driver.send(conversation("5m", None)[0])
    assert driver.send(*conversation(None, "5m")).hit is None  # 1 + 20 + 1 positions


# Billing


def test_mixed_ttls_are_billed_by_the_three_positions_a_b_c():
    driver = Driver()
    a, b, c, rest = text("a" * 100, "1h"), text("b" * 40, "1h"), text("c" * 30, "5m"), text("d" * 7)
    assert parts(driver.send(user(a))) == (0, 100, 0, 0)
    assert parts(driver.send(user(a, b, c, rest))) == (100, 40, 30, 7)


def test_without_a_hit_everything_up_to_the_last_1h_marker_is_a_1h_write():
    exchange = Driver().send(user(text("a" * 50), text("b" * 10, "1h"), text("c" * 5, "5m")))
    assert parts(exchange) == (0, 60, 5, 0)


def test_a_1h_marker_at_or_before_the_hit_writes_nothing():
    driver = Driver()
    driver.send(user(text("a" * 50, "1h"), text("b" * 50, "5m")))
    exchange = driver.send(user(text("a" * 50, "1h"), text("b" * 50, "5m"), text("c" * 9)))
    assert parts(exchange) == (100, 0, 0, 9)


def test_a_marker_costs_nothing_of_its_own():
    def bills(*inner):
        driver = Driver()
        blocks = [text(str(n) * 50, "5m" if n in inner else None) for n in range(4)]
        blocks.append(text("tail", "5m"))
        return [parts(driver.send(user(*blocks))) for _ in range(2)]

    assert bills() == bills(1) == bills(0, 1, 2) == [(0, 0, 204, 0), (204, 0, 0, 0)]


def test_models_do_not_share_entries():
    driver = Driver()
    message = user(text("a" * 50, "5m"))
    driver.send(message, model="claude-opus-4-8")
    assert parts(driver.send(message, model="claude-sonnet-5")) == (0, 0, 50, 0)
    assert parts(driver.send(message, model="claude-opus-4-8")) == (50, 0, 0, 0)


@pytest.mark.parametrize(("length", "written"), [(1023, 0), (1024, 1024)])
def test_a_prefix_below_the_minimum_is_silently_not_cached(length, written):
    driver = Driver(minimum_tokens=1024)
    message = user(text("a" * length, "5m"))
    assert parts(driver.send(message)) == (0, 0, written, length - written)
    assert parts(driver.send(message))[0] == written


def test_a_short_marker_is_skipped_while_a_longer_one_is_written():
    driver = Driver(minimum_tokens=100)
    exchange = driver.send(user(text("a" * 50, "1h"), text("b" * 60, "5m")))
    assert parts(exchange) == (0, 0, 110, 0)


# reference: the provider's table of minimum cacheable prefixes, by model
MINIMUMS = {
    512: ["fable-5", "fable-5-1", "mythos-5", "mythos-5-1", "opus-5", "opus-5-5", "sonnet-5-5"],
    1024: ["opus-4-8", "opus-4-1", "opus-4", "sonnet-5", "sonnet-4-6", "sonnet-4-5", "sonnet-4"],
    2048: ["opus-4-7"],
    4096: ["opus-4-6", "opus-4-5", "haiku-4-5", "haiku-5-5", "fable-5-2", "mythos-5-2"],
}


@pytest.mark.parametrize(
    ("model", "minimum"),
    [(f"claude-{name}", minimum) for minimum, names in MINIMUMS.items() for name in names],
)
def test_each_model_has_the_documented_minimum(model, minimum):
    provider = SimulatedProvider([Reply(content="ok")] * 2, rule=ONE_PER_CHAR)

    def written(length):
        message = user(text("a" * length, "5m"))
        body = msgspec.json.encode({"model": model, "max_tokens": 1, "messages": [message]})
        return parts(provider.handle(body, {}))[2]

    assert [written(minimum - 1), written(minimum)] == [0, minimum]


# Life


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300.0), ("1h", 3600.0)])
def test_an_entry_lives_for_its_ttl_from_the_start_of_its_writer(ttl, seconds):
    message = user(text("a" * 50, ttl))
    for now, read in ((seconds, 50), (seconds + 0.001, 0)):
        driver = Driver()
        driver.send(message)
        assert parts(driver.send(message, now=now))[0] == read


def test_a_read_starts_the_life_anew():
    driver = Driver()
    message = user(text("a" * 50, "5m"))
    reads = [parts(driver.send(message, now=now))[0] for now in (0.0, 299.0, 598.0, 899.0)]
    assert reads == [0, 50, 50, 0]


def test_a_ttl_runs_from_the_start_of_the_request_not_from_its_first_token():
    driver = Driver(switches=Switches(first_token_seconds=240.0))
    message = user(text("a" * 50, "5m"))
    driver.send(message)
    assert parts(driver.send(message, now=300.0))[0] == 50
    driver.send(user(text("b" * 50, "5m")))
    assert parts(driver.send(user(text("b" * 50, "5m")), now=301.0))[0] == 0


def test_an_entry_is_readable_once_the_response_of_its_writer_begins():
    driver = Driver(switches=Switches(first_token_seconds=2.0))
    message = user(text("a" * 50, "5m"))
    parallel = [parts(driver.send(message, now=0.0)) for _ in range(3)]
    assert parallel == [(0, 0, 50, 0)] * 3
    assert parts(driver.send(message, now=1.9))[0] == 0
    assert parts(driver.send(message, now=2.0))[0] == 50


def test_the_next_request_reads_at_once_where_responses_begin_at_once():
    driver = Driver()
    message = user(text("a" * 50, "5m"))
    driver.send(message)
    assert parts(driver.send(message)) == (50, 0, 0, 0)


def test_a_refused_request_changes_nothing():
    driver = Driver(window_tokens=100)
    long = user(text("a" * 60, "5m"), text("b" * 60))
    assert driver.send(long).status == 400
    assert parts(driver.send(user(text("a" * 60, "5m"))))[0] == 0


# Scope


def test_accounts_do_not_share_entries():
    driver = Driver()
    message = user(text("a" * 50, "5m"))
    driver.send(message, key="one")
    assert parts(driver.send(message, key="two"))[0] == 0
    assert parts(driver.send(message, key="one"))[0] == 50


# Undocumented behaviour


def test_reading_a_long_entry_leaves_shorter_ones_to_die_unless_switched():
    short, longer = text("a" * 50, "5m"), text("b" * 50, "5m")
    for switch, read in ((False, 0), (True, 50)):
        driver = Driver(switches=Switches(reads_refresh_shorter=switch))
        driver.send(user(short, longer))
        driver.send(user(text("a" * 50), longer), now=200.0)
        assert parts(driver.send(user(short), now=400.0))[0] == read


def test_a_marker_on_a_shorter_entry_renews_it_unless_switched_off():
    message = user(text("a" * 50, "5m"), text("b" * 50, "5m"))
    for switch, read in ((False, 0), (True, 50)):
        driver = Driver(switches=Switches(markers_refresh_shorter=switch))
        driver.send(message)
        driver.send(message, now=200.0)
        assert parts(driver.send(user(text("a" * 50, "5m")), now=400.0))[0] == read


def test_a_marker_does_not_lengthen_for_free_the_life_that_was_paid_for():
    driver = Driver()
    driver.send(user(text("a" * 50, "5m")))
    driver.send(user(text("a" * 50, "1h")))
    assert parts(driver.send(user(text("a" * 50, "1h")), now=301.0)) == (0, 50, 0, 0)


def test_a_long_entry_keeps_a_short_prefix_alive_unless_switched():
    start, end = text("a" * 50, "5m"), text("b" * 50, "1h")
    for switch, read in ((False, 100), (True, 0)):
        driver = Driver(switches=Switches(long_needs_long=switch))
        driver.send(user(start))
        assert parts(driver.send(user(text("a" * 50), end)))[0] == 50
        assert parts(driver.send(user(text("a" * 50), end), now=301.0))[0] == read


def test_random_misses_come_from_the_generator_that_was_passed_in():
    def reads(seed):
        driver = Driver(switches=Switches(random_miss_rate=0.5), rng=Random(seed))
        message = user(text("a" * 50, "5m"))
        return [parts(driver.send(message))[0] for _ in range(40)]

    assert reads(1) == reads(1)
    assert reads(1) != reads(2)
    assert 0 < sum(read == 0 for read in reads(1)) < 40


@pytest.mark.parametrize(
    "wrong", [{"random_miss_rate": 1.5}, {"random_miss_rate": -0.1}, {"first_token_seconds": -1.0}]
)
def test_a_switch_outside_its_range_is_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Switches(**wrong)


# Properties

_WORDS = st.lists(st.sampled_from(["a" * 10, "b" * 25, "c" * 40]), min_size=1, max_size=30)
_MARKS = st.lists(st.tuples(st.integers(0, 29), st.sampled_from(["1h", "5m"])), max_size=4)
_CALLS = st.lists(
    st.tuples(_WORDS, _MARKS, st.floats(0.0, 400.0), st.booleans()), min_size=1, max_size=8
)


def marked_message(words, marks):
    chosen = {}
    long_allowed = True
    for at in sorted({at % len(words) for at, _ in marks}):
        ttl = {index % len(words): ttl for index, ttl in marks}[at]
        long_allowed = long_allowed and ttl == "1h"
        chosen[at] = "1h" if long_allowed else "5m"
    return user(*(text(word, chosen.get(at)) for at, word in enumerate(words)))


@settings(max_examples=60)
@given(_CALLS)
def test_property_the_four_parts_sum_to_the_prompt_and_a_read_is_a_shared_prefix(calls):
    driver = Driver(minimum_tokens=30)
    earlier: list[list[str]] = []
    now = 0.0
    for words, marks, gap, grows in calls:
        sent = [*earlier[-1], *words] if grows and earlier else words
        now += gap
        exchange = driver.send(marked_message(sent, marks), now=now)
        assert min(parts(exchange)) >= 0
        assert sum(parts(exchange)) == exchange.total_tokens == sum(map(len, sent))
        shared = max((shared_chars(sent, other) for other in earlier), default=0)
        assert parts(exchange)[0] <= shared
        earlier.append(sent)


def shared_chars(one, other):
    total = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        total += len(left)
    return total
