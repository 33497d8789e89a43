"""Read token usage, whatever form it comes in, into four disjoint parts.

Three meanings of "input tokens" meet here. The API's `input_tokens` excludes what was read from or
written to the cache; LangChain's includes both; and LangChain reports the written part either as
`cache_creation` or, where the provider split it by lifetime, as two `ephemeral_*` fields with
`cache_creation` set to 0 (langchain-anthropic 1.7.10), so that summing all three is right and
counting one is not.
"""

from collections.abc import Mapping
from typing import Any, Final

from barograph.core.events import Ttl, Usage

_TOTALS: Final = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)
# A thousand times the largest window.
_MOST_TOKENS: Final = 10**9


def usage_of(
    started: Mapping[str, Any] | None, ended: Mapping[str, Any] | None = None, *, ttl: Ttl = "5m"
) -> Usage | None:
    """Usage from the API's own fields.

    Args:
        started: `usage` of a message, or of a stream's `message_start`.
        ended: `usage` of a stream's `message_delta`: cumulative totals, so the larger value wins
            (a proxy may report zero in one of the two), but without the split of the write by
            lifetime.
        ttl: lifetime to book a write under that nobody split.

    Returns:
        None where the provider reported no input at all: absent is not zero, and no prompt is.
    """
    first, last = _table(started), _table(ended)
    told = {key: max(_count(first.get(key)), _count(last.get(key))) for key in _TOTALS}
    split = _table(last.get("cache_creation")) or _table(first.get("cache_creation"))
    short = _count(split.get("ephemeral_5m_input_tokens"))
    long = _count(split.get("ephemeral_1h_input_tokens"))
    written = max(told["cache_creation_input_tokens"], short + long)
    if not told["input_tokens"] and not told["cache_read_input_tokens"] and not written:
        return None
    return Usage(
        read_tokens=told["cache_read_input_tokens"],
        uncached_tokens=told["input_tokens"],
        output_tokens=told["output_tokens"],
        **_write(written, short, long, ttl),
    )


def usage_of_langchain(metadata: Mapping[str, Any] | None, *, ttl: Ttl = "5m") -> Usage | None:
    """Usage from LangChain's `usage_metadata`, whose input total includes the cached parts."""
    if not metadata:
        return None
    details = _table(metadata.get("input_token_details"))
    short = _count(details.get("ephemeral_5m_input_tokens"))
    long = _count(details.get("ephemeral_1h_input_tokens"))
    read = _count(details.get("cache_read"))
    written = _count(details.get("cache_creation")) + short + long
    total = _count(metadata.get("input_tokens"))
    if not total and not read and not written:
        # A proxy that streams no input fields makes LangChain report zero.
        return None
    return Usage(
        read_tokens=read,
        uncached_tokens=max(0, total - read - written),
        output_tokens=_count(metadata.get("output_tokens")),
        **_write(written, short, long, ttl),
    )


def _write(written: int, short: int, long: int, ttl: Ttl) -> dict[str, int]:
    unsplit = written - short - long
    if ttl == "1h":
        return {"write_5m_tokens": short, "write_1h_tokens": long + unsplit}
    return {"write_5m_tokens": short + unsplit, "write_1h_tokens": long}


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    """A reported count; anything that is not a plausible one counts as nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS:
        return value
    return 0
