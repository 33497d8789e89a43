"""Golden records: each event type as a past version stored it.

Run as a program, this writes the fixtures of the present schema that are not there yet. It never
rewrites one: what a released version has stored must stay readable for ever.
"""

from pathlib import Path

import msgspec
from vocabulary import EVENT_TYPES, example, tag_of

from barograph.core.events import SCHEMA
from barograph.store.codec import Record, encode_events

FIXTURES = Path(__file__).parent / "fixtures"


class Golden(msgspec.Struct, kw_only=True):
    schema: int
    data: msgspec.Raw
    refs: dict[str, str]
    bodies: dict[str, msgspec.Raw]

    @property
    def record(self):
        return Record(self.schema, bytes(self.data), self.refs)

    def body(self, ref):
        return bytes(self.bodies[ref]) if ref in self.bodies else None


def examples():
    """Each event type, small and, where it can have bodies, large; by the name of its fixture."""
    for kind in EVENT_TYPES:
        yield tag_of(kind), example(kind, large=False)
        if kind.BODIES:
            yield f"{tag_of(kind)}.large", example(kind, large=True)


def path_of(name):
    return FIXTURES / f"schema-{SCHEMA}" / f"{name}.json"


def load(path):
    return msgspec.json.decode(path.read_bytes(), type=Golden)


def encode(event):
    [one] = encode_events("golden", [event], after=0)
    bodies = {ref: msgspec.Raw(body) for ref, body in one.bodies.items()}
    data = msgspec.Raw(one.record.data)
    golden = Golden(schema=one.record.schema, data=data, refs=one.record.refs, bodies=bodies)
    return msgspec.json.encode(golden) + b"\n"


def write_missing():
    for name, event in examples():
        path = path_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(encode(event))


if __name__ == "__main__":
    write_missing()
