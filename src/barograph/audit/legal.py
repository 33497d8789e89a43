"""Recorded content as the Messages API accepts it, every change counted.

The rules are the provider's: text must hold more than white space, an assistant message must not
end in thinking, tool ids and names are `[a-zA-Z0-9_-]+`, a tool input is an object. What cannot be
known (the bytes of an omitted image) gets a fixed stand-in. Thinking keeps the signature that the
recording holds. Tool calls and results are **not** paired up here: that is the work of the library
that a replay puts under test.
"""

import re
from collections import Counter
from typing import Final

from barograph.audit.lines import WireBlock

IMAGE_STAND_IN: Final = "[image: its bytes are not in the recording]"
_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]")
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_STOP_REASONS: Final = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "pause_turn": "pause_turn",
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    # the words of other harnesses and providers
    "length": "max_tokens",
    "stop": "end_turn",
    "toolUse": "tool_use",
    "tool_calls": "tool_use",
}


class Legaliser:
    """Turns recorded content into legal content; one per file, because ids must stay consistent.

    Args:
        notes: where each change is counted, by name.
    """

    def __init__(self, notes: Counter[str]) -> None:
        self._notes = notes
        self._legal_ids: dict[str, str] = {}
        self._taken_ids: set[str] = set()
        self._legal_names: dict[str, str] = {}
        self.tool_names: set[str] = set()

    def content(self, role: str, recorded: str | list[WireBlock]) -> list[WireBlock]:
        """The legal blocks of one message; empty if nothing legal is left.

        Raises:
            ValueError: a block without what its type requires.
        """
        blocks = [{"type": "text", "text": recorded}] if isinstance(recorded, str) else recorded
        legal = self._blocks(blocks)
        while role == "assistant" and legal and legal[-1]["type"] in _THINKING:
            legal.pop()
            self._notes["trailing_thinking_dropped"] += 1
        return legal

    def stop_reason(self, recorded: str | None, response: list[WireBlock]) -> str:
        """The stop reason in Anthropic's vocabulary; inferred from the content where unknown."""
        if recorded in _STOP_REASONS:
            return _STOP_REASONS[recorded]
        self._notes["stop_reasons_inferred"] += 1
        asks = any(block["type"] == "tool_use" for block in response)
        return "tool_use" if asks else "end_turn"

    def _blocks(self, recorded: list[WireBlock]) -> list[WireBlock]:
        legal = (self._block(block) for block in recorded)
        return [block for block in legal if block is not None]

    def _block(self, block: WireBlock) -> WireBlock | None:
        kind = _text_of(block, "type")
        if kind == "text":
            return self._text(block)
        if kind == "tool_use":
            return self._tool_use(block)
        if kind == "tool_result":
            return self._tool_result(block)
        if kind == "image":
            return self._image(block)
        return block

    def _text(self, block: WireBlock) -> WireBlock | None:
        if _text_of(block, "text").strip():
            return block
        self._notes["blank_texts_dropped"] += 1
        return None

    def _image(self, block: WireBlock) -> WireBlock:
        source = block.get("source")
        if isinstance(source, dict) and source.get("type") != "omitted":
            return block
        self._notes["images_replaced"] += 1
        return {"type": "text", "text": IMAGE_STAND_IN}

    def _tool_use(self, block: WireBlock) -> WireBlock:
        name = self._name(_text_of(block, "name"))
        self.tool_names.add(name)
        changed: WireBlock = {"id": self._id(_text_of(block, "id")), "name": name}
        if not isinstance(block.get("input"), dict):
            self._notes["tool_inputs_wrapped"] += 1
            changed["input"] = {"input": block.get("input")}
        return _with(block, changed)

    def _tool_result(self, block: WireBlock) -> WireBlock:
        changed: WireBlock = {"tool_use_id": self._id(_text_of(block, "tool_use_id"))}
        if isinstance(block.get("content"), list):
            # a result may be empty, and then it is the empty string
            changed["content"] = self._blocks(block["content"]) or ""
        return _with(block, changed)

    def _name(self, recorded: str) -> str:
        if recorded not in self._legal_names:
            legal = _ILLEGAL.sub("_", recorded)[:128] or "_"
            self._legal_names[recorded] = legal
            self._notes["tool_names_rewritten"] += legal != recorded
        return self._legal_names[recorded]

    def _id(self, recorded: str) -> str:
        if recorded not in self._legal_ids:
            legal = _ILLEGAL.sub("_", recorded) or "_"
            while legal in self._taken_ids:  # two recorded ids must not become one
                legal += "_"
            self._legal_ids[recorded] = legal
            self._taken_ids.add(legal)
            self._notes["tool_ids_rewritten"] += legal != recorded
        return self._legal_ids[recorded]


def _text_of(block: WireBlock, key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise ValueError(f"a {block.get('type', 'content')} block has no text in `{key}`")  # noqa: TRY004 - the file is wrong, not the program
    return value


def _with(block: WireBlock, changed: WireBlock) -> WireBlock:
    """The block itself where nothing changes, so that untouched content is never copied."""
    if all(key in block and block[key] == value for key, value in changed.items()):
        return block
    return {**block, **changed}
