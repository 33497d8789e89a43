"""Ops that play a conversation through the agent loop."""

from cases.observed import projected_tokens
from cases.properties.prefixes import prefix_breaks
from cases.registry import UnknownWordError, adapter
from cases.stage import SETTINGS, Stage

_TURN = {"user", "model", "model_by_name", "tool_results"}


@adapter(
    "request_sequence",
    takes=("system", "tools", "tools_per_request", "turns", "volatile_sources", "transport"),
    settings=SETTINGS,
)
def request_sequence(case, folder):
    """Play the turns; each model call is one recorded request."""
    return _played(Stage(case, folder))


@adapter(
    "agent_run",
    takes=(
        "system",
        "tools",
        "turns",
        "history",
        "models",
        "usage_per_call",
        "usage_script",
        "summariser",
        "true_tokens_per_char",
    ),
    settings=SETTINGS,
)
def agent_run(case, folder):
    """The same, with history loaded first and usage as the case reports it."""
    stage = Stage(case, folder)
    if "usage_per_call" in case.given:
        stage.provider.usage_always = case.given["usage_per_call"]
    stage.provider.usages.extend(case.given.get("usage_script") or ())
    return _played(stage)


@adapter(
    "privacy",
    takes=("system", "tools", "turns", "secrets"),
    settings=(*SETTINGS, "private"),
)
def privacy(case, folder):
    """Play the turns over a store on disk, or as a private session, which leaves none."""
    return _played(Stage(case, folder))


def _played(stage):
    with stage.open():
        stage.load(stage.case.given.get("history") or ())
        for turn in stage.case.given["turns"]:
            if turn.get("restart_process"):
                stage.restart()
            elif turn.keys() <= _TURN:
                stage.turn(turn)
                stage.snapshot()
            else:
                raise UnknownWordError(f"a turn of {sorted(turn)}")
        stage.seen.next_turn = _next_turn(stage)
        stage.seen.values["prefix_breaks"] = lambda: prefix_breaks(stage.seen)
        stage.seen.values["context_tokens"] = lambda: projected_tokens(stage.seen)[-1]
        return stage.seen


def _next_turn(stage):
    """One more user turn, played when a check asks for it."""

    def play():
        failed = len(stage.seen.errors)
        with stage.open():
            stage.turn({"user": "and now?", "model": [{"role": "assistant", "content": "done"}]})
            stage.snapshot()
        return stage.seen.errors[failed:]

    return play
