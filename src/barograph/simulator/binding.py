"""Thinking blocks that come back: which the model may see, and which refuse the request.

Theory. A signature names the key of what stood before its block when it was made: tools, system
and every earlier block that is no thinking, markers and parameters aside. A block that comes back
is good if the same key stands before it now, and if the thinking block before it is the one that
stood there then. A run of thinking that is missing at the beginning is allowed, so the first block
that is shown may name any predecessor. Because only blocks that are shown are predecessors, a
block made after a change, when the ones before were dropped, stays good while they are dropped.

Whether the check runs, and what follows, depends on the model and the request; see `Switches`.
Two other rules are no failure: a model does not see thinking of a model it cannot read, and earlier
models do not see thinking once user text follows it.

Sources: provider pages on preserved thinking (what a block is tied to, what counts as a change),
its errors page (the words), its prompt-caching page (stripping), and the types of its SDK
(`input_transformations`).
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from barograph.simulator.abilities import reads_thinking_of, strips_thinking
from barograph.simulator.blocks import (
    DIGEST_BYTES,
    SIGNATURE_OF,
    TEXT_OF,
    THINKING,
    BlockFacts,
    BlockReader,
)
from barograph.simulator.layout import Place
from barograph.simulator.messages import ROLE_SALT, SYSTEM_SALT, TOOL_SALT
from barograph.simulator.prefix import shared_length
from barograph.simulator.refusal import Refused
from barograph.simulator.request import Request
from barograph.simulator.seals import Seal, label_of, signature_of
from barograph.simulator.switches import Switches

CONTROLS_BETA: Final = "thinking-binding-controls-2026-08-01"
Transformation = dict[str, str]


class Chain(Struct, frozen=True, kw_only=True):
    """Keys of everything in a request that is no thinking; the next request builds on it.

    Attributes:
        steps: what is hashed for each block.
        keys: the key after each block.
    """

    steps: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()

    def key(self, count: int) -> bytes:
        """The key of that many blocks."""
        return self.keys[count - 1] if count else b""


class Thinking(Struct, frozen=True, kw_only=True):
    """What was decided on the thinking of a request.

    Attributes:
        without: places of the blocks that the model does not see.
        transformations: what the answer reports of it.
        last: label of the last block that the model sees, empty for none.
    """

    without: frozenset[Place] = frozenset()
    transformations: tuple[Transformation, ...] = ()
    last: str = ""


def check_controls(request: Request, betas: frozenset[str]) -> None:
    """Refuse `thinking.block_binding` without its beta header.

    Raises:
        Refused: the header is missing.
    """
    if request.parameters.has_binding and CONTROLS_BETA not in betas:
        raise Refused(
            "thinking.block_binding: Extra inputs are not permitted without the header"
            f" `anthropic-beta: {CONTROLS_BETA}`"
        )


def extend_chain(previous: Chain, request: Request) -> Chain:
    """The chain of a request; what it shares with the previous one is not hashed again."""
    steps = (
        *(TOOL_SALT + tool.digest for tool in request.tools if not tool.deferred),
        *(SYSTEM_SALT + block.digest for block in request.system),
        *(step for message in request.messages for step in message.thoughtless()),
    )
    shared = shared_length(previous.steps, steps)
    key = previous.key(shared)
    keys: list[bytes] = []
    for step in steps[shared:]:
        key = _next(key, step)
        keys.append(key)
    return Chain(steps=steps, keys=(*previous.keys[:shared], *keys))


def check_thinking(request: Request, chain: Chain, switches: Switches) -> Thinking:
    """Decide on each thinking block that came back.

    Args:
        request: the request.
        chain: keys of what stands before each block.
        switches: how strict the provider is.

    Raises:
        Refused: a block does not fit what precedes it, and the request is not to drop it.
    """
    stripped = _stripped_before(request) if strips_thinking(request.model) else 0
    bound = switches.thinking_binding != "off" and request.model.startswith(switches.bound_models)
    behavior = request.parameters.on_mismatch
    enforced = bound and (behavior != "" or switches.thinking_binding == "enforced")
    without: set[Place] = set()
    told: list[Transformation] = []
    last = ""
    for place, block, count in _thinking_of(request):
        path = f"messages.{place[0]}.content.{place[1]}"
        seal = block.seal
        if seal is not None and not reads_thinking_of(request.model, seal.model):
            without.add(place)
            told.append(_told("thinking_dropped", path, "model_binding_mismatch"))
            continue
        if place[0] < stripped:
            without.add(place)
            continue
        if bound and not _fits(seal, chain.key(count), last, switches):
            if enforced and behavior != "drop_block":
                raise _mismatch(path, block.kind)
            kind = "thinking_dropped" if enforced else "thinking_mismatch_allowed"
            told.append(_told(kind, path, "prefix_binding_mismatch"))
            if enforced:
                without.add(place)
                continue
        last = block.label
    return Thinking(without=frozenset(without), transformations=tuple(told), last=last)


def seal_reply(
    blocks: Sequence[Mapping[str, Any]],
    model: str,
    key: bytes,
    last: str,
    reader: BlockReader,
) -> list[Mapping[str, Any]]:
    """The blocks of an answer, thinking that has no signature yet with one.

    Args:
        blocks: the answer.
        model: who gives it.
        key: key of the request, thinking aside.
        last: label of the thinking block before it, empty for none.
        reader: what blocks are read with when they come back.
    """
    sealed: list[Mapping[str, Any]] = []
    for block in blocks:
        kind = block.get("type", "")
        if kind not in THINKING:
            key = _next(key, ROLE_SALT["assistant"] + reader.of(dict(block)).digest)
            sealed.append(block)
            continue
        field = SIGNATURE_OF[kind]
        if not block.get(field):
            seal = Seal(model=model, prefix=key.hex(), after=last)
            signature = signature_of(seal, str(block.get(TEXT_OF[kind]) or ""))
            sealed.append({**block, field: signature})
        else:
            sealed.append(block)
        last = label_of(str(sealed[-1][field]))
    return sealed


def needs_seal(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an answer has thinking without a signature."""
    return any(
        block.get("type") in THINKING and not block.get(SIGNATURE_OF[block["type"]])
        for block in blocks
    )


def _next(key: bytes, step: bytes) -> bytes:
    return blake2b(key + step, digest_size=DIGEST_BYTES).digest()


def _thinking_of(request: Request) -> Iterator[tuple[Place, BlockFacts, int]]:
    """Each thinking block with its place, and how many other blocks stand before it."""
    before = sum(not tool.deferred for tool in request.tools) + len(request.system)
    for at, message in enumerate(request.messages):
        for nth, index in enumerate(message.thinking):
            yield (at, index), message.blocks[index], before + index - nth
        before += len(message.blocks) - len(message.thinking)


def _stripped_before(request: Request) -> int:
    """Index of the last user message that holds more than tool results; 0 for none."""
    messages = request.messages
    found = (
        at
        for at in range(len(messages) - 1, -1, -1)
        if messages[at].role == "user" and len(messages[at].answers) < len(messages[at].blocks)
    )
    return next(found, 0)


def _fits(seal: Seal | None, key: bytes, last: str, switches: Switches) -> bool:
    if seal is None:
        return switches.foreign_thinking == "accept"
    return seal.prefix == key.hex() and (last in ("", seal.after))


def _told(kind: str, path: str, reason: str) -> Transformation:
    return {"type": kind, "path": path, "reason": reason}


def _mismatch(path: str, kind: str) -> Refused:
    return Refused(
        f"{path}: Invalid `signature` in `{kind}` block. The block is bound to a different"
        " conversation. Remove the block, or set"
        ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    )
