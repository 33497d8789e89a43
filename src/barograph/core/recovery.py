"""What is done about a call that was refused: the same call once more, in a form that may be taken.

**Theory of operation.** A refusal that tells of the request can be answered with another request.
One that is too long is shortened, by stubs and, where they are not enough, by a digest. One whose
answer was given more room than is left of the window is given less, since that leaves history and
cache as they are; only where too little would be left is it shortened, too. One whose markers were
refused goes without them, or with fewer, for some time.

What the provider named is learned with the refusal: the window of the model holds from then on, for
every path and after a restart; the length corrects the meter.

**Invariants.** A call is planned again once, whatever the refusals are about (8), and only as a
request that differs from the one before. Otherwise nothing is logged here, and the provider's own
error goes on to the caller.

**Out of scope.** What an error is about: the adapter says that, from what its client raised.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.breakpoints import SLOTS
from barograph.core.compaction import Told, carry_out, plan_compaction
from barograph.core.events import AttemptFailed, CallFailed, RetryCause
from barograph.core.inputs import CallWanted, Overflow, Refused
from barograph.core.policy import Policy
from barograph.core.pressure import Gauge
from barograph.core.relief import force
from barograph.core.state import State
from barograph.core.work import Work

REST_SECONDS: Final = 3600.0
"""How long refused markers are not tried again: a gateway may learn, a session lasts for days."""

LEAST_ROOM_TOKENS: Final = 1024
"""A shorter answer may end before it says anything: then the request is shortened instead. So is it
where less than half of what was asked for is left, if that is less still."""


class Again(Struct, frozen=True):
    """What is wanted once more, now, and how long its answer may be where that was lowered."""

    wanted: CallWanted
    max_tokens: int | None = None


def recover(work: Work, given: Refused, policy: Policy) -> Again | None:
    """Log that an attempt failed and make ready for another; None where there is none."""
    path = work.state.path(given.path)
    if given.wanted is None or path.planned is None or path.retried:
        return None
    if work.state.asked_by(given.path) is not None:
        return None  # the call that was wanted is still to come, and learns it for itself
    wanted = replace(given.wanted, at=given.at)
    if given.overflow is None:
        return Again(wanted) if _unmark(work, given, wanted, policy) else None
    if policy.name == "off":
        return None
    room = _room(wanted, given.overflow)
    if room is not None:
        work.log(_attempt(work, given, wanted, "output_room"))
        return Again(wanted, room)
    return Again(wanted) if _shorten(work, given, wanted, policy) else None


def failed(work: Work, given: Refused) -> CallFailed:
    """The end of a call whose error goes on to the caller."""
    plan, told = work.state.path(given.path).planned, given.overflow or Overflow()
    return CallFailed(
        at=given.at,
        path=given.path,
        call=plan.call if plan else 0,
        error=given.error,
        status=given.status,
        message=given.message,
        window_tokens=told.window_tokens,
        input_tokens=told.input_tokens,
    )


def resting_slots(state: State, given: CallWanted, policy: Policy) -> int:
    """Slots that are not used now, because their markers were refused."""
    if policy.markers == "off":
        return SLOTS
    resting = state.resting.get(given.header.model)
    if resting is None or policy.markers == "force" or given.at >= resting.until:
        return 0
    return resting.slots


def _room(wanted: CallWanted, overflow: Overflow) -> int | None:
    """Room for an answer that is less than was asked for and still worth having."""
    room, asked = overflow.room_tokens, wanted.reserve_tokens
    if room is None or not min(LEAST_ROOM_TOKENS, asked // 2) <= room < asked:
        return None
    return room


def _shorten(work: Work, given: Refused, wanted: CallWanted, policy: Policy) -> bool:
    """Take out what can be taken; whether that changed anything."""
    if not wanted.folds:
        return False
    trial = Work(work.codec, work.state)
    trial.log(_attempt(work, given, wanted, "overflow"))
    before = trial.state.surface(given.path).digest
    gauge = force(trial, wanted, policy)
    if policy.compacts and (trial.state.surface(given.path).digest == before or not gauge.fits):
        _compact(trial, wanted, policy, gauge)
    if trial.state.surface(given.path).digest == before:
        return False
    work.adopt(trial)
    return True


def _compact(work: Work, wanted: CallWanted, policy: Policy, gauge: Gauge) -> None:
    """Hide old history behind its digest: nobody can be asked for a summary now.

    Whatever its window is said to be, the model took no request as long as this one.
    """
    most = min(gauge.window_tokens, gauge.projected_tokens + gauge.reserve_tokens)
    plan = plan_compaction(
        work, wanted.path, policy, replace(gauge, window_tokens=most), cause="forced"
    )
    if plan is not None:
        carry_out(work, wanted, plan, Told())


def _unmark(work: Work, given: Refused, wanted: CallWanted, policy: Policy) -> bool:
    """Let slots rest whose markers were refused; whether that is what the refusal is about."""
    plan = work.state.path(given.path).planned
    fault = work.codec.marker_fault(given.status, given.message)
    if fault is None or plan is None or not plan.breakpoints or policy.markers != "auto":
        return False
    slots = SLOTS
    cause: RetryCause = "markers_unsupported"
    if fault.excess is not None:
        slots = min(SLOTS, resting_slots(work.state, wanted, policy) + fault.excess)
        cause = "markers_over_limit"
    attempt = _attempt(work, given, wanted, cause)
    work.log(replace(attempt, slots=slots, until=given.at + REST_SECONDS))
    return True


def _attempt(work: Work, given: Refused, wanted: CallWanted, cause: RetryCause) -> AttemptFailed:
    path, told = work.state.path(given.path), given.overflow or Overflow()
    return AttemptFailed(
        at=given.at,
        path=given.path,
        call=path.planned.call if path.planned else 0,
        attempt=path.attempt,
        cause=cause,
        model=wanted.header.model,
        error=given.error,
        status=given.status,
        message=given.message,
        window_tokens=told.window_tokens,
        input_tokens=told.input_tokens,
    )
