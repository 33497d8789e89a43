"""A parent and its subagents."""

from cases.registry import UnknownWordError, adapter
from cases.stage import SETTINGS, Stage
from cases.watched import archive_fails

_SUBAGENT = {"type", "call", "user", "model", "tool_results"}


@adapter(
    "subagent_run",
    takes=("system", "tools", "parent", "subagents", "thread_id", "volatile_sources", "archive"),
    settings=SETTINGS,
)
def subagent_run(case, folder):
    """The subagents run inside the parent's tool calls, as agents of their own."""
    stage = Stage(case, folder, session=case.given.get("thread_id") or "case")
    stage.archive_fails = archive_fails(case)
    for one in case.given["subagents"]:
        if not one.keys() <= _SUBAGENT:
            raise UnknownWordError(f"a subagent of {sorted(one)}")
        stage.child(one["call"], one["type"], one)
    parent = case.given["parent"]
    with stage.open():
        for turn in parent if isinstance(parent, list) else [parent]:
            stage.turn(turn)
            stage.snapshot()
        return stage.seen
