"""What a request is made of: its tokens by kind and by tool, and its largest pieces.

No provider counts a request piece by piece. So each piece has the share of the whole that it weighs
in the meter's own measure (`Codec.weigh`); the whole is the reported input, or the projection where
none was reported. Figures of pieces are estimates, and they add up to the whole.

Pieces are those of the surface that the log gives. Thresholds are those of the preset that the log
names, in the model's usual window: a log does not hold the knobs that were set by hand.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from barograph.audit.pieces import FIXED, KINDS, Kind, Piece, pieces_of, share_out
from barograph.audit.reading import LoggedCall, LoggedSession, damage_named
from barograph.audit.segments import never_left
from barograph.core.canonical import parse_json
from barograph.core.errors import UnknownCall
from barograph.core.model import ModelFacts
from barograph.core.policy import Policy, Preset
from barograph.core.pressure import START_TOKENS_PER_CHAR, Gauge
from barograph.core.sent import Sent

Counted: TypeAlias = Literal["reported", "projected"]
ThresholdName: TypeAlias = Literal["prune", "compact", "full", "cliff"]

_LARGEST: Final = 10


class NamedShare(Struct, frozen=True, kw_only=True):
    """What one tool has of a kind.

    Attributes:
        name: the tool; of other blocks, their native type.
        pieces: how many.
        tokens: estimated.
    """

    name: str
    pieces: int
    tokens: int


class KindShare(Struct, frozen=True, kw_only=True):
    """What one kind has of a request.

    Attributes:
        kind: `tools`, `system`, `user` (speech), `assistant` (text), `thinking`, `arguments` of
            tool calls, `results` of tools, `stubs`, `summaries`, `images`, `documents`, `other`.
        pieces: how many.
        tokens: estimated.
        ratio: tokens / those of the whole.
        names: by tool, the largest first; empty where nothing of the kind has a name.
    """

    kind: Kind
    pieces: int
    tokens: int
    ratio: float
    names: tuple[NamedShare, ...]


class LargePiece(Struct, frozen=True, kw_only=True):
    """One of the largest pieces.

    Attributes:
        kind: as in KindShare.
        name: the tool's name, where it belongs to one.
        tokens: estimated.
        ratio: tokens / those of the whole.
        handle: what `unfold` takes; None for tools and system.
        message: index of the wire message; None for tools and system.
        begins: how its text begins.
    """

    kind: Kind
    name: str
    tokens: int
    ratio: float
    handle: str | None
    message: int | None
    begins: str


class Threshold(Struct, frozen=True, kw_only=True):
    """A size from which something happens.

    Attributes:
        name: `prune`, `compact`, `full` (no room is left), `cliff` (above it, each token of the
            whole request costs more).
        tokens: the size.
        left_tokens: how much is left to it; negative where it is passed.
    """

    name: ThresholdName
    tokens: int
    left_tokens: int


class Composition(Struct, frozen=True, kw_only=True):
    """What the request of one call is made of.

    Attributes:
        session: id of the session.
        call: number of the call in the session.
        path: agent path.
        turn: turn of that path.
        round: round of the turn.
        model: model id as sent.
        tokens: the whole input.
        counted: `reported` by the provider, or `projected` before the request left.
        tokens_per_char: tokens / what the request weighs in characters.
        fixed_tokens: of them, tools and system, which no fold takes off; estimated.
        window_tokens: what the model takes, as its provider said or the table has it.
        reserve_tokens: room kept for the answer: the request's own limit.
        usable_tokens: the window less the reserve.
        pressure: tokens / usable.
        priced_as: family whose window it is; `unknown` means that it is assumed.
        policy: the preset that the log names.
        thresholds: the smallest first.
        kinds: those that there are, in the order of the request's parts.
        largest: the ten largest pieces.
        mismatches: where what left differs from the surface that is taken apart here.
    """

    session: str
    call: int
    path: str
    turn: int
    round: int
    model: str
    tokens: int
    counted: Counted
    tokens_per_char: float
    fixed_tokens: int
    window_tokens: int
    reserve_tokens: int
    usable_tokens: int
    pressure: float
    priced_as: str
    policy: str
    thresholds: tuple[Threshold, ...]
    kinds: tuple[KindShare, ...]
    largest: tuple[LargePiece, ...]
    mismatches: tuple[str, ...]


def last_sent(session: LoggedSession, path: str | None) -> LoggedCall:
    """The last call that left, of one agent path or of all.

    Raises:
        UnknownCall: there is none.
    """
    for call in reversed(session.calls):
        if call.sent is not None and path in (None, call.plan.path):
            return call
    what = "no call" if path is None else f"no call of agent path {path!r}"
    there = ", ".join(dict.fromkeys(call.plan.path for call in session.calls if call.sent))
    raise UnknownCall(
        f"Session {session.session!r} has {what} that left.",
        next_step=f"Its paths are: {there or 'none'}.",
        session=session.session,
        path=path,
    )


def compose(session: LoggedSession, call: LoggedCall) -> Composition:
    """What the request of a call is made of.

    Raises:
        UnknownCall: the call never left.
        LogCorrupt: its content cannot be read.
    """
    plan, sent = call.plan, call.sent
    if sent is None:
        raise never_left(session, call)
    with damage_named(f"Call {plan.call}", session=session.session, call=plan.call):
        pieces = pieces_of(session.codec, sent.surface)
        model = sent.header.model if sent.header else ""
        facts, reserve = session.codec.facts_of(model), _reserve_tokens(sent)
    weights = [piece.chars for piece in pieces]
    tokens, counted = _whole(sent, sum(weights))
    shares = list(zip(pieces, share_out(tokens, weights), strict=True))
    fixed = sum(share for piece, share in shares if piece.kind in FIXED)
    ratio = tokens / (sum(weights) or 1)
    gauge = Gauge(
        projected_tokens=tokens,
        fixed_tokens=fixed,
        window_tokens=min(facts.window_tokens, call.window_tokens or facts.window_tokens),
        reserve_tokens=reserve,
        tokens_per_char=ratio,
    )
    return Composition(
        session=session.session,
        call=plan.call,
        path=plan.path,
        turn=plan.turn,
        round=plan.round,
        model=model,
        tokens=tokens,
        counted=counted,
        tokens_per_char=ratio,
        fixed_tokens=fixed,
        window_tokens=gauge.window_tokens,
        reserve_tokens=reserve,
        usable_tokens=gauge.usable_tokens,
        pressure=gauge.pressure,
        priced_as=facts.name,
        policy=session.opened.policy,
        thresholds=_thresholds(session.opened.policy, gauge, facts),
        kinds=tuple(_kinds(shares, tokens)),
        largest=_largest(shares, tokens),
        mismatches=call.record.mismatches if call.record else (),
    )


def _whole(sent: Sent, chars: int) -> tuple[int, Counted]:
    """All its input, and who says so; a report of nothing is none."""
    if sent.usage is not None and sent.usage.input_total_tokens > 0:
        return sent.usage.input_total_tokens, "reported"
    # logs of before the meter have no projection
    return sent.plan.projected_tokens or round(chars * START_TOKENS_PER_CHAR), "projected"


def _reserve_tokens(sent: Sent) -> int:
    parameters = parse_json(sent.header.parameters) if sent.header else None
    most = parameters.get("max_tokens") if isinstance(parameters, dict) else None
    return most if isinstance(most, int) else 0


def _thresholds(preset: str, gauge: Gauge, facts: ModelFacts) -> tuple[Threshold, ...]:
    found: dict[ThresholdName, float] = {"full": gauge.usable_tokens}
    if preset in get_args(Preset):
        policy = Policy(name=preset)  # type: ignore[arg-type]
        if policy.prunes:
            found["prune"] = policy.safety_ratio * gauge.usable_tokens
        if policy.compacts:
            found["compact"] = policy.hard_ratio * gauge.usable_tokens
    if facts.cliff_tokens is not None:
        found["cliff"] = facts.cliff_tokens
    names = get_args(ThresholdName)
    return tuple(
        Threshold(name=name, tokens=round(size), left_tokens=round(size) - gauge.projected_tokens)
        for name, size in sorted(found.items(), key=lambda one: (one[1], names.index(one[0])))
    )


def _kinds(shares: Sequence[tuple[Piece, int]], whole: int) -> Iterator[KindShare]:
    for kind in KINDS:
        own = [(piece, share) for piece, share in shares if piece.kind == kind]
        if own:
            tokens = sum(share for _, share in own)
            yield KindShare(
                kind=kind,
                pieces=len(own),
                tokens=tokens,
                ratio=tokens / (whole or 1),
                names=_names(own),
            )


def _names(own: Sequence[tuple[Piece, int]]) -> tuple[NamedShare, ...]:
    by_name: dict[str, list[int]] = {}
    for piece, share in own:
        by_name.setdefault(piece.name, []).append(share)
    if not any(by_name):
        return ()
    named = (
        NamedShare(name=name, pieces=len(sizes), tokens=sum(sizes))
        for name, sizes in by_name.items()
    )
    return tuple(sorted(named, key=lambda one: (-one.tokens, one.name)))


def _largest(shares: Sequence[tuple[Piece, int]], whole: int) -> tuple[LargePiece, ...]:
    found = sorted(shares, key=lambda one: -one[1])[:_LARGEST]
    return tuple(
        LargePiece(
            kind=piece.kind,
            name=piece.name,
            tokens=share,
            ratio=share / (whole or 1),
            handle=None if piece.seq is None else f"#{piece.seq}",
            message=piece.message,
            begins=piece.begins,
        )
        for piece, share in found
    )
