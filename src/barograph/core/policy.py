"""Every knob: frozen, validated, documented with unit and range."""

from typing import Literal

from msgspec import Struct

from barograph.core.errors import PolicyError
from barograph.core.events import Ttl

Profile = Literal["interactive", "desktop", "fleet", "subagent"]

_LONG_LIVED = frozenset({"desktop", "fleet"})


class Policy(Struct, frozen=True, kw_only=True):
    """How a session is governed.

    Attributes:
        name: `off` keeps the log, the byte stability and the breakpoints, and folds nothing.
        profile: what kind of agent this is; it picks the lifetime of cache entries.
        ttl: `5m` or `1h`; None takes the profile's (`desktop` and `fleet` pause for people and
            long tools, so their entries live for an hour; the others 5 minutes).
        markers: `auto` places cache markers and, where a provider refuses them, sends the call once
            more with fewer or none and does without for an hour; `force` never does without, and
            the refusal reaches the caller; `off` places none.
        diagnostics: `on` asks the provider with each call to compare it with the one before and
            logs what it finds, a second witness beside our own; `auto` does so where the provider's
            own address is called, since others may refuse the field; `off` does not.
        tool_order: names of tools that come first, in this order; the rest follows by name.
        on_store_error: `continue` goes on with one loud warning when the log cannot be written;
            `stop` raises before the request leaves.
        on_mismatch: what to do when the request that is about to leave is not the surface, because
            something behind us changed it: `warn` says so once and goes on, `stop` raises before it
            leaves. Either way the log has both.
        start_tokens_per_char: the estimate before the provider has reported usage, in (0, 2].
            The usual four characters a token.

    Raises:
        PolicyError: a value outside its range.
    """

    name: Literal["off"] = "off"
    profile: Profile = "interactive"
    ttl: Ttl | None = None
    markers: Literal["auto", "force", "off"] = "auto"
    diagnostics: Literal["auto", "on", "off"] = "auto"
    tool_order: tuple[str, ...] = ()
    on_store_error: Literal["continue", "stop"] = "continue"
    on_mismatch: Literal["warn", "stop"] = "warn"
    start_tokens_per_char: float = 0.25

    def __post_init__(self) -> None:
        _one_of("name", self.name, ("off",))
        _one_of("profile", self.profile, ("interactive", "desktop", "fleet", "subagent"))
        _one_of("ttl", self.ttl, ("5m", "1h", None))
        _one_of("markers", self.markers, ("auto", "force", "off"))
        _one_of("diagnostics", self.diagnostics, ("auto", "on", "off"))
        _one_of("on_store_error", self.on_store_error, ("continue", "stop"))
        _one_of("on_mismatch", self.on_mismatch, ("warn", "stop"))
        if not 0 < self.start_tokens_per_char <= 2:
            raise PolicyError(
                f"start_tokens_per_char is {self.start_tokens_per_char}.",
                next_step="Give a number above 0 and at most 2.",
                knob="start_tokens_per_char",
            )
        if len(set(self.tool_order)) != len(self.tool_order):
            raise PolicyError(
                f"tool_order names a tool twice: {', '.join(self.tool_order)}.",
                next_step="Name each tool once.",
                knob="tool_order",
            )

    @property
    def entry_ttl(self) -> Ttl:
        """Lifetime that new cache entries are bought with."""
        if self.ttl is not None:
            return self.ttl
        return "1h" if self.profile in _LONG_LIVED else "5m"


def _one_of(knob: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise PolicyError(
            f"{knob} is {value!r}.",
            next_step=f"Choose one of {', '.join(map(repr, allowed))}.",
            knob=knob,
        )
