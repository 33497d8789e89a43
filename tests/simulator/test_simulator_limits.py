"""The physical limit of an append-only session, reached with two markers: tail and anchor."""

import pytest
from wire_prompts import Driver, assistant, facts, parts, text, user

from barograph.simulator import TokenRule, input_equivalents

FIRST, GROWTH = 20, 3  # thousands of tokens; one character is a thousand
THOUSANDS = TokenRule(tokens_per_1000_chars=1_000_000, block_overhead_tokens=0)


def session_cost(calls, model, ttl, *, known_end, anchored=True, blocks_a_round=1):
    """Cost in plain input tokens of a session that grows from 20k by 3k a call."""
    write = model.write_5m_ratio if ttl == "5m" else model.write_1h_ratio
    driver = Driver(
        rule=THOUSANDS, read_ratio=model.read_ratio, write_5m_ratio=model.write_5m_ratio
    )
    rows = [["x" * FIRST]]
    anchor, cost = None, 0.0
    for number in range(1, calls + 1):
        later = calls - number
        pays = not known_end or later > (write - 1) / (1 - model.read_ratio)
        tail = (len(rows) - 1, len(rows[-1]) - 1) if pays else None
        marks = {tail, anchor if anchored else None} - {None}
        exchange = driver.send(*conversation(rows, marks, ttl))
        cost += input_equivalents(exchange.usage, model)
        anchor = tail or anchor
        padding = ["o"] * (blocks_a_round - 1)
        rows += [["i"], [*padding, "n" * (GROWTH - 1)]]
    return cost


def conversation(rows, marks, ttl):
    for at, row in enumerate(rows):
        made = [
            text(words, ttl if (at, index) in marks else None) for index, words in enumerate(row)
        ]
        yield (assistant if at % 2 else user)(*made)


VECTORS = [
    (2, [30_000, 29_000, 28_500, 43_000, 43_000]),
    (5, [49_050, 44_150, 41_700, 70_500, 65_750]),
    (10, [86_800, 72_400, 65_200, 119_500, 105_250]),
    (38, [436_800, 299_900, 231_450, 532_500, 395_750]),
    (100, [2_048_800, 1_222_150, 808_825, 2_284_000, 1_457_500]),
]
COLUMNS = [("5m", 0.1), ("5m", 0.05), ("5m", 0.025), ("1h", 0.1), ("1h", 0.05)]


@pytest.mark.parametrize(("calls", "limits"), VECTORS)
def test_two_markers_reach_the_lower_bound_where_the_end_is_known(calls, limits):
    for (ttl, read), limit in zip(COLUMNS, limits, strict=True):
        cost = session_cost(calls, facts(read_ratio=read), ttl, known_end=True)
        assert cost == pytest.approx(limit)


@pytest.mark.parametrize(("calls", "limits"), VECTORS)
def test_two_markers_reach_the_online_limit_where_the_end_is_unknown(calls, limits):
    for (_, read), limit in list(zip(COLUMNS, limits, strict=True))[:3]:
        cost = session_cost(calls, facts(read_ratio=read), "5m", known_end=False)
        assert cost == pytest.approx(limit + 0.25 * 3000)


def test_without_the_anchor_a_wide_round_misses_every_time():
    model = facts()
    wide = {"known_end": False, "blocks_a_round": 25}
    anchored = session_cost(10, model, "5m", **wide)
    tail_only = session_cost(10, model, "5m", anchored=False, **wide)
    prompts = [20_000 + n * 27_000 for n in range(10)]
    assert tail_only == pytest.approx(1.25 * sum(prompts))
    assert anchored == pytest.approx(1.25 * prompts[-1] + 0.1 * sum(prompts[:-1]))


def test_the_first_call_of_a_session_reads_nothing():
    driver = Driver()
    assert parts(driver.send(user(text("a", "5m"))))[0] == 0
