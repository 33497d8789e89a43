"""Limits, minimums, multipliers and list prices of Anthropic models, as data with a date.

Sources: the provider's prompt-caching page as read on 1-3 October 2026 (minimums, multipliers,
lookback; the release note of 28 May 2026 settles Opus 4.8), its pricing page and the price table
of `genai-prices` 0.2.3 (prices). A minimum that no source states is taken as the largest known.
"""

from functools import lru_cache
from typing import Final

from barograph.core.model import ModelFacts

AS_OF: Final = "2026-10-03"
UNKNOWN_MINIMUM_TOKENS: Final = 4096


# Preserved-thinking page, as read on 3 October 2026.
_BINDING: Final = frozenset(
    {"claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5"}
)

# Prompt-caching page, as read on 1-3 October 2026: models before Opus 4.5 and Sonnet 4.6, and
# Haiku up to 4.5.
_DROPPING: Final = frozenset(
    {
        "claude-opus-4-1",
        "claude-opus-4",
        "claude-sonnet-4-5",
        "claude-sonnet-4",
        "claude-haiku-4-5",
        "claude-3-5-haiku",
        "unknown",
    }
)


# The price table: above so many tokens of input, the whole request at so many times the price.
_CLIFFS: Final = {"claude-haiku-5-5": (100_000, 5.0)}


def _row(
    name: str, minimum: int, usd: tuple[float, float], *, read: float = 0.1, window: int = 1_000_000
) -> ModelFacts:
    cliff_tokens, cliff_ratio = _CLIFFS.get(name, (None, 1.0))
    return ModelFacts(
        name=name,
        window_tokens=window,
        minimum_tokens=minimum,
        read_ratio=read,
        input_usd=usd[0],
        output_usd=usd[1],
        as_of=AS_OF,
        binds_thinking=name in _BINDING,
        drops_thinking=name in _DROPPING,
        cliff_tokens=cliff_tokens,
        cliff_ratio=cliff_ratio,
    )


# A name matches the longest key that it starts with, so dated and suffixed ids find their family.
_ROWS: Final = {
    row.name: row
    for row in (
        _row("claude-fable-5-2", UNKNOWN_MINIMUM_TOKENS, (8, 40), read=0.025),
        _row("claude-fable-5-1", 512, (10, 50), read=0.025),
        _row("claude-fable-5", 512, (10, 50)),
        _row("claude-mythos-5-2", UNKNOWN_MINIMUM_TOKENS, (8, 40), read=0.025),
        _row("claude-mythos-5-1", 512, (10, 50), read=0.025),
        _row("claude-mythos-5", 512, (10, 50)),
        _row("claude-opus-5-5", 512, (4, 20), read=0.05),
        _row("claude-opus-5", 512, (5, 25)),
        _row("claude-opus-4-8", 1024, (5, 25)),
        _row("claude-opus-4-7", 2048, (5, 25)),
        _row("claude-opus-4-6", 4096, (5, 25)),
        _row("claude-opus-4-5", 4096, (5, 25), window=200_000),
        _row("claude-opus-4-1", 1024, (15, 75), window=200_000),
        _row("claude-opus-4", 1024, (15, 75), window=200_000),
        _row("claude-sonnet-5-5", 512, (2, 10), read=0.05),
        _row("claude-sonnet-5", 1024, (2, 10)),
        _row("claude-sonnet-4-6", 1024, (3, 15)),
        _row("claude-sonnet-4-5", 1024, (3, 15), window=200_000),
        _row("claude-sonnet-4", 1024, (3, 15), window=200_000),
        _row("claude-haiku-5-5", UNKNOWN_MINIMUM_TOKENS, (0.1, 0.5)),
        _row("claude-haiku-4-5", 4096, (1, 5), window=200_000),
        _row("claude-3-5-haiku", 2048, (0.8, 4), window=200_000),
    )
}

# Dearest current list price and the strictest minimum: an unknown model is never flattered.
_UNKNOWN: Final = _row("unknown", UNKNOWN_MINIMUM_TOKENS, (5, 25), window=200_000)


@lru_cache(maxsize=64)
def facts_of(model: str) -> ModelFacts:
    """The facts of a model id; of an unknown one, cautious facts whose name is `unknown`."""
    name = model.removeprefix("anthropic:").removeprefix("anthropic/")
    matches = [key for key in _ROWS if name.startswith(key)]
    return _ROWS[max(matches, key=len)] if matches else _UNKNOWN
