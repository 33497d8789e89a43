"""How bodies and their hashes are laid out in a database: compressed, and in few bytes."""

import threading
from typing import Final, NamedTuple

import msgspec
import zstandard

from barograph.core.canonical import PREFIX
from barograph.store.codec import Encoded

COMPRESS_BYTES: Final = 1024
"""Shorter bodies are stored as they are: a frame would save little and cost time."""

_LEVEL: Final = 3
_refs_decoder: Final = msgspec.msgpack.Decoder(dict[str, bytes])


class PackedBody(NamedTuple):
    """A body as a row: `zstd` tells whether `data` is a compressed frame."""

    hash: bytes
    zstd: bool
    data: bytes


class _Contexts(threading.local):
    """A zstd context may not be used by two threads at once, and is slow to make."""

    def __init__(self) -> None:
        self.compressor: Final = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor: Final = zstandard.ZstdDecompressor()


_contexts: Final = _Contexts()


def pack_bodies(encoded: list[Encoded]) -> list[PackedBody]:
    """The bodies of these events, ready to be stored."""
    return [
        PackedBody(pack_hash(ref), *_compress(body))
        for one in encoded
        for ref, body in one.bodies.items()
    ]


def unpack_body(*, zstd: bool, data: bytes) -> bytes:
    """The bytes that were stored; something without their hash where the row was altered."""
    if not zstd:
        return data
    try:
        return _contexts.decompressor.decompress(data, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError):
        # Whoever compares the hash says which body of which event this is.
        return b""


def pack_hash(ref: str) -> bytes:
    """A content hash, its algorithm's prefix and 64 hex digits, in 35 bytes."""
    return PREFIX.encode() + bytes.fromhex(ref.removeprefix(PREFIX))


def pack_refs(refs: dict[str, str]) -> bytes | None:
    """The references of a record; None where it has none."""
    if not refs:
        return None
    return msgspec.msgpack.encode({name: pack_hash(ref) for name, ref in refs.items()})


def unpack_refs(packed: bytes | None) -> dict[str, str]:
    """The references of a record.

    Raises:
        ValueError: these are not the bytes that `pack_refs` made.
    """
    if packed is None:
        return {}
    return {name: _unpack_hash(ref) for name, ref in _refs_decoder.decode(packed).items()}


def _unpack_hash(packed: bytes) -> str:
    prefix = PREFIX.encode()
    if not packed.startswith(prefix):
        raise ValueError(f"no known hash starts with {packed[: len(prefix)]!r}")
    return PREFIX + packed[len(prefix) :].hex()


def _compress(body: bytes) -> tuple[bool, bytes]:
    if len(body) >= COMPRESS_BYTES:
        frame = _contexts.compressor.compress(body)
        if len(frame) < len(body):
            return True, frame
    return False, body
