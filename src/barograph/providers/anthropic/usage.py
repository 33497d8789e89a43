"""Read token usage, whatever form it comes in, into four disjoint parts.

Three meanings of "input tokens" meet here. The API's `input_tokens` excludes what was read from or
written to the cache; LangChain's includes both; and LangChain reports the written part either as
`cache_creation` or, where the provider split it by lifetime, as two `ephemeral_*` fields with
`cache_creation` set to 0 (langchain-anthropic 1.7.10), so that summing all three is right and
counting one is not.
"""

from collections.abc import Mapping
from typing import Any

from barograph.core.events import Ttl, Usage


def usage_of(
    started: Mapping[str, Any] | None, ended: Mapping[str, Any] | None = None, *, ttl: Ttl = "5m"
) -> Usage | None:
    """Usage from the API's own fields.

    Args:
        started: `usage` of a message, or of a stream's `message_start`.
        ended: `usage` of a stream's `message_delta`: cumulative totals, so the later value wins,
            but without the split of the write by lifetime.
        ttl: lifetime to book a write under that nobody split.

    Returns:
        None where the provider reported no input at all: absent is not zero.
    """
    first, last = dict(started or {}), dict(ended or {})
    merged = {**first, **{key: value for key, value in last.items() if value is not None}}
    if all(merged.get(key) is None for key in ("input_tokens", "cache_read_input_tokens")):
        return None
    written = _count(merged.get("cache_creation_input_tokens"))
    split = merged.get("cache_creation") or {}
    short = _count(split.get("ephemeral_5m_input_tokens"))
    long = _count(split.get("ephemeral_1h_input_tokens"))
    return Usage(
        read_tokens=_count(merged.get("cache_read_input_tokens")),
        uncached_tokens=_count(merged.get("input_tokens")),
        output_tokens=_count(merged.get("output_tokens")),
        **_write(max(written, short + long), short, long, ttl),
    )


def usage_of_langchain(metadata: Mapping[str, Any] | None, *, ttl: Ttl = "5m") -> Usage | None:
    """Usage from LangChain's `usage_metadata`, whose input total includes the cached parts."""
    if not metadata:
        return None
    details = metadata.get("input_token_details") or {}
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


def _count(value: object) -> int:
    """A reported count; anything that is not a plausible one counts as nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return 0
