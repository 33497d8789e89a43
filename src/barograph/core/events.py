"""The log's vocabulary: frozen, versioned, tagged.

**Theory of operation.** A session's log is a sequence of these events, numbered from 1 without a
gap. Nothing else is truth: a surface, a table, a console page are folds over them. Three rules
keep the fold simple.

* *Messages enter in the order in which the model sees them.* A `MessageSeen` is appended to the
  surface of its agent path when it is logged. Tool events are a separate record of what ran when;
  a result that is then seen unchanged is not stored twice but names its source (`same_as`).
* *Only `Replaced` and `Compacted` take anything off a surface*, and they cite every entry that they
  hide.
* *Every text of ours is in the event as it was sent.* Nothing model-visible is recomputed.

Fields named in `BODIES` may be large: stores keep them by content hash, once per session.

A field that holds its default is not stored: most events have nothing to say in most of theirs.
So the default of a field never changes, and a reader takes one that is spelled out too.

**Versions.** `SCHEMA` is one integer for the whole vocabulary. A log of a newer schema is refused;
an older one is upgraded while it is read and never rewritten. An event of an unknown type is
refused too: skipping it could change a surface.

**Out of scope.** How events are stored (`barograph.store`), and what they mean for a request
(`barograph.core.surface`).
"""

from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from barograph.core.parts import Parts, Role
from barograph.core.trust import Trust

SCHEMA: Final = 1

Ttl: TypeAlias = Literal["5m", "1h"]
Origin: TypeAlias = Literal["caller", "model", "tool", "repair"]
Mode: TypeAlias = Literal["normal", "goal", "private"]
"""What kind of run a session is: `goal` works on its own at a task that it was given; `private`
leaves nothing durable, and is told nothing of what others left."""
Level: TypeAlias = Literal["tools", "system", "messages"]
NudgeCause: TypeAlias = Literal["rounds", "stall", "tools"]
HandBackCause: TypeAlias = Literal["round_cap", "token_cap", "cost_cap", "stall"]


class Breakpoint(Struct, frozen=True, kw_only=True):
    """A marker that ends a cacheable prefix.

    Attributes:
        level: which part of the request holds the block.
        block: index of the block, counted over the whole level in wire order.
        ttl: lifetime bought for the entry it writes.
        slot: why it is there (`header`, `insurance`, `anchor`, `tail`).
    """

    level: Level
    block: int
    ttl: Ttl
    slot: str


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one response. The three input parts are disjoint; their sum is the prompt.

    `write_5m_tokens` and `write_1h_tokens` split the cache write by lifetime.
    """

    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    uncached_tokens: int
    output_tokens: int

    @property
    def write_tokens(self) -> int:
        """Tokens written to the cache, both lifetimes."""
        return self.write_5m_tokens + self.write_1h_tokens

    @property
    def input_total_tokens(self) -> int:
        """The whole prompt: read + write + uncached."""
        return self.read_tokens + self.write_tokens + self.uncached_tokens


class _Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Common to all: `at` is the time in seconds since the epoch, given by the adapter."""

    BODIES: ClassVar[tuple[str, ...]] = ()

    at: float


class SessionOpened(_Event, frozen=True, kw_only=True, tag="session_opened"):
    """First event of every log.

    `made_by` names the writer and its version, `renderer` the wire format its requests have, `mode`
    the kind of run that it began as.
    """

    session: str
    made_by: str
    policy: str
    renderer: str
    mode: Mode = "normal"


class TurnBegan(_Event, frozen=True, kw_only=True, tag="turn_began"):
    """An outside input reached the agent."""

    path: str
    turn: int


class Forked(_Event, frozen=True, kw_only=True, tag="forked"):
    """An agent path begins with the history of another, and as that one stands.

    Its surface is the one there: the header in force, the messages, and what we put among them or
    into their places. What is not shared is taken back by the `Replaced` that follows.

    Attributes:
        path: agent path that begins.
        of: agent path that it begins as.
    """

    path: str
    of: str


class TurnEnded(_Event, frozen=True, kw_only=True, tag="turn_ended"):
    """The agent gave its final answer, or the turn was handed back."""

    path: str
    turn: int
    rounds: int


class MessageSeen(_Event, frozen=True, kw_only=True, tag="message_seen"):
    """A message entered the surface of an agent path, at its end.

    Attributes:
        native_id: the framework's own id, if it has one.
        origin: `caller`, `model`, `tool`, or `repair` for a text of ours that closes a dangling
            tool call.
        parts: the content as sent; empty where `same_as` names the event that holds it.
        same_as: seq of the `ResponseCame` or `ToolEnded` whose parts these are.
        original: what the caller showed, where `parts` is less and no other event has it.
        original_in: seq of the event that has it.
        known_by: digest by which the caller's message is recognised, hex; None where it is that of
            the parts.
    """

    BODIES = ("parts", "original")

    path: str
    role: Role
    origin: Origin
    native_id: str | None = None
    parts: Parts = ()
    same_as: int | None = None
    original: Parts = ()
    original_in: int | None = None
    known_by: str | None = None


class MessageLeftOut(_Event, frozen=True, kw_only=True, tag="message_left_out"):
    """A message that was given to us and may not be sent: logged, not in the surface.

    `reason` is `no_content`, `orphan_result` or `second_result`.
    """

    BODIES = ("parts",)

    path: str
    role: Role
    reason: Literal["no_content", "orphan_result", "second_result"]
    native_id: str | None = None
    parts: Parts = ()


class Replaced(_Event, frozen=True, kw_only=True, tag="replaced"):
    """The one surface operation: a contiguous run of entries gives way to one entry, or to none.

    Attributes:
        shadows: seqs of all entries it hides, in surface order.
        cause: `rewound` or `edited` when the caller's history departs from ours, `answered` when a
            late result takes the place of a repair at its end, else the fold.
        planned: whether a fold of ours caused it.
        recognised: of the caller's messages, how many are still those we know; None for a fold,
            which leaves the caller's history as it is.
        role: role of the entry that takes their place; None where nothing does.
    """

    BODIES = ("parts",)

    path: str
    shadows: tuple[int, ...]
    cause: str
    planned: bool
    recognised: int | None = None
    role: Role | None = None
    parts: Parts = ()


class Stub(Struct, frozen=True, kw_only=True):
    """What stands in the place of an entry's content: `seq` is the event that the entry came by."""

    seq: int
    parts: Parts


PruneCause: TypeAlias = Literal["rent", "safety", "cold", "cliff", "forced", "manual"]


class Pruned(_Event, frozen=True, kw_only=True, tag="pruned"):
    """A pass: old content gave way to stubs, all at once. The originals stay in their events.

    Attributes:
        cause: `rent` where carrying the stale content has cost as much as rewriting what follows
            it; `safety` where the window fills; `cold` where nothing was cached anyway; `cliff`
            where a smaller request costs less a token; `forced` where the request did not fit;
            `manual` where somebody asked for it.
        stubs: by entry, in surface order.
        aged_before: number of the reply of the path before which content has aged.
        tokens_before: estimated tokens of the request without the pass.
        tokens_after: the same with it.
        rewritten_tokens: tokens after the first change, which are written to the cache once more;
            0 where they were not in it.
        break_even_calls: calls after which the pass has paid for itself; None where it was free.
    """

    BODIES = ("stubs",)

    path: str
    cause: PruneCause
    stubs: tuple[Stub, ...]
    aged_before: int
    tokens_before: int
    tokens_after: int
    rewritten_tokens: int
    break_even_calls: float | None


CompactCause: TypeAlias = Literal["pressure", "forced", "manual"]


class SummaryAsked(_Event, frozen=True, kw_only=True, tag="summary_asked"):
    """A model is asked to sum up the beginning of a surface, in a call of its own.

    The call has the agent path `by`: its surface is that beginning, as the agent's own calls left
    it in the cache, and the directive. A summariser of its own is shown a transcript instead.

    Attributes:
        path: agent path that is to be compacted.
        by: agent path of the call.
        entries: number of its surface's entries that the call shows.
        parts: the directive, and before it the transcript, where there is one.
        failures: why earlier tries failed.
        cause: why a compaction is due.
        starts: of each run that it will hide, the first entry.
        stops: of each of them, the entry that follows it.
        budget_chars: how long what stands in their place may be, together.
        is_transcript: whether a summariser of its own is shown all of it as a transcript.
    """

    BODIES = ("parts",)

    path: str
    by: str
    entries: int
    parts: Parts
    failures: tuple[str, ...] = ()
    cause: CompactCause = "pressure"
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    budget_chars: int = 0
    is_transcript: bool = False


class KeptWarm(_Event, frozen=True, kw_only=True, tag="kept_warm"):
    """The last request of a path is about to leave once more, so that its cache entry lives on.

    It does so in a call of its own, whose answer nobody is shown. The call has the agent path `by`
    and shows the surface as it is.

    Attributes:
        path: agent path that is kept warm.
        by: agent path of the call.
        call: number of the call whose request is repeated.
        cost_tokens: what it is expected to cost, in plain input tokens.
    """

    path: str
    by: str
    call: int
    cost_tokens: int


class Compacted(_Event, frozen=True, kw_only=True, tag="compacted"):
    """A run of entries gave way to one that sums them up. What it hides stays in its events.

    Attributes:
        cause: `pressure` where the window filled; `forced` where the request did not fit; `manual`
            where somebody asked for it.
        shadows: seqs of the entries it hides, in surface order.
        parts: what stands in their place, said by the user's side.
        narrated_by: seq of the answer whose summary is in it; None where it is computed from the
            log alone.
        failures: why tries for a summary failed.
        tokens_before: estimated tokens of the request without it.
        tokens_after: the same with it.
        rewritten_tokens: tokens after the first change, which are written to the cache once more.
        stubs: entries after it without the thinking that is void behind a changed prefix.
    """

    BODIES = ("parts", "stubs")

    path: str
    cause: CompactCause
    shadows: tuple[int, ...]
    parts: Parts
    narrated_by: int | None
    failures: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    rewritten_tokens: int
    stubs: tuple[Stub, ...] = ()


class HeaderSet(_Event, frozen=True, kw_only=True, tag="header_set"):
    """What precedes the messages, from here on: model, system, tools, parameters.

    Attributes:
        system: the system blocks, without markers.
        tools: JSON array of the tool definitions as sent, without markers.
        parameters: JSON object of every other field of the request, as sent.
        changed: which of `model`, `system`, `tools`, `parameters` differ from the one before.
        adopted: which of them were not ours to derive and were taken from the request that left.
        wanted: digest of the tools that were wanted where others were adopted; else empty.
    """

    BODIES = ("system", "tools", "parameters")

    path: str
    model: str
    system: Parts
    tools: str
    parameters: str
    changed: tuple[str, ...]
    adopted: tuple[str, ...] = ()
    wanted: str = ""


class CallPlanned(_Event, frozen=True, kw_only=True, tag="call_planned"):
    """A model request was decided: its number, its breakpoints, and what it should find cached.

    Attributes:
        call: number of the call in the session, from 1; planned again after an `AttemptFailed`, it
            keeps its number.
        turn: turn of this agent path.
        round: round of the turn, from 1.
        entries: number of surface entries.
        digest: hash chain over the message segments, hex.
        breakpoints: in wire order.
        expected_read_tokens: tokens of the entry the anchor points at, as the provider reported
            them; None when there is no such entry.
        insured: number of message blocks up to the place where a rewrite is most likely to begin.
        foreign_breakpoints: markers of the caller that were counted and taken off.
        diagnosed: whether the provider is asked to compare it with the call before.
        compared_with: the provider's id of the answer to that call; None for the first.
        projected_tokens: the whole prompt, estimated before it left.
        stale_tokens: of it, what a pass would take off.
        aged_before: number of the reply of the path before which content has aged.
        reserved: slots for breakpoints that were not ours to use: somebody else marks a block, or
            markers were refused.
        max_tokens: what its answer may take, where that was lowered to what is left of the window;
            None where it is as the caller has it.
    """

    path: str
    call: int
    turn: int
    round: int
    entries: int
    digest: str
    breakpoints: tuple[Breakpoint, ...]
    expected_read_tokens: int | None = None
    insured: int = 0
    foreign_breakpoints: int = 0
    diagnosed: bool = False
    compared_with: str | None = None
    projected_tokens: int = 0
    stale_tokens: int = 0
    aged_before: int = 0
    max_tokens: int | None = None
    reserved: int = 0


class Deviation(Struct, frozen=True, kw_only=True):
    """A piece of the body that our codec does not render to the same bytes.

    `where` is `system`, `tools`, `diagnostics`, the index of a wire message, or `body` for a body
    that cannot be taken apart; `text` is the piece as sent (a whole body, which may be anything, as
    one character for each byte), or None when the piece is as rendered again.
    """

    where: str
    text: str | None


class RequestSent(_Event, frozen=True, kw_only=True, tag="request_sent"):
    """The request record: a delta on the previous call of the same agent path.

    Attributes:
        attempt: 1 for the first try; a retry is an attempt and never renumbers the call.
        header: seq of the `HeaderSet` in force.
        renderer: codec and version whose rendering the record refers to.
        order: top-level keys of the body in the order sent.
        messages: number of wire messages.
        deviations: changes to the set of pieces that are stored because rendering differs.
        mismatches: pieces whose *meaning* differs from the derived surface: a defect of ours, or
            a second owner of the request.
        body_hash: hash of the body that left, or of the body we built (`observed` tells which).
        body_bytes: its length.
        observed: whether the HTTP layer showed us the bytes.
    """

    BODIES = ("deviations",)

    path: str
    call: int
    attempt: int
    header: int
    renderer: str
    order: tuple[str, ...]
    messages: int
    deviations: tuple[Deviation, ...] = ()
    mismatches: tuple[str, ...] = ()
    body_hash: str
    body_bytes: int
    observed: bool


class ResponseCame(_Event, frozen=True, kw_only=True, tag="response_came"):
    """The provider answered. `usage` is None when it reported none: absent is not zero.

    Attributes:
        diagnosis: what the provider found changed since the call before; None where nothing, or
            where it was not asked.
    """

    BODIES = ("parts",)

    path: str
    call: int
    parts: Parts
    stop_reason: str | None
    usage: Usage | None
    provider_id: str | None = None
    request_id: str | None = None
    latency_seconds: float | None = None
    diagnosis: str | None = None


RetryCause: TypeAlias = Literal[
    "overflow", "output_room", "markers_over_limit", "markers_unsupported"
]


class AttemptFailed(_Event, frozen=True, kw_only=True, tag="attempt_failed"):
    """The provider refused an attempt, and the call is planned and sent once more.

    The `CallPlanned` that follows has the number of the same call.

    Attributes:
        attempt: number of the try that was refused.
        cause: `overflow` where the request was too long, and a shorter one follows; `output_room`
            where its answer was given more room than is left, and is given less; and for markers,
            `markers_over_limit` where there were more than the provider takes, somebody else's
            among them, `markers_unsupported` where it takes none.
        model: the model that it holds for.
        slots: breakpoint slots that are not used for it.
        until: how long they are not used, in seconds since the epoch.
        error: name of the exception.
        status: HTTP status, or None where there was no response.
        message: what the provider said.
        window_tokens: the limit of the model that it named; None where it named none.
        input_tokens: the length of the request that it named; some count only up to the limit.
    """

    path: str
    call: int
    attempt: int
    cause: RetryCause
    model: str
    slots: int = 0
    until: float = 0.0
    error: str
    status: int | None
    message: str
    window_tokens: int | None = None
    input_tokens: int | None = None


class CallFailed(_Event, frozen=True, kw_only=True, tag="call_failed"):
    """The provider, or the way to it, refused the call; the error went on to the caller.

    Attributes:
        window_tokens: the limit of the model, where a request was too long and the error named it.
        input_tokens: the length of that request, where it named it.
    """

    path: str
    call: int
    error: str
    status: int | None
    message: str
    window_tokens: int | None = None
    input_tokens: int | None = None


class ToolBegan(_Event, frozen=True, kw_only=True, tag="tool_began"):
    """A tool body is about to run. `arguments` is the JSON text of the call."""

    BODIES = ("arguments",)

    path: str
    call_id: str
    name: str
    arguments: str


class ToolEnded(_Event, frozen=True, kw_only=True, tag="tool_ended"):
    """A tool body returned, or raised (`error` names the exception).

    Attributes:
        server: the tool server that it was asked of; empty for a tool of the agent's own process.
    """

    BODIES = ("parts",)

    path: str
    call_id: str
    name: str
    parts: Parts
    is_error: bool
    error: str | None = None
    server: str = ""


class Pinned(_Event, frozen=True, kw_only=True, tag="pinned"):
    """Somebody wants a message kept: it is never folded, or is quoted where it is.

    Attributes:
        message: seq of the `MessageSeen`.
        holds: whether the pin is set, or taken away.
    """

    path: str
    message: int
    holds: bool = True


class ToolsLoaded(_Event, frozen=True, kw_only=True, tag="tools_loaded"):
    """Tools that were not offered at first are offered from the next call of a path on.

    They stay for the rest of the session, behind those that were there.

    Attributes:
        names: names of the tools, none of them offered before.
    """

    path: str
    names: tuple[str, ...]


class SourceKept(_Event, frozen=True, kw_only=True, tag="source_kept"):
    """A source of the frame keeps something for an agent path, such as a plan or what was used.

    It takes the place of what that source kept under that key; an empty text takes it away.

    Attributes:
        source: name of the source.
        key: what it is known by, to that source.
        text: what is kept.
    """

    BODIES = ("text",)

    path: str
    source: str
    key: str
    text: str


class ConfigChanged(_Event, frozen=True, kw_only=True, tag="config_changed"):
    """A policy knob changed in mid-session. Values are JSON text."""

    knob: str
    before: str
    after: str


FrameChange: TypeAlias = Literal["new", "changed", "removed", "again"]


class FrameItem(Struct, frozen=True, omit_defaults=True):
    """An item of a section, as its source gave it; its text is in the section.

    Attributes:
        id: names it.
        digest: of its text and of where it is from, hex.
        trust: how far it is trusted.
        origin: what it was taken from.
        domain: the field it belongs to.
        date: of the text.
    """

    id: str
    digest: str
    trust: Trust
    origin: str = ""
    domain: str = ""
    date: str = ""


class FrameSection(Struct, frozen=True, kw_only=True):
    """A section of a frame that was sent.

    Attributes:
        source: what it came from.
        change: `new`; `changed` where it takes the place of the one sent before; `removed` where
            that one is taken back; `again` where a fold had hidden it.
        adds: whether it stands beside the ones before it and does not take their place.
        digest: of its content, hex.
        items: what it recalls; empty where it is plain text.
    """

    source: str
    change: FrameChange
    adds: bool = False
    digest: str = ""
    items: tuple[FrameItem, ...] = ()


class FrameMissed(Struct, frozen=True):
    """A source that gave nothing because it failed; what it gave before still holds."""

    source: str
    reason: str


class FrameComposed(_Event, frozen=True, kw_only=True, tag="frame_composed"):
    """The volatile context of a turn entered the surface of an agent path, at its end.

    Attributes:
        parts: a text for each section, as it was sent; none where nothing had changed.
        sections: what these texts are.
        missed: sources that failed.
    """

    BODIES = ("parts",)

    path: str
    turn: int
    parts: Parts
    sections: tuple[FrameSection, ...]
    missed: tuple[FrameMissed, ...] = ()


class StoreGap(_Event, frozen=True, kw_only=True, tag="store_gap"):
    """The store could not be written for a while, and now can again.

    The events that waited come before this one. Where events are lost, the surfaces are no longer
    what the log says they are: every path starts over from the caller's whole history.

    Attributes:
        since: time of the first event that could not be written.
        reason: what the store said then.
        first_late: seq of the first event that was written late; 0 where none was.
        late: number of events that were written late, all in a row.
        lost: number of events that are not in the log: too many waited, or another writer went on.
        first_call: first call that left before its record was durable; 0 where none did.
        last_call: last call that did.
        calls: number of the last call that was planned, in the log or not; numbers go on from it.
    """

    since: float
    reason: str
    first_late: int
    late: int
    lost: int
    first_call: int
    last_call: int
    calls: int


class ArchiveMissed(_Event, frozen=True, kw_only=True, tag="archive_missed"):
    """The searchable copy of what a compaction hides could not be made; the log has it all."""

    path: str
    reason: str


class Nudged(_Event, frozen=True, kw_only=True, tag="nudged"):
    """A steering text of ours entered the surface of an agent path, at its end.

    Attributes:
        round: round of the turn that shows it first.
        causes: `rounds` after so many of them, `stall` where they repeat themselves, `tools` where
            there are new ones.
        tools: names of the new ones.
        inside: id of the tool call whose result it is the end of; None where it is a block of its
            own.
    """

    path: str
    turn: int
    round: int
    text: str
    causes: tuple[NudgeCause, ...] = ()
    tools: tuple[str, ...] = ()
    inside: str | None = None


class HandedBack(_Event, frozen=True, kw_only=True, tag="handed_back"):
    """A turn was stopped before its next call, with words of ours in the place of an answer.

    They enter the surface when the caller shows them, as an answer does.

    Attributes:
        cause: `round_cap`, `token_cap` or `cost_cap` after as many rounds, tokens or dollars as
            are allowed, `stall` where rounds repeat themselves.
        rounds: rounds that were counted.
        repeats: rounds in a row that were the same.
        spent_tokens: where it is a cap on them or on their price: input and output that were
            counted, those of agents below included; else 0.
        spent_usd: their list price.
    """

    BODIES = ("parts",)

    path: str
    turn: int
    cause: HandBackCause
    rounds: int
    repeats: int
    parts: Parts
    spent_tokens: int = 0
    spent_usd: float = 0.0


class Steered(_Event, frozen=True, kw_only=True, tag="steered"):
    """An outside input arrived in mid-turn."""

    BODIES = ("parts",)

    path: str
    turn: int
    parts: Parts


Event: TypeAlias = (
    SessionOpened
    | Forked
    | TurnBegan
    | TurnEnded
    | MessageSeen
    | MessageLeftOut
    | Replaced
    | Pruned
    | SummaryAsked
    | KeptWarm
    | Compacted
    | HeaderSet
    | CallPlanned
    | RequestSent
    | ResponseCame
    | AttemptFailed
    | CallFailed
    | ToolBegan
    | ToolEnded
    | Pinned
    | ToolsLoaded
    | SourceKept
    | ConfigChanged
    | FrameComposed
    | StoreGap
    | ArchiveMissed
    | Nudged
    | HandedBack
    | Steered
)
