"""Events to stored records and back: the one form that every backend keeps.

A record is the event's JSON, its schema version, and its *references*: which fields are kept as
bodies, by content hash. References travel beside the JSON, never inside it, so no text that a
model, a tool or a caller writes can be taken for one.

What is stored is proved before it is stored: each event is decoded again and compared. A value
that JSON would bend silently (a NaN becomes null, bytes become text) is refused at the door.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import hash_body
from barograph.core.errors import LogCorrupt, SchemaTooNew, UsageError
from barograph.core.events import SCHEMA, CallPlanned, Event
from barograph.store.refusals import RESTORE_COPY, undecodable

EXTERNAL_BYTES: Final = 2048
"""A field of `BODIES` whose JSON is at least this long is kept as a body.

A body costs a hash in three places and the rest of a page; what is shorter is better off in a row
of events, which is compressed as a whole.
"""

_LARGEST_INTEGER: Final = 2**63 - 1

Fetch: TypeAlias = Callable[[str], bytes | None]
"""Gives the stored bytes of a content hash, or None when they are missing."""


class Record(Struct, frozen=True):
    """An event as stored.

    Attributes:
        schema: schema version it was written with.
        data: JSON of the event; fields that are kept as bodies are empty in it.
        refs: content hash of each field that is kept as a body.
    """

    schema: int
    data: bytes
    refs: dict[str, str]


class Encoded(Struct, frozen=True):
    """A record and the bodies it refers to, by content hash."""

    record: Record
    bodies: dict[str, bytes]


class _BodyField(NamedTuple):
    neutral: object
    decoder: msgspec.json.Decoder[Any]


def _body_fields(kind: type) -> dict[str, _BodyField]:
    hints = get_type_hints(kind)
    return {
        name: _BodyField("" if hints[name] is str else (), msgspec.json.Decoder(hints[name]))
        for name in kind.BODIES  # type: ignore[attr-defined]
    }


_FIELDS: Final = {kind: _body_fields(kind) for kind in get_args(Event)}
UPGRADES: Final[dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""By schema, what makes an event of it one of the next, as JSON, with the fields that are kept as
bodies in their place (not there for a reader that wants none). A field that holds its default may
not be there either. Applied on reading; what is stored stays as it was written."""

_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)


def encode_events(session: str, events: Sequence[Event], *, after: int) -> list[Encoded]:
    """Encode events that are to follow seq `after`.

    Raises:
        UsageError: a value is no event, or would not come back from JSON as it is. The error
            names the session and the seq the event would have had.
    """
    return [_encode(session, after + place, event) for place, event in enumerate(events, start=1)]


def decode_record(session: str, seq: int, record: Record, fetch: Fetch | None) -> Event:
    """The event of a record, equal to the one that was encoded.

    Args:
        session: id, for errors.
        seq: number of the event, for errors.
        record: as stored.
        fetch: finds bodies; None leaves fields that are kept as bodies empty.

    Raises:
        SchemaTooNew: written by a newer version.
        LogCorrupt: the JSON is not an event, or a body is missing or altered.
    """
    if record.schema > SCHEMA:
        raise _too_new(session, seq, record.schema)
    if record.schema < 1:
        raise undecodable(session, seq, ValueError(f"there is no schema {record.schema}"))
    if record.schema < SCHEMA:
        return _decode_older(session, seq, record, fetch)
    try:
        event = _decoder.decode(record.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise undecodable(session, seq, error) from error
    if fetch is None or not record.refs:
        return event
    fields = _FIELDS[type(event)]
    bodies = {
        name: _restore(session, seq, name, ref, fields, fetch) for name, ref in record.refs.items()
    }
    return replace(event, **bodies)


def highest_call(events: Sequence[Event]) -> int:
    """The number of the last call that is planned here: calls are numbered from 1; 0 for none."""
    calls = [event.call for event in events if isinstance(event, CallPlanned)]
    # No session has so many calls, and a database has no larger number.
    return min(max(0, *calls), _LARGEST_INTEGER) if calls else 0


def _decode_older(session: str, seq: int, record: Record, fetch: Fetch | None) -> Event:
    """The event of a record of an older schema, in the present one."""
    bodies = {} if fetch is None else record.refs
    kept = {name: _fetch_whole(session, seq, name, ref, fetch) for name, ref in bodies.items()}
    try:
        fields = msgspec.json.decode(record.data, type=dict[str, Any])
        fields |= {name: msgspec.json.decode(body) for name, body in kept.items()}
        for schema in range(record.schema, SCHEMA):
            fields = UPGRADES[schema](fields)
        return _decoder.decode(_encoder.encode(fields))
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, ValueError) as error:
        raise undecodable(session, seq, error) from error


def _encode(session: str, seq: int, event: Event) -> Encoded:
    fields = _FIELDS.get(type(event))
    if fields is None:
        what = (
            f"{type(event).__name__} is not an event type; it cannot be seq {seq} of {session!r}."
        )
        raise UsageError(what, next_step=_KEEP_TO_EVENTS, session=session, seq=seq)
    try:
        shell, data, external = event, _encoder.encode(event), None
        if fields and len(data) >= EXTERNAL_BYTES:  # else none of its fields has as many
            external = _external(event, fields)
        if external:
            shell = _without(event, external, fields)
            data = _encoder.encode(shell)
        kept = _decoder.decode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(session, seq, event, str(error)) from error
    if kept != shell:
        raise _refusal(session, seq, event, _difference(shell, kept))
    if not external:
        return Encoded(Record(SCHEMA, data, {}), {})
    refs = {name: hash_body(body) for name, body in external.items()}
    return Encoded(
        Record(SCHEMA, data, refs), {refs[name]: body for name, body in external.items()}
    )


def _without(event: Event, external: Iterable[str], fields: dict[str, _BodyField]) -> Event:
    return replace(event, **{name: fields[name].neutral for name in external})


def _external(event: Event, fields: dict[str, _BodyField]) -> dict[str, bytes]:
    """The JSON of each field that is to be a body, proved to come back as it is."""
    external = {}
    for name, field in fields.items():
        value = getattr(event, name)
        if not value:
            continue
        body = _encoder.encode(value)
        if len(body) >= EXTERNAL_BYTES:
            if field.decoder.decode(body) != value:
                raise ValueError(_bent(name, value))
            external[name] = body
    return external


def _restore(  # noqa: PLR0917 - ids for the error, then the three things it works on
    session: str, seq: int, name: str, ref: str, fields: dict[str, _BodyField], fetch: Fetch
) -> object:
    field = fields.get(name)
    if field is None:
        raise _broken(session, seq, name, ref, "belongs to a field that holds no body")
    body = _fetch_whole(session, seq, name, ref, fetch)
    try:
        return field.decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _broken(session, seq, name, ref, f"does not decode ({error})") from error


def _fetch_whole(session: str, seq: int, name: str, ref: str, fetch: Fetch | None) -> bytes:
    body = fetch(ref) if fetch else None
    if body is None:
        raise _broken(session, seq, name, ref, "is missing")
    if hash_body(body) != ref:
        raise _broken(session, seq, name, ref, "was altered: its bytes do not have that hash")
    return body


_KEEP_TO_EVENTS: Final = "Nothing was written; append values of `barograph.core.events` only."


def _refusal(session: str, seq: int, event: Event, why: str) -> UsageError:
    return UsageError(
        f"{type(event).__name__} cannot be stored as seq {seq} of session {session!r}: {why}.",
        next_step=(
            "Nothing was written; give finite numbers, well-formed text and the declared types."
        ),
        session=session,
        seq=seq,
    )


def _difference(event: Event, kept: Event) -> str:
    """Names the first field that JSON would bend."""
    for name in event.__struct_fields__:
        given = getattr(event, name)
        if getattr(kept, name) != given:
            return _bent(name, given)
    return "it would not be read back as it is"


def _bent(name: str, given: object) -> str:
    return f"{name} holds {type(given).__name__} that would not be read back as it is"


def _too_new(session: str, seq: int, schema: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"Event {seq} of session {session!r} has schema {schema}; "
        f"this Barograph reads up to {SCHEMA}: the log is newer than this Barograph.",
        next_step="Upgrade Barograph; nothing was changed.",
        session=session,
        seq=seq,
        schema=schema,
    )


def _broken(session: str, seq: int, field: str, ref: str, how: str) -> LogCorrupt:
    return LogCorrupt(
        f"The body {ref} of field {field} in event {seq} of session {session!r} {how}.",
        next_step=RESTORE_COPY,
        session=session,
        seq=seq,
        field=field,
        hash=ref,
    )
