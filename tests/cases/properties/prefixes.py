"""What must stay the same from one request to the next."""

import re
from itertools import pairwise

import msgspec

from cases.kit import kit
from cases.registry import check

_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_array = msgspec.json.Decoder(list[msgspec.Raw])
_MARKER = re.compile(rb',?"cache_control":\{[^{}]*\}')


@check
def prefix_extends(seen, pairs):
    for one, other in pairs:
        before, after = seen.pair(one, other)
        if not kit().prefix_extends(before.request, after.request):
            yield f"request {other} does not begin with request {one}"


@check
def prefix_extends_all(seen, agent=None):
    bodies = seen.bodies(agent)
    for number, (one, other) in enumerate(pairwise(bodies)):
        if not kit().prefix_extends(one, other):
            yield f"request {number + 1} of {agent or 'the run'} does not begin with the one before"


@check
def wire_bytes_prefix(seen, pairs):
    """By the bytes of each message as sent, markers cut out."""
    for one, other in pairs:
        first, second = (sent.body for sent in seen.pair(one, other))
        before = [_unmarked(raw) for raw in _raw_messages(first)]
        after = [_unmarked(raw) for raw in _raw_messages(second)]
        if after[: len(before)] != before:
            yield f"the messages of request {other} do not begin with the bytes of request {one}"
        for section in ("tools", "system"):
            if _section(first, section) != _section(second, section):
                yield f"the {section} of request {other} have other bytes than those of {one}"


@check
def system_bytes_identical(seen):
    return _identical(seen, "system")


@check
def tools_bytes_identical(seen):
    return _identical(seen, "tools")


@check
def same_bytes_across_agents(seen, sections, type=None):  # noqa: A002 - the case's word
    """Of the agents of a type, or of all: every request of every agent has the same bytes there."""
    sent = seen.of(type)
    for section in [sections] if isinstance(sections, str) else sections:
        by_agent = {}
        for one in sent:
            by_agent.setdefault(one.agent, set()).add(_section(one.body, section))
        if len(by_agent) < 2:
            yield f"only {', '.join(by_agent)} sent a request: nothing to compare"
        if len(set().union(*by_agent.values())) != 1:
            yield f"{section} differ among {', '.join(by_agent)}"


@check
def content_shape_unchanged(seen):
    """A string stays a string, and blocks stay the same kinds of blocks."""
    shapes = [[_shape(one["content"]) for one in body["messages"]] for body in seen.bodies()]
    for number, (one, other) in enumerate(pairwise(shapes)):
        for index, (before, after) in enumerate(zip(one, other, strict=False)):
            if before != after:
                yield f"message {index} of request {number} is {before}, then {after}"


@check
def latest_thinking_unchanged(seen):
    """The thinking blocks of the last answer that had any, as received, in place, in every later
    request that holds that answer; a request without them must lack the whole message.
    """
    answers = [_content(one.response) for one in seen.of() if one.status == 200]
    for number, body in enumerate(seen.bodies()):
        latest = [one for one in answers[:number] if any(map(_is_thinking, one))][-1:]
        for answer in latest:
            yield from _thinking_faults(number, body, answer)


@check
def recent_rounds_unchanged(seen, n):
    """The results of the last n rounds stand in each request as their tools gave them."""
    for number, body in enumerate(seen.bodies()):
        rounds = [m for m in body["messages"] if any(map(_is_result, _blocks(m["content"])))]
        for message in rounds[-n:]:
            for block in filter(_is_result, _blocks(message["content"])):
                given = seen.results.get(block["tool_use_id"])
                if given is not None and _text_of(given) != _text_of(block["content"]):
                    yield f"request {number}: the result of {block['tool_use_id']} was changed"


def prefix_breaks(seen):
    """How many requests do not begin with the one before."""
    kits, bodies = kit(), [one.request for one in seen.of()]
    return sum(not kits.prefix_extends(one, other) for one, other in pairwise(bodies))


def _identical(seen, section):
    found = {_section(one.body, section) for one in seen.of()}
    if len(found) > 1:
        yield f"{section} are sent in {len(found)} forms"


def _section(body, section):
    """The bytes of a section as sent, markers cut out; a section that is absent is empty."""
    return _unmarked(bytes(_raw_object.decode(body).get(section, b"")))


def _raw_messages(body):
    return [bytes(raw) for raw in _raw_array.decode(_raw_object.decode(body)["messages"])]


def _unmarked(raw):
    return _MARKER.sub(b"", raw)


def _shape(content):
    return "a string" if isinstance(content, str) else [block["type"] for block in content]


def _content(response):
    return msgspec.json.decode(response)["content"]


def _thinking_faults(number, body, answer):
    calls = {block["id"] for block in answer if block["type"] == "tool_use"}
    for message in body["messages"]:
        blocks = _blocks(message["content"])
        if message["role"] != "assistant":
            continue
        if (calls and calls & {block.get("id") for block in blocks}) or blocks == answer:
            kept = [(i, block) for i, block in enumerate(blocks) if _is_thinking(block)]
            if kept != [(i, block) for i, block in enumerate(answer) if _is_thinking(block)]:
                yield f"request {number}: the thinking of the latest answer is not as it came"


def _is_thinking(block):
    return block["type"] in ("thinking", "redacted_thinking")


def _is_result(block):
    return block["type"] == "tool_result"


def _blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text_of(content):
    return [block.get("text", block) for block in _blocks(content)]
