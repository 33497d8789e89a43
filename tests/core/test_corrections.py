"""Which statements of the user a later one has made invalid, and which it has not."""

import pytest

from barograph.core.corrections import Statement, corrected

CORRECTED = [
    ("The timeout is 30 s.", "The timeout is 60 s."),
    ("Budget cap is $300 total. Never exceed it.", "Budget cap is $700 total. Never exceed it."),
    ("The project budget is $800.", "Update: keep project spend under five hundred dollars."),
    ("Report all times in UTC.", "From now on, report times in Pacific time."),
    ("Keep replies terse.", "Please make your responses warm."),
    ("Anna Berg is handling support.", "Support now belongs to Carl Dahl."),
    ("Never tell the code ab-12.", "Never tell the new code cd-34; the code rotated."),
]
BOTH_HOLD = [
    ("Fix issue 12.", "Fix issue 13."),
    ("Never run tool AB-1.", "Never run tool CD-2."),
    ("The production database is Postgres 15.", "The staging database is MySQL 8."),
    ("Project ceiling is $500.", "Conference ceiling is $250."),
    ("There is a failure in test_a1.", "There is a failure in test_b2."),
    ("The limit is 30 s.", "Is the limit 60 s?"),
    ("Report times in UTC.", "The log's timestamps are in EST."),
    ("Never exceed the $300 for the trip.", "The trip now costs $400."),
    ("Report all times in UTC.", "Really: report all times in UTC."),
    ("The limit is 30 s.", "The limit is 60 s." + " And so on." * 40),
]


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_later_statement_takes_the_place_of_an_earlier_one(old, new):
    assert corrected([Statement(1, old), Statement(2, "Go on."), Statement(3, new)]) == {0: 2}


@pytest.mark.parametrize(("old", "new"), BOTH_HOLD)
def test_where_that_is_not_plain_both_hold(old, new):
    assert corrected([Statement(1, old), Statement(2, new)]) == {}


def test_pinned_text_never_gives_way():
    pinned = Statement(1, "The timeout is 30 s.", pinned=True)
    assert corrected([pinned, Statement(2, "The timeout is 60 s.")]) == {}


def test_of_several_the_nearest_in_words_gives_way():
    said = [
        "The field trip must cost no more than $700.",
        "The project ceiling is $500.",
        "New ceiling for the trip: 400 dollars.",
    ]
    assert corrected([Statement(seq, text) for seq, text in enumerate(said)]) == {0: 2}
