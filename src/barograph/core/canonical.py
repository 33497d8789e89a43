"""Canonical bytes and hashes: the byte-stability contract.

Two requests are *equal as canonical JSON* when they mean the same to the provider: key order does
not matter in the envelope and in blocks, and does matter inside tool arguments and tool schemas,
where the provider hashes the text it was given (prompt-caching page, troubleshooting).

Hashes are BLAKE2b. A stored hash carries its algorithm as a prefix (`b2:`), so that a change of
algorithm is visible in old logs.
"""

import json
import re
from functools import lru_cache
from hashlib import blake2b
from math import isinf
from typing import Final, TypeAlias

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

PREFIX: Final = "b2:"
CHAIN_BYTES: Final = 16
DEEPEST: Final = 256
_BODY_BYTES: Final = 32
# Below these keys the order of keys is content.
_ORDERED: Final = frozenset({"input", "input_schema"})
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def hash_body(data: bytes) -> str:
    """Content hash of stored bytes: `b2:` and 64 hex digits."""
    return PREFIX + blake2b(data, digest_size=_BODY_BYTES).hexdigest()


def digest(*pieces: bytes) -> bytes:
    """16-byte digest of pieces, each length-prefixed so that no two lists of pieces collide."""
    state = blake2b(digest_size=CHAIN_BYTES)
    for piece in pieces:
        state.update(len(piece).to_bytes(8, "big"))
        state.update(piece)
    return state.digest()


def canonical_json(value: Json) -> bytes:
    """Compact UTF-8 JSON whose bytes are equal exactly when two requests mean the same."""
    return dump_json(_sorted(value))


def dump_json(value: object) -> bytes:
    """Compact UTF-8 JSON with keys in the order given: the form that provider clients send."""
    return _encode(value).encode("utf-8", "surrogatepass")


def parse_json(text: str, *, deepest: int = DEEPEST) -> object:
    """The value of a JSON text, or None where it is not one that every reader understands.

    `NaN` is not, nor a number beyond what a double holds, nor a nesting beyond `deepest`: where
    Python gives up on that depends on who calls, and what we derive must not.
    """
    if text.count("[") + text.count("{") > deepest and _depth(text) > deepest:
        return None
    try:
        return _decode(text)
    except ValueError:
        return None


@lru_cache(maxsize=64)
def one_spelling(text: str) -> str:
    """JSON in the one spelling of `dump_json`; text that is not JSON comes back as it is.

    The arguments of a call are asked for when it is recognised and once more when it is rendered.
    """
    value = parse_json(text)
    return text if value is None else dump_json(value).decode("utf-8", "replace")


def clean_text(text: str) -> str:
    """Text that UTF-8 can carry: a lone surrogate becomes U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def _refuse(name: str) -> object:
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise ValueError(digits)
    return value


# `json.dumps` and `json.loads` make one of these for each call that asks for anything special.
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode


def _depth(text: str) -> int:
    depth = deepest = 0
    for found in _STRING_OR_BRACKET.findall(text):
        if found in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found in "]}":
            depth -= 1
    return deepest


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {
            key: value[key] if key in _ORDERED else _sorted(value[key]) for key in sorted(value)
        }
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
