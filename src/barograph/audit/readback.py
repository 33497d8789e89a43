"""Read every request of a store back, in a process that did not write it.

`python -m barograph.audit.readback STORE` prints one JSON document: for each request of each
session the hash of its exact bytes and of its derived form. A replay runs it as a fresh process
with its own hash seed and compares with what the provider received.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from barograph.core.canonical import canonical_json, hash_body
from barograph.core.events import Compacted, HeaderSet, Pruned, Replaced, RequestSent, SessionOpened
from barograph.core.readback import read_requests
from barograph.providers.registry import codec_named
from barograph.store import Logged, Store, open_store


class ReadRequest(Struct, frozen=True, kw_only=True):
    """One request as the log gives it back.

    Attributes:
        call: number of the call; `attempt` tells retries apart.
        exact: hash of its bytes from the record.
        derived: hash of the canonical JSON of the body derived from events alone.
        named: whether the log names an event, since the last call of the path, that changed what
            had been sent before.
        folds: how many of those events were folds of ours.
    """

    session: str
    path: str
    call: int
    attempt: int
    exact: str
    derived: str
    named: bool
    folds: int = 0


def hash_canonical(body: bytes) -> str:
    """Hash of what a body means, however it is spelled."""
    return hash_body(canonical_json(json.loads(body)))


def read_back(store: Store) -> list[ReadRequest]:
    """All requests of all sessions, in the order sent within each."""
    return [request for info in store.sessions() for request in _session(store, info.session)]


def read_back_elsewhere(store: Path) -> list[ReadRequest]:
    """The same, from a fresh process.

    Raises:
        RuntimeError: that process failed; its words are in the message.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-m", "barograph.audit.readback", str(store)]
    run = subprocess.run(command, capture_output=True, env=environment, check=False)  # noqa: S603
    if run.returncode:
        raise RuntimeError(f"Reading {store} back failed: {run.stderr.decode(errors='replace')}")
    return msgspec.json.decode(run.stdout, type=list[ReadRequest])


def _session(store: Store, session: str) -> list[ReadRequest]:
    logged = list(store.read(session))
    opened = logged[0].event
    if not isinstance(opened, SessionOpened):
        return []
    named = _named_calls(logged)
    return [
        ReadRequest(
            session=session,
            path=request.record.path,
            call=request.record.call,
            attempt=request.record.attempt,
            exact=hash_body(request.exact),
            derived=hash_canonical(request.derived),
            named=request.record.call in named,
            folds=named.get(request.record.call, 0),
        )
        for request in read_requests(codec_named(opened.renderer), logged)
    ]


def _named_calls(logged: Sequence[Logged]) -> dict[int, int]:
    """Calls before which the log names a change of what had been sent, and how many were folds."""
    changed: dict[str, int] = {}
    named: dict[int, int] = {}
    for _, event in logged:
        if isinstance(event, Pruned | Compacted):
            changed[event.path] = changed.get(event.path, 0) + 1
        elif isinstance(event, Replaced) or (isinstance(event, HeaderSet) and event.changed):
            changed.setdefault(event.path, 0)
        elif isinstance(event, RequestSent) and event.path in changed:
            named[event.call] = changed.pop(event.path)
    return named


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(read_back(open_store(sys.argv[1]))))
