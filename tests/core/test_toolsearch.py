"""Tools are found by what they do, always in the same order."""

import random

from barograph.core.toolsearch import ToolCard, find_tools

CARDS = [
    ToolCard("create_invoice", "Make a new invoice for a customer."),
    ToolCard("list_invoices", "All invoices of a customer, newest first."),
    ToolCard("sendEmail", "Send a message to somebody."),
    ToolCard("read_calendar", "Meetings of a day."),
    ToolCard("email_archive", "Put an email away, with a long text about what that means: emails."),
]


def names(query, most=5, cards=CARDS):
    return [card.name for card in find_tools(cards, query, most)]


def test_the_name_counts_more_than_the_description():
    assert names("send an email") == ["sendEmail", "email_archive"]
    assert names("invoices") == ["create_invoice", "list_invoices"]
    assert names("meeting") == ["read_calendar"]


def test_a_tool_that_is_named_exactly_comes_first():
    assert names("list_invoices")[0] == "list_invoices"
    assert names(" SENDEMAIL ") == ["sendEmail"]
    both = [*CARDS, ToolCard("email", "An email, and nothing else at all but that." * 9)]
    assert names("email", cards=both)[0] == "email"


def test_what_does_not_fit_is_not_found():
    assert names("submarine") == []
    assert names("") == []
    assert names("email", most=0) == []
    assert names("email", cards=[]) == []


def test_the_order_of_the_tools_makes_no_difference():
    cards = [ToolCard(f"tool_{number}", "The same words.") for number in range(9)]
    random.Random(1).shuffle(cards)
    assert names("same words", cards=cards) == [f"tool_{number}" for number in range(5)]
