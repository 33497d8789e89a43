"""What requests say, and whether a provider can read them."""

import json
import re
from contextlib import closing

from barograph.store import SqliteStore
from barograph.store.search import archive_of
from cases.kit import kit
from cases.registry import UnknownWordError, check

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[(\w+)=([^\]]+)\]")


@check
def pairing_valid(seen):
    for number, body in enumerate(seen.bodies()):
        for error in kit().pairing_errors(body["messages"], seen.case.form):
            yield f"request {number}: {error}"


@check
def pairing_valid_after_then(seen):
    """Of every request that the `then` of the case led to, and there is one."""
    for number, body in _after_then(seen):
        for error in kit().pairing_errors(body["messages"], seen.case.form):
            yield f"request {number}: {error}"


@check
def text_present(seen, text, where=None, request=-1):
    """In the last request, unless the case names another; in each where it names several."""
    if where in _KEPT:
        if text not in _KEPT[where](seen):
            yield f"the {where} never says {text!r}"
        return
    picked = seen.pick(request)
    if not picked:
        yield f"there is no request {request}"
    for number, body in picked:
        if text not in words_of(body, where):
            yield f"request {number} does not say {text!r} in {where or 'any part'}"


@check
def text_absent(seen, text, where=None):
    """From every request, not only from the last."""
    if where in _KEPT:
        if text in _KEPT[where](seen):
            yield f"the {where} says {text!r}"
        return
    for number, body in seen.pick("all"):
        if text in words_of(body, where):
            yield f"request {number} says {text!r} in {where or 'some part'}"


@check
def text_present_after_then(seen, text):
    said = [text in words_of(body, "messages") for _, body in _after_then(seen)]
    if not said or not said[-1]:
        yield f"the last request does not say {text!r}"


@check
def call_kept(seen, id):  # noqa: A002 - the case's word
    for number, body in seen.pick(-1):
        if id not in {b.get("id") for b in _blocks_in(body) if b["type"] == "tool_use"}:
            yield f"request {number} has no call {id}"


@check
def group_atomic(seen, prefix):
    """Each request has all calls of the group with their results, or none of either."""
    ids = {b["id"] for _, body in seen.pick("all") for b in _blocks_in(body) if "id" in b}
    group = {one for one in ids if one.startswith(prefix)}
    for number, body in seen.pick("all"):
        calls = {b["id"] for b in _blocks_in(body) if b["type"] == "tool_use"} & group
        results = {b["tool_use_id"] for b in _results_in(body)} & group
        if calls not in (set(), group) or results != calls:
            yield f"request {number} has {len(calls)} calls of {prefix}* and {len(results)} results"


@check
def no_empty_text_blocks(seen):
    """None of whitespace alone either: the provider refuses both."""
    for number, body in seen.pick("all"):
        for text in texts_of(body):
            if not text.strip():
                yield f"request {number} has an empty text"


@check
def no_empty_results(seen):
    """No result whose tool said something is without words."""
    for number, body in seen.pick("all"):
        for block in _results_in(body):
            given = seen.results.get(block["tool_use_id"], "unknown")
            if given and not _plain(block.get("content")):
                yield f"request {number}: the result of {block['tool_use_id']} is empty"


@check
def no_result_grew(seen):
    for number, body in seen.pick("all"):
        for block in _results_in(body):
            given = seen.results.get(block["tool_use_id"])
            if given is not None and len(_plain(block["content"])) > len(_plain(given)):
                yield f"request {number}: the result of {block['tool_use_id']} grew"


@check
def no_base64_text(seen, min_run):
    for number, body in seen.pick("all"):
        if any(len(run) >= min_run for text in texts_of(body) for run in _BASE64.findall(text)):
            yield f"request {number} has base64 as text"


@check
def image_whole_or_placeholder(seen):
    """Every image that is sent is one that was given, byte for byte."""
    given = {_data(b) for content in _given(seen) for b in _flat(content) if b["type"] == "image"}
    for number, body in seen.pick("all"):
        for message in body["messages"]:
            for block in _flat(message["content"]):
                if block["type"] == "image" and _data(block) not in given:
                    yield f"request {number} has an image that nobody gave"


@check
def utf8_encodable(seen):
    for number, text in _every_text(seen):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            yield f"request {number}: {error}"


@check
def json_round_trip(seen):
    for number, text in _every_text(seen):
        if json.loads(json.dumps(text, ensure_ascii=False)) != text:
            yield f"request {number}: a text does not survive JSON"


@check
def no_control_chars(seen, allow="\n\t\r"):
    """C0 and C1 controls and DEL, in no text of any request."""
    for number, text in _every_text(seen):
        bad = {c for c in text if (c < " " or "\x7f" <= c <= "\x9f") and c not in allow}
        if bad:
            yield f"request {number} has the control characters {sorted(map(ord, bad))}"


@check
def text_length_max(seen, chars):
    """Of the texts of one tool result together."""
    for number, body in seen.pick("all"):
        for block in _results_in(body):
            if len(_plain(block.get("content"))) > chars:
                yield f"request {number}: the result of {block['tool_use_id']} is longer"


@check
def arguments_parse(seen):
    for number, body in seen.pick("all"):
        for block in _blocks_in(body):
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                yield f"request {number}: the arguments of {block['id']} are no object"
        for call in (call for m in body["messages"] for call in m.get("tool_calls", ())):
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                yield f"request {number}: the arguments of {call['id']} are no object"


@check
def json_equal(seen, path, value):
    """In every request. A step into a text reads it as JSON."""
    for number, body in seen.pick("all"):
        found = _at(body, path)
        if json.dumps(found) != json.dumps(value):
            yield f"request {number} has {found!r} at {path}"


@check
def request_max_tokens_min(seen, n):
    for number, body in seen.pick("all"):
        if body["max_tokens"] < n:
            yield f"request {number} leaves {body['max_tokens']} tokens for the answer"


@check
def synthetic_results(seen, ids=None, count=None, is_error=None):
    """Results in the last request that no tool gave: those of these ids, no more and no fewer."""
    ((_, body),) = seen.pick(-1)
    found = {b["tool_use_id"]: b for b in _results_in(body) if b["tool_use_id"] not in seen.results}
    if ids is not None and sorted(found) != sorted(ids):
        yield f"made up are the results of {sorted(found)}"
    if count is not None and len(found) != count:
        yield f"{len(found)} results are made up"
    for call, block in found.items():
        if is_error is not None and bool(block.get("is_error")) != is_error:
            yield f"is_error of {call} is {block.get('is_error')}"


def _after_then(seen):
    if seen.before_then is None:
        raise LookupError("this op has no `then`")
    picked = seen.pick("all")[seen.before_then :]
    if not picked:
        raise LookupError("nothing was sent after `then`")
    return picked


def words_of(body, where=None):
    """The texts of a request, or of one part of it."""
    if where not in (None, "system", "tools", "messages"):
        raise UnknownWordError(f"where {where!r}")
    part = body if where is None else body.get(where) or []
    return "\n".join(_strings(part))


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _log_text(seen):
    from msgspec import to_builtins

    return "\n".join(_strings([to_builtins(one.event) for one in seen.log]))


def archived(seen):
    """The texts of the archive, by the event that each message came by."""
    with closing(SqliteStore(seen.store)) as store:
        found = {seq: store.index.get(archive_of("case"), str(seq)) for seq, _ in seen.log}
    return {seq: one.text for seq, one in found.items() if one is not None}


_KEPT = {"log": _log_text, "archive": lambda seen: "\n".join(archived(seen).values())}


def _blocks_in(body):
    for message in body["messages"]:
        yield from _blocks(message["content"])


def _results_in(body):
    return [block for block in _blocks_in(body) if block["type"] == "tool_result"]


def _blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _flat(content):
    for block in _blocks(content):
        yield block
        if block["type"] == "tool_result":
            yield from _flat(block.get("content"))


def texts_of(body):
    """What a request says in words."""
    system = _blocks(body.get("system"))
    for content in (system, *(message["content"] for message in body["messages"])):
        yield from (block["text"] for block in _flat(content) if block["type"] == "text")


def _every_text(seen):
    return [(n, text) for n, body in seen.pick("all") for text in _strings(body["messages"])]


def _plain(content):
    return "".join(b.get("text", " ") for b in _flat(content))


def _data(block):
    return json.dumps(block.get("source"), sort_keys=True)


def _given(seen):
    yield from seen.results.values()
    for turn in seen.case.given.get("turns", ()):
        yield turn.get("user") or ""
    for message in (
        *seen.case.given.get("history", ()),
        *seen.case.given.get("stored_messages", ()),
    ):
        yield message["content"]


def _at(value, path):
    for name, index, key, wanted in _STEP.findall(path):
        if isinstance(value, str):
            value = json.loads(value)
        if name:
            value = value.get(name)
        elif index:
            value = value[int(index)]
        else:
            value = next((one for one in value if one.get(key) == wanted), {})
    return value
