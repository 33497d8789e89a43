"""Ops about one result or one pass."""

import json
from dataclasses import replace

from barograph import Policy
from cases.observed import Observed
from cases.registry import adapter
from cases.stage import Stage

_OK = {"role": "assistant", "content": "ok"}
_EAGER = 1e-6
CALL = "b1"


@adapter("bound", takes=("tool", "raw", "raw_json", "raw_bytes", "limit_chars", "note"))
def bound(case, folder):
    """A tool gives that result, once under each limit; then it gives what the model was shown.

    The requests are those that show the result, one for each limit.
    """
    seen = Observed(case)
    raw = _raw(case.given)
    limits = case.given["limit_chars"]
    for number, limit in enumerate(limits if isinstance(limits, list) else [limits]):
        shown = _bounded(case, folder / f"{number}", raw, limit)
        again = _bounded(case, folder / f"{number}-again", _result_in(shown.sent[-1]), limit)
        seen.again.append((_result_in(shown.sent[-1]), _result_in(again.sent[-1])))
        seen.sent.append(shown.sent[-1])
        seen.logs.append(shown.log)
        seen.results, seen.store = shown.results, shown.store
    return seen


def _bounded(case, folder, raw, limit):
    folder.mkdir()
    given = {"tools": [{"name": case.given["tool"]}]}
    stage = Stage(case._replace(given=given), folder, policy=_bounding(limit))
    asked = [{"type": "tool_use", "id": CALL, "name": case.given["tool"], "input": {}}]
    with stage.open():
        model = [{"role": "assistant", "content": asked}, _OK]
        stage.turn({"user": "go", "model": model, "tool_results": {CALL: raw}})
        stage.snapshot()
        return stage.seen


def _bounding(limit):
    return Policy(name="bound-once", max_result_chars=limit)


def _raw(given):
    if "raw_json" in given:
        return json.loads(given["raw_json"])
    if "raw_bytes" in given:
        return given["raw_bytes"].decode("utf-8", "surrogateescape")
    return given["raw"]


def _result_in(sent):
    """The content of the result that a request shows, without markers."""
    for block in sent.request["messages"][-1]["content"]:
        if block["type"] == "tool_result":
            return block["content"]
    raise LookupError("the last message shows no result")


@adapter(
    "prune",
    takes=("messages",),
    settings=("window", "keep_rounds", "prune_keep_rounds", "stub_chars"),
    forms=("anthropic", "openai"),
)
def prune(case, folder):
    """One pass over a history, as soon as one is possible: all that is old enough gives way.

    The parts of a message are the same in every form, so what comes in another one is played in
    ours and shown in its own. How long a stub is, is not to be set.
    """
    keep = case.settings.get("prune_keep_rounds", case.settings.get("keep_rounds", 1))
    policy = Policy(
        name="fixed",
        prune_after_rounds=max(1, keep),
        prune_at_ratio=_EAGER,
        relief_ratio=_EAGER,
        window_tokens=case.settings.get("window"),
    )
    stage = Stage(case, folder, policy=policy)
    messages = case.given["messages"]
    is_foreign = case.form == "openai"
    with stage.open():
        stage.load([_from_openai(one) for one in messages] if is_foreign else messages)
        stage.turn({"model": [_OK]})
        stage.snapshot()
        if is_foreign:
            stage.seen.sent = [_to_openai(one) for one in stage.seen.sent]
        return stage.seen


def _from_openai(message):
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        return {"role": "user", "content": [{**result, "content": message["content"]}]}
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    said = [{"type": "text", "text": message["content"]}] if message["content"] else []
    return {"role": message["role"], "content": [*said, *calls]}


def _to_openai(sent):
    messages = []
    for message in sent.request["messages"]:
        content = message["content"]
        if isinstance(content, str):
            messages.append(message)
            continue
        texts = "".join(block.get("text", "") for block in content if block["type"] == "text")
        calls = [_call(block) for block in content if block["type"] == "tool_use"]
        results = [_result(block) for block in content if block["type"] == "tool_result"]
        messages += results
        if calls or texts:
            told = {"role": message["role"], "content": texts or None}
            messages.append({**told, "tool_calls": calls} if calls else told)
    return replace(sent, body=json.dumps({**sent.request, "messages": messages}).encode())


def _call(block):
    function = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"id": block["id"], "type": "function", "function": function}


def _result(block):
    content = "".join(leaf["text"] for leaf in block["content"])
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}
