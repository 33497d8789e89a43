"""Provider behaviour that no documentation settles, as switches.

A client must be right under every setting, so tests run under several. The defaults never flatter
the client: where two readings of the documentation differ in cost, the dearer one is the default.
"""

from typing import Literal

from msgspec import Struct

from barograph.core.errors import UsageError
from barograph.core.events import Level


class Switches(Struct, frozen=True, kw_only=True):
    """What the provider might do, where its documentation is silent.

    Attributes:
        reads_refresh_shorter: a read also renews the life of every shorter entry of its prefix.
        markers_refresh_shorter: a marker at or before the hit renews its entry, or writes it if it
            is missing, at no charge. A live entry keeps the TTL class that was paid for it.
        long_needs_long: an entry dies with the shortest-lived of what was read when it was written;
            by default it lives as long as was paid for it, as the bill says.
        collapse_runs: a run of consecutive `tool_use` blocks is one lookback position, and likewise
            `tool_result` (the provider's own API; other clouds may count blocks).
        random_miss_rate: share of reads, 0 to 1, that miss a live entry for no reason.
        first_token_seconds: time on the virtual clock from the start of a request until its
            entries can be read; more than 0 makes parallel cold requests all write.
        images_by_presence: only the step between no image and some images invalidates the
            messages; by default every added or removed image does, as the table's wording says.
        thinking_level: first level that a change of thinking mode or budget invalidates.
        effort_level: first level that a change of effort invalidates.
        early_eviction_seconds: an entry is gone after so many seconds without use, however long it
            was paid for; None for never before its time.
        thinking_binding: what happens to thinking whose prefix changed, on the models below:
            `enforced` refuses the request, as for accounts created since 31 August 2026; `opt_in`
            does so only where the request says what to do; `off` never.
        bound_models: beginnings of the names of models whose thinking is bound to its prefix.
        foreign_thinking: whether a signature that the simulator did not make passes the check, or
            fails it as one made elsewhere.
        diagnostics_pending: the reason for a miss is always still pending.
        markers: `unsupported` refuses every `cache_control`, as some gateways do; `one_taken` is a
            gateway that puts in one marker of its own, which counts.
        system_placement: `after_user` takes a system message only after a user message and before
            the end or an assistant message; `anywhere` takes it at every place but the first.
        identity: what the first system block must say, exactly, alone and without a marker, as is
            demanded of subscription accounts; None for no such demand.
    """

    reads_refresh_shorter: bool = False
    markers_refresh_shorter: bool = True
    long_needs_long: bool = False
    collapse_runs: bool = True
    random_miss_rate: float = 0.0
    first_token_seconds: float = 0.0
    images_by_presence: bool = False
    thinking_level: Level = "messages"
    effort_level: Level = "messages"
    early_eviction_seconds: float | None = None
    thinking_binding: Literal["enforced", "opt_in", "off"] = "enforced"
    bound_models: tuple[str, ...] = (
        "claude-fable-5-1",
        "claude-mythos-5-1",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
    )
    foreign_thinking: Literal["accept", "mismatch"] = "accept"
    diagnostics_pending: bool = False
    markers: Literal["supported", "unsupported", "one_taken"] = "supported"
    system_placement: Literal["after_user", "anywhere"] = "after_user"
    identity: str | None = None

    def __post_init__(self) -> None:
        """Refuse a rate that is no share and a clock that runs backwards."""
        if not 0.0 <= self.random_miss_rate <= 1.0:
            raise UsageError(
                f"random_miss_rate is {self.random_miss_rate}.", next_step="Give a share, 0 to 1."
            )
        for name in ("first_token_seconds", "early_eviction_seconds"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds >= 0.0:
                raise UsageError(f"{name} is {seconds}.", next_step="Give seconds, 0 or more.")
