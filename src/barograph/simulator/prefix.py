"""Prefix keys: one cumulative hash per block, parameters mixed in where they start to matter.

`key(p) = H(model, parameters of p's level and above, blocks up to p)`; a change of a parameter
invalidates its level and every later one (reference: provider prompt-caching page, "What
invalidates the cache").
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Struct

from barograph.core.events import Level, Ttl
from barograph.simulator.blocks import DIGEST_BYTES, BlockFacts
from barograph.simulator.layout import Layout
from barograph.simulator.request import Request
from barograph.simulator.switches import Switches

# Models on which a change of effort leaves the cache alone, by the start of their name.
_EFFORT_KEEPS: Final = ("claude-opus-5-5", "claude-fable-5-1")
_DEFAULT_EFFORT: Final = "high"


class PromptBlock(Struct, frozen=True, kw_only=True):
    """One block of a prompt, as the cache and an audit see it.

    Attributes:
        prefix_key: hash of the prompt up to and including this block, markers aside. Equal keys
            mean that the provider could serve this prefix from the cache.
        tokens: tokens of this block alone.
        level: where it stands.
        kind: its `type`; `tool` for a tool definition.
        eligible: whether it may carry a marker.
        marker: TTL class of its marker, the automatic one included; None without one.
    """

    prefix_key: bytes
    tokens: int
    level: Level
    kind: str
    eligible: bool
    marker: Ttl | None

    @property
    def marked(self) -> bool:
        """Whether it carries a marker."""
        return self.marker is not None


class Prompt(Struct, frozen=True, kw_only=True):
    """The blocks of one request, and what was hashed for each, to build the next one on."""

    blocks: tuple[PromptBlock, ...]
    steps: tuple[bytes, ...]


EMPTY_PROMPT: Final = Prompt(blocks=(), steps=())


def extend_prompt(previous: Prompt, request: Request, layout: Layout, switches: Switches) -> Prompt:
    """The prompt of a request; what it shares with the previous one is taken, not hashed again."""
    facts = layout.facts
    steps = _with_parameters(request, layout, switches)
    levels = layout.levels()
    automatic_at = _automatic_at(request, facts)
    shared = shared_length(previous.steps, steps)
    key = previous.blocks[shared - 1].prefix_key if shared else b""
    blocks = list(previous.blocks[:shared])
    for index, block in enumerate(facts):
        marker = request.automatic if index == automatic_at else block.marker
        if index < shared:
            if blocks[index].marker != marker:
                blocks[index] = msgspec.structs.replace(blocks[index], marker=marker)
            continue
        key = blake2b(key + steps[index], digest_size=DIGEST_BYTES).digest()
        blocks.append(
            PromptBlock(
                prefix_key=key,
                tokens=block.tokens,
                level=levels[index],
                kind=block.kind,
                eligible=block.eligible,
                marker=marker,
            )
        )
    return Prompt(blocks=tuple(blocks), steps=steps)


def shared_length(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    """How many steps at the beginning are the same."""
    if before == now[: len(before)]:  # the usual case: the history grew
        return len(before)
    pairs = enumerate(zip(before, now, strict=False))
    return next((index for index, (old, new) in pairs if old != new), min(len(before), len(now)))


def _automatic_at(request: Request, facts: Sequence[BlockFacts]) -> int:
    """Index of the block that the request's own `cache_control` marks, -1 for none."""
    if request.automatic is None:
        return -1
    backwards = range(len(facts) - 1, -1, -1)
    return next((index for index in backwards if facts[index].eligible), -1)


def _with_parameters(request: Request, layout: Layout, switches: Switches) -> tuple[bytes, ...]:
    """The steps of a layout, with each level's parameters where they start to matter."""
    steps = layout.steps
    if not steps:
        return ()
    parameters = _level_parameters(request, layout.facts, switches)
    salted = list(steps)
    begins: dict[Level, int] = {
        "messages": layout.tools + layout.system,
        "system": layout.tools,
        "tools": 0,
    }
    for level, at in begins.items():  # the first level last, so that its parameters come first
        if at < len(salted):
            salted[at] = parameters[level] + salted[at]
    return tuple(salted)


def _level_parameters(
    request: Request, facts: Sequence[BlockFacts], switches: Switches
) -> dict[Level, bytes]:
    parameters = request.parameters
    images = sum(block.images for block in facts)
    keeps = request.model.startswith(_EFFORT_KEEPS) or parameters.effort == _DEFAULT_EFFORT
    found: dict[Level, list[object]] = {
        "tools": [request.model],
        "system": [parameters.speed, any(block.citations for block in facts)],
        "messages": [
            sorted(parameters.tool_choice.items()),
            min(images, 1) if switches.images_by_presence else images,
            parameters.task_budget,
        ],
    }
    found[switches.thinking_level].append(sorted(parameters.thinking.items()))
    found[switches.effort_level].append("" if keeps else parameters.effort)
    return {level: msgspec.json.encode([level, *values]) for level, values in found.items()}
