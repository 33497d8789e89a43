"""One step under way: what it has logged, and the state that has learned it."""

import msgspec

from barograph.core.canonical import clean_text
from barograph.core.events import Event
from barograph.core.learning import learn
from barograph.core.model import Codec
from barograph.core.state import State

_encoder = msgspec.json.Encoder()


class Work:
    """One step under way: events logged so far, and the state that has learned them.

    `rewritten` is the number of message blocks up to where a rewrite by the caller ended.
    """

    def __init__(self, codec: Codec, state: State) -> None:
        self.codec = codec
        self.state = state
        self.events: list[Event] = []
        self.rewritten = 0

    def log(self, event: Event, key: bytes | None = None) -> None:
        """Log an event and learn it; `key` is what a message is recognised by, if it is known."""
        logged = _well_formed(event)
        known = key if logged is event else None
        self.state = learn(self.codec, self.state, self.state.fold.seq + 1, logged, known)
        self.events.append(logged)

    def adopt(self, trial: "Work") -> None:
        """Go on from where a trial ended that began here."""
        self.state = trial.state
        self.events += trial.events


def _well_formed(event: Event) -> Event:
    """The event in plain text that UTF-8 can carry.

    File names from Python may hold lone surrogates, and what libraries give may be of a class that
    is derived from `str`.
    """
    try:
        _encoder.encode(event)
    except (UnicodeEncodeError, TypeError):
        plain = msgspec.to_builtins(event, enc_hook=_plain)
        return msgspec.convert(_cleaned(plain), type(event))
    return event


def _plain(value: object) -> str:
    if not isinstance(value, str):
        raise NotImplementedError  # msgspec names its type
    return str.__str__(value)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value
