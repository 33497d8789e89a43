"""The passes of a session: what each took off, what it cost, and whether it has paid."""

from msgspec import Struct

from barograph.core.events import CallPlanned, Pruned
from barograph.store.protocol import Store


class Fold(Struct, frozen=True, kw_only=True):
    """One pass.

    Attributes:
        seq: its event.
        call: the call that it came before; None where none followed.
        path: agent path.
        cause: why it ran.
        stubs: entries that gave way to stubs.
        tokens_before: estimated tokens of the request without it.
        tokens_after: the same with it.
        rewritten_tokens: tokens that were written to the cache once more for it.
        break_even_calls: calls after which it has paid for itself; None where it was free.
        calls_since: calls of the path that were made with it.
        handles: what reads the originals back.
    """

    seq: int
    call: int | None
    path: str
    cause: str
    stubs: int
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
    """Every pass of a session, in order.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    passes: list[tuple[int, Pruned]] = []
    plans: list[tuple[int, CallPlanned]] = []
    for seq, event in store.read(session):
        if isinstance(event, Pruned):
            passes.append((seq, event))
        elif isinstance(event, CallPlanned):
            plans.append((seq, event))
    return [_fold(seq, event, plans) for seq, event in passes]


def _fold(seq: int, event: Pruned, plans: list[tuple[int, CallPlanned]]) -> Fold:
    since = {plan.call for at, plan in plans if at > seq and plan.path == event.path}
    return Fold(
        seq=seq,
        call=min(since, default=None),
        path=event.path,
        cause=event.cause,
        stubs=len(event.stubs),
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
        rewritten_tokens=event.rewritten_tokens,
        break_even_calls=event.break_even_calls,
        calls_since=len(since),
        handles=tuple(f"#{stub.seq}" for stub in event.stubs),
    )
