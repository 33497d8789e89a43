"""Limits of caching against a brute force over all markers, and against known numbers."""

from functools import cache
from hashlib import blake2b
from itertools import chain, combinations
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.audit.limits import (
    Block,
    CacheTerms,
    measure_limits,
    reuse_ceilings,
)
from barograph.core.errors import PolicyError

WRITE, READ = 1.25, 0.1


def prompt_of(*parts):
    """A prompt of (text, tokens[, level[, eligible]]) parts, keyed by prefix."""
    state, blocks = blake2b(digest_size=16), []
    for part in parts:
        name, tokens, level, eligible = (*part, *("messages", True)[len(part) - 2 :])
        state.update(repr((name, tokens, level, eligible)).encode())
        block = Block(key=state.digest(), tokens=tokens, level=level, eligible=eligible)
        blocks.append(block)
    return blocks


def terms(minimum_tokens=0, write=WRITE, read=READ):
    return CacheTerms(minimum_tokens=minimum_tokens, write_ratio=write, read_ratio=read)


def offline(prompts, **more):
    return measure_limits(prompts, terms(**more)).offline_tokens


def online(prompts, **more):
    return measure_limits(prompts, terms(**more)).online_tokens


def cheapest_markers(prompts, *, minimum_tokens, write, read):
    """The cheapest bill over every subset of eligible blocks as markers of every call."""
    depths = [
        [sum(block.tokens for block in prompt[: end + 1]) for end in range(len(prompt))]
        for prompt in prompts
    ]

    def bill(call, entries, markers):
        prompt, depth = prompts[call], depths[call]
        total_tokens = sum(block.tokens for block in prompt)
        working = [mark for mark in markers if depth[mark] >= minimum_tokens]
        if not working:
            return total_tokens
        hits = [depth[at] for at in range(working[-1] + 1) if prompt[at].key in entries]
        read_tokens, marked_tokens = max(hits, default=0), depth[working[-1]]
        written_tokens = marked_tokens - read_tokens
        return read * read_tokens + write * written_tokens + total_tokens - marked_tokens

    @cache
    def best(call, entries):
        if call == len(prompts):
            return 0
        prompt = prompts[call]
        places = [at for at, block in enumerate(prompt) if block.eligible]
        later = {block.key for rest in prompts[call + 1 :] for block in rest}
        costs = []
        for markers in chain.from_iterable(
            combinations(places, size) for size in range(len(places) + 1)
        ):
            written = {prompt[at].key for at in markers if depths[call][at] >= minimum_tokens}
            after = best(call + 1, frozenset((entries | written) & later))
            costs.append(bill(call, entries, markers) + after)
        return min(costs)

    return best(0, frozenset())


# A name decides tokens and eligibility, so equal prefixes have equal facts.
VOCABULARY = {
    "a": ("a", 7),
    "b": ("b", 3),
    "c": ("c", 11, "messages", False),
    "d": ("d", 2),
}
BRANCHING = st.lists(
    st.lists(st.sampled_from(sorted(VOCABULARY)), min_size=1, max_size=5).map(
        lambda names: prompt_of(("s", 5, "system"), *(VOCABULARY[name] for name in names[1:]))
    ),
    min_size=1,
    max_size=5,
)
APPEND_ONLY = st.lists(
    st.lists(st.sampled_from(sorted(VOCABULARY)), min_size=1, max_size=2), min_size=1, max_size=4
).map(
    lambda rounds: [
        prompt_of(*(VOCABULARY[name] for name in list(chain(*rounds[:end]))[:5]))
        for end in range(1, len(rounds) + 1)
    ]
)
MINIMUMS = st.sampled_from([0, 6, 13, 20, 1000])
RATIOS = st.sampled_from([(1.25, 0.1), (2.0, 0.1), (1.25, 0.025), (1.0, 0.5)])


@settings(max_examples=60)
@given(prompts=BRANCHING | APPEND_ONLY, minimum=MINIMUMS, ratios=RATIOS)
def test_the_offline_limit_is_the_best_of_all_markers(prompts, minimum, ratios):
    write, read = ratios
    found = cheapest_markers(prompts, minimum_tokens=minimum, write=write, read=read)
    assert offline(prompts, minimum_tokens=minimum, write=write, read=read) == pytest.approx(found)


# Section "lower bound without pruning" of the provider notes: S = 20 000, d = 3 000.
VECTORS = [
    (2, 43_000, [30_000, 29_000, 28_500, 43_000, 43_000]),
    (5, 130_000, [49_050, 44_150, 41_700, 70_500, 65_750]),
    (10, 335_000, [86_800, 72_400, 65_200, 119_500, 105_250]),
    (38, 2_869_000, [436_800, 299_900, 231_450, 532_500, 395_750]),
    (100, 16_850_000, [2_048_800, 1_222_150, 808_825, 2_284_000, 1_457_500]),
]
COLUMNS = [(1.25, 0.1), (1.25, 0.05), (1.25, 0.025), (2, 0.1), (2, 0.05)]


def growing(calls, start_tokens=20_000, step_tokens=3_000):
    rounds = [("start", start_tokens), *((f"round {n}", step_tokens) for n in range(1, calls))]
    return [prompt_of(*rounds[:end]) for end in range(1, calls + 1)]


@pytest.mark.parametrize(("calls", "uncached", "expected"), VECTORS)
def test_the_limits_of_linear_growth_are_the_known_ones(calls, uncached, expected):
    prompts = growing(calls)
    found = [offline(prompts, write=write, read=read) for write, read in COLUMNS]
    assert found == pytest.approx(expected)
    assert measure_limits(prompts, terms()).uncached_tokens == uncached
    # a policy that cannot know the last call pays (w - 1) times the last round more
    assert online(prompts) == pytest.approx(expected[0] + 0.25 * 3_000)


@given(prompts=BRANCHING | APPEND_ONLY, minimum=MINIMUMS, ratios=RATIOS)
def test_offline_is_at_most_online_is_at_most_writing_everything(prompts, minimum, ratios):
    write, read = ratios
    found = measure_limits(prompts, terms(minimum, write, read))
    everything = sum(
        online([prompt], minimum_tokens=minimum, write=write, read=read) for prompt in prompts
    )
    assert found.offline_tokens <= found.online_tokens + 1e-9
    assert found.online_tokens <= everything + 1e-9
    assert found.offline_tokens <= found.uncached_tokens + 1e-9
    for ceiling, prompt in zip(found.ceiling_tokens, prompts, strict=True):
        assert 0 <= ceiling <= sum(block.tokens for block in prompt)


@given(
    prompts=BRANCHING,
    minimum=MINIMUMS,
    reads=st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    writes=st.lists(st.floats(1, 3), min_size=2, max_size=2).map(sorted),
)
def test_limits_rise_with_the_prices(prompts, minimum, reads, writes):
    for limit in (offline, online):
        cheap = limit(prompts, minimum_tokens=minimum, write=writes[0], read=reads[0])
        assert (
            cheap <= limit(prompts, minimum_tokens=minimum, write=writes[0], read=reads[1]) + 1e-9
        )
        assert (
            cheap <= limit(prompts, minimum_tokens=minimum, write=writes[1], read=reads[0]) + 1e-9
        )


def test_a_prefix_that_agents_share_is_written_once():
    shared = ("system", 5_000, "system")
    prompts = [prompt_of(shared, (f"agent {n}", 1_000)) for n in range(4)]
    assert offline(prompts) == pytest.approx(5_000 * (WRITE + 3 * READ) + 4 * 1_000)
    assert online(prompts) == pytest.approx(5_000 * (WRITE + 3 * READ) + 4 * 1_000 * WRITE)


def test_a_prompt_below_the_minimum_is_plain_whatever_follows():
    prompts = growing(3, start_tokens=500, step_tokens=400)
    # 500 plain; then 900 is written as a whole, and only the second time it is seen
    assert offline(prompts, minimum_tokens=900) == pytest.approx(500 + 900 * (WRITE + READ) + 400)
    assert online(prompts, minimum_tokens=900) == pytest.approx(
        500 + 900 * (WRITE + READ) + 400 * WRITE
    )
    assert offline(prompts, minimum_tokens=5_000) == 500 + 900 + 1_300


def test_a_short_shared_prefix_is_not_shared_when_no_common_checkpoint_holds_it():
    prompts = [prompt_of(("short", 100), (f"long {n}", 1_000)) for n in range(3)]
    assert offline(prompts, minimum_tokens=500) == 3 * 1_100


def test_blocks_that_cannot_be_marked_are_cached_with_the_next_one_that_can():
    rounds = [
        ("ask", 10),
        ("think", 50, "messages", False),
        ("say", 5),
        ("think more", 9, "messages", False),
    ]
    prompts = [prompt_of(*rounds), prompt_of(*rounds)]
    assert offline(prompts) == pytest.approx(65 * (WRITE + READ) + 2 * 9)


@pytest.mark.parametrize(("write", "read"), [(0.9, 0.1), (1.25, 1.1), (1.25, -0.1)])
def test_prices_out_of_range_are_refused(write, read):
    with pytest.raises(PolicyError, match="out of range"):
        terms(write=write, read=read)


HEAD = (("tools", 400, "tools"), ("system", 600, "system"))


def test_the_ceiling_is_the_longest_entry_at_an_end_of_an_earlier_request():
    first = (*HEAD, ("hello", 100), ("think", 30, "messages", False))
    second = (*first, ("call", 20), ("result", 200))
    prompts = [
        prompt_of(*first),
        prompt_of(*second),
        prompt_of(*second),
        prompt_of(*HEAD, ("summary", 50)),  # rewritten: only the head is left
        prompt_of(*first, ("call", 20)),  # inside the second request, but at no end of one
        prompt_of(HEAD[0], ("other system", 9, "system")),  # no end lies at the tools alone
    ]
    assert reuse_ceilings(prompts, minimum_tokens=0) == (0, 1_100, 1_350, 1_000, 1_100, 0)
    assert measure_limits(prompts, terms()).ceiling_tokens[1] == 1_100


def test_the_ceiling_keeps_the_minimum():
    prompts = [prompt_of(*HEAD, ("hello", 100)), prompt_of(*HEAD, ("bye", 100))]
    assert reuse_ceilings(prompts, minimum_tokens=1_000) == (0, 1_000)
    assert reuse_ceilings(prompts, minimum_tokens=1_001) == (0, 0)


def test_no_prompts_and_empty_prompts_cost_nothing():
    for prompts in ([], [[]]):
        found = measure_limits(prompts, terms())
        assert (found.uncached_tokens, found.offline_tokens, found.online_tokens) == (0, 0, 0)
    assert measure_limits([], terms()).ceiling_tokens == ()


def test_long_sessions_are_measured_in_reasonable_time():
    blocks = prompt_of(*((f"block {n}", 10) for n in range(1_000)))
    prompts = [blocks[: 2 * (call + 1)] for call in range(500)]
    began = process_time()
    measure_limits(prompts, terms())
    assert process_time() - began < 1
