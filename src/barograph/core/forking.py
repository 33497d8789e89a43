"""An agent that begins with the history of another: a fork.

**Theory of operation.** Some tools start an agent with all that their own agent was shown, and with
a task behind it. Such a history is recognised where its path begins, by the messages of the nearest
agent above it. The path then begins as that one stands: with its header and its surface, whatever
we put into it (frames, nudges, repairs) or took off it (stubs, summaries), and with what is known
of its cache. So the first request of a fork begins with the bytes of the last request there, and
reads what that one left. From then on each goes its own way.

Where only the beginning is shared, the fork takes the rest back, as after a rewind.

Its sources of context go on from the frames that it begins with. Those that are asked only above
have told it something all the same, which holds until one of the same name says otherwise.

**Invariants.** An agent that is shown one task is no fork, whatever the task says. What is done in
a fork changes nothing above it. A path that has begun is never looked at again.

**Out of scope.** What a fork does with its history (`intake`); tools that were loaded above.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from barograph.core.ingest import Unit, matching
from barograph.core.state import PathState, State


def forked_from(state: State, name: str, units: Sequence[Unit]) -> str | None:
    """The agent path whose history this one begins with; None where it begins with its own.

    Args:
        state: before anything of the history was taken in.
        name: the agent path.
        units: what it is shown, whole.
    """
    path = state.path(name)
    if path.turn or len(path.seen):
        return None
    above = name
    while "/" in above:
        above = above.rpartition("/")[0]
        seen = state.path(above).seen
        if len(seen):
            # a task that is word for word what the user said there comes alone
            return above if 0 < matching((one.key for one in seen), units) < len(units) else None
    return None


def begin_as(path: PathState, of: PathState) -> PathState:
    """A path that has only been named, as it begins with the history of another.

    What runs there (calls, tools, rounds that are counted, a summary that is asked for) is not its
    own.
    """
    return replace(
        path,
        seen=of.seen,
        ledger=of.ledger,
        lasting=of.lasting,
        turn=of.turn,
        scope=of.scope,
        answer=of.answer,
        replies=of.replies,
        pending=of.pending,
        spoken=of.spoken,
        frames=of.frames.passed_on(),
        meter=of.meter,
        pinned=of.pinned,
        waiting=of.waiting,
        header_chars=of.header_chars,
        kept=of.kept,
        told=of.told,
    )
