"""Ops that go on with a log, go back in it, branch off it, or ask it."""

from contextlib import closing

from langchain_core.messages import AIMessage

from barograph.core.asking import SUMMARY
from barograph.core.readback import read_requests
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import SqliteStore
from cases.kit import kit
from cases.registry import UnknownWordError, adapter
from cases.stage import SETTINGS, Killed, Stage

_OK = {"role": "assistant", "content": "ok"}


@adapter("resume", takes=("log_events", "stored_messages", "then_user"))
def resume(case, folder):
    """Continue what was killed, or what somebody stored, and then once more the same way."""
    stage = Stage(case, folder)
    with stage.open():
        if "log_events" in case.given:
            _live_through(stage, case.given["log_events"])
            stage.restart()
        stage.load(case.given.get("stored_messages") or ())
        stage.snapshot()
        del stage.provider.sent[:], stage.seen.tools_run[:]
        before = list(stage.history)
        stage.turn({"user": case.given.get("then_user"), "model": [_OK]})
        stage.snapshot()
        first = stage.seen.sent[-1].request
        shown = stage.history[:-1]

        # the same resume again, from the same place: nothing is added
        stage.restart()
        stage.history = shown or before
        stage.turn({"model": [_OK]})
        again = stage.provider.sent.pop().request
        stage.seen.again.append((kit().strip_markers(first), kit().strip_markers(again)))
        seen = [one for one in _log(stage) if one.event.__class__.__name__ == "MessageSeen"]
        old = [one for one in stage.seen.log if one.event.__class__.__name__ == "MessageSeen"]
        stage.seen.again.append((old, seen))
        stage.snapshot()
        return stage.seen


@adapter("rewind", takes=("build", "rewind_to_call", "summariser"), settings=SETTINGS)
def rewind(case, folder):
    """Build a thread, then show the agent the history that it had at an earlier call."""
    stage = Stage(case, folder)
    number = case.given["rewind_to_call"]
    with stage.open():
        _build(stage)
        stage.snapshot()
        answers = [i for i, one in enumerate(stage.history) if isinstance(one, AIMessage)]
        sent = stage.provider.sent[number].body
        stage.history = stage.history[: answers[number]]
        stage.turn({"model": [_OK]})
        stage.snapshot()
        stage.seen.recorded[number] = (sent, stage.provider.sent[-1].body)
        return stage.seen


@adapter("fork", takes=("build", "then", "summariser"), settings=SETTINGS)
def fork(case, folder):
    """Build a thread, then go on from its end in a thread of its own."""
    stage = Stage(case, folder)
    with stage.open():
        _build(stage)
        stage.snapshot()
        stage.seen.before_then = len(stage.provider.sent)
        original, stage.session = stage.session, f"{stage.session}-fork"
        then = case.given["then"]
        for turn in then if isinstance(then, list) else [then]:
            stage.turn({"user": turn} if isinstance(turn, str) else turn)
        stage.session = original
        stage.snapshot()
        return stage.seen


@adapter("audit", takes=("build", "ask", "restart_before_ask", "summariser"), settings=SETTINGS)
def audit(case, folder):
    """Ask the log for past requests."""
    stage = Stage(case, folder)
    with stage.open():
        _build(stage)
        stage.snapshot()
        if case.given.get("restart_before_ask"):
            stage.restart()
        with closing(SqliteStore(stage.path)) as store:
            codec = AnthropicCodec(respell_arguments=True)
            requests = read_requests(codec, store.read(stage.session))
            told = [one.exact for one in requests if SUMMARY not in one.record.path]
        for number in case.given["ask"]:
            sent = stage.provider.sent[number].body
            stage.seen.recorded[number] = (sent, told[number] if number < len(told) else b"")
        return stage.seen


def _build(stage):
    build = stage.case.given["build"]
    rounds = kit().expand([{"rounds": build["rounds"]}], stage.case.form)
    stage.turn({"user": build["user"], "model": [*rounds, _OK]})


def _live_through(stage, events):
    """Live through a log's events, killed where it ends: every open tool dies in its body."""
    turn = {"model": [], "tool_results": {}}
    for event in events:
        if event.get("role") == "user":
            turn["user"] = event["content"]
        elif event.get("role") == "assistant":
            turn["model"].append(event)
        elif "tool_result" in event:
            turn["tool_results"][event["tool_result"]] = event["content"]
        elif not event.get("crash"):
            raise UnknownWordError(f"a log event of {sorted(event)}")
    calls = [
        block["id"]
        for one in turn["model"]
        for block in one["content"]
        if isinstance(block, dict) and block["type"] == "tool_use"
    ]
    stage.replies.update(dict.fromkeys(calls, Killed))
    stage.turn(turn)


def _log(stage):
    stage.snapshot()
    return stage.seen.logs.pop()
