"""Ops about numbers: usage as reported, and why the cache held or did not."""

import json
from contextlib import closing

from barograph import Policy
from barograph.audit.explain import list_calls
from barograph.core.pressure import Gauge
from barograph.providers.anthropic.response import read_response
from barograph.providers.anthropic.usage import usage_of, usage_of_langchain
from barograph.providers.overflow import Refusal, read_refusal
from barograph.store import SqliteStore
from cases.observed import Observed, projected_tokens
from cases.registry import UnknownWordError, adapter
from cases.stage import START, Stage


@adapter("measure", takes=("usages", "window"))
def measure(case, _folder):
    """Read usage of several providers; None for one whose codec is not there."""
    seen = Observed(case)
    usages = [_read(one) for one in case.given["usages"]]
    _tell(seen, usages)
    window = case.given.get("window")
    if window is not None:
        seen.values["percent_of_window"] = [one and _percent(one, window) for one in usages]
    return seen


def _percent(usage, window):
    gauge = Gauge(
        projected_tokens=usage.input_total_tokens,
        fixed_tokens=0,
        window_tokens=window,
        reserve_tokens=0,
        tokens_per_char=Policy().start_tokens_per_char,
    )
    return 100 * gauge.pressure


@adapter("estimate", takes=("messages",))
def estimate(case, folder):
    """What a request of these messages weighs before the provider has reported anything."""
    stage = Stage(case, folder)
    with stage.open():
        stage.load(case.given["messages"])
        stage.turn({"model": [_OK]})
        stage.snapshot()
        tokens = projected_tokens(stage.seen)[0]
        stage.seen.values |= {"context_tokens": tokens, "estimated_tokens": tokens}
        return stage.seen


@adapter("classify_error", takes=("errors",))
def classify_error(case, _folder):
    """What each error is about. A request that lacks room for its answer only is an overflow too:
    both leave the same call to be made smaller.
    """
    seen = Observed(case)
    for one in case.given["errors"]:
        told = read_refusal(
            Refusal(
                names=tuple(one.get("names", ())),
                status=one.get("status"),
                code=one.get("code"),
                type=one.get("type"),
                message=one.get("message") or "",
                body=one.get("body") or "",
            )
        )
        is_overflow = told.kind in ("overflow", "max_tokens_room")
        seen.classified.append((one, is_overflow))
    return seen


def _read(one):
    if one["provider"] == "anthropic":
        return usage_of(one["usage"])
    if one["provider"] == "langchain":
        return usage_of_langchain(one["usage_metadata"])
    return None


@adapter("measure_stream", takes=("events",))
def measure_stream(case, _folder):
    """Read the usage of a stream, from its bytes."""
    events = []
    for one in case.given["events"]:
        if one["type"] == "message_start":
            message = {"id": "m", "role": "assistant", "content": [], "model": "claude"}
            events.append({**one, "message": {**message, "usage": one["usage"]}})
        elif one["type"] == "message_delta":
            events.append({**one, "delta": {"stop_reason": "end_turn"}})
        else:
            events.append(one)
    body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    answer = read_response(body, streamed=True)
    seen = Observed(case)
    _tell(seen, [answer.usage])
    seen.values = {name: values[0] for name, values in seen.values.items()}
    return seen


def _tell(seen, usages):
    seen.values["context_tokens"] = [one and one.input_total_tokens for one in usages]
    seen.values["output_tokens"] = [one and one.output_tokens for one in usages]
    seen.values["cache_hit_pct"] = [
        one and 100 * one.read_tokens / one.input_total_tokens for one in usages
    ]


@adapter("telemetry", takes=("calls",), settings=("cache_ttl",))
def telemetry(case, folder):
    """Calls at their times, with the usage that the provider reports, explained from the log.

    The header is as long as the first write says, so that markers are worth placing. A prefix that
    changes is a first user message that reads otherwise.
    """
    stage = Stage(case, folder)
    calls = case.given["calls"]
    written = max(_prompt_tokens(one) for one in calls)
    stage.case.given["system"] = "You are careful. " * (written * 4 // 17)
    begin = "begin"
    with stage.open():
        for number, one in enumerate(calls):
            stage.now = START + one["at"] - 1  # the stage's clock ticks once a request
            if one["prefix"] == "changed":
                begin += " otherwise"
                stage.history[0] = stage.history[0].model_copy(update={"content": begin})
            elif one["prefix"] not in ("new", "extends"):
                raise UnknownWordError(f"a prefix that is {one['prefix']!r}")
            stage.provider.usages.append(one["usage"])
            stage.turn({"user": str(number) if number else begin, "model": [_OK]})
        stage.snapshot()
        with closing(SqliteStore(stage.path)) as store:
            stage.seen.rows = list_calls(store, stage.session)
        return stage.seen


_OK = {"role": "assistant", "content": "ok"}


def _prompt_tokens(call):
    usage = call["usage"] or {}
    return sum(value for key, value in usage.items() if "input" in key)
