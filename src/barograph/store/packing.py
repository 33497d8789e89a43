"""How events, bodies and their hashes are laid out in a database: compressed, and in few bytes.

Each event is a few hundred bytes of JSON that is much like the one before, so a row of several is
compressed as a whole, with a dictionary of what events have in common. The dictionary is part of
the layout: without the very same bytes no row could be read.

A log is laid out in *blocks* of as many events as a row may hold. Events that are appended together
are one row, cut where a block ends. Whoever writes the last event of a block makes all its rows
one, which halves their size. When to do so is known from the numbers of the events alone: no writer
has to remember anything, and no event is changed.
"""

import threading
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import zstandard

from barograph.core.canonical import PREFIX
from barograph.store.codec import Encoded, Record

ROW_EVENTS: Final = 64
"""A row holds no more events than this, so that a reader of one of them does little in vain.

A block has as many: block k ends with event k times this.
"""

DICTIONARY: Final = 1
"""Number of the dictionary that rows are written with, and the only one so far."""

_LEVEL: Final = 3
_refs_decoder: Final = msgspec.msgpack.Decoder(list[dict[str, bytes]])
_split: Final = msgspec.json.Decoder(list[msgspec.Raw])
_dictionary: Final = zstandard.ZstdCompressionDict(
    Path(__file__).with_name(f"events-{DICTIONARY}.zdict").read_bytes()
)
_dictionary.precompute_compress(level=_LEVEL)
_PACKED_PREFIX: Final = PREFIX.encode()


class PackedEvents(NamedTuple):
    """Events as a row.

    Attributes:
        events: how many it holds.
        schema: schema version they were written with.
        dictionary: number of the dictionary that `data` was compressed with; 0 for plain JSON.
        data: a JSON array of events.
        refs: their references; None where they have none.
    """

    events: int
    schema: int
    dictionary: int
    data: bytes
    refs: bytes | None


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
        # The row says which dictionary it needs; to say it in the frame too would cost four bytes.
        self.event_compressor: Final = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=_dictionary, write_dict_id=False
        )
        self.event_decompressor: Final = zstandard.ZstdDecompressor(dict_data=_dictionary)


_contexts: Final = _Contexts()


def pack_events(encoded: list[Encoded], *, after: int) -> list[PackedEvents]:
    """Events that follow seq `after` as rows, in their order, none in two blocks."""
    records = [one.record for one in encoded]
    cut = -after % ROW_EVENTS or ROW_EVENTS
    if len(records) <= cut:
        return [_pack_row(records)] if records else []
    cuts = [0, *range(cut, len(records), ROW_EVENTS), len(records)]
    return [_pack_row(records[start:stop]) for start, stop in pairwise(cuts)]


def join_rows(rows: list[PackedEvents]) -> PackedEvents | None:
    """All events of these rows in one; None where they are better left as they are.

    That is where one of them is damaged, which is for readers to say, or of another schema.
    """
    if len({row.schema for row in rows}) != 1:
        return None
    events = sum([row.events for row in rows])
    try:
        plain = b"[%b]" % b",".join([_decompress_row(row)[1:-1] for row in rows])
        if len(_split.decode(plain)) != events:
            return None
        refs = None
        if any([row.refs for row in rows]):  # noqa: C419 - quicker than a generator
            refs = msgspec.msgpack.encode([one for row in rows for one in _refs_of(row)])
    except (ValueError, RecursionError):
        return None
    return _compress_row(events, rows[0].schema, plain, refs)


def block_start(seq: int) -> int:
    """The seq after which the block of the event that follows `seq` begins."""
    return seq - seq % ROW_EVENTS


def block_stop(seq: int) -> int:
    """The last seq of the block of an event."""
    return seq + -seq % ROW_EVENTS


def unpack_events(packed: PackedEvents) -> list[Record]:
    """The records of a row.

    Raises:
        ValueError: this is not what `pack_events` made.
    """
    datas = _split.decode(_decompress_row(packed))
    if len(datas) != packed.events:
        raise ValueError(f"{len(datas)} events are in a row of {packed.events}")
    refs = _refs_of(packed)
    return [
        Record(packed.schema, bytes(data), {name: _unpack_hash(ref) for name, ref in one.items()})
        for data, one in zip(datas, refs, strict=True)
    ]


def pack_bodies(encoded: list[Encoded]) -> list[PackedBody]:
    """The bodies of these events, ready to be stored."""
    return [
        PackedBody(pack_hash(ref), *_compress(body))
        for one in encoded
        if one.bodies
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
    return _PACKED_PREFIX + bytes.fromhex(ref.removeprefix(PREFIX))


def _unpack_hash(packed: bytes) -> str:
    if not packed.startswith(_PACKED_PREFIX):
        raise ValueError(f"no known hash starts with {packed[: len(PREFIX)]!r}")
    return PREFIX + packed[len(PREFIX) :].hex()


def _pack_row(records: list[Record]) -> PackedEvents:
    plain = b"[%b]" % b",".join([record.data for record in records])
    refs = None
    if any([record.refs for record in records]):  # noqa: C419 - quicker than a generator
        refs = msgspec.msgpack.encode(
            [
                {name: pack_hash(ref) for name, ref in record.refs.items()} if record.refs else {}
                for record in records
            ]
        )
    return _compress_row(len(records), records[0].schema, plain, refs)


def _compress_row(events: int, schema: int, plain: bytes, refs: bytes | None) -> PackedEvents:
    frame = _contexts.event_compressor.compress(plain)
    if len(frame) < len(plain):
        return PackedEvents(events, schema, DICTIONARY, frame, refs)
    return PackedEvents(events, schema, 0, plain, refs)


def _refs_of(packed: PackedEvents) -> list[dict[str, bytes]]:
    if packed.refs is None:
        return [{}] * packed.events
    refs = _refs_decoder.decode(packed.refs)
    if len(refs) != packed.events:
        raise ValueError(f"references of {len(refs)} events are in a row of {packed.events}")
    return refs


def _decompress_row(packed: PackedEvents) -> bytes:
    if packed.dictionary == 0:
        return packed.data
    if packed.dictionary != DICTIONARY:
        raise ValueError(f"there is no dictionary {packed.dictionary}")
    try:
        return _contexts.event_decompressor.decompress(packed.data, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(str(error)) from error


def _compress(body: bytes) -> tuple[bool, bytes]:
    frame = _contexts.compressor.compress(body)
    return (True, frame) if len(frame) < len(body) else (False, body)
