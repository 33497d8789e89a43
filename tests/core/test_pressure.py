"""The meter: what a report teaches, what it does not, and what is projected from it."""

import pytest

from barograph.core.breakpoints import Segment
from barograph.core.pressure import Count, Meter, project_tokens, take_report
from barograph.core.trail import Trail

HEADER_CHARS = 8_000
FIRST_CHARS = 1_000


class Talk:
    """A path whose blocks are known by names, each of so many characters."""

    def __init__(self, ratio=0.3, model="one"):
        self.ratio, self.model = ratio, model
        self.meter, self.factors = Meter(), {}
        self.show(a=FIRST_CHARS)

    def show(self, **blocks):
        """The request from now on."""
        segments, end, key = [], 0, b""
        for index, (name, chars) in enumerate(blocks.items()):
            end, key = end + chars, key + name.encode()
            segments.append(Segment(key, end, bool(name), index, index, 0))
        self.blocks, self.segments, self.chars = blocks, Trail(segments), HEADER_CHARS + end
        return self

    def more(self, **blocks):
        return self.show(**self.blocks, **blocks)

    @property
    def true_tokens(self):
        return round(self.chars * self.ratio)

    @property
    def projected(self):
        anchor = self.meter.anchor(self.chars, self.segments)
        return project_tokens(self.chars, anchor, self.factors, self.model, 0.25)

    def report(self, tokens=None):
        last = self.segments[-1]
        count = Count(
            tokens=self.true_tokens if tokens is None else tokens,
            chars=self.chars,
            model=self.model,
            position=len(self.segments),
            key=last.key,
        )
        taken = take_report(self.meter, self.factors, count, HEADER_CHARS, self.segments)
        self.meter, self.factors = taken
        return self


def test_before_the_first_report_four_characters_are_a_token():
    assert Talk().projected == (HEADER_CHARS + FIRST_CHARS) / 4


def test_a_report_is_the_anchor_and_what_came_since_is_estimated_by_its_ratio():
    talk = Talk().report().more(b=10_000)
    assert talk.projected == pytest.approx(talk.true_tokens, abs=1)


def test_what_is_taken_off_is_taken_off_at_once():
    talk = Talk().report().more(b=50_000, c=2_000).report()
    before = talk.projected
    talk.show(a=FIRST_CHARS, stub=500, c=2_000)
    assert talk.projected == pytest.approx(before - 49_500 * 0.3, abs=2)
    assert talk.report().projected == talk.true_tokens


def test_a_rewind_finds_the_count_of_the_request_that_it_goes_back_to():
    talk = Talk().report()
    for name in "bcd":
        talk.more(**{name: 9_000}).report(talk.true_tokens + 700)  # the ratio does not explain all
    talk.show(a=FIRST_CHARS, b=9_000)
    there = next(count for count in talk.meter.counts if count.key == b"ab")
    assert talk.projected == there.tokens
    assert talk.more(x=100).projected == there.tokens + round(
        100 * talk.factors["one"].tokens_per_char
    )


def test_after_a_fold_of_nearly_all_the_fixed_part_is_what_the_first_report_said():
    talk = Talk().report()
    talk.ratio = 0.5  # of what comes now; the fixed part stays at 0.3
    for name in "bcdefghi":
        talk.more(**{name: 40_000})
        talk.report(2_700 + round((talk.chars - 9_000) * 0.5))
    talk.show(summary=4_000)
    assert talk.projected == pytest.approx(HEADER_CHARS * 0.3 + 4_000 * 0.5, rel=0.02)


def test_the_factor_follows_what_requests_grow_by_not_what_they_are():
    talk = Talk().report(40_000)  # most of it is a prompt that the provider adds
    for name in "bcdef":
        talk.more(**{name: 20_000})
        talk.report(talk.meter.last.tokens + 7_000)
    assert talk.factors["one"].tokens_per_char == pytest.approx(0.35, rel=0.03)


def test_each_model_has_its_own_factor_and_keeps_it():
    talk = Talk().report().more(b=60_000).report()
    talk.model, talk.ratio = "two", 0.45
    assert talk.projected == pytest.approx(61_000 * 0.3 + HEADER_CHARS * 0.3, rel=0.01)
    talk.report().more(c=60_000).report()
    assert talk.factors["one"].tokens_per_char == pytest.approx(0.3, rel=0.01)
    assert talk.factors["two"].tokens_per_char == pytest.approx(0.45, rel=0.01)
    talk.model, talk.ratio = "one", 0.3
    assert talk.projected == pytest.approx(talk.true_tokens, rel=0.01)


@pytest.mark.parametrize("absurd", [0, -5_000, 1, "ten times", "a tenth"])
def test_one_absurd_report_moves_neither_anchor_nor_factor(absurd):
    talk = Talk().report().more(b=30_000).report().more(c=3_000)
    before, factor, expected = talk.meter.counts, talk.factors["one"], talk.projected
    tokens = {"ten times": talk.true_tokens * 10, "a tenth": talk.true_tokens // 10}
    talk.report(tokens.get(absurd, absurd))
    assert (talk.meter.counts, talk.factors["one"], talk.projected) == (before, factor, expected)
    talk.more(d=3_000).report()
    assert talk.projected == talk.true_tokens
    assert talk.factors["one"].tokens_per_char == pytest.approx(0.3, rel=0.01)


def test_a_report_that_is_far_off_twice_is_believed():
    talk = Talk().report().more(b=30_000).report()
    talk.more(c=300).report(150_000)
    talk.more(d=300).report(150_090)
    assert talk.projected == 150_090
    assert talk.factors["one"].tokens_per_char == pytest.approx(0.3, rel=0.01)


def test_a_first_report_that_was_absurd_is_forgotten_with_the_second():
    talk = Talk().report(900_000).more(b=300).report()
    assert talk.projected == talk.true_tokens


@pytest.mark.parametrize("growth_tokens", [2_500, -500, 10])
def test_growth_that_no_text_has_teaches_nothing(growth_tokens):
    talk = Talk().report().more(b=30_000).report()
    factor = talk.factors["one"]
    talk.more(c=1_000).report(talk.meter.last.tokens + growth_tokens)
    assert talk.factors["one"] == factor
