"""The folds of a session: what each took off, what it cost, and whether it has paid."""

from msgspec import Struct

from barograph.core.events import CallPlanned, Compacted, Pruned
from barograph.store.protocol import Store


class Fold(Struct, frozen=True, kw_only=True):
    """One fold.

    Attributes:
        kind: `prune` or `compact`.
        seq: its event.
        call: the call that it came before; None where none followed.
        path: agent path.
        cause: why it ran.
        entries: how many gave way to stubs, or to a summary.
        tokens_before: estimated tokens of the request without it.
        tokens_after: the same with it.
        rewritten_tokens: tokens that were written to the cache once more for it.
        break_even_calls: calls after which it has paid for itself; None where it was free, and for
            a compaction, which is done for room.
        calls_since: calls of the path that were made with it.
        handles: what reads the originals back.
    """

    kind: str
    seq: int
    call: int | None
    path: str
    cause: str
    entries: int
    tokens_before: int
    tokens_after: int
    rewritten_tokens: int
    break_even_calls: float | None
    calls_since: int
    handles: tuple[str, ...]

    @property
    def has_paid(self) -> bool:
        """Whether so many calls were made since that it has paid for itself."""
        return self.break_even_calls is None or self.calls_since >= self.break_even_calls


def list_folds(store: Store, session: str) -> list[Fold]:
    """Every fold of a session, in order.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    folds: list[tuple[int, Pruned | Compacted]] = []
    plans: list[tuple[int, CallPlanned]] = []
    for seq, event in store.read(session):
        if isinstance(event, Pruned | Compacted):
            folds.append((seq, event))
        elif isinstance(event, CallPlanned):
            plans.append((seq, event))
    return [_fold(seq, event, plans) for seq, event in folds]


def _fold(seq: int, event: Pruned | Compacted, plans: list[tuple[int, CallPlanned]]) -> Fold:
    since = {plan.call for at, plan in plans if at > seq and plan.path == event.path}
    kind, break_even = "compact", None
    if isinstance(event, Pruned):
        kind, break_even = "prune", event.break_even_calls
        hidden = tuple(stub.seq for stub in event.stubs)
    else:
        hidden = event.shadows
    return Fold(
        kind=kind,
        seq=seq,
        call=min(since, default=None),
        path=event.path,
        cause=event.cause,
        entries=len(hidden),
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
        rewritten_tokens=event.rewritten_tokens,
        break_even_calls=break_even,
        calls_since=len(since),
        handles=tuple(f"#{one}" for one in hidden),
    )
