"""How a run went, and the numbers that were reported of it."""

import json
from numbers import Number

from cases.observed import missing
from cases.registry import UnknownWordError, check

_STATUS = {"rate_limit": 429, "auth": 401, "overloaded": 529, "server": 500}
_CAUSES = {
    "cold": {"cold_start"},
    "hit": {"held"},
    "ttl_expiry": {"expired"},
    "prefix_change": {
        "model_changed",
        "tools_changed",
        "system_changed",
        "parameters_changed",
        "history_changed",
    },
    "fold": {"planned_fold"},
    "below_minimum": {"below_minimum"},
    "no_marker": {"no_breakpoint"},
    "lookback": {"out_of_lookback"},
    "provider": {"provider_side_suspected"},
}
_INVALIDATED = ("model", "tools", "system", "parameters")


@check
def model_calls(seen, eq=None, min=None, max=None):  # noqa: A002 - the case's words
    yield from within("model calls", len(seen.sent), eq=eq, least=min, most=max)


@check
def source_read_count(seen, name, eq):
    """How often a source of context was asked in the whole run."""
    if name not in seen.reads:
        missing(f"source {name!r}")
    if seen.reads[name] != eq:
        yield f"{name} was read {seen.reads[name]} times"


@check
def tool_executions(seen, eq):
    yield from within("tool runs", len(seen.tools_run), eq=eq)


@check
def user_inputs_needed(seen, eq):
    """Turns that did not come to their end by themselves: a person would have to speak again."""
    yield from within("turns left unfinished", seen.unfinished_turns, eq=eq)


@check
def errors_surfaced(seen, eq):
    yield from within("errors", len(seen.errors), eq=eq)


@check
def provider_rejections(seen, eq):
    """Requests that the provider refused by its own rules, not by the script."""
    refused = [one for one in seen.sent if one.status == 400 and not one.scripted]
    yield from within("refusals", len(refused), eq=eq)


@check
def ends(seen, reason_in):
    """`completed` is a last word of the model after every turn, without which there is an error.

    A turn that is handed back ends for the reason that its caller is told.
    """
    reason = seen.stopped_by or ("completed" if not seen.unfinished_turns else "error")
    if reason not in reason_in:
        yield f"the run ends as {reason}: {seen.errors[-1:]}"


@check
def raises(seen, kind):
    """The last thing that the caller sees is an error of that kind, the provider's own."""
    error = seen.errors[-1] if seen.errors else None
    if error is None:
        yield "the caller sees no error"
    elif kind == "overflow":
        if getattr(error, "status_code", None) != 400 or "too long" not in str(error):
            yield f"the caller sees {error!r}"
    elif kind in _STATUS:
        if getattr(error, "status_code", None) != _STATUS[kind]:
            yield f"the caller sees {error!r}"
    elif getattr(error, "code", None) != kind:
        yield f"the caller sees {error!r}"


@check
def final_text_in(seen, texts):
    if not seen.answers or seen.answers[-1] not in texts:
        yield f"the last word is {seen.answers[-1:]}"


@check
def next_turn_ok(seen):
    if seen.next_turn is None:
        raise LookupError("this op has no next turn")
    for error in seen.next_turn():
        yield f"the next turn fails: {error!r}"


@check
def no_request_over_model_window(seen):
    windows = {one["name"]: one["window"] for one in seen.case.given["models"]}
    for number, one in enumerate(seen.sent):
        if one.tokens > windows[one.model]:
            yield f"request {number} of {one.tokens} tokens goes to {one.model}"


@check
def no_identical_request_to_two_models(seen):
    by_content = {}
    for one in seen.sent:
        content = json.dumps({**one.request, "model": ""}, sort_keys=True)
        by_content.setdefault(content, set()).add(one.model)
    for models in by_content.values():
        if len(models) > 1:
            yield f"{', '.join(sorted(models))} got the same request"


@check
def fits_true_window(seen, tokens, request="all"):
    """By the case's own tokens per character, over the whole body."""
    ratio = seen.case.given["true_tokens_per_char"]
    for number, body in seen.pick(request):
        size = len(json.dumps(body, ensure_ascii=False)) * ratio
        if size > tokens:
            yield f"request {number} has {size:.0f} tokens"


@check
def warning(seen, contains):
    if not any(contains in one for one in seen.said):
        yield f"nobody says {contains!r}"


@check
def value(seen, *, name, eq=None, min=None, max=None, values=None, tolerance=0):  # noqa: A002
    """One number, or a list of which each is held to the bounds. None where a provider's codec is
    not there yet.
    """
    found = seen.value(name)
    several = found if isinstance(found, list) else [found]
    for index, one in enumerate(several):
        if one is None:
            continue
        yield from within(f"{name}[{index}]", one, eq=eq, least=min, most=max)
        if values is not None and abs(one - values[index]) > tolerance:
            yield f"{name}[{index}] is {one}, not {values[index]}"
    if values is not None and len(several) != len(values):
        yield f"{name} has {len(several)} values"


@check
def miss_reason(seen, call, value):
    if value not in _CAUSES:
        raise UnknownWordError(f"miss reason {value!r}")
    row = seen.rows[call]
    if row.verdict is None or row.verdict.cause not in _CAUSES[value]:
        yield f"call {call} is explained as {row.verdict and row.verdict.cause}"


@check
def telemetry_event(seen, kind, reason=None, eq=1):
    """Counted in the log: a header that replaces another names what changed; a rewritten history
    is an event of its own.
    """
    if kind != "prefix_invalidated":
        raise UnknownWordError(f"telemetry event {kind!r}")
    reasons = []
    told = set()
    for _, event in seen.log:
        name = event.__class__.__name__
        if name == "HeaderSet":
            if event.path in told:
                reasons += [one for one in _INVALIDATED if one in event.changed]
            told.add(event.path)
        elif name == "Replaced":
            reasons.append("history")
    if reason is not None and reason not in (*_INVALIDATED, "history"):
        raise UnknownWordError(f"a prefix that is invalidated by {reason!r}")
    yield from within(
        f"{kind} by {reason or 'anything'}", sum(reason in (None, one) for one in reasons), eq=eq
    )


def within(what, found, *, eq=None, least=None, most=None):
    if not isinstance(found, Number):
        yield f"{what} is {found!r}"
        return
    if eq is not None and found != eq:
        yield f"{what}: {found}, not {eq}"
    if least is not None and found < least:
        yield f"{what}: {found}, less than {least}"
    if most is not None and found > most:
        yield f"{what}: {found}, more than {most}"
