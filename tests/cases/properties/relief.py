"""What bounding and pruning leave to be seen, and when they come."""

import re
from contextlib import closing

from barograph import Policy
from barograph.core.canonical import clean_text
from barograph.core.events import Pruned
from barograph.core.texts import MARK_CLOSES, MARK_OPENS
from barograph.store import SqliteStore
from barograph.store.originals import read_original
from cases.observed import projected_tokens
from cases.properties.contents import text_length_max
from cases.properties.prefixes import prefix_breaks
from cases.registry import UnknownWordError, check

_END_CHARS = 16
_RELIEF = {"prune": "pruned", "summarise": "compacted"}
_LEFT_OUT = re.compile(rf"{MARK_OPENS}([\d,]+) of ([\d,]+) [^{MARK_CLOSES}]*{MARK_CLOSES}")
_MARKER = re.compile(rf"\n{_LEFT_OUT.pattern}\n")
_HANDLE = re.compile(r'read_original\("([^"]+)"')


@check
def length_max(seen, chars):
    return text_length_max(seen, chars)


@check
def length_max_each(seen):
    """Each request under the limit that it was made with."""
    limits = seen.case.given["limit_chars"]
    for number, (limit, shown) in enumerate(zip(limits, _shown(seen), strict=True)):
        if len(shown.text) > limit:
            yield f"under a limit of {limit} the result has {len(shown.text)}: request {number}"


@check
def head_kept(seen, text):
    for one in _shown(seen):
        if not one.text.startswith(text):
            yield f"{one.where} begins with {one.text[:40]!r}"


@check
def tail_kept(seen, text):
    for one in _shown(seen):
        if not one.text.endswith(text):
            yield f"{one.where} ends with {one.text[-40:]!r}"


@check
def marker_count(seen, eq):
    for one in _shown(seen):
        if one.text.count(MARK_OPENS) != eq:
            yield f"{one.where} has {one.text.count(MARK_OPENS)} markers"


@check
def marker_states_omitted_amount(seen):
    """Every marker in a result that was cut: how much is missing, and of how much."""
    for one in _changed(seen):
        found = _MARKER.search(one.text)
        kept = one.text if found is None else one.text[: found.start()] + one.text[found.end() :]
        told = [int(figure.replace(",", "")) for figure in found.groups()] if found else []
        if told != [len(one.given) - len(kept), len(one.given)]:
            yield f"{one.where} was cut from {len(one.given)} to {len(kept)}, and says {told}"


@check
def short_results_unchanged(seen):
    """Results within the limit, in the last request."""
    limit = seen.case.settings.get("max_result_chars", Policy().max_result_chars)
    limit = seen.case.given.get("limit_chars", limit)
    for one in _changed(seen):
        if len(one.given) <= limit:
            yield f"{one.where} is short, and was changed"


@check
def each_result_keeps_ends(seen, begin, end):
    """Of every result that has these ends."""
    for one in _shown(seen, every=True):
        if one.given.startswith(begin) and not one.text.startswith(begin):
            yield f"{one.where} begins with {one.text[:40]!r}"
        if one.given.endswith(end) and not one.text.endswith(end):
            yield f"{one.where} ends with {one.text[-40:]!r}"


@check
def each_stub_keeps_ends(seen):
    """Of every result that is not shown as its tool gave it."""
    for one in _changed(seen, every=True):
        begin, end = one.given[:_END_CHARS], one.given[-_END_CHARS:]
        if not one.text.startswith(begin) or not one.text.endswith(end):
            yield f"{one.where} has lost an end: {one.text[:40]!r} ... {one.text[-40:]!r}"


@check
def pointer_resolves(seen):
    """The handle of each marker in the last request gives the whole back."""
    with closing(SqliteStore(seen.store)) as store:
        for one in _changed(seen):
            handles = _HANDLE.findall(one.text)
            if not handles:
                yield f"{one.where} was cut and names no handle"
            for handle in handles:
                if read_original(store, "case", handle) != one.given:
                    yield f"{handle} in {one.where} is not the original"


@check
def fits_window(seen, tokens, request="all"):
    """By what the product itself expected before the request left."""
    projected = projected_tokens(seen)
    if len(projected) != len(seen.sent):
        yield f"{len(seen.sent)} requests left, and {len(projected)} were measured"
    for number, _ in seen.pick(request):
        if projected[number] > tokens:
            yield f"request {number} has {projected[number]} tokens"


@check
def prune_pass_min_tokens(seen, tokens):
    for seq, event in _passes(seen):
        if event.tokens_before - event.tokens_after < tokens:
            yield f"pass {seq} takes off {event.tokens_before - event.tokens_after} tokens"


@check
def prefix_breaks_equal_relief_events(seen):
    relief = [event for _, event in seen.log if _tag(event) in _RELIEF.values()]
    if prefix_breaks(seen) != len(relief):
        yield f"{prefix_breaks(seen)} breaks for {len(relief)} times of relief"


@check
def relief_order(seen, order):
    """The first of each kind in that order; a later kind comes only where the earlier did."""
    unknown = set(order) - _RELIEF.keys()
    if unknown:
        raise UnknownWordError(f"relief by {sorted(unknown)}")
    tags = [_RELIEF[kind] for kind in order]
    came = list(dict.fromkeys(_tag(event) for _, event in seen.log if _tag(event) in tags))
    if not came or came != tags[: len(came)]:
        yield f"relief came as {came}"


@check
def classify_all(seen, min_right=None):
    """Every error as the case marks it, or so many of them."""
    wrong = [one for one, told in seen.classified if one["overflow"] != told]
    right = len(seen.classified) - len(wrong)
    if right < (len(seen.classified) if min_right is None else min_right):
        for one in wrong:
            yield f"not told apart: {one['message']!r}"


@check
def classify_no_false_positive(seen):
    for one, told in seen.classified:
        if told and not one["overflow"]:
            yield f"taken for an overflow: {one['message']!r}"


class _Result:
    """A result as a request shows it, and as its tool gave it."""

    def __init__(self, number, call, text, given):
        self.where = f"the result of {call} in request {number}"
        self.text, self.given = text, given


def _shown(seen, *, every=False):
    """Results of the last message of each request, or of every message."""
    for number, body in enumerate(seen.bodies()):
        for message in body["messages"] if every else body["messages"][-1:]:
            yield from _results(seen, number, message["content"])


def _changed(seen, *, every=False):
    if every:
        shown = _shown(seen, every=True)
    else:
        number, body = seen.pick(-1)[0]
        messages = (message["content"] for message in body["messages"])
        shown = [one for content in messages for one in _results(seen, number, content)]
    return [one for one in shown if one.text != one.given]


def _results(seen, number, content):
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_result" and block["tool_use_id"] in seen.results:
            given = seen.results[block["tool_use_id"]]
            yield _Result(
                number,
                block["tool_use_id"],
                _plain(block.get("content")),
                clean_text(_plain(given)),
            )


def _plain(content):
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or ())


def _passes(seen):
    return [(seq, event) for seq, event in seen.log if isinstance(event, Pruned)]


def _tag(event):
    return event.__struct_config__.tag
