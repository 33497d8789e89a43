"""What a fault makes of an answer: the provider's errors, and usage that cannot be believed.

Sources: provider errors page (types, status codes, words), its streaming page (an `error` event may
follow a 200); for an overflow, the words that other providers use and that gateways pass on.
"""

from typing import Any, Final

import msgspec

from barograph.simulator.faults import Fault
from barograph.simulator.refusal import Refused

# status, type, message
_ERRORS: Final = {
    "rate_limit": (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit.",
    ),
    "spend_cap": (429, "billing_error", "You have reached your specified API usage limits."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "server_error": (500, "api_error", "Internal server error"),
}
_OVERFLOWS: Final = {
    "prompt_too_long": "prompt is too long: {total} tokens > {window} maximum",
    "input_and_max_tokens": (
        "input length and `max_tokens` exceed context limit: {total} + {most} > {window}, decrease"
        " input length or `max_tokens` and try again"
    ),
    "maximum_context_length": (
        "This model's maximum context length is {window} tokens. However, your messages resulted in"
        " {total} tokens. Please reduce the length of the messages."
    ),
    "exceeds_context_window": (
        "Your input exceeds the context window of this model. Please adjust your input and try"
        " again."
    ),
    "configured_limit": (
        "Input tokens exceed the configured limit of {window} tokens. Your messages resulted in"
        " {total} tokens."
    ),
    "available_context_size": (
        "request ({total} tokens) exceeds the available context size ({window} tokens), try"
        " increasing it"
    ),
}
_STATUS_OF: Final = {kind: status for status, kind, _ in _ERRORS.values()}
_INPUT_FIELDS: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
)
_HUGE: Final = 10**15


def refusal_for(fault: Fault, *, total: int, most: int, window: int) -> Refused | None:
    """The error that a fault answers with, None if it lets the request through.

    Args:
        fault: the fault.
        total: tokens of the prompt.
        most: the request's `max_tokens`.
        window: tokens of the model's window.
    """
    if fault.kind == "overflow":
        return overflow(fault.wording or "prompt_too_long", total=total, most=most, window=window)
    if fault.kind not in _ERRORS:
        return None
    status, kind, message = _ERRORS[fault.kind]
    headers = {}
    if fault.retry_after_seconds is not None:
        headers["retry-after"] = f"{fault.retry_after_seconds:g}"
    return Refused(message, status=status, kind=kind, headers=headers)


def overflow(wording: str, *, total: int, most: int, window: int) -> Refused | None:
    """The words for a prompt that is too long; None for `stop_reason`, which is no error.

    The figures are those of the request, made larger where it did fit.
    """
    if wording == "stop_reason":
        return None
    if wording == "request_too_large":
        return too_large()
    if wording == "input_and_max_tokens":
        total = max(total, window - most + 1)
    else:
        total = max(total, window + 1)
    return Refused(_OVERFLOWS[wording].format(total=total, most=most, window=window))


def too_large() -> Refused:
    """The error for a body of too many bytes."""
    status, kind, message = _ERRORS["too_large"]
    return Refused(message, status=status, kind=kind)


def refusal_of_event(fault: Fault) -> Refused:
    """The error inside a stream; for an answer that is none, the same as an HTTP error."""
    kind = fault.error_type or "overloaded_error"
    messages = {kind: message for _, kind, message in _ERRORS.values()}
    return Refused(messages.get(kind, kind), status=_STATUS_OF.get(kind, 500), kind=kind)


def with_faulty_usage(message: bytes, fault: Fault) -> bytes:
    """A message whose usage is wrong in the way that the fault says."""
    if fault.kind not in ("usage_missing", "usage_absurd"):
        return message
    whole = msgspec.json.decode(message)
    usage = whole["usage"]
    match fault.usage_kind:
        case "all":
            del whole["usage"]
        case "input":
            whole["usage"] = {name: usage[name] for name in usage if name not in _INPUT_FIELDS}
        case "split":
            del usage["cache_creation"]
        case "negative":
            whole["usage"] = _each(usage, lambda value: -value - 1)
        case "huge":
            whole["usage"] = _each(usage, lambda value: value + _HUGE)
        case _:
            whole["usage"] = _each(usage, str)
    return msgspec.json.encode(whole)


def _each(usage: dict[str, Any], change: Any) -> dict[str, Any]:
    """The usage with each figure changed."""
    return {
        name: _each(value, change)
        if isinstance(value, dict)
        else (change(value) if isinstance(value, int) else value)
        for name, value in usage.items()
    }
