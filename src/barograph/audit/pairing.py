"""What is irregular in the requests of a recorded session: counted, never repaired.

Consecutive messages of one role count as one turn, as the provider merges them. A tool call of an
assistant turn must find its result in the user turn right behind it, before any other content.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

_USER: Final = "user"
_ASSISTANT: Final = "assistant"


class _Row(Struct, frozen=True, kw_only=True):
    """What pairing needs of a message: its role and (kind, tool id) of each block."""

    role: str
    blocks: list[tuple[str, str]]


class PairingAudit:
    """Follows one agent's history and remembers each irregularity once.

    A call costs O(new messages): only turns that the call added to, or made adjacent, are read.
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._checked = 0
        self._unanswered: set[str] = set()
        self._uncalled: set[str] = set()
        self._late_results: set[str] = set()
        self._consecutive = {_USER: 0, _ASSISTANT: 0}
        self._ends_in_assistant = 0

    def request(self, cut: int | None, append: Iterable[Mapping[str, Any]]) -> None:
        """A call leaves: the history is cut to `cut` messages, then `append` follows."""
        if cut is not None:
            del self._rows[cut:]
        first_new = min(self._checked, len(self._rows))
        self._rows.extend(_row(message) for message in append)
        self._checked = len(self._rows)
        self._count_consecutive(first_new)
        self._check_turns(self._rows[self._turn_start(first_new) :])
        self._ends_in_assistant += bool(self._rows) and self._rows[-1].role == _ASSISTANT

    def response(self, content: list[dict[str, Any]]) -> None:
        """The response of that call, which the next request of the agent holds."""
        if content:
            self._rows.append(_row({"role": _ASSISTANT, "content": content}))

    def notes(self) -> dict[str, int]:
        """Each irregularity with its number: distinct tool ids, else messages or calls."""
        return {
            "unpaired_tool_calls": len(self._unanswered),
            "unpaired_tool_results": len(self._uncalled),
            "tool_results_behind_other_content": len(self._late_results),
            "consecutive_user_messages": self._consecutive[_USER],
            "consecutive_assistant_messages": self._consecutive[_ASSISTANT],
            "requests_ending_in_assistant": self._ends_in_assistant,
        }

    def _turn_start(self, index: int) -> int:
        """The start of the assistant turn that the message at `index` belongs to or answers."""
        while index > 0 and self._rows[index - 1].role == _USER:
            index -= 1
        while index > 0 and self._rows[index - 1].role == _ASSISTANT:
            index -= 1
        return index

    def _count_consecutive(self, first_new: int) -> None:
        for index in range(max(first_new, 1), len(self._rows)):
            role = self._rows[index].role
            self._consecutive[role] += self._rows[index - 1].role == role

    def _check_turns(self, rows: list[_Row]) -> None:
        asked: set[str] = set()
        for role, turn in groupby(rows, key=lambda row: row.role):
            blocks = [block for row in turn for block in row.blocks]
            if role == _ASSISTANT:
                asked = {tool_id for kind, tool_id in blocks if kind == "tool_use"}
                continue
            self._check_user_turn(blocks, asked)
            asked = set()
        self._unanswered |= asked

    def _check_user_turn(self, blocks: list[tuple[str, str]], asked: set[str]) -> None:
        answered: set[str] = set()
        other_seen = False
        for kind, tool_id in blocks:
            if kind != "tool_result":
                other_seen = True
                continue
            answered.add(tool_id)
            if other_seen:
                self._late_results.add(tool_id)
        self._unanswered |= asked - answered
        self._uncalled |= answered - asked


def _row(message: Mapping[str, Any]) -> _Row:
    blocks = [
        (block["type"], block.get("id") or block.get("tool_use_id") or "")
        for block in message["content"]
    ]
    return _Row(role=message["role"], blocks=blocks)
