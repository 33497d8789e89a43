import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.events import Usage
from barograph.providers.anthropic.usage import usage_of, usage_of_langchain


def usage(read=0, short=0, long=0, uncached=0, output=0):
    return Usage(
        read_tokens=read,
        write_5m_tokens=short,
        write_1h_tokens=long,
        uncached_tokens=uncached,
        output_tokens=output,
    )


def api(uncached=None, read=None, written=None, output=None, split=None):
    fields = {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }
    if split is not None:
        short, long = split
        fields["cache_creation"] = {
            "ephemeral_5m_input_tokens": short,
            "ephemeral_1h_input_tokens": long,
        }
    return fields


TABLE = {
    "whole message": (api(10, 900, 90, 5, (60, 30)), None, usage(900, 60, 30, 10, 5)),
    "whole message, no split": (api(10, 900, 90, 5), None, usage(900, 90, 0, 10, 5)),
    "whole message, split alone": (api(10, 0, 0, 5, (7, 8)), None, usage(0, 7, 8, 10, 5)),
    "stream start and delta": (
        api(10, 900, 90, 1, (60, 30)),
        api(10, 900, 90, 55),
        usage(900, 60, 30, 10, 55),
    ),
    "stream whose totals grow": (
        api(10, 900, 90, 1, (60, 30)),
        api(400, 1000, 120, 55),
        usage(1000, 90, 30, 400, 55),
    ),
    "stream whose delta has only output": (
        api(10, 900, 90, 1, (90, 0)),
        {"output_tokens": 55},
        usage(900, 90, 0, 10, 55),
    ),
    "stream whose delta is zero": (
        api(10, 900, 90, 1, (0, 90)),
        api(0, 0, 0, 55),
        usage(900, 0, 90, 10, 55),
    ),
    "stream whose start is zero": (
        api(0, 0, 0, 0),
        api(10, 900, 90, 55),
        usage(900, 90, 0, 10, 55),
    ),
    "stream that was cut": (api(10, 900, 90, 1, (90, 0)), {}, usage(900, 90, 0, 10, 1)),
    "all read": (api(0, 900, 0, 5), None, usage(900, output=5)),
    "all written": (api(0, 0, 900, 5), None, usage(short=900, output=5)),
    "nothing": (None, None, None),
    "nothing, twice": ({}, {}, None),
    "only output": ({"output_tokens": 7}, {"output_tokens": 9}, None),
    "zeros": (api(0, 0, 0, 7), api(0, 0, 0, 7), None),
}


@pytest.mark.parametrize(("started", "ended", "expected"), TABLE.values(), ids=TABLE)
def test_the_apis_own_fields_become_three_disjoint_parts(started, ended, expected):
    assert usage_of(started, ended) == expected


def test_a_write_that_nobody_split_is_booked_under_the_lifetime_asked_for():
    assert usage_of(api(10, 0, 90, 5), ttl="1h") == usage(0, 0, 90, 10, 5)
    grown = usage_of(api(1, 0, 90, 1, (0, 90)), api(1, 0, 100, 5), ttl="1h")
    assert grown == usage(0, 0, 100, 1, 5)


def langchain(total, output=5, **details):
    return {"input_tokens": total, "output_tokens": output, "input_token_details": details}


LANGCHAIN = {
    "not streamed: creation is zero beside its split": (
        langchain(
            1000, cache_read=900, cache_creation=0,
            ephemeral_5m_input_tokens=60, ephemeral_1h_input_tokens=30,
        ),
        usage(900, 60, 30, 10, 5),
    ),
    "streamed: the total alone": (
        langchain(1000, cache_read=900, cache_creation=90), usage(900, 90, 0, 10, 5),
    ),
    "no caching": (langchain(10), usage(uncached=10, output=5)),
    "no details": ({"input_tokens": 10, "output_tokens": 5}, usage(uncached=10, output=5)),
    "details are null": (
        {"input_tokens": 10, "output_tokens": 5, "input_token_details": None},
        usage(uncached=10, output=5),
    ),
    "parts beyond the total": (langchain(10, cache_read=900), usage(900, output=5)),
    "a proxy that reports no input": (langchain(0), None),
    "nothing": (None, None),
    "an empty table": ({}, None),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "expected"), LANGCHAIN.values(), ids=LANGCHAIN)
def test_langchains_fields_become_the_same_parts(metadata, expected):
    assert usage_of_langchain(metadata) == expected


def test_langchains_unsplit_write_is_booked_under_the_lifetime_asked_for():
    metadata = langchain(1000, cache_read=900, cache_creation=90)
    assert usage_of_langchain(metadata, ttl="1h") == usage(900, 0, 90, 10, 5)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True, [], {}, None, 10**12, 10**30])
def test_an_absurd_count_counts_as_nothing(value):
    assert usage_of(api(10, value, value, value, (value, value))) == usage(uncached=10)
    assert usage_of(api(value, value, value, 7)) is None
    assert usage_of_langchain(langchain(10, value, cache_read=value, cache_creation=value)) == (
        usage(uncached=10)
    )
    assert usage_of({"input_tokens": 10, "cache_creation": value}) == usage(uncached=10)
    assert usage_of_langchain({"input_tokens": 10, "input_token_details": value}) == (
        usage(uncached=10)
    )


counts = st.integers(0, 10**6)


@given(counts, counts, counts, counts, counts)
def test_both_ways_agree_on_what_was_billed(read, short, long, uncached, output):
    raw = usage_of(api(uncached, read, short + long, output, (short, long)))
    total = read + short + long + uncached
    split = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
    told = usage_of_langchain(langchain(total, output, cache_read=read, cache_creation=0, **split))
    assert raw == told
    assert raw is None or raw.input_total_tokens == total
