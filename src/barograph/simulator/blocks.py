"""What the simulator must know of one block, computed once per distinct JSON text.

A request repeats nearly every block of the one before it. So a block is sliced out of the body
undecoded, its bytes are hashed, and everything else (semantic digest, tokens, marker, problems) is
looked up under that hash. The memory is bounded: the oldest facts are forgotten first.
"""

from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.events import Ttl
from barograph.simulator.nested import HOLDERS, inside, is_cited, tools_named
from barograph.simulator.seals import Seal, label_of, read_seal
from barograph.simulator.tokens import Size, TokenRule, size_of_block, size_of_tool

DIGEST_BYTES: Final = 16
_REMEMBERED: Final = 65_536

# Inside these, the order of keys is the model's or the author's text; elsewhere it means nothing.
_ORDERED_KEYS: Final = frozenset({"input", "input_schema"})
# reference: provider prompt-caching page, "What cannot be cached"
THINKING: Final = frozenset({"thinking", "redacted_thinking"})
# Where a thinking block carries its text and its signature.
TEXT_OF: Final = {"thinking": "thinking", "redacted_thinking": ""}
SIGNATURE_OF: Final = {"thinking": "signature", "redacted_thinking": "data"}


class BlockFacts(Struct, frozen=True, kw_only=True):
    """Facts of one tool definition, system block or message block.

    Attributes:
        digest: hash of the block's meaning, markers and key order aside.
        tokens: its tokens by the simulator's rule.
        kind: the block's `type`; `tool` for a tool definition.
        tool_id: id of the call a `tool_use` makes or a `tool_result` answers, else empty.
        marker: TTL class of its `cache_control`, None without one.
        eligible: whether it may carry a marker.
        images: images inside it.
        problem: why the provider would refuse it, to be read after the block's path; else empty.
        name: name of a tool definition, else empty.
        deferred: whether it is a tool definition that is loaded only where it is referenced.
        references: names of the tools that the block makes known to the model.
        citations: whether it holds a document or search result that may be cited.
        seal: what the signature of a thinking block says; None if the simulator did not make it.
        label: short name of a thinking block, else empty.
    """

    digest: bytes
    tokens: int
    kind: str
    tool_id: str = ""
    marker: Ttl | None = None
    eligible: bool = True
    images: int = 0
    problem: str = ""
    name: str = ""
    deferred: bool = False
    references: tuple[str, ...] = ()
    citations: bool = False
    seal: Seal | None = None
    label: str = ""


_Kept = TypeVar("_Kept")


class Memory(Generic[_Kept]):
    """Values by key, of which the oldest are forgotten.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._known: dict[bytes, _Kept] = {}
        self.get = self._known.get

    def put(self, key: bytes, value: _Kept) -> _Kept:
        """Remember a value, and give it back."""
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[key] = value
        return value


def key_of(raw: msgspec.Raw | bytes, kind: bytes = b"") -> bytes:
    """What a piece of JSON is remembered by: its bytes, and what it was read as."""
    return blake2b(raw, digest_size=DIGEST_BYTES, person=kind).digest()


class BlockReader:
    """Facts of blocks by their raw JSON, remembered.

    Args:
        rule: how tokens are counted.
    """

    def __init__(self, rule: TokenRule) -> None:
        self._rule = rule
        self._known: Memory[BlockFacts] = Memory()

    def tool(self, raw: msgspec.Raw) -> BlockFacts:
        """Facts of a tool definition."""
        key = key_of(raw, b"tool")
        return self._known.get(key) or self._known.put(key, self._read_tool(raw))

    def block(self, raw: msgspec.Raw) -> BlockFacts:
        """Facts of a system or message block."""
        key = key_of(raw, b"block")
        return self._known.get(key) or self._known.put(key, self._read_block(raw))

    def text(self, text: str) -> BlockFacts:
        """Facts of a string given as whole content: the same as those of one text block."""
        key = key_of(text.encode(), b"text")
        block = {"type": "text", "text": text}
        return self._known.get(key) or self._known.put(key, self._facts_of_block(block))

    def _read_tool(self, raw: msgspec.Raw) -> BlockFacts:
        tool = msgspec.json.decode(raw)
        if not isinstance(tool, dict):
            return _no_object()
        name, deferred = tool.get("name"), tool.get("defer_loading") is True
        problem = ""
        if not isinstance(name, str) and not isinstance(tool.get("type"), str):
            problem = ".name: Field required"
        elif deferred and tool.get("cache_control") is not None:
            problem = ".cache_control: cannot be set on a tool with defer_loading"
        facts = self._facts(tool, "tool", size_of_tool(tool), problem=problem)
        return replace(facts, name=name if isinstance(name, str) else "", deferred=deferred)

    def _read_block(self, raw: msgspec.Raw) -> BlockFacts:
        block = msgspec.json.decode(raw)
        return self._facts_of_block(block) if isinstance(block, dict) else _no_object()

    def _facts_of_block(self, block: dict[str, Any]) -> BlockFacts:
        kind = block.get("type")
        if not isinstance(kind, str):
            return self._facts(block, "", Size(0), problem=".type: Field required")
        facts = self._facts(block, kind, size_of_block(block), problem=_problem(block, kind))
        if kind in THINKING and not facts.problem:
            return _sealed(facts, block)
        if kind not in HOLDERS:
            return facts
        inner = list(inside(block))
        return replace(
            facts,
            references=tuple(name for part in inner for name in tools_named(part)),
            citations=any(is_cited(part) for part in inner),
        )

    def of(self, block: dict[str, Any]) -> BlockFacts:
        """Facts of a decoded block, not remembered."""
        return self._facts_of_block(block)

    def _facts(
        self, block: dict[str, Any], kind: str, size: Size, *, problem: str = ""
    ) -> BlockFacts:
        marker, marker_problem = _marker(block.get("cache_control"))
        eligible = kind not in THINKING and not (kind == "text" and not block.get("text"))
        return BlockFacts(
            digest=blake2b(_semantic(block), digest_size=DIGEST_BYTES).digest(),
            tokens=self._rule.tokens_of(size),
            kind=kind,
            tool_id=_tool_id(block, kind),
            marker=marker,
            eligible=eligible,
            images=size.images,
            problem=problem or marker_problem,
        )


def _no_object() -> BlockFacts:
    return BlockFacts(digest=b"", tokens=0, kind="", problem=": Input should be an object")


def _sealed(facts: BlockFacts, block: dict[str, Any]) -> BlockFacts:
    """Facts of a thinking block with what its signature says."""
    signature = block.get(SIGNATURE_OF[facts.kind])
    if not isinstance(signature, str):
        problem = f".{facts.kind}.{SIGNATURE_OF[facts.kind]}: Field required"
        return replace(facts, problem=problem)
    seal, right = read_seal(signature, str(block.get(TEXT_OF[facts.kind]) or ""))
    problem = "" if right else f": Invalid `signature` in `{facts.kind}` block"
    return replace(facts, seal=seal, label=label_of(signature), problem=problem)


def _tool_id(block: dict[str, Any], kind: str) -> str:
    name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind)
    value = block.get(name) if name else None
    return value if isinstance(value, str) else ""


def _problem(block: dict[str, Any], kind: str) -> str:
    """Why a block is refused whatever stands around it (reference: messages API, validation)."""
    marked = block.get("cache_control") is not None
    if kind in THINKING and marked:
        return f".{kind}.cache_control: Extra inputs are not permitted"
    if kind == "text":
        return _text_problem(block.get("text"), marked=marked)
    if kind == "tool_use" and not _tool_id(block, kind):
        return ".tool_use.id: Field required"
    if kind == "tool_result":
        return _tool_result_problem(block)
    return ""


def _text_problem(text: object, *, marked: bool) -> str:
    if not isinstance(text, str):
        return ".text.text: Field required"
    if not text and marked:
        return ".text: cache_control cannot be set for empty text blocks"
    if not text:
        return ": text content blocks must be non-empty"
    return "" if text.strip() else ": text content blocks must contain non-whitespace text"


def _tool_result_problem(block: dict[str, Any]) -> str:
    if not _tool_id(block, "tool_result"):
        return ".tool_result.tool_use_id: Field required"
    content = block.get("content")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, dict) and part.get("cache_control") is not None:
            return f".tool_result.content.{index}.cache_control: sub-blocks cannot be cached"
    return ""


def _marker(value: object) -> tuple[Ttl | None, str]:
    """The TTL class of a `cache_control` value, and what is wrong with it."""
    if value is None:
        return None, ""
    if not isinstance(value, dict):
        return None, ".cache_control: Input should be an object"
    ttl = value.get("ttl")
    unknown = next((key for key in value if key not in ("type", "ttl")), None)
    problem = ""
    if value.get("type") != "ephemeral":
        problem = ".cache_control.type: Input should be 'ephemeral'"
    elif unknown is not None:
        problem = f".cache_control.{unknown}: Extra inputs are not permitted"
    elif ttl not in (None, "5m", "1h"):
        problem = ".cache_control.ttl: Input should be '5m' or '1h'"
    return (None, problem) if problem else ("1h" if ttl == "1h" else "5m", "")


def marker_of(raw: msgspec.Raw) -> tuple[Ttl | None, str]:
    """The TTL class of the request's own `cache_control`, and what is wrong with it."""
    return _marker(msgspec.json.decode(raw))


def _semantic(block: dict[str, Any]) -> bytes:
    """Bytes that are equal for two blocks exactly if the provider sees the same block."""
    content = block.get("content")
    if block.get("type") == "tool_result" and isinstance(content, str):
        block = block | {"content": [{"type": "text", "text": content}]}
    return msgspec.json.encode(_ordered(block))


def _ordered(value: object) -> object:
    """The value with its keys sorted where their order means nothing; null counts as absent."""
    if isinstance(value, dict):
        return {
            key: item if key in _ORDERED_KEYS else _ordered(item)
            for key, item in sorted(value.items())
            if item is not None and key != "cache_control"
        }
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value
