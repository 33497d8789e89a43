"""What an agent path learns of each event of its own.

A path is a value: every event gives the next one. What a response tells of the provider's cache is
read elsewhere (`reports`), and so is what an event tells of other paths (`learning`).
"""

from msgspec.structs import replace

from barograph.core.events import (
    AttemptFailed,
    CallFailed,
    CallPlanned,
    Compacted,
    Event,
    FrameComposed,
    HandedBack,
    HeaderSet,
    KeptWarm,
    MessageLeftOut,
    MessageSeen,
    Nudged,
    Pinned,
    Pruned,
    Replaced,
    RequestSent,
    ResponseCame,
    SourceKept,
    SummaryAsked,
    ToolBegan,
    ToolEnded,
    ToolsLoaded,
    TurnBegan,
)
from barograph.core.ingest import unit_key
from barograph.core.kept import Kept
from barograph.core.model import Codec
from barograph.core.notes import Spoken
from barograph.core.parts import Parts, ToolCall
from barograph.core.prune import candidate_of
from barograph.core.reports import with_entries
from barograph.core.rounds import advance
from barograph.core.state import (
    PathState,
    Seen,
    Source,
    count_header_chars,
)
from barograph.core.surface import Surface, marks_by_message
from barograph.core.tooling import tool_names
from barograph.core.trail import Trail


def advanced(path: PathState, surface: Surface, event: Event) -> PathState:
    """The path with rounds and open calls; the same one where the event tells nothing of them."""
    parts = None
    if isinstance(event, MessageSeen):
        parts = event.original or surface.entries[-1].parts
    progress = advance(path.progress, event, parts)
    waiting = path.waiting.after(event, parts or ())
    if progress is path.progress and waiting is path.waiting:
        return path
    return replace(path, progress=progress, waiting=waiting)


def learn_path(  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of event
    codec: Codec,
    path: PathState,
    surface: Surface,
    seq: int,
    event: Event,
    *,
    key: bytes | None,
) -> PathState:
    """The path after an event of its own, which its surface has taken in.

    Args:
        codec: the wire format.
        path: before it, with rounds and open calls after it.
        surface: after it.
        seq: number of the event.
        event: what happened.
        key: what a message is recognised by, where that is at hand; else it is made anew.
    """
    match event:
        case TurnBegan():
            return replace(path, turn=event.turn, round=0)
        case MessageSeen() if event.origin == "repair":
            return path
        case MessageSeen():
            return _shown(codec, path, surface, seq, event, key=key)
        case MessageLeftOut():
            return replace(path, seen=_seen(path, seq, event, event.parts, key))
        case Replaced():
            frames = path.frames.without(event.shadows, by_fold=False)
            kept = path.kept
            if event.cause == "rewound":
                kept = kept.before(min(event.shadows, default=seq))
            return replace(_replaced(path, surface, event), frames=frames, kept=kept)
        case Pruned():
            pending = path.pending.at_round(event.aged_before).after_pass()
            frames = path.frames.pruned(event.stubs)
            return replace(_replaced(path, surface, None), pending=pending, frames=frames)
        case FrameComposed():
            return replace(path, frames=path.frames.with_frame(seq, event, path.replies))
        case Compacted():
            return _compacted(path, surface, seq, event)
        case Pinned():
            return _pinned(path, surface, event)
        case KeptWarm():
            return replace(path, warmth=path.warmth.began(event.cost_tokens))
        case SummaryAsked():
            return replace(path, asked=event, summaries=path.summaries + 1)
        case HeaderSet():
            scope = codec.scope_of(event.system, event.tools, event.parameters)
            chars = count_header_chars(codec, event.system, event.tools)
            path = _offered(path, event)
            return replace(path, scope=scope, header_chars=chars)
        case CallPlanned():
            return _planned(path, event)
        case RequestSent():
            return _sent(path, surface, event)
        case ResponseCame():
            return _answered(path, surface, seq, event)
        case AttemptFailed():
            return replace(path, retried=True)
        case CallFailed():
            return replace(path, phase="idle")
        case Nudged() if event.tools:
            return replace(path, told=_joined(path.told, event.tools))
        case ToolsLoaded():
            loaded, told = _joined(path.loaded, event.names), _joined(path.told, event.names)
            return replace(path, loaded=loaded, told=told)
        case SourceKept():
            return replace(path, kept=path.kept.with_event(seq, event))
        case HandedBack():
            return replace(path, phase="idle", answer=Source(seq, event.parts))
        case ToolBegan():
            return replace(path, running=path.running | {event.call_id}, sees_tools=True)
        case ToolEnded():
            return _ended(path, seq, event)
        case _:
            return path


def _shown(
    codec: Codec,
    path: PathState,
    surface: Surface,
    seq: int,
    event: MessageSeen,
    *,
    key: bytes | None,
) -> PathState:
    """With one more message, which stands at the end of the surface."""
    parts = surface.entries[-1].parts
    replies = path.replies + (event.role == "assistant")
    candidate = candidate_of(codec, surface, replies)
    pending = path.pending if candidate is None else path.pending.with_candidate(candidate)
    path = replace(
        path,
        seen=_seen(path, seq, event, parts, key),
        kept=_kept(path, surface, seq, event),
        spoken=path.spoken.appended(Spoken(seq, event.role, event.origin, parts)),
        replies=replies,
        pending=pending,
    )
    return _pinned_again(path, surface) if path.pinned else path


def _kept(path: PathState, surface: Surface, seq: int, event: MessageSeen) -> Kept:
    """What sources keep, once the answer or the result is shown that it came with."""
    if event.role == "assistant" and event.same_as is not None:
        return path.kept.seen(event.same_as, seq)
    if event.role == "tool" and len(surface.entries) > 1:
        # it follows the call, or another result of the round
        return path.kept.seen(surface.entries[-2].seq - 1, seq)
    return path.kept


def _offered(path: PathState, event: HeaderSet) -> PathState:
    """With the names that are new behind those that were offered before."""
    if "tools" not in event.changed:
        return path
    tools = _joined(path.tools, tool_names(event.tools))
    return replace(path, tools=tools, told=path.told or tools)


def _joined(names: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """All names once, in the order in which they came: a set has another in each process."""
    return tuple(dict.fromkeys((*names, *new)))


def _seen(
    path: PathState,
    seq: int,
    event: MessageSeen | MessageLeftOut,
    parts: Parts,
    key: bytes | None,
) -> Trail[Seen]:
    if key is None:
        known_by = getattr(event, "known_by", None)
        key = bytes.fromhex(known_by) if known_by else unit_key(event.role, parts)
    return path.seen.appended(Seen(key, seq, event.native_id))


def _pinned(path: PathState, surface: Surface, event: Pinned) -> PathState:
    key = next((one.key for one in path.seen if one.seq == event.message), b"")
    others = {seq: known for seq, known in path.pinned.items() if seq != event.message}
    pinned = {**others, event.message: key} if event.holds else others
    entry = next((i for i, one in enumerate(surface.entries) if one.seq == event.message), -1)
    pending = path.pending.with_pin(entry, pinned=event.holds)
    return replace(path, pinned=pinned, pending=pending)


def _pinned_again(path: PathState, surface: Surface) -> PathState:
    """The pin of a message that is shown once more, since it was taken back, holds the new one."""
    last = path.seen[-1]
    same = {seq for seq, key in path.pinned.items() if key == last.key}
    # What is still there keeps its own pin: the new one may be taken back again.
    same = same.difference(one.seq for one in path.seen) if same else same
    if not same:
        return path
    before = min(same)
    others = {seq: key for seq, key in path.pinned.items() if seq != before}
    pending = path.pending.with_pin(len(surface.entries) - 1, pinned=True)
    return replace(path, pinned={**others, last.seq: last.key}, pending=pending)


def _replaced(path: PathState, surface: Surface, event: Replaced | None) -> PathState:
    if event is None or event.recognised is None:
        return replace(path, settled=0, insured=min(path.insured, len(surface.segments)))
    return replace(
        path,
        seen=path.seen.cut(event.recognised),
        pending=path.pending.cut(len(surface.entries)),
        settled=min(path.settled, max(0, surface.messages - 1)),
        insured=min(path.insured, len(surface.segments)),
    )


def _compacted(path: PathState, surface: Surface, seq: int, event: Compacted) -> PathState:
    start = surface.find_run((seq,))
    pending = path.pending.compacted(start, len(event.shadows))
    frames = path.frames.without(event.shadows, by_fold=True)
    return replace(_replaced(path, surface, None), pending=pending, frames=frames, asked=None)


def _planned(path: PathState, event: CallPlanned) -> PathState:
    before = path.planned
    is_again = before is not None and before.call == event.call
    pauses = path.pauses if before is None else path.pauses.after(event.at - before.at)
    return replace(
        path,
        phase="planned",
        pauses=path.pauses if is_again else pauses,
        planned=event,
        asked=None,
        round=event.round,
        attempt=path.attempt if is_again else 0,
        retried=path.retried and is_again,
        answer=None,
        insured=event.insured,
        pending=path.pending if is_again else path.pending.rented(event),
        warmth=path.warmth.called(),
    )


def _sent(path: PathState, surface: Surface, event: RequestSent) -> PathState:
    stored = dict(path.stored)
    for deviation in event.deviations:
        if deviation.text is None:
            stored.pop(deviation.where, None)
        else:
            stored[deviation.where] = deviation.text
    beyond = [key for key in stored if key.isdecimal() and int(key) >= event.messages]
    for key in beyond:
        del stored[key]
    breakpoints = path.planned.breakpoints if path.planned else ()
    return replace(
        path,
        phase="sent",
        sent=event,
        attempt=event.attempt,
        stored=stored,
        # the last user message may still grow
        settled=max(0, surface.messages - 1),
        marks=marks_by_message(surface, breakpoints),
    )


def _ended(path: PathState, seq: int, event: ToolEnded) -> PathState:
    outcome = Source(seq, event.parts, event.error, event.server)
    return replace(
        path,
        outcomes={**path.outcomes, event.call_id: outcome},
        running=path.running - {event.call_id},
    )


def _answered(path: PathState, surface: Surface, seq: int, event: ResponseCame) -> PathState:
    counted, numbers = _numbered(path, event.parts)
    path = replace(
        path,
        phase="idle",
        answer=Source(seq, event.parts),
        provider_id=event.provider_id,
        outcomes={},
        running=frozenset(),
        counted=counted,
        numbers=numbers,
    )
    return with_entries(path, path.planned, surface, event)


def _numbered(path: PathState, parts: Parts) -> tuple[dict[str, int], dict[str, int]]:
    """Number the calls of a response, tool by tool: a subagent is known by this number.

    Returns:
        How often each tool was called, and the number of each call of the response.
    """
    counted, numbers = dict(path.counted), dict[str, int]()
    for part in parts:
        if isinstance(part, ToolCall):
            counted[part.name] = numbers[part.id] = counted.get(part.name, 0) + 1
    return counted, numbers
