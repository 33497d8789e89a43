"""What a session is, after some prefix of its log. What changes it is in `learning`."""

from collections.abc import Mapping

from msgspec import Struct

from barograph.core.breakpoints import Written
from barograph.core.events import (
    CallPlanned,
    KeptWarm,
    RequestSent,
    SummaryAsked,
    Ttl,
)
from barograph.core.frames import Frames
from barograph.core.kept import Kept
from barograph.core.lifetimes import Pauses
from barograph.core.model import Codec, Scope
from barograph.core.notes import Spoken
from barograph.core.parts import Parts, Text
from barograph.core.pressure import Factors, Meter
from barograph.core.prune import Pending
from barograph.core.rounds import Progress
from barograph.core.surface import Fold, Surface
from barograph.core.trail import Trail
from barograph.core.waiting import Waiting
from barograph.core.warmth import Warmth

NO_SCOPE = Scope(b"", b"")


class Seen(Struct, frozen=True):
    """A unit of the caller's history that the log knows: its key, its event, the caller's id."""

    key: bytes
    seq: int
    native_id: str | None


class Source(Struct, frozen=True):
    """Content that an event already holds and a message may name as its own.

    `error` says how a tool ended that gave no content, `server` which tool server was asked.
    """

    seq: int
    parts: Parts
    error: str | None = None
    server: str = ""


class PathState(Struct, frozen=True):
    """One agent path.

    Attributes:
        phase: where its current call is: `idle`, `planned` or `sent`.
        seen: what it was shown so far, in the caller's order.
        ledger: cache entries that responses confirmed.
        lasting: the last of them that lives for an hour, behind the header.
        pauses: how long it was between its calls.
        insured: message blocks up to the place where a rewrite is most likely to begin.
        planned: the plan of the current or last call.
        scope: what its cache entries depend on, under the header in force.
        attempt: tries of the current call.
        retried: whether the current call was planned again.
        progress: its rounds, and what steering has come of them.
        answer: the last response, or the words that it was handed back with, until they come back
            as a message.
        provider_id: the provider's id of the last response.
        replies: messages of the model that it was shown so far, those of before its first call too.
        pending: what a pass would take.
        spoken: all messages that entered, hidden ones too: a digest is made of them.
        frames: what is in force of the context that came with its turns.
        asked: the summary that was asked for last; None where it is not awaited.
        summaries: how many were asked for.
        meter: what the provider counted.
        outcomes: tool results by call id, until the next response: a call may be asked for again.
        running: calls whose tool began since the last response and has not ended.
        pinned: messages that somebody wants kept, and by which digest each is known.
        waiting: calls that no fold hides.
        sees_tools: whether tool bodies of this path are logged at all.
        counted: how often each tool was called, in the order of the model's calls.
        numbers: number of each call of the last response among those of its tool.
        stored: pieces of the last body that the codec does not render to the same bytes.
        settled: wire messages that neither we nor the caller can have changed since the last call.
        loaded: names of tools that were not offered at first and were found since.
        kept: what the sources of its frames keep for it.
        told: names of the tools that it began with or was told of since.
        marks: message markers of the last body: wire message -> block -> TTL.
        header_chars: what tools + system weigh.
        tools: names of all tools that it was offered, in the order in which they first came.
        sent: record of the last request.
        keeps: why its calls are made, where they keep the cache entry of another path alive.
        warmth: what was spent to keep its own alive.
    """

    phase: str = "idle"
    seen: Trail[Seen] = Trail()
    ledger: Trail[Written] = Trail()
    lasting: Written | None = None
    pauses: Pauses = Pauses()
    turn: int = 0
    round: int = 0
    insured: int = 0
    planned: CallPlanned | None = None
    scope: Scope = NO_SCOPE
    attempt: int = 0
    retried: bool = False
    progress: Progress = Progress()
    answer: Source | None = None
    provider_id: str | None = None
    replies: int = 0
    pending: Pending = Pending()
    spoken: Trail[Spoken] = Trail()
    frames: Frames = Frames()
    asked: SummaryAsked | None = None
    summaries: int = 0
    meter: Meter = Meter()
    outcomes: Mapping[str, Source] = {}
    running: frozenset[str] = frozenset()
    pinned: Mapping[int, bytes] = {}
    waiting: Waiting = Waiting()
    sees_tools: bool = False
    counted: Mapping[str, int] = {}
    numbers: Mapping[str, int] = {}
    stored: Mapping[str, str] = {}
    settled: int = 0
    header_chars: int = 0
    tools: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    kept: Kept = Kept()
    told: tuple[str, ...] = ()
    marks: Mapping[int, Mapping[int, Ttl]] = {}
    sent: RequestSent | None = None
    keeps: KeptWarm | None = None
    warmth: Warmth = Warmth()


_FRESH = PathState()


class Resting(Struct, frozen=True):
    """Breakpoint slots that a provider refused, and until when they are not used."""

    slots: int
    until: float


class State(Struct, frozen=True):
    """A whole session.

    Attributes:
        resting: by model, the slots that are not used.
        factors: tokens of a character, by model.
        windows: by model, the window that its provider named when a request was too long.
    """

    fold: Fold = Fold()
    calls: int = 0
    paths: Mapping[str, PathState] = {}
    resting: Mapping[str, Resting] = {}
    factors: Factors = {}
    windows: Mapping[str, int] = {}

    def path(self, name: str) -> PathState:
        """The state of an agent path; a fresh one before its first event."""
        return self.paths.get(name, _FRESH)

    def surface(self, name: str) -> Surface:
        """The surface of an agent path."""
        return self.fold.surface(name)

    def asked_by(self, name: str) -> SummaryAsked | None:
        """The summary that the calls of a path are for; None where they are for an agent."""
        asked = self.path(name.rpartition("/")[0]).asked
        return asked if asked is not None and asked.by == name else None


def is_main(path: str) -> bool:
    """Whether an agent path is that of a main agent: no call of a tool stands above it.

    A node of a caller's own graph is one too: `main/planner`, but not `main/research#1`.
    """
    return "#" not in path


def count_header_chars(codec: Codec, system: Parts, tools: str) -> int:
    """What tools + system weigh, in characters."""
    return sum(map(codec.weigh, (Text(tools), *system) if tools else system))
