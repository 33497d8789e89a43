"""What the log keeps, and what the store on disk is."""

import json

from msgspec import to_builtins

from barograph.core.asking import SUMMARY
from barograph.core.canonical import clean_text
from barograph.core.parts import texts_in
from cases.kit import kit
from cases.registry import UnknownWordError, check

_KINDS = {
    "turn": "turn_began",
    "user": "turn_began",
    "tool_result": "tool_ended",
    "tool_call": "tool_began",
    "request": "request_sent",
    "response": "response_came",
    "error": "call_failed",
    "rewind": "replaced",
    "prune": "pruned",
    "nudge": "nudged",
    "compaction": "compacted",
}


@check
def log_append_only(seen):
    """Each snapshot begins with all of the one before."""
    if len(seen.logs) < 2:
        raise LookupError("this op takes one snapshot of the log: nothing to compare")
    for before, after in zip(seen.logs, seen.logs[1:], strict=False):
        if after[: len(before)] != before:
            yield f"one of the first {len(before)} events is not what it was"


@check
def log_unchanged(seen):
    if len(seen.logs) < 2:
        raise LookupError("this op takes one snapshot of the log: nothing to compare")
    if seen.logs[-1] != seen.logs[0]:
        yield f"the log went from {len(seen.logs[0])} to {len(seen.logs[-1])} events"


@check
def log_complete(seen):
    """All that was said, by person, model and tool, in order (tools of one round in any), whole.

    Half a surrogate pair, which no file can hold, is there as U+FFFD.
    """
    log = seen.log
    if [seq for seq, _ in log] != list(range(1, len(log) + 1)):
        yield "the numbering of the log has a gap"
    told = [
        (event.__class__.__name__, _text_of(event))
        for _, event in log
        if SUMMARY not in getattr(event, "path", "")
    ]
    answers = [to_text(one.response) for one in seen.sent if one.status == 200]
    if answers != [text for kind, text in told if kind == "ResponseCame"]:
        yield "the answers in the log are not those that the provider gave"
    rest = iter(text for kind, text in told if kind == "MessageSeen")
    for role, text in seen.accepted:
        if role == "user" and text.strip() and not any(clean_text(text) in one for one in rest):
            yield f"the log lacks a user's {text[:40]!r}, in its order"
    kept = {text for _, text in told}
    kept |= {"".join(texts_in(getattr(event, "original", ()))) for _, event in log}
    for role, text in seen.accepted:
        if role == "tool" and clean_text(text) not in kept:
            yield f"the log lacks a result, {text[:40]!r}"


@check
def raw_in_log(seen):
    """Every result as its tool gave it, its images included."""
    kept = {_text_of(event) for _, event in seen.log}
    blocks = "".join(json.dumps(to_builtins(event)) for _, event in seen.log)
    for call, content in seen.results.items():
        given = [{"text": content}] if isinstance(content, str) else content
        if clean_text(_joined(given)) not in kept:
            yield f"the log lacks the original of {call}"
        for block in given:
            if block.get("type") == "image" and block["source"].get("data", "") not in blocks:
                yield f"the log lacks an image of {call}"


@check
def event_count(seen, kind, eq):
    tags = {event.__struct_config__.tag for _, event in seen.log}
    if kind == "repair":
        found = sum(getattr(event, "origin", "") == "repair" for _, event in seen.log)
        if found != eq:
            yield f"{found} repairs"
        return
    if kind == "archive":
        if seen.moments.count("archive") != eq:
            yield f"the archive was written {seen.moments.count('archive')} times"
        return
    if kind == "round_cap":
        found = sum(getattr(event, "cause", "") == "round_cap" for _, event in seen.log)
        if found != eq:
            yield f"{found} turns were handed back"
        return
    tag = _KINDS.get(kind, kind)
    if kind not in _KINDS and tag not in tags:
        raise UnknownWordError(f"event kind {kind!r}")
    found = sum(event.__struct_config__.tag == tag for _, event in seen.log)
    if found != eq:
        yield f"{found} events of kind {kind}"


@check
def idempotent(seen):
    """What was done twice gave the same twice."""
    pairs = [*seen.again, *((one["texts_after"], one["again"]) for one in seen.variants.values())]
    if not pairs:
        raise LookupError("this op does nothing twice")
    for first, second in pairs:
        if first != second:
            yield "the second time gives something else"


@check
def request_bytes_equal_recorded(seen):
    if not seen.recorded:
        raise LookupError("this op asks for no request")
    for number, (sent, told) in seen.recorded.items():
        if sent != told:
            yield f"request {number} does not come back as it left"


@check
def surface_equals_recorded_request(seen, call):
    """Byte for byte apart from the markers: where a prefix is cached is no part of what it says."""
    sent, again = (json.loads(body) for body in seen.recorded[call])
    if kit().wire(kit().strip_markers(sent)) != kit().wire(kit().strip_markers(again)):
        yield f"the surface is not that of call {call}"


@check
def seq_unique_contiguous(seen):
    for log in seen.value("threads"):
        if [seq for seq, _ in log] != list(range(1, len(log) + 1)):
            yield "sequence numbers repeat or have a gap"


@check
def single_tip(seen):
    """Each record was appended after the one before it: a writer that was told n stands at n."""
    for log, acknowledged in _threads(seen):
        at = {_text_of(event): seq for seq, event in log}
        for text, seq in acknowledged.items():
            if at.get(text) != seq:
                yield f"{text} was promised number {seq} and has {at.get(text)}"


@check
def acknowledged_all_present(seen):
    for log, acknowledged in _threads(seen):
        kept = [_text_of(event) for _, event in log]
        for text in acknowledged:
            if kept.count(text) != 1:
                yield f"{text} was acknowledged and is there {kept.count(text)} times"
        if not acknowledged:
            yield "nothing was acknowledged"


@check
def bytes_max(seen, steps, bytes):  # noqa: A002 - the case's word
    size = seen.value("bytes")[steps]
    if size > bytes:
        yield f"{size} bytes after {steps} steps"


@check
def growth_ratio_max(seen, a, b, ratio):
    sizes = seen.value("bytes")
    if sizes[b] > sizes[a] * ratio:
        yield f"from {sizes[a]} to {sizes[b]} bytes"


@check
def records_loaded(seen, eq, variant=None):
    for name, one in _variants(seen, variant):
        if one["loaded"] != eq:
            yield f"{name}: {one['loaded']} records load"


@check
def records_after_append(seen, eq, variant=None):
    for name, one in _variants(seen, variant):
        if one["after_append"] != eq:
            yield f"{name}: {one['after_append']} records load after the appends"


@check
def records_loaded_or_loud(seen, min):  # noqa: A002 - the case's word
    for name, one in _variants(seen, None):
        if one["loaded"] < min and not one["loud"]:
            yield f"{name}: {one['loaded']} records load, and nobody says why"


@check
def tail_quarantined(seen):
    """Of a record that is not whole no part is read, before the new records or within them."""
    for name, one in _variants(seen, None):
        whole = name == "whole record without its newline"
        texts = [*one["texts"], *one["texts_after"]]
        torn = [text for text in texts if not text.startswith(("record-", "new-"))]
        if whole and len(torn) != 2:
            yield f"{name}: the whole record is lost"
        if not whole and torn:
            yield f"{name}: a part of it is read, {torn[0][:40]!r}"


@check
def disk_absent(seen, text):
    """In no file, as it is, and in no event of the log, whose larger bodies are compressed."""
    for path in seen.store.parent.rglob("*"):
        if path.is_file() and text.encode() in path.read_bytes():
            yield f"{path.name} holds the text"
    if seen.logs and any(text in _text_of(event) for _, event in seen.log):
        yield "the log holds the text"


@check
def thread_absent_after_restart(seen):
    if seen.logs and seen.log:
        yield f"a log of {len(seen.log)} events is there"


def to_text(response):
    return _joined(json.loads(response)["content"])


def _joined(blocks):
    return "".join(
        block.get("text") or block.get("thinking") or block.get("id") or "" for block in blocks
    )


def _text_of(event):
    parts = getattr(event, "parts", ())
    if event.__class__.__name__ == "ResponseCame":
        return _joined([_block(part) for part in parts])
    return "".join(texts_in(parts))


def _block(part):
    told = to_builtins(part)
    return {
        "text": told.get("text"),
        "id": told.get("id"),
    }


def _threads(seen):
    return zip(seen.value("threads"), seen.value("acknowledged"), strict=True)


def _variants(seen, variant):
    if variant is not None:
        return [(variant, seen.variants[variant])]
    return list(seen.variants.items())
