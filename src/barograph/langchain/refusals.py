"""What can be seen of an exception that a client raised, whatever client it was.

Clients agree on little: a status may be `status_code`, a number called `code`, or lie in the
response; a body may be parsed, text, or only in the response. LangChain raises some as they are and
wraps others, so where an exception says nothing itself, the one behind it is asked.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from barograph.core.canonical import dump_json
from barograph.core.inputs import Overflow
from barograph.providers.overflow import Fault, Refusal, read_refusal

_TOO_LONG: Final = frozenset({"overflow", "max_tokens_room", "too_large"})
_DEEPEST: Final = 5
_MOST_CHARS: Final = 200_000


def refusal_of(error: BaseException) -> Refusal:
    """What can be seen of an exception. It never raises, whatever the exception holds."""
    names: list[str] = []
    messages: list[str] = []
    seen = Refusal()
    for link in _chain(error):
        names += [kind.__name__ for kind in type(link).__mro__]
        messages.append(_text(link)[:_MOST_CHARS])
        seen = _seen(link)
        # what lies behind an answer of the provider is how it came, or another call altogether
        if seen.status is not None or seen.code or seen.type or seen.body:
            break
    return Refusal(
        names=tuple(dict.fromkeys(names)),
        status=seen.status,
        code=seen.code,
        type=seen.type,
        message="\n".join(messages),
        body=seen.body,
    )


def overflow_of(error: BaseException, request: Any) -> Overflow | None:
    """What a provider said of a request that does not fit; None for another error."""
    fault = read_refusal(refusal_of(error))
    if fault.kind not in _TOO_LONG:
        return None
    return Overflow(
        window_tokens=fault.window_tokens,
        input_tokens=fault.input_tokens,
        room_tokens=_room(fault, request.model) if fault.kind == "max_tokens_room" else None,
    )


def _room(fault: Fault, model: Any) -> int | None:
    """What is left of the window; None where it is not known, or less than the model must have."""
    if fault.window_tokens is None or fault.input_tokens is None:
        return None
    room = fault.window_tokens - fault.input_tokens
    thinking = _of(model, "thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return room if room > (budget or 0) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None:
            return
        yield link
        behind = link.__cause__
        # Further down, a context may be the error of another model, tried before this one.
        if behind is None and link is error and not link.__suppress_context__:
            behind = link.__context__
        link = behind


def _seen(error: BaseException) -> Refusal:
    response = _of(error, "response")
    numbers = (
        _of(error, "status_code"),
        _of(error, "code"),
        _of(response, "status_code"),
        _item(response, "ResponseMetadata", "HTTPStatusCode"),  # botocore
    )
    codes = (
        _of(error, "error_code"),
        _of(error, "code"),
        _of(error, "status"),  # google-genai
        _item(response, "Error", "Code"),
    )
    bodies = (_of(error, "body"), _of(error, "details"), response, _of(response, "text"))
    return Refusal(
        status=next((each for each in numbers if _is_status(each)), None),
        code=next((each for each in codes if isinstance(each, str) and each), None),
        type=_text_or_none(_of(error, "type")),
        body=next(filter(None, map(_body, bodies)), ""),
    )


def _body(value: Any) -> str:
    """A body as text: parsed ones as JSON again."""
    if isinstance(value, bytes | bytearray):
        return bytes(value[:_MOST_CHARS]).decode("utf-8", "replace")
    if isinstance(value, dict | list):
        return str(_safely(lambda: dump_json(value).decode("utf-8", "replace"), ""))
    return value[:_MOST_CHARS] if isinstance(value, str) else ""


def _is_status(value: Any) -> bool:
    return type(value) is int and 100 <= value < 600


def _text(error: BaseException) -> str:
    return str(_safely(lambda: str(error), ""))


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _of(holder: Any, name: str) -> Any:
    """An attribute; None where there is none, or where asking for it fails."""
    return _safely(lambda: getattr(holder, name, None), None)


def _item(holder: Any, *keys: str) -> Any:
    for key in keys:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder


def _safely(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What another's code gives; a fault in it must not hide the error that is being read."""
    try:
        return ask()
    except Exception:  # noqa: BLE001 - anything may be raised by a property of a stranger
        return otherwise
