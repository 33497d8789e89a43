"""Faults on demand: which request fails, how, and how often.

A fault is addressed by session and index of the reply, by the nth request, or by neither, and it
strikes so many times; then requests go through. A retry of a client is another request for the same
reply, so a fault with `times=2` fails the first try and the first retry. A request can also bring
its fault along, in the header `x-sim-fault`: `overloaded`, or `cut; after_events=3`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from barograph.core.errors import UsageError
from barograph.simulator.refusal import Refused

FaultKind = Literal[
    "rate_limit",
    "spend_cap",
    "overloaded",
    "too_large",
    "server_error",
    "overflow",
    "slow",
    "hang",
    "drop",
    "cut",
    "error_event",
    "usage_missing",
    "usage_absurd",
]
Wording = Literal[
    "prompt_too_long",
    "input_and_max_tokens",
    "stop_reason",
    "request_too_large",
    "maximum_context_length",
    "exceeds_context_window",
    "configured_limit",
    "available_context_size",
]
UsageFault = Literal["all", "input", "split", "negative", "huge", "strings"]

# What each kind takes beside its address.
_TAKES: Final[dict[str, tuple[str, ...]]] = {
    "rate_limit": ("retry_after_seconds",),
    "overflow": ("wording",),
    "slow": ("virtual_seconds", "delay_seconds"),
    "cut": ("after_events",),
    "error_event": ("after_events", "error_type"),
    "usage_missing": ("usage",),
    "usage_absurd": ("usage",),
}
_USAGES: Final[dict[str, tuple[str, ...]]] = {
    "usage_missing": ("all", "input", "split"),
    "usage_absurd": ("negative", "huge", "strings"),
}
_ADDRESS: Final = ("session", "index", "request", "times")
_OF_A_KIND: Final = (
    "retry_after_seconds",
    "wording",
    "virtual_seconds",
    "delay_seconds",
    "after_events",
    "error_type",
    "usage",
)


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault, the requests it strikes, and what it takes.

    The kinds: `rate_limit`, `spend_cap` (429), `overloaded` (529), `too_large` (413),
    `server_error` (500); `overflow`, a prompt too long in some `wording`; `slow`; `hang`, no answer
    until the client gives up; `drop`, the connection closed before an answer; `cut`, the connection
    closed within one; `error_event`, an error inside a stream; `usage_missing` and `usage_absurd`.

    Attributes:
        kind: what goes wrong.
        session: the session it strikes, None for any.
        index: the index of the reply it strikes, from 0, None for any.
        request: the nth request received, from 1, None for any.
        times: how often it strikes.
        retry_after_seconds: the header of a `rate_limit`, None for no header.
        wording: the words of an `overflow`, `prompt_too_long` if None.
        virtual_seconds: by how much a `slow` response begins later on the virtual clock.
        delay_seconds: by how much it really begins later.
        after_events: events of a stream that come before a `cut` or an `error_event`, 2 if None.
        error_type: type of an `error_event`, `overloaded_error` if None.
        usage: which fields are missing (`all`, `input`, `split`), or how they are absurd
            (`negative`, `huge`, `strings`); the first of them if None.
    """

    kind: FaultKind
    session: str | None = None
    index: int | None = None
    request: int | None = None
    times: int = 1
    retry_after_seconds: float | None = None
    wording: Wording | None = None
    virtual_seconds: float | None = None
    delay_seconds: float | None = None
    after_events: int | None = None
    error_type: str | None = None
    usage: UsageFault | None = None

    def __post_init__(self) -> None:
        """Refuse what the kind does not take."""
        if self.kind not in get_args(FaultKind):
            raise UsageError(
                f"There is no fault '{self.kind}'.",
                next_step=f"Use one of {', '.join(get_args(FaultKind))}.",
            )
        allowed = _TAKES.get(self.kind, ())
        for name in _OF_A_KIND:
            if getattr(self, name) is not None and name not in allowed:
                raise UsageError(
                    f"A fault '{self.kind}' takes no {name}.",
                    next_step=f"It takes {', '.join((*allowed, *_ADDRESS))}.",
                )
        for name in ("times", "retry_after_seconds", "virtual_seconds", "delay_seconds"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise UsageError(f"{name} is {value}.", next_step="Give a number, 0 or more.")
        usages = _USAGES.get(self.kind, ())
        if self.usage is not None and self.usage not in usages:
            raise UsageError(
                f"A fault '{self.kind}' has no usage '{self.usage}'.",
                next_step=f"Use one of {', '.join(usages)}.",
            )

    @property
    def usage_kind(self) -> str:
        """Which fields are wrong, and how."""
        return self.usage or _USAGES[self.kind][0]

    @property
    def is_silent(self) -> bool:
        """Whether the client gets no answer at all."""
        return self.kind in ("hang", "drop")

    @property
    def loses_answer(self) -> bool:
        """Whether the client gets no whole answer, so that the next try is for the same reply."""
        return self.kind in ("cut", "error_event")


class FaultPlan:
    """Faults to come; each is spent when it has struck as often as it is to."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        """Plan a fault, after those planned before."""
        self._left.append((fault, fault.times))

    def strike(self, number: int, session: str, index: int) -> Fault | None:
        """The fault of a request, spent once more; None for none.

        Args:
            number: the request's number, from 1.
            session: the session it named.
            index: index of the reply it is for.
        """
        asked = {"session": session, "index": index, "request": number}
        for at, (fault, left) in enumerate(self._left):
            if left and all(getattr(fault, name) in (None, asked[name]) for name in asked):
                self._left[at] = (fault, left - 1)
                return fault
        return None


def fault_of_header(text: str, attempt: int) -> Fault | None:
    """The fault that a request brings along; None once it was retried so many times.

    Args:
        text: kind and fields, as in `cut; after_events=3`.
        attempt: the client's retry count.

    Raises:
        Refused: the header cannot be read.
    """
    kind, *fields = (part.strip() for part in text.split(";"))
    given: dict[str, Any] = {"kind": kind}
    for field in fields:
        name, _, value = field.partition("=")
        if name.strip() in ("session", "index", "request"):
            raise Refused(f"x-sim-fault: it strikes this request, so it takes no {name.strip()}")
        given[name.strip()] = value.strip()
    try:
        fault = fault_from(given)
    except UsageError as error:
        raise Refused(f"x-sim-fault: {error}") from error
    return fault if attempt < fault.times else None


def fault_from(fields: Mapping[str, Any]) -> Fault:
    """A fault from its fields, numbers as text included.

    Raises:
        UsageError: a field is unknown, missing or wrong.
    """
    allowed = [field.name for field in msgspec.structs.fields(Fault)]
    unknown = [name for name in fields if name not in allowed]
    if unknown:
        raise UsageError(
            f"A fault has no field '{unknown[0]}'.", next_step=f"It has {', '.join(allowed)}."
        )
    if fields.get("kind") not in get_args(FaultKind):
        raise UsageError(
            f"There is no fault '{fields.get('kind', '')}'.",
            next_step=f"Use one of {', '.join(get_args(FaultKind))}.",
        )
    try:
        return msgspec.convert(dict(fields), Fault, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"A fault cannot be read: {error}.") from error
