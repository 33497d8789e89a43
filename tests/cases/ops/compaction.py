"""Ops that compact a history."""

from barograph import Policy
from cases.registry import adapter
from cases.stage import Stage

_OK = {"role": "assistant", "content": "ok"}
_EAGER = 1e-6


@adapter(
    "compact",
    takes=("system", "messages", "summariser", "then"),
    settings=("window", "keep_rounds"),
)
def compact(case, folder):
    """One compaction of a history, as soon as one is possible, before the next call.

    How much stays is not to be set: the current request and the newest round.
    """
    policy = Policy(
        name="bound-once",
        compact_at_ratio=_EAGER,
        compact_to_ratio=_EAGER / 2,
        relief_ratio=_EAGER,
        window_tokens=case.settings.get("window"),
    )
    stage = Stage(case, folder, policy=policy)
    with stage.open():
        stage.load(case.given["messages"])
        stage.turn({"model": [_OK]})
        stage.snapshot()
        stage.seen.before_then = len(stage.provider.sent)
        for turn in case.given.get("then") or ():
            stage.turn({"user": turn, "model": [_OK]} if isinstance(turn, str) else turn)
        stage.snapshot()
        return stage.seen
