"""The history of one agent while its recording is read."""

from collections import Counter

import msgspec

from barograph.audit.lines import WireBlock, WireMessage
from barograph.audit.pairing import PairingAudit

# Role and legal blocks of a message. One without legal blocks is left out of the requests, but
# still counts in the lengths that the recording speaks of.
Content = tuple[str, list[WireBlock]]


class History:
    """What the next request of an agent begins with: the last request and its response.

    Attributes:
        system: the recorded system prompt in force.
        pairing: what is irregular in the requests so far.
    """

    def __init__(self) -> None:
        self.system: str | None = None
        self.pairing = PairingAudit()
        self._messages: list[WireMessage] = []
        self._legal_lengths = [0]  # by recorded length

    @property
    def recorded_length(self) -> int:
        """Messages of the history as recorded."""
        return len(self._legal_lengths) - 1

    def extend(self, contents: list[Content]) -> tuple[WireMessage, ...]:
        """Append messages; those that are not left out."""
        before = len(self._messages)
        for role, blocks in contents:
            if blocks:
                self._messages.append({"role": role, "content": blocks})
            self._legal_lengths.append(len(self._messages))
        return tuple(self._messages[before:])

    def cut(self, recorded_length: int) -> int | None:
        """Cut to a recorded length; the legal length, or None if nothing went away."""
        del self._legal_lengths[recorded_length + 1 :]
        length = self._legal_lengths[-1]
        if length == len(self._messages):
            return None
        del self._messages[length:]
        return length

    def extend_uncut(
        self, recorded_length: int, contents: list[Content]
    ) -> tuple[WireMessage, ...]:
        """Append what is new in a rewrite without making its cut.

        From here on only the recorded lengths stay true; no later cut may be made.
        """
        append = self.extend(self._new_in(contents))
        del self._legal_lengths[recorded_length + 1 + len(contents) :]
        return append

    def _new_in(self, contents: list[Content]) -> list[Content]:
        """The contents without the blocks already held; one held once is passed over once."""
        held = Counter(
            _identity(message["role"], block)
            for message in self._messages
            for block in message["content"]
        )
        new: list[Content] = []
        for role, blocks in contents:
            new.append((role, []))
            for block in blocks:
                identity = _identity(role, block)
                if held[identity]:
                    held[identity] -= 1
                else:
                    new[-1][1].append(block)
        return new


def _identity(role: str, block: WireBlock) -> tuple[str, str, str | bytes]:
    """Tool blocks are the same by id, whatever a clearing made of their content."""
    tool_id = block.get("id") or block.get("tool_use_id")
    return role, block["type"], tool_id or msgspec.json.encode(block, order="deterministic")
