"""What to do about a miss, in one sentence for each cause. For people, never for a model.

A remedy is offered only where the evidence is at least inferred: advice without evidence sends
people to change what was never wrong.
"""

from typing import Final

from barograph.core.events import Ttl
from barograph.core.lifetimes import TTL_SECONDS

_NOTHING: Final = "Nothing to do"
_UNKNOWN: Final = (
    "Not enough was reported to blame anything, so no remedy is offered; the calls around this one "
    "may tell more."
)
_PROVIDER: Final = (
    "Nothing on your side explains it: same bytes, in time, markers in reach. If it recurs, give "
    "the provider the request ids of this call and the one before."
)


def advise(
    cause: str,
    *,
    is_actionable: bool,
    label: str,
    named: str,
    idle_seconds: float,
    ttl: Ttl,
    minimum_tokens: int,
) -> str:
    """One sentence on what to do.

    Args:
        cause: from the taxonomy of misses.
        is_actionable: whether the evidence is at least inferred.
        label: the tool, the parameter, or who speaks, where bytes differ.
        named: the cause that the logged event states; empty where no event tells of the change.
        idle_seconds: since the call before.
        ttl: lifetime of the entry that was to be read.
        minimum_tokens: shortest prefix that the model caches.
    """
    if not is_actionable:
        return _PROVIDER if cause == "provider_side_suspected" else _UNKNOWN
    match cause:
        case "history_changed":
            return _on_history(named)
        case "expired":
            return _on_expiry(idle_seconds, ttl)
        case "below_minimum":
            return (
                f"{_NOTHING}: this model caches no prefix shorter than {minimum_tokens} tokens, "
                "and plain input costs less than a write."
            )
        case "tools_changed" | "parameters_changed":
            return _TEXTS[cause].format(label=label)
        case _:
            return _TEXTS[cause]


_TEXTS: Final = {
    "cold_start": f"{_NOTHING}: the first call of an agent path writes what the next ones read.",
    "held": f"{_NOTHING}: all that could be read was read.",
    "model_changed": (
        "Keep one model for an agent path and give other models paths of their own: models share "
        "no cache."
    ),
    "tools_changed": (
        "Freeze the names, order, descriptions and schemas of the tools for the session (here: "
        "{label}); text that changes belongs in the conversation."
    ),
    "system_changed": (
        "Keep the system prompt fixed for the session: dates, counters and retrieved text belong "
        "in the conversation."
    ),
    "parameters_changed": "Keep {label} the same within a session: cached messages depend on it.",
    "planned_fold": f"{_NOTHING}: a fold was chosen, and smaller requests pay it back.",
    "no_breakpoint": (
        "Leave Barograph a free marker slot: no marker was on the request, so nothing could be "
        "written or read."
    ),
    "out_of_lookback": (
        "Leave Barograph a free marker slot: no marker stood near enough behind the end of what "
        "was cached."
    ),
}


def _on_history(named: str) -> str:
    if named == "answered":
        return (
            "Wait for every tool result before the next call: a late one took the place of the "
            "note that stood in for it."
        )
    if named:
        return (
            "Append to the history instead of changing it; if this edit or rewind was wanted, "
            "the rewrite is its price."
        )
    return (
        "Find what rewrites requests after Barograph, which logged no such change: it must be the "
        "last middleware, and the only one that edits messages."
    )


def _on_expiry(idle_seconds: float, ttl: Ttl) -> str:
    if ttl == "5m" and idle_seconds <= TTL_SECONDS["1h"]:
        return (
            "If pauses like this are usual, a longer life costs more to write and survives them: "
            "`barograph ttl` says which lifetime this session should have had."
        )
    return f"{_NOTHING}: no lifetime on offer outlives such a pause."
