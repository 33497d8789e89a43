"""Keep cache entries alive through a pause: when to repeat the last request, and when to stop.

**Theory of operation.** An entry lives for its TTL from the start of the last request that wrote or
read it, and a read renews it at no extra charge, under either TTL (prompt-caching page). So a
request that repeats the last one of an agent path, `LEAD_SECONDS` before its newest entry dies,
keeps all that the next call can read. What repeats is what left: the recorded bytes, with the
parameters alone changed that ask for an answer (`Codec.refreshing`); neither the room for an answer
nor streaming is part of what an entry depends on. A prefix built anew, from the tools say, may be
one that no call of the agent reads.

A refresh costs `r` times the prefix, and what room for an answer must be given. An entry that dies
costs `w - r` times what is lost of it, at the next call. How long a pause lasts is not known, so
this is the choice between renting and buying: refreshes go on while all of them in this pause, the
next one included, cost less than the loss. Then a pause costs at most twice what it had to. At 1.25
and 0.1 these are eleven refreshes, the last after 44 minutes of a pause; at 0.05 twice as many.

A refresh is a call of its own, numbered as calls are, on the agent path `PATH/~keep-warm`: so its
bytes are proved, its tokens billed and shown as those of any call. The path that it keeps warm
learns nothing of it but the life of its entries: neither turn nor round, neither meter nor pauses
of its own.

**Invariants.** Nothing is repeated that was not the last request of its path, or that a fold or a
rewind has left behind: the surface must still be the one that was sent. The budget of the session
holds, over all its paths and after a restart.

**Out of scope.** Who wakes up when it is time, and sends (the adapter). What `count_tokens` does to
an entry: nothing that is documented, so it is not asked.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.breakpoints import Written
from barograph.core.costs import output_ratio
from barograph.core.events import KeptWarm
from barograph.core.inputs import Header, WarmWanted
from barograph.core.lifetimes import TTL_SECONDS
from barograph.core.model import Codec, ModelFacts, Refreshing
from barograph.core.policy import Policy
from barograph.core.readback import read_last
from barograph.core.state import PathState, State
from barograph.core.work import Work

KEEP_WARM: Final = "~keep-warm"
"""Name, in an agent path, of the calls that keep it warm; no tool can have it."""

LEAD_SECONDS: Final = 60.0
"""How long before the end of an entry it is read again: a busy provider may take a while."""


class Refresh(Struct, frozen=True, kw_only=True):
    """A refresh that is worth its price.

    Attributes:
        call: number of the call whose request is repeated.
        due: when it is to leave, in seconds since the epoch.
        until: when the entry is dead, and it is too late.
        cost_tokens: what it is expected to cost, in plain input tokens.
        entry_tokens: length of the entry.
    """

    call: int
    due: float
    until: float
    cost_tokens: float
    entry_tokens: int


class Repeat(Struct, frozen=True, kw_only=True):
    """A request that is to be sent for its cache entry alone.

    Attributes:
        path: agent path of the call.
        header: what precedes its messages.
        body: the bytes to send.
    """

    path: str
    header: Header
    body: bytes


def next_refresh(state: State, codec: Codec, policy: Policy, name: str) -> Refresh | None:
    """The next refresh of a path as things stand; None where there is none, or no more."""
    path, header, tail = state.path(name), state.surface(name).header, _last_entry(state, name)
    if tail is None or header is None or path.planned is None:
        return None
    facts, policy = codec.facts_of(header.model), policy.of(header.model)
    until = tail.used_at + TTL_SECONDS[tail.ttl]
    cost = _cost_tokens(facts, policy, path, tail, codec.refreshing(header.parameters))
    due = until - LEAD_SECONDS
    is_idle = due - path.planned.at > policy.keep_warm_seconds
    pays = path.warmth.spent_tokens + cost < _loss_tokens(facts, policy, tail, path.lasting)
    spent = sum(one.warmth.total_tokens for one in state.paths.values())
    if is_idle or not pays or spent + cost > policy.keep_warm_tokens:
        return None
    return Refresh(
        call=path.planned.call,
        due=due,
        until=until,
        cost_tokens=cost,
        entry_tokens=tail.tokens or 0,
    )


def repeat(work: Work, given: WarmWanted, policy: Policy) -> tuple[Repeat, ...]:
    """Log that the last request of a path leaves once more, if it is time and worth it."""
    name = given.path
    refresh = next_refresh(work.state, work.codec, policy, name)
    if refresh is None or refresh.call != given.call:
        return ()
    if not refresh.due <= given.at <= refresh.until:
        return ()
    request = read_last(work.codec, work.state, name)
    if request is None or request.surface.header is None or not request.is_exact:
        return ()
    header, body = request.surface.header, work.codec.split_body(request.exact)
    if body is None:
        return ()
    by, plan = f"{name}/{KEEP_WARM}", request.plan
    work.log(
        KeptWarm(
            at=given.at,
            path=name,
            by=by,
            call=plan.call,
            cost_tokens=round(refresh.cost_tokens),
        )
    )
    again = replace(
        plan,
        at=given.at,
        path=by,
        call=work.state.calls + 1,
        expected_read_tokens=refresh.entry_tokens,
        stale_tokens=0,
        max_tokens=None,
    )
    work.log(again)
    change = work.codec.refreshing(body.parameters.decode())
    changed = replace(
        body,
        parameters=change.parameters.encode(),
        order=tuple(key for key in body.order if key not in change.dropped),
    )
    sent = Header(model=header.model, system=header.system, tools=header.tools)
    return (Repeat(path=by, header=sent, body=work.codec.join_body(changed)),)


def _last_entry(state: State, name: str) -> Written | None:
    """The newest entry of a path, where its last request may be repeated to keep it alive."""
    path, plan = state.path(name), state.path(name).planned
    if path.phase != "idle" or path.keeps is not None or path.warmth.is_given_up:
        return None
    if plan is None or path.sent is None or not path.sent.observed or _is_over(name, path):
        return None
    tail = path.ledger.last
    if tail is None or tail.tokens is None or tail.used_at < plan.at:
        return None
    # a fold or a rewind since then: the next request does not begin with what was sent
    is_left = state.surface(name).digest != plan.digest
    is_under_way = state.path(f"{name}/{KEEP_WARM}").phase != "idle"
    return None if is_left or is_under_way else tail


def _is_over(name: str, path: PathState) -> bool:
    """Whether nothing more will be asked of a path: a child that has given its final answer."""
    return "#" in name and not path.numbers


def _cost_tokens(
    facts: ModelFacts, policy: Policy, path: PathState, tail: Written, change: Refreshing
) -> float:
    read = facts.read_ratio if policy.read_ratio is None else policy.read_ratio
    cached = tail.tokens or 0
    whole = path.meter.last.tokens if path.meter.last else cached
    answer = output_ratio(facts) * change.output_tokens
    return read * cached + max(0, whole - cached) + answer


def _loss_tokens(
    facts: ModelFacts, policy: Policy, tail: Written, lasting: Written | None
) -> float:
    """What it costs more to write again what dies with the newest entry."""
    write = facts.write_1h_ratio if tail.ttl == "1h" else facts.write_5m_ratio
    write = write if policy.write_ratio is None else policy.write_ratio
    read = facts.read_ratio if policy.read_ratio is None else policy.read_ratio
    dies = tail.used_at + TTL_SECONDS[tail.ttl]
    stays = 0
    if lasting is not None and lasting.is_live(dies + TTL_SECONDS["5m"]):
        stays = lasting.tokens or 0
    return (write - read) * max(0, (tail.tokens or 0) - stays)
