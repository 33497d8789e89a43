"""What a run of a case leaves behind for the checks to look at."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from barograph.core.asking import SUMMARY
from barograph.core.errors import UnknownSession
from barograph.core.events import CallPlanned, Compacted, RequestSent
from barograph.store import SqliteStore
from cases.kit import Case


@dataclass
class Sent:
    """One request as the provider received it, and its answer."""

    agent: str
    kind: str
    model: str
    body: bytes
    status: int
    response: bytes
    tokens: int
    scripted: bool

    @cached_property
    def request(self):
        return json.loads(self.body)


@dataclass
class Observed:
    """Everything observed in one run.

    `asked` are requests for a summary, none of which is among `sent`. `stopped_by` is why the last
    turn was handed back, as its caller is told; None where it was not. `logs` are snapshots of the
    log in time, `accepted` what was said, in order. `reads` says how often each source of context
    was asked. `moments` are what a compaction did, in order: `archive`, `summarise` for each
    request for a summary, `compact`. A check that needs what the op cannot show raises
    `LookupError`, which fails the case loudly.
    """

    case: Case
    sent: list[Sent] = field(default_factory=list)
    asked: list[Sent] = field(default_factory=list)
    logs: list[list[Any]] = field(default_factory=list)
    accepted: list[tuple[str, str]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    tools_run: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    unfinished_turns: int = 0
    stopped_by: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    rows: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)
    again: list[tuple[Any, Any]] = field(default_factory=list)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    classified: list[tuple[Any, bool]] = field(default_factory=list)
    before_then: int | None = None
    store: Path | None = None
    next_turn: Callable[[], None] | None = None

    def of(self, agent=None):
        """The requests of an agent, named by its label or its type; None for all."""
        found = [one for one in self.sent if agent is None or agent in (one.agent, one.kind)]
        return found or missing(f"requests of {agent or 'any agent'}")

    def bodies(self, agent=None):
        """The decoded requests of an agent."""
        return [one.request for one in self.of(agent)]

    def pair(self, one, other):
        """Two requests, by index; the one that is not there is missing."""
        sent = self.of()
        if max(one, other) >= len(sent):
            missing(f"request {max(one, other)}: only {len(sent)} were sent, {self.errors!r}")
        return sent[one], sent[other]

    def pick(self, which):
        """Requests by index, or `all`."""
        if which == "all":
            return list(enumerate(self.bodies()))
        if which == "all_after_compaction":
            return list(enumerate(self.bodies()))[calls_before_fold(self.log) :]
        if isinstance(which, int):
            bodies = self.bodies()
            return [(which, bodies[which])] if -len(bodies) <= which < len(bodies) else []
        raise LookupError(f"requests are not picked by {which!r}")

    @property
    def log(self):
        """The log as it is at the end."""
        return self.logs[-1] if self.logs else missing("log")

    def value(self, name):
        """A number that the product reported, or a list of them; some are worked out when asked."""
        found = self.values[name] if name in self.values else missing(f"value {name!r}")
        return found() if callable(found) else found


def missing(what):
    """Say loudly that a check looks for what the op does not show."""
    raise LookupError(f"this op shows no {what}")


def projected_tokens(seen):
    """What the product itself made of each request before it left, in the order sent."""
    planned, told = {}, []
    for _, event in seen.log:
        if SUMMARY in getattr(event, "path", ""):
            continue
        if isinstance(event, CallPlanned):
            planned[event.path] = event.projected_tokens
        elif isinstance(event, RequestSent):
            told.append(planned[event.path])
    return told


def calls_before_fold(log):
    """How many requests of agents left before the first compaction."""
    sent = 0
    for _, event in log:
        if isinstance(event, Compacted):
            return sent
        sent += isinstance(event, RequestSent) and SUMMARY not in event.path
    return missing("compaction")


def read_log(path, session):
    """The log of a session as a reader in another process would see it; empty where none is."""
    if not path.exists():
        return []
    with closing(SqliteStore(path)) as store:
        try:
            return list(store.read(session))
        except UnknownSession:
            return []
