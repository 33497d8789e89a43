"""Provider behaviour that no documentation settles, as switches.

A client must be right under every setting, so tests run under several. The defaults never flatter
the client: where two readings of the documentation differ in cost, the dearer one is the default.
"""

from msgspec import Struct

from barograph.core.errors import UsageError
from barograph.core.events import Level


class Switches(Struct, frozen=True, kw_only=True):
    """What the provider might do, where its documentation is silent.

    Attributes:
        reads_refresh_shorter: a read also renews the life of every shorter entry of its prefix.
        markers_refresh_shorter: a marker at or before the hit renews its entry, or writes it if it
            is missing, at no charge. A live entry keeps the TTL class that was paid for it.
        collapse_runs: a run of consecutive `tool_use` blocks is one lookback position, and likewise
            `tool_result` (the provider's own API; other clouds may count blocks).
        random_miss_rate: share of reads, 0 to 1, that miss a live entry for no reason.
        first_token_seconds: time on the virtual clock from the start of a request until its
            entries can be read; more than 0 makes parallel cold requests all write.
        images_by_presence: only the step between no image and some images invalidates the
            messages; by default every added or removed image does, as the table's wording says.
        thinking_level: first level that a change of thinking mode or budget invalidates.
        effort_level: first level that a change of effort invalidates.
    """

    reads_refresh_shorter: bool = False
    markers_refresh_shorter: bool = True
    collapse_runs: bool = True
    random_miss_rate: float = 0.0
    first_token_seconds: float = 0.0
    images_by_presence: bool = False
    thinking_level: Level = "messages"
    effort_level: Level = "messages"

    def __post_init__(self) -> None:
        """Refuse a rate that is no share and a clock that runs backwards."""
        if not 0.0 <= self.random_miss_rate <= 1.0:
            raise UsageError(
                f"random_miss_rate is {self.random_miss_rate}.", next_step="Give a share, 0 to 1."
            )
        if self.first_token_seconds < 0.0:
            raise UsageError(
                f"first_token_seconds is {self.first_token_seconds}.",
                next_step="Give seconds, 0 or more.",
            )
