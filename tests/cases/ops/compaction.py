"""Ops that compact a history."""

from contextlib import closing

from barograph import Policy
from barograph.core.engine import Engine
from barograph.core.errors import ArchiveRefused
from barograph.core.events import MessageSeen
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store.folding import compact_session
from barograph.store.originals import read_original
from barograph.store.session import Session
from cases.kit import kit
from cases.observed import read_log
from cases.registry import UnknownWordError, adapter
from cases.stage import Stage
from cases.watched import archive_fails

_OK = {"role": "assistant", "content": "ok"}
_EAGER = 1e-6


@adapter(
    "compact",
    takes=(
        "system",
        "messages",
        "summariser",
        "archive",
        "pending",
        "long_running",
        "pinned",
        "project_instructions",
        "then",
    ),
    settings=("window", "keep_rounds", "summariser_window"),
)
def compact(case, folder):
    """One compaction of a history, as soon as one is possible, before the next call.

    How much stays is not to be set: the current request and the newest round. Instructions of a
    project are what an agent puts into its system prompt. A call that is pending has no result yet,
    and what happens meanwhile is a turn of its own.
    """
    stage = Stage(_instructed(case), folder, policy=_eager(case))
    stage.archive_fails = archive_fails(case)
    with stage.open():
        stage.load(case.given["messages"])
        pending = {*case.given.get("pending", ()), *case.given.get("long_running", ())}
        if case.given.get("pinned"):
            _pin(stage, case.given["pinned"])
        if not pending:
            stage.turn({"model": [_OK]})
            stage.snapshot()
        stage.seen.before_then = len(stage.provider.sent)
        for turn in case.given.get("then") or ():
            _play(stage, turn, pending)
        stage.snapshot()
        return stage.seen


@adapter(
    "compact_both",
    takes=("messages", "summariser", "archive"),
    settings=("window",),
)
def compact_both(case, folder):
    """One history twice: compacted before a call, and by somebody who asks for it."""
    stage = Stage(case, folder, policy=_eager(case))
    stage.archive_fails = archive_fails(case)
    with stage.open():
        stage.load(case.given["messages"])
        stage.turn({"model": [_OK]})
        stage.snapshot()
    seen = stage.seen
    seen.values["auto_log"] = seen.log
    seen.values["manual"] = _by_hand(case, folder / "by-hand")
    return seen


def _by_hand(case, folder):
    folder.mkdir()
    policy = Policy(name="bound-once", compact_at_ratio=1.0, window_tokens=_window(case))
    stage = Stage(case, folder, policy=policy)
    with stage.open():
        stage.load(case.given["messages"])
        stage.turn({"model": [_OK]})
        stage.snapshot()
        stage.archive_fails = archive_fails(case, 1)
        asked, refused = len(stage.seen.asked), False
        with closing(stage.store()) as store:
            engine = Engine(AnthropicCodec(respell_arguments=True), policy)
            session = Session.open(store, stage.session, engine, at=stage.now, made_by="case")
            before = session.state.surface("main").digest
            try:
                compact_session(session, "main", at=stage.now)
            except ArchiveRefused:
                refused = True
            after = session.state.surface("main").digest
        stage.snapshot()
        return {
            "compactions": stage.seen.moments.count("compact"),
            "refused": refused,
            "surface_unchanged": before == after,
            "summariser_calls": len(stage.seen.asked) - asked,
        }


@adapter(
    "compact_repeat",
    takes=("times", "rounds_between", "round_text", "summariser"),
    settings=("window", "keep_rounds"),
)
def compact_repeat(case, folder):
    """Rounds, then a forced relief, so many times; each round says the text with its number."""
    given = case.given
    calm = Policy(name="bound-once", compact_at_ratio=1.0)
    stage = Stage(case, folder, policy=calm)
    between = given["rounds_between"]
    with stage.open():
        for number in range(given["times"]):
            told = {"n": between, "start": number * between, "id_prefix": "r"}
            told |= {"result": given["round_text"]}
            rounds = kit().expand([{"rounds": told}], case.form)
            stage.govern(calm)
            stage.turn({"user": f"part {number}", "model": [*rounds, _OK]})
            stage.govern(_eager(case))
            stage.turn({"user": f"what is done of part {number}?", "model": [_OK]})
            stage.snapshot()
        return stage.seen


def _eager(case):
    return Policy(
        name="bound-once",
        compact_at_ratio=_EAGER,
        compact_to_ratio=_EAGER / 2,
        relief_ratio=_EAGER,
        window_tokens=_window(case),
    )


def _window(case):
    return case.settings.get("window")


def _instructed(case):
    told = case.given.get("project_instructions")
    if told is None:
        return case
    if not isinstance(told, str):
        raise UnknownWordError(f"project instructions like {told!r}")
    blocks = case.given.get("system") or []
    before = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else list(blocks)
    return case._replace(given={**case.given, "system": [*before, {"type": "text", "text": told}]})


def _pin(stage, pinned):
    """Pin messages by their place in the history, or by what they say, before anything folds."""
    stage.govern(Policy(name="off"))
    stage.turn({"model": [_OK]})
    stage.history.pop()
    texts = [_said(one) for one in stage.history]
    for one in pinned:
        wanted = texts[one] if isinstance(one, int) else one
        if not isinstance(wanted, str):
            raise UnknownWordError(f"what is pinned is told as {one!r}")
        seqs = [
            seq
            for seq, event in read_log(stage.path, stage.session)
            if isinstance(event, MessageSeen) and wanted in _said_in(stage, seq)
        ]
        stage.middleware.pin(f"#{seqs[0]}", session=stage.session)
    del stage.provider.sent[:], stage.seen.answers[:]
    stage.govern(_eager(stage.case))


def _said_in(stage, seq):
    with closing(stage.store()) as store:
        return read_original(store, stage.session, f"#{seq}")


def _said(message):
    return str(message.text)


def _play(stage, turn, pending):
    """One thing that happens after the compaction, or while a call waits."""
    if isinstance(turn, str):
        stage.turn({"user": turn, "model": [_OK]})
    elif "background_rounds" in turn:
        told = {"n": turn["background_rounds"], "id_prefix": "background", "result": "x" * 4000}
        rounds = kit().expand([{"rounds": told}], stage.case.form)
        stage.turn({"user": "meanwhile", "model": [*rounds, _OK]})
        stage.turn({"user": "and then", "model": [_OK]})
    elif "result_for" in turn:
        if turn["result_for"] not in pending:
            raise UnknownWordError(f"a result for {turn['result_for']!r}, which does not wait")
        stage.answer(turn["result_for"], turn["content"])
        stage.turn({"user": "it is answered", "model": [_OK]})
    else:
        stage.turn(turn)
