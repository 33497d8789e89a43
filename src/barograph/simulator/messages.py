"""Read messages: their blocks, their tool ids, and what is hashed for each block."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from barograph.simulator.blocks import THINKING, BlockFacts, BlockReader, Memory, key_of
from barograph.simulator.refusal import refusal_of
from barograph.simulator.tokens import TokenRule

ROLE_SALT: Final = {"user": b"u", "assistant": b"a", "system": b"y"}
TOOL_SALT: Final = b"t"
SYSTEM_SALT: Final = b"s"
_ABSENT: Final = Raw()


class Message(Struct, frozen=True, kw_only=True):
    """One message: its role and the facts of its blocks.

    Attributes:
        role: as on the wire.
        blocks: facts of its blocks, a string counting as one text block.
        calls: ids of its `tool_use` blocks.
        answers: ids of its `tool_result` blocks.
        faulty: index of the first block with a problem, -1 for none.
        steps: what is hashed for each block: its role and its digest.
        thinking: indices of its thinking blocks.
        clear_at: when a system message stops being shown, empty for never.
    """

    role: str
    blocks: tuple[BlockFacts, ...]
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    faulty: int
    steps: tuple[bytes, ...]
    thinking: tuple[int, ...] = ()
    clear_at: str = ""

    @property
    def turn_scoped(self) -> bool:
        """Whether it is shown only until the next user message."""
        return self.clear_at == "next_user_message"

    def thoughtless(self) -> tuple[bytes, ...]:
        """What is hashed for each block but thinking."""
        if not self.thinking:
            return self.steps
        return tuple(step for at, step in enumerate(self.steps) if at not in self.thinking)


class _RawMessage(Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant", "system"]
    content: str | list[Raw]
    clear_at: Literal["next_user_message", "never"] | None = None
    output_config: Raw = _ABSENT


_MESSAGE: Final = msgspec.json.Decoder(_RawMessage)


class MessageReader:
    """Reads messages; those it has seen before are looked up, not decoded.

    Args:
        rule: how tokens are counted.
    """

    def __init__(self, rule: TokenRule) -> None:
        self.blocks = BlockReader(rule)
        self._known: Memory[Message] = Memory()

    def content(self, content: str | Sequence[Raw]) -> tuple[BlockFacts, ...]:
        """Facts of the blocks of a content; a string is one text block."""
        if isinstance(content, str):
            return (self.blocks.text(content),) if content else ()
        return tuple(self.blocks.block(raw) for raw in content)

    def message(self, raw: Raw, at: int) -> Message:
        """Read a message.

        Args:
            raw: its JSON.
            at: its index, for the words of a refusal.

        Raises:
            Refused: a field is missing, unknown or of a wrong type.
        """
        key = key_of(raw)
        known = self._known.get(key)
        if known is not None:
            return known
        try:
            message = _MESSAGE.decode(raw)
        except msgspec.DecodeError as error:
            raise refusal_of(error, inside=f"messages.{at}") from error
        blocks = self.content(message.content)
        if message.clear_at == "next_user_message":
            blocks = tuple(replace(block, eligible=False) for block in blocks)
        salt = ROLE_SALT[message.role]
        read = Message(
            role=message.role,
            blocks=blocks,
            calls=tuple(block.tool_id for block in blocks if block.kind == "tool_use"),
            answers=tuple(block.tool_id for block in blocks if block.kind == "tool_result"),
            faulty=next((index for index, block in enumerate(blocks) if block.problem), -1),
            steps=tuple(salt + block.digest for block in blocks),
            thinking=tuple(index for index, block in enumerate(blocks) if block.kind in THINKING),
            clear_at="" if message.clear_at in (None, "never") else message.clear_at,
        )
        return self._known.put(key, read)
