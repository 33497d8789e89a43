"""Rounds of a turn: when to remind the model of its task, and when to hand back.

**What it does.** A long turn drifts: instructions far above count for less with each round. So the
model is nudged after so many rounds, and after a cap on rounds, tokens or money, if there is one,
the turn is handed back. Rounds that ask for the same calls and get the same results are a stall,
which is nudged early and handed back soon, however few rounds there were.

**What always holds.** Only answers of the model count, each call once, on the agent path where they
came. What folds, frames, summaries, nudges and retries do to a surface is no round and takes none
back. The cost of an event does not grow with the history.

**What resets.** A message of the user that asks for something. A nod ("ok", "continue") does not,
unless the rules say so: a turn could run on for ever by nods. After a hand-back anything that the
user says resets: they were asked.

**Out of scope.** Loops of more than one round (a, b, a, b): the nudge after so many rounds meets
them. Where a nudge stands in a request, and what a turn that is handed back says (`steering`).
"""

from functools import lru_cache
from math import inf
from typing import Final, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import Json, canonical_json, digest, parse_json
from barograph.core.errors import PolicyError
from barograph.core.events import (
    Event,
    HandBackCause,
    HandedBack,
    MessageSeen,
    NudgeCause,
    Nudged,
    ResponseCame,
    Steered,
    ToolEnded,
)
from barograph.core.nods import is_nod
from barograph.core.parts import Part, Parts, ToolCall, ToolResult, calls_in, encode_parts
from barograph.core.spending import Account, Spent

Cause: TypeAlias = NudgeCause | HandBackCause
"""Why the model is nudged (`rounds`, `stall`) or the turn handed back (a cap, or `stall`)."""

Round: TypeAlias = tuple[tuple[Part, bytes], ...]
"""Calls that were asked for at once, each with a digest of its result."""

_MOST: Final = 100_000
_MOST_TOKENS: Final = 10**12


class RoundRules(Struct, frozen=True, kw_only=True):
    """When a turn is steered. None turns a rule off.

    Attributes:
        nudge_at_rounds: rounds after which the model is reminded of its task, from 1.
        nudge_every_rounds: rounds after which it is reminded again, from 1; None for never.
        cap_rounds: rounds after which the turn is handed back, from 1.
        cap_tokens: tokens of input and output, of the path and of all below it, after which it is
            handed back, from 1.
        cap_usd: their list price after which it is, above 0.
        stall_nudge_repeats: rounds in a row with the same calls and the same results after which
            the model is told, from 2.
        stall_stop_repeats: such rounds after which the turn is handed back, from 2.
        resets: `request` counts from the last message that asks for something; `message` from the
            last message, be it a nod.

    Raises:
        PolicyError: a value outside its range.
    """

    nudge_at_rounds: int | None = 25
    nudge_every_rounds: int | None = None
    cap_rounds: int | None = None
    cap_tokens: int | None = None
    cap_usd: float | None = None
    stall_nudge_repeats: int | None = 3
    stall_stop_repeats: int | None = 6
    resets: Literal["request", "message"] = "request"

    def __post_init__(self) -> None:
        for knob in ("nudge_at_rounds", "nudge_every_rounds", "cap_rounds"):
            _within(knob, getattr(self, knob), 1)
        for knob in ("stall_nudge_repeats", "stall_stop_repeats"):
            _within(knob, getattr(self, knob), 2)
        _within("cap_tokens", self.cap_tokens, 1, _MOST_TOKENS)
        _affordable("cap_usd", self.cap_usd)
        if self.nudge_every_rounds is not None and self.nudge_at_rounds is None:
            raise PolicyError(
                f"nudge_every_rounds is {self.nudge_every_rounds}, and nudge_at_rounds is None.",
                next_step="Give nudge_at_rounds a number too: it says when the first nudge comes.",
                knob="nudge_every_rounds",
            )
        if self.resets not in ("request", "message"):
            raise PolicyError(
                f"resets is {self.resets!r}.",
                next_step="Choose one of 'request', 'message'.",
                knob="resets",
            )


class Progress(Struct, frozen=True, kw_only=True):
    """Where an agent path stands. The counts are of all its rounds, so that nothing takes one back.

    Attributes:
        rounds: rounds of the path.
        call: number of the call that the last of them was.
        request_at: `rounds` when the user last asked for something.
        message_at: `rounds` when the user last said anything.
        nudged_at: `rounds` at the last nudge.
        nudges: nudges since the user last asked for something.
        account: what it has spent, those below it included.
        handed_back: whether the turn was handed back and nobody has spoken since.
        open: the calls of the last round that have no result yet, by their ids.
        closed: those that have, each with a digest of its result.
        last: the last round that is complete; empty where none can be compared.
        repeats: rounds in a row, the last one included, that were the same.
        nudged_repeats: `repeats` at the last nudge.
    """

    rounds: int = 0
    call: int = 0
    request_at: int = 0
    message_at: int = 0
    nudged_at: int = 0
    nudges: int = 0
    account: Account = Account()
    handed_back: bool = False
    open: dict[str, Part] = {}
    closed: Round = ()
    last: Round = ()
    repeats: int = 0
    nudged_repeats: int = 0


class Decision(Struct, frozen=True, kw_only=True):
    """What to do before the next call.

    Attributes:
        kind: `go_on`, `nudge` or `hand_back`.
        causes: why; one for a hand-back, one or two for a nudge.
        rounds: rounds that are counted against the rules.
        repeats: rounds in a row that were the same.
        spent: what was spent, where that is the reason.
    """

    kind: Literal["go_on", "nudge", "hand_back"]
    causes: tuple[Cause, ...] = ()
    rounds: int = 0
    repeats: int = 0
    spent: Spent = Spent()


def advance(  # noqa: PLR0911 - one arm for each kind of event
    progress: Progress, event: Event, parts: Parts | None = None
) -> Progress:
    """Where a path stands after one more of its events.

    Args:
        progress: where it stood.
        event: an event of this path.
        parts: content of a message whose event only names where it is.
    """
    match event:
        case ResponseCame():
            return _answered(progress, event.call, event.parts)
        case ToolEnded():
            return _ended(progress, event)
        case MessageSeen():
            return _seen(progress, event, event.parts if parts is None else parts)
        case Steered():
            return _spoken(progress, event.parts)
        case Nudged() if event.causes == ("tools",):
            return progress
        case Nudged():
            nudges, repeats = progress.nudges + 1, progress.repeats
            return replace(
                progress, nudged_at=progress.rounds, nudges=nudges, nudged_repeats=repeats
            )
        case HandedBack():
            return hand_back(progress)
        case _:
            return progress


def hand_back(progress: Progress) -> Progress:
    """Where a path stands after its turn was handed back."""
    return replace(progress, handed_back=True)


def charge(progress: Progress, cost: Spent) -> Progress:
    """Where a path stands after a call of it, or of one below it."""
    return replace(progress, account=progress.account.charged(cost))


def decide_spending(progress: Progress, rules: RoundRules) -> Decision | None:
    """Hand the turn back where a path has spent what it may; None where it has not."""
    spent = progress.account.since(rules.resets)
    cause: Cause
    if _reached(rules.cap_tokens, spent.tokens):
        cause = "token_cap"
    elif rules.cap_usd is not None and spent.usd >= rules.cap_usd:
        cause = "cost_cap"
    else:
        return None
    rounds = progress.rounds - _start(progress, rules)
    return Decision(
        kind="hand_back", causes=(cause,), rounds=rounds, repeats=progress.repeats, spent=spent
    )


def decide(progress: Progress, rules: RoundRules) -> Decision:
    """What to do before the next call of a path."""
    start = _start(progress, rules)
    rounds, repeats = progress.rounds - start, progress.repeats
    if _reached(rules.cap_rounds, rounds):
        return Decision(kind="hand_back", causes=("round_cap",), rounds=rounds, repeats=repeats)
    overspent = decide_spending(progress, rules)
    if overspent is not None:
        return overspent
    if _reached(rules.stall_stop_repeats, repeats):
        return Decision(kind="hand_back", causes=("stall",), rounds=rounds, repeats=repeats)
    causes: list[Cause] = []
    if _is_due(rules, rounds, max(0, progress.nudged_at - start)):
        causes.append("rounds")
    told = _reached(rules.stall_nudge_repeats, progress.nudged_repeats)
    if _reached(rules.stall_nudge_repeats, repeats) and not told:
        causes.append("stall")
    kind: Literal["nudge", "go_on"] = "nudge" if causes else "go_on"
    return Decision(kind=kind, causes=tuple(causes), rounds=rounds, repeats=repeats)


def _answered(progress: Progress, call: int, parts: Parts) -> Progress:
    """The model answered. A call that is sent once more is still the same round."""
    asked: dict[str, Part] = {call: part for part in parts for call in calls_in((part,))}
    if not asked or progress.open:  # nothing to repeat, or the round before was never completed
        progress = replace(progress, last=(), repeats=0, nudged_repeats=0)
    again = call == progress.call
    return replace(
        progress,
        rounds=progress.rounds if again else progress.rounds + 1,
        call=call,
        open=asked,
        closed=(),
    )


def _ended(progress: Progress, event: ToolEnded) -> Progress:
    """A tool ran; one that gave nothing back may still be answered by a message."""
    if event.call_id not in progress.open or not (event.parts or event.error):
        return progress
    error = (event.error or "").encode("utf-8", "replace")
    return _resolved(progress, event.call_id, _result(error, event.parts))


def _seen(progress: Progress, event: MessageSeen, parts: Parts) -> Progress:
    """A message of the user, results of tools, or neither."""
    if event.origin == "repair":  # what the tool would have said is not known
        return replace(progress, open={}, closed=(), last=(), repeats=0, nudged_repeats=0)
    if event.role == "user" and event.origin == "caller":
        return _spoken(progress, parts)
    for part in parts:
        if isinstance(part, ToolResult) and part.call_id in progress.open:
            progress = _resolved(progress, part.call_id, _result(b"", (part,)))
    return progress


def _resolved(progress: Progress, call_id: str, result: bytes) -> Progress:
    """A call has its result; with the last one the round is complete."""
    asked = progress.open[call_id]
    left = {key: value for key, value in progress.open.items() if key != call_id}
    closed = (*progress.closed, (asked, result))
    if left:
        return replace(progress, open=left, closed=closed)
    is_same = _is_same(closed, progress.last)
    return replace(
        progress,
        open={},
        closed=(),
        last=closed,
        repeats=progress.repeats + 1 if is_same else 1,
        nudged_repeats=progress.nudged_repeats if is_same else 0,
    )


def _spoken(progress: Progress, parts: Parts) -> Progress:
    """The user said something."""
    if is_nod(parts) and not progress.handed_back:
        return replace(progress, message_at=progress.rounds, account=progress.account.spoken())
    return replace(
        progress,
        request_at=progress.rounds,
        message_at=progress.rounds,
        account=progress.account.asked(),
        nudges=0,
        handed_back=False,
        last=(),
        repeats=0,
        nudged_repeats=0,
    )


def _is_due(rules: RoundRules, rounds: int, nudged: int) -> bool:
    """Whether a nudge after so many rounds is due; `nudged` is when the last one came, or 0."""
    first, every = rules.nudge_at_rounds, rules.nudge_every_rounds
    if first is None or rounds < first:
        return False
    return nudged < first or (every is not None and rounds - nudged >= every)


def _start(progress: Progress, rules: RoundRules) -> int:
    """The round after which is counted."""
    return progress.request_at if rules.resets == "request" else progress.message_at


def _reached(limit: int | None, count: int) -> bool:
    return limit is not None and count >= limit


def _is_same(one: Round, other: Round) -> bool:
    """Whether the same was asked for with the same results; the order tells nothing.

    Results are compared first: nearly always they differ, and arguments need not be read then.
    """
    if {result for _, result in one} != {result for _, result in other}:
        return False
    return {(*_asked(call), result) for call, result in one} == {
        (*_asked(call), result) for call, result in other
    }


def _asked(call: Part) -> tuple[str, bytes]:
    """What a call asks for, without its id."""
    if isinstance(call, ToolCall):
        return call.name, _arguments(call.arguments)
    return "", encode_parts((call,))


@lru_cache(maxsize=64)
def _arguments(text: str) -> bytes:
    """Arguments in one spelling and one order of keys; a round is compared with two others."""
    value = parse_json(text)
    if value is None:
        return text.encode("utf-8", "replace")
    return canonical_json(cast("Json", value))


def _result(error: bytes, parts: Parts) -> bytes:
    """Digest of what a tool gave back, without the id of the call."""
    pieces = [error]
    for part in parts:
        if isinstance(part, ToolResult):
            pieces += (b"!" if part.is_error else b"", encode_parts(part.content))
        else:
            pieces += (b"", encode_parts((part,)))
    return digest(*pieces)


def _within(knob: str, value: object, least: int, most: int = _MOST) -> None:
    if value is None or (type(value) is int and least <= value <= most):
        return
    raise PolicyError(
        f"{knob} is {value!r}.",
        next_step=f"Give a whole number from {least} to {most}, or None for never.",
        knob=knob,
    )


def _affordable(knob: str, value: object) -> None:
    if value is None or (type(value) in {int, float} and 0 < cast("float", value) < inf):
        return
    raise PolicyError(
        f"{knob} is {value!r}.",
        next_step="Give an amount above 0, in US dollars, or None for never.",
        knob=knob,
    )
