"""Steer a turn before its next call: place a nudge, or hand the turn back.

**Theory of operation.** `core.rounds` decides from the counts of the path; this room turns the
decision into events. A nudge is logged as the text that is sent, and stands where no byte that was
cached changes: after what came new with this call. On most models that is a block of its own behind
the newest results. Models that drop their thinking once text of the user follows it would lose the
cache of the whole history by that, so there it ends the newest result, which was never sent before.

Tools that came in mid-session are told of in the same way, once.

A turn that is handed back makes no call. The adapter gives the caller the words that are logged;
when the caller shows them again they are recognised as an answer is.

**Invariants.** A nudge stays as it was sent until a fold takes it (3, 4). It follows every result
of its round (5). It is no message of the user: it neither begins a turn nor resets a count.

**Out of scope.** When a turn is steered (`rounds`); what is said (`texts`).
"""

from typing import Final, cast

from msgspec import Struct

from barograph.core.bounds import bound_text
from barograph.core.digestlines import one_line
from barograph.core.events import (
    HandBackCause,
    HandedBack,
    MessageSeen,
    NudgeCause,
    Nudged,
    TurnEnded,
)
from barograph.core.inputs import CallWanted
from barograph.core.nods import is_nod
from barograph.core.notes import last_plan
from barograph.core.outgoing import asks_for_tools
from barograph.core.parts import Opaque, Text, ToolResult
from barograph.core.policy import Policy
from barograph.core.rounds import Decision, RoundRules, decide, decide_spending
from barograph.core.spending import paths_above
from barograph.core.state import PathState, State
from barograph.core.steeringtexts import (
    handed_back,
    money_spent,
    new_tools,
    nudge,
    rounds_alike,
    rounds_spent,
    steps_done,
    steps_left_out,
    tokens_spent,
)
from barograph.core.surface import Surface
from barograph.core.tooling import tool_names
from barograph.core.work import Work

_QUOTED_CHARS: Final = 1_000
"""The most of a request that a nudge quotes: it reminds of a task and does not restate it."""


_MOST_STEPS: Final = 6
_STEP_CHARS: Final = 120
"""A plan is told in so many steps of so many characters at most."""


class HandBack(Struct, frozen=True, kw_only=True):
    """Make no call, and give the caller these words as the model's; the turn is over.

    Attributes:
        text: what to say.
        cause: why.
        rounds: rounds that were counted.
        seen: units of the caller's history that are known.
    """

    text: str
    cause: HandBackCause
    rounds: int
    seen: int


def steer(work: Work, given: CallWanted, policy: Policy, rules: RoundRules) -> HandBack | None:
    """Nudge the model, if that is due, or say that the turn is handed back.

    To be called right after the caller's history was taken in; `rules` are those of the policy.
    """
    decision = _decide(work.state, given.path, rules)
    if decision.kind == "hand_back":
        return _hand_back(work, given, decision)
    new = () if policy.name == "off" else _untold_tools(work, given)
    if decision.kind == "nudge" or new:
        _nudge(work, given, decision, new)
    return None


def _decide(state: State, path: str, rules: RoundRules) -> Decision:
    """What to do before the next call of a path, which may spend what those above it have left."""
    decision = decide(state.path(path).progress, rules)
    if decision.kind == "hand_back":
        return decision
    above = (decide_spending(state.path(name).progress, rules) for name in paths_above(path))
    return next((one for one in above if one is not None), decision)


def _untold_tools(work: Work, given: CallWanted) -> tuple[str, ...]:
    """Names of the tools that came since the first call, and of which the model was not told."""
    path, header = work.state.path(given.path), work.state.surface(given.path).header
    if header is None:
        return ()
    if asks_for_tools(header, given.header.tools) and set(path.told).issuperset(path.tools):
        return ()
    return tuple(name for name in tool_names(given.header.tools) if name not in path.told)


def _hand_back(work: Work, given: CallWanted, decision: Decision) -> HandBack:
    path = work.state.path(given.path)
    cause = cast("HandBackCause", decision.causes[0])
    text = handed_back(_why_stopped(cause, decision))
    work.log(
        HandedBack(
            at=given.at,
            path=given.path,
            turn=path.turn,
            cause=cause,
            rounds=decision.rounds,
            repeats=decision.repeats,
            parts=(Text(text),),
            spent_tokens=decision.spent.tokens,
            spent_usd=decision.spent.usd,
        )
    )
    work.log(TurnEnded(at=given.at, path=given.path, turn=path.turn, rounds=path.round))
    return HandBack(text=text, cause=cause, rounds=decision.rounds, seen=len(path.seen))


def _why_stopped(cause: HandBackCause, decision: Decision) -> str:
    match cause:
        case "round_cap":
            return rounds_spent(decision.rounds)
        case "token_cap":
            return tokens_spent(decision.spent.tokens)
        case "cost_cap":
            return money_spent(decision.spent.usd)
        case "stall":
            return rounds_alike(decision.repeats)


def _nudge(work: Work, given: CallWanted, decision: Decision, new: tuple[str, ...]) -> None:
    """Log a nudge where it can stand; else it stays due."""
    newest = work.events[-1] if work.events else None
    if not isinstance(newest, MessageSeen) or newest.origin not in ("tool", "caller"):
        return  # nothing is new that it could follow, or a repair, which a late result replaces
    path, surface = work.state.path(given.path), work.state.surface(given.path)
    said = [new_tools(new)] if new else []
    if decision.kind == "nudge":
        said.append(
            nudge(
                rounds=decision.rounds if "rounds" in decision.causes else None,
                repeats=decision.repeats if "stall" in decision.causes else None,
                request=_request_in(surface),
                plan=_plan_in(path, surface),
            )
        )
    causes = (*decision.causes, "tools") if new else decision.causes
    drops = work.codec.facts_of(given.header.model).drops_thinking
    work.log(
        Nudged(
            at=given.at,
            path=given.path,
            turn=path.turn,
            round=path.round + 1,
            text="\n".join(said),
            causes=cast("tuple[NudgeCause, ...]", causes),
            tools=new,
            inside=_newest_result(surface) if drops else None,
        )
    )


def _plan_in(path: PathState, surface: Surface) -> list[str]:
    """The model's plan in a few lines: what is under way and still to do, and how much is done."""
    there = {seq for entry in surface.entries for seq in (entry.seq, *entry.hides)}
    steps = last_plan(one for one in reversed(path.spoken) if one.seq in there)
    if not steps:
        return []
    left = [step for step in steps if not step.startswith("[x]")]
    left.sort(key=lambda step: not step.startswith("[>]"))
    shown = [one_line(step, _STEP_CHARS) for step in left[:_MOST_STEPS]]
    more = [steps_left_out(len(left) - len(shown))] if len(left) > len(shown) else []
    return [steps_done(len(steps) - len(left), len(steps)), *shown, *more]


def _newest_result(surface: Surface) -> str | None:
    """Id of the call whose result ends the surface, if one does that may hold one more text."""
    part = surface.entries[-1].parts[-1]
    if not isinstance(part, ToolResult) or any(isinstance(one, Opaque) for one in part.content):
        return None
    return part.call_id


def _request_in(surface: Surface) -> str:
    """What the user asked for last, both its ends where it is long; empty where it is hidden."""
    requests = (entry for entry in reversed(surface.entries) if entry.is_request)
    asking = next((entry for entry in requests if not is_nod(entry.parts)), None)
    if asking is None:
        return ""
    text = "\n".join(part.text for part in asking.parts if isinstance(part, Text))
    return bound_text(text, cap_chars=_QUOTED_CHARS, handle=f"#{asking.seq}")
