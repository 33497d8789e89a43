"""The parameters of a request that is repeated for its cache entry alone.

A request with `max_tokens: 0` is read, its entries are written and renewed, and nothing is answered
or billed for an answer. It is refused with forced tools, a demanded form of the answer and a budget
of thinking (prompt-caching page, pre-warming). There one token does the same, and with a budget one
more than that: `max_tokens` must be above it, and thinking is part of what the entries depend on,
so it cannot be left out. Neither `max_tokens` nor `stream` is (same page, what invalidates what).
"""

from typing import Final

import msgspec

from barograph.core.model import Refreshing

_raw_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FORCED: Final = ("any", "tool")


def refreshing(parameters: str) -> Refreshing:
    """What to send in the place of these parameters where no answer is wanted."""
    fields = {key: bytes(raw) for key, raw in _raw_object.decode(parameters).items()}
    most = _least_room(fields)
    dropped = tuple(key for key in fields if key == "stream")
    changed = {key: raw for key, raw in fields.items() if key not in dropped}
    changed["max_tokens"] = str(most).encode()
    pieces = (msgspec.json.encode(key) + b":" + raw for key, raw in changed.items())
    return Refreshing(
        parameters=(b"{" + b",".join(pieces) + b"}").decode(), dropped=dropped, output_tokens=most
    )


def _least_room(fields: dict[str, bytes]) -> int:
    thinking = _fields(fields.get("thinking"))
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        return 1 + (budget if isinstance(budget, int) else 0)
    is_forced = _fields(fields.get("tool_choice")).get("type") in _FORCED
    has_form = "format" in _fields(fields.get("output_config")) or "output_format" in fields
    return int(is_forced or has_form)


def _fields(raw: bytes | None) -> dict[str, object]:
    value = msgspec.json.decode(raw) if raw else {}
    return value if isinstance(value, dict) else {}
