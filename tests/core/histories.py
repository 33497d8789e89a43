"""Random agent histories: what callers, models, tools and clients may do to a session.

A journey is a list of moves, so a failing one prints as data. `travel` plays it against a real
session and keeps everything that an invariant may be asked about. The client here renders its
bodies by itself: nothing of the codec is trusted to check the codec.
"""

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from barograph.core.engine import Engine, Send
from barograph.core.events import Event, Usage
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header, Refused, ToolReturned, ToolStarted
from barograph.core.parts import Image, Part, Text, Thinking, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.state import State
from barograph.core.steering import HandBack
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from barograph.store.session import Session

MODEL = "claude-opus-4-8"
PATHS = ("main", "main/helper#1")
MARKER = re.compile(rb',"cache_control":\{"type":"ephemeral","ttl":"(?:5m|1h)"\}')
IMAGE = Image('{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}')
ODD_TEXTS = (
    "",
    " \n",
    "tail  ",
    "again",
    "\U0001f600 caf\u00e9 e\u0301",
    "\u2028\u2029\ufeff",
    "\x00\x1b\x7f\b\f",
    '"\\/</script>',
    "lone \ud83d half",
    ',"cache_control":{"type":"ephemeral","ttl":"5m"}',
)
ODD_ARGUMENTS = (
    "{}",
    "",
    '{"y": 1.0, "f": 1e-7, "big": 12345678901234567890}',
    '{ "z":1,\t"a":{"d":-0.0,"c":1E5} }',
    '{"a":1,"a":2}',
    '{"s":"\\u00e9\\u2028\\/"}',
    '{"half":"\\ud83d"}',
    '{"x":NaN}',
    '{"x":1e400}',
    "[1]",
    '{"cut": "in the mid',
)


# Moves


@dataclass(frozen=True)
class Say:
    """The user speaks: one message of these texts, perhaps with a picture."""

    path: str
    texts: tuple[str, ...]
    image: bool = False


@dataclass(frozen=True)
class Call:
    """A model call: how the caller shows its history, and what comes of the call."""

    path: str
    known: bool = True
    fresh_ids: bool = True
    client: str = "plain"
    outcome: str = "answer"
    attempts: int = 1
    texts: tuple[str, ...] = ("ok",)
    thinking: bool = False
    arguments: tuple[str, ...] = ()
    same_id: bool = False
    usage: str = "honest"
    respelled: bool = True
    gap_seconds: float = 1.0
    reserved: int = 0


@dataclass(frozen=True)
class Work:
    """The open calls of the last answer run; each kind says what becomes of one result."""

    path: str
    kinds: tuple[str, ...]
    text: str = "done"


@dataclass(frozen=True)
class Deliver:
    """Results that were held back arrive: where they belong, or at the end."""

    path: str
    in_place: bool


@dataclass(frozen=True)
class Rewind:
    """The caller keeps this many eighths of its history."""

    path: str
    eighths: int


@dataclass(frozen=True)
class Drop:
    """The caller takes the last messages off, perhaps in the middle of a tool group."""

    path: str
    count: int


@dataclass(frozen=True)
class Edit:
    """The caller rewrites one message, and perhaps lets the later ones stay."""

    path: str
    place: int
    text: str
    later_stay: bool


@dataclass(frozen=True)
class Fork:
    """The caller goes on from the history of an earlier call."""

    path: str
    back: int


@dataclass(frozen=True)
class Inherit:
    """The agent below, if it has not begun, is shown the history of the one above, or a part of it.

    Perhaps the last messages there are left out, and perhaps it has the same tools and system.
    """

    text: str
    left_out: int
    alike: bool


@dataclass(frozen=True)
class Reconfigure:
    """The caller changes what precedes the messages."""

    path: str
    what: str
    value: int


@dataclass(frozen=True)
class Restart:
    """The process ends and another one continues the session."""

    forgetful: bool = True


_CLIENTS = ("plain",) * 8 + ("shuffled", "spaced", "edited", "broken", "tooled")
_OUTCOMES = ("answer",) * 8 + ("refuse", "abandon", "unsent")
_USAGES = ("honest",) * 5 + ("none", "nothing cached", "tiny")
_GAPS = (1.0,) * 5 + (20.0, 400.0, 4000.0)
_KINDS = (
    *("plain", "unlogged", "missing", "late", "twice", "orphan", "raises", "empty", "image"),
    *("chatty", "crashes", "vanishes", "fails", "babbles", "strays"),
)


def _wander(rng, length):
    """A history of so many scenes, each a few moves on one path."""
    scenes = (_ask, _ask, _round, _round, _round, _depart, _depart, _reconfigure, _single, _inherit)
    moves = []
    for _ in range(length):
        path = rng.choice((PATHS[0], PATHS[0], PATHS[0], PATHS[1]))
        moves += rng.choice(scenes)(rng, path)
    return [*moves, Call("main")]


def _ask(rng, path):
    texts = tuple(_text(rng) for _ in range(rng.randint(0, 2)))
    moves = [Say(path, texts, rng.random() < 0.2), _call(rng, path)]
    return moves if rng.random() < 0.8 else moves[:1]


def _round(rng, path):
    """A call that asks for tools, what becomes of them, and what the caller does next."""
    moves = [_call(rng, path, asks=True), _work(rng, path)]
    match rng.randint(0, 6):
        case 0:
            moves.append(Restart(forgetful=rng.random() < 0.5))
        case 1:
            moves.append(Deliver(path, rng.random() < 0.5))
        case 2:
            moves.append(Say(path, (_text(rng),)))
        case 3:
            moves += [_call(rng, path), Deliver(path, rng.random() < 0.5), _call(rng, path)]
        case 4:
            moves += [_call(rng, path), Drop(path, rng.randint(1, 4)), _call(rng, path)]
    return moves


def _depart(rng, path):
    move = rng.choice(
        (
            Rewind(path, rng.randint(0, 8)),
            Drop(path, rng.randint(1, 3)),
            Edit(path, rng.randint(0, 9), _text(rng), rng.random() < 0.5),
            Edit(path, -1, "tail  ", later_stay=False),
            Fork(path, rng.randint(1, 4)),
        )
    )
    return [move, _call(rng, path)] if rng.random() < 0.8 else [move]


def _reconfigure(rng, path):
    what = rng.choice(("system", "tools", "model", "parameters"))
    return [Reconfigure(path, what, rng.randint(0, 2)), _call(rng, path)]


def _inherit(rng, _):
    begun = Inherit(_text(rng), rng.choice((0, 0, 0, 1, 3)), rng.random() < 0.7)
    return [begun, _call(rng, PATHS[1])]


def _single(rng, path):
    return [
        rng.choice(
            (
                _call(rng, path),
                _work(rng, path),
                Deliver(path, rng.random() < 0.5),
                Restart(forgetful=rng.random() < 0.5),
            )
        )
    ]


def _call(rng, path, *, asks=False):
    return Call(
        path,
        known=rng.random() < 0.5,
        fresh_ids=rng.random() < 0.5,
        client="plain" if asks else rng.choice(_CLIENTS),
        outcome="answer" if asks else rng.choice(_OUTCOMES),
        attempts=rng.choice((1, 1, 1, 2)),
        texts=tuple(_text(rng) for _ in range(rng.randint(0, 2))),
        thinking=rng.random() < 0.3,
        arguments=_arguments(rng) if asks or rng.random() < 0.2 else (),
        same_id=rng.random() < 0.1,
        usage=rng.choice(_USAGES),
        respelled=rng.random() < 0.5,
        gap_seconds=rng.choice(_GAPS),
        reserved=rng.choice((0, 0, 0, 0, 1, 2, 3, 4)),
    )


def _work(rng, path):
    kinds = tuple(rng.choice(("plain", *_KINDS)) for _ in range(rng.randint(1, 4)))
    return Work(path, kinds, _text(rng))


def _arguments(rng):
    if rng.random() < 0.2:
        return ('{"n": 1.0}',) * rng.randint(4, 30)
    return tuple(rng.choice(ODD_ARGUMENTS) for _ in range(rng.randint(1, 4)))


LONG = "\n".join(f"src/N/{line}.py:{line}: found N of it" for line in range(60))


def _text(rng):
    if rng.random() < 0.15:
        # long enough to be pruned when it is old
        return LONG.replace("N", str(rng.randint(1, 9)))
    if rng.random() < 0.7:
        return rng.choice(ODD_TEXTS)
    return "".join(
        chr(rng.choice((rng.randint(1, 127), rng.randint(0x80, 0xD7FF)))) for _ in "1234"
    )


def journeys(most=10):
    """Any history at all."""
    rngs = st.randoms(use_true_random=False)
    return st.builds(_wander, rngs, st.integers(1, most))


def _grow(rng, rounds):
    moves = [Say("main", ("begin",))]
    for _ in range(rounds):
        call = Call(
            "main",
            known=rng.random() < 0.5,
            texts=tuple(_text(rng) for _ in range(rng.randint(0, 2))),
            thinking=rng.random() < 0.3,
            arguments=_arguments(rng) if rng.random() < 0.8 else (),
            respelled=rng.random() < 0.5,
        )
        moves += [call, Work("main", ("plain", "plain", "unlogged", "image"), _text(rng))]
        if rng.random() < 0.3:
            moves.append(Say("main", ("more",)))
        if rng.random() < 0.2:
            moves.append(Restart(forgetful=rng.random() < 0.5))
    return [*moves, Call("main")]


def growing_journeys(most=7):
    """Histories that only grow, whose header stays, and whose usage is told."""
    return st.builds(_grow, st.randoms(use_true_random=False), st.integers(1, most))


PRUNING = Policy(
    name="balanced",
    prune_after_rounds=1,
    rent_ratio=0.01,
    window_tokens=20_000,
    max_result_chars=1_200,
    keep_images=False,
)
"""Bounds and prunes as often as it can."""

compacting = st.builds(
    Policy,
    name=st.just("bound-once"),
    window_tokens=st.sampled_from((900, 2_500)),
    compact_at_ratio=st.just(0.3),
    compact_to_ratio=st.sampled_from((0.1, 0.28)),
    relief_ratio=st.just(0.01),
    summary_ratio=st.sampled_from((0.02, 0.1)),
    summary=st.just("digest"),
)
"""Policies that compact often, all of it or as little as will do."""

STEERING = Policy(
    nudge_at_rounds=1,
    nudge_every_rounds=1,
    cap_rounds=5,
    stall_nudge_repeats=2,
    stall_stop_repeats=3,
)
"""Nudges in every round, and hands back soon."""

policies = (
    st.builds(
        Policy,
        name=st.sampled_from(("off", "balanced")),
        prune_after_rounds=st.just(1),
        ttl=st.sampled_from(("auto", "5m", "1h", None)),
        pause_ratio=st.sampled_from((0.0, 0.2)),
        profile=st.sampled_from(("interactive", "desktop")),
    )
    | st.just(PRUNING)
    | st.just(STEERING)
    | compacting
)


# Playing them


@dataclass
class Departure:
    """A body that left: its bytes, and where the log ended when its effects were done."""

    body: bytes
    seq: int
    client: str


@dataclass
class Made:
    """One call: what was wanted, what the engine said, what left."""

    move: Call
    at: float
    header: Header
    before: State
    planned: State
    send: Send
    events: tuple[Event, ...]
    departures: list[Departure] = field(default_factory=list)


@dataclass
class Side:
    """The caller's side of an agent path."""

    header: Header
    parameters: dict[str, Any]
    history: list[Incoming] = field(default_factory=list)
    given: list[Incoming] | None = None
    seen: int = 0
    past: list[list[Incoming]] = field(default_factory=list)
    held: list[tuple[int, Incoming]] = field(default_factory=list)
    asked: tuple[ToolCall, ...] = ()


class Trip:
    """A session under way, and everything that happened on it."""

    def __init__(self, *, codec=None, policy=None, store=None, session="s"):
        self.codec = codec or AnthropicCodec()
        self.engine = Engine(self.codec, policy or Policy())
        self.store = store or MemoryStore()
        self.id = session
        self.at = 1000.0
        self.session = self._open()
        self.sides = {
            path: Side(_header(model=number), {"max_tokens": 10})
            for number, path in enumerate(PATHS)
        }
        self.calls: list[Made] = []
        self.restarts: list[tuple[State, State]] = []
        self._ids = itertools.count(1)

    def play(self, moves):
        for move in moves:
            self.at += 1.0
            getattr(self, f"_{type(move).__name__.lower()}")(move)
        return self

    def events(self):
        return list(self.store.read(self.id))

    def _open(self):
        return Session.open(self.store, self.id, self.engine, at=self.at, made_by="test")

    def _say(self, move):
        parts = [Text(text) for text in move.texts] + ([IMAGE] if move.image else [])
        self._add(move.path, "user", *parts)

    def _add(self, path, role, *parts):
        self.sides[path].history.append(Incoming(role, parts, f"id-{next(self._ids)}"))

    def _call(self, move):
        self.at += move.gap_seconds
        side = self.sides[move.path]
        is_known = (
            move.known and side.given is not None and side.history[: len(side.given)] == side.given
        )
        shown = side.history[len(side.given) :] if is_known else list(side.history)
        if not is_known and move.fresh_ids:
            shown = self._with_fresh_ids(shown)
        wanted = CallWanted(
            at=self.at,
            path=move.path,
            header=side.header,
            messages=tuple(shown),
            known=side.seen if is_known else 0,
            reserved=move.reserved,
        )
        before, first = self.session.state, self.store.last_seq(self.id)
        send, _ = self.session.want(wanted)
        side.given, side.seen = list(side.history), send.seen
        side.past.append(list(side.history))
        if isinstance(send, HandBack):
            self._add(move.path, "assistant", Text(send.text))
            return
        events = tuple(event for _, event in self.store.read(self.id, after=first))
        made = Made(move, self.at, side.header, before, self.session.state, send, events)
        self.calls.append(made)
        if move.outcome == "unsent":
            return
        for _ in range(move.attempts):
            self._leave(made, side)
        if move.outcome == "refuse":
            self.session.take(
                Refused(at=self.at, path=move.path, error="E", status=429, message="no \ud83d")
            )
        elif move.outcome == "answer":
            self._answer(made, side)

    def _leave(self, made, side):
        body = client_body(
            made.send,
            side,
            respell=self.codec.renderer.endswith("respelled/1"),
            kind=made.move.client,
        )
        self.session.leave(
            at=self.at, path=made.move.path, header=made.header, body=body, observed=True
        )
        made.departures.append(Departure(body, self.store.last_seq(self.id), made.move.client))

    def _answer(self, made, side):
        move = made.move
        parts: list[Part] = [Thinking("hm \u2028", "sig")] if move.thinking else []
        parts += [Text(text) for text in move.texts]
        ids = ["same" if move.same_id else f"call-{next(self._ids)}" for _ in move.arguments]
        parts += [ToolCall(i, "look", a) for i, a in zip(ids, move.arguments, strict=True)]
        self.session.take(
            Answered(
                at=self.at + 0.5,
                path=move.path,
                parts=tuple(parts),
                stop_reason="tool_use" if ids else "end_turn",
                usage=_usage(made),
            )
        )
        side.asked = tuple(part for part in parts if isinstance(part, ToolCall))
        self._add(move.path, "assistant", *map(_respelled if move.respelled else _same, parts))

    def _work(self, move):
        side = self.sides[move.path]
        start = len(side.history)
        for call, kind in zip(side.asked, itertools.cycle(move.kinds)):
            self._run(side, move, call, kind, start)
        side.asked = ()

    def _run(self, side, move, call, kind, start):
        content = {"empty": (), "image": (Text("see"), IMAGE)}.get(kind, (Text(move.text),))
        result = ToolResult(call.id, content, is_error=kind == "raises")
        if kind not in {"missing", "unlogged"}:
            self.session.take(
                ToolStarted(
                    at=self.at, path=move.path, call_id=call.id, name="look", arguments="{}"
                )
            )
        if kind not in {"missing", "unlogged", "crashes"}:
            failed = kind in {"raises", "fails"}
            logged = {"babbles": (Text("no result"),), "strays": (result, ToolResult("other", ()))}
            self.session.take(
                ToolReturned(
                    at=self.at,
                    path=move.path,
                    call_id=call.id,
                    name="look",
                    parts=() if failed else logged.get(kind, (result,)),
                    is_error=failed,
                    error="OSError" if failed else None,
                )
            )
        if kind == "late":
            side.held.append((start, Incoming("tool", (result,), f"id-{next(self._ids)}")))
        elif kind not in {"missing", "crashes", "vanishes", "fails", "babbles", "strays"}:
            self._add(move.path, "tool", *((result, result) if kind == "twice" else (result,)))
        if kind == "orphan":
            self._add(move.path, "tool", ToolResult("nobody", (Text("?"),)))
        if kind == "chatty":
            self._add(move.path, "user", Text("by the way"))

    def _deliver(self, move):
        side = self.sides[move.path]
        for place, message in side.held:
            side.history.insert(place if move.in_place else len(side.history), message)
        side.held.clear()

    def _rewind(self, move):
        side = self.sides[move.path]
        side.history = side.history[: len(side.history) * move.eighths // 8]
        side.held, side.asked = [], ()

    def _drop(self, move):
        side = self.sides[move.path]
        side.history = side.history[: -move.count]
        side.asked = ()

    def _edit(self, move):
        side = self.sides[move.path]
        if side.history:
            place = move.place % len(side.history)
            message = side.history[place]
            kept = [part for part in message.parts if not isinstance(part, Text)]
            edited = Incoming(message.role, (*kept, Text(move.text)), message.native_id)
            later = side.history[place + 1 :] if move.later_stay else []
            side.history = [*side.history[:place], edited, *later]

    def _fork(self, move):
        side = self.sides[move.path]
        if side.past:
            side.history = list(side.past[-min(move.back, len(side.past))])
            side.held, side.asked = [], ()

    def _inherit(self, move):
        above, below = (self.sides[path] for path in PATHS)
        if below.history or not above.history:
            return
        below.history = above.history[: len(above.history) - move.left_out]
        self._add(PATHS[1], "user", Text(move.text))
        if move.alike:
            below.header, below.parameters = above.header, dict(above.parameters)

    def _reconfigure(self, move):
        side = self.sides[move.path]
        if move.what == "parameters":
            side.parameters = {"max_tokens": 10, "tool_choice": {"type": "auto", "n": move.value}}
        else:
            side.header = _header(**{move.what: move.value})

    def _restart(self, move):
        live = self.session.state
        # the lease of a process that ended is free; this one goes on
        self.store.release(self.id, self.session._tail.writer.holder)
        self.session = self._open()
        self.restarts.append((live, self.session.state))
        if move.forgetful:
            for side in self.sides.values():
                side.given, side.seen = None, 0

    def _with_fresh_ids(self, messages):
        return [Incoming(m.role, m.parts, f"fresh-{next(self._ids)}") for m in messages]


def travel(moves, **options):
    """Play a journey."""
    if currently_in_test_context():
        note(f"moves = {moves}")
    # two of three journeys are made under a policy that prunes or steers
    options.setdefault("policy", (None, PRUNING, STEERING)[len(moves) % 3])
    return Trip(**options).play(moves)


def _header(*, system=0, tools=0, model=0):
    return Header(
        model=(MODEL, "claude-sonnet-4-5", MODEL)[model],
        system=(Text("rules " * 900), Text("more"))[: (2, 1, 0)[system]],
        tools=json.dumps(
            [TOOL, TOOL | {"name": "read"}][: (2, 1, 0)[tools]], separators=(",", ":")
        ),
    )


TOOL = {"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {}}}


def _usage(made):
    total = len(stripped(made.departures[-1].body)) // 3
    read = min(_expected(made) or 0, total)
    match made.move.usage:
        case "none":
            return None
        case "tiny":
            return Usage(
                read_tokens=0,
                write_5m_tokens=1,
                write_1h_tokens=0,
                uncached_tokens=1,
                output_tokens=1,
            )
        case "nothing cached":
            read, written = 0, 0
        case _:
            written = total - read
    return Usage(
        read_tokens=read,
        write_5m_tokens=written,
        write_1h_tokens=0,
        uncached_tokens=total - read - written,
        output_tokens=5,
    )


def _expected(made):
    return made.planned.path(made.move.path).planned.expected_read_tokens


def _same(part):
    return part


def _respelled(part):
    """The framework's copy of a part: arguments parsed, and written as Python writes them."""
    if not isinstance(part, ToolCall):
        return part
    try:
        arguments = json.dumps(json.loads(part.arguments, parse_constant=lambda _: 1 / 0))
    except (ValueError, ZeroDivisionError):
        return part
    return ToolCall(part.id, part.name, arguments)


# A client of its own


def client_body(send, side, *, respell=False, kind="plain"):
    """The request as a client writes it that knows nothing of our codec."""
    marks = {"system": {}, "tools": {}, "messages": {}}
    for mark in send.breakpoints:
        marks[mark.level][mark.block] = mark.ttl
    messages: list[tuple[str, list[str]]] = []
    number = 0
    for entry in send.surface.entries:
        role = "assistant" if entry.role == "assistant" else "user"
        if not messages or role == "assistant" or messages[-1][0] == "assistant":
            messages.append((role, []))
        for part in entry.parts:
            messages[-1][1].append(
                _marked(block_text(part, respell=respell), marks["messages"].get(number))
            )
            number += 1
    if kind == "edited":
        messages.append(("user", ['{"type":"text","text":"a second owner"}']))
    tools = [dump(tool) for tool in json.loads(side.header.tools or "[]")]
    if kind == "tooled":
        tools.append(dump(TOOL | {"name": "answer"}))
    system = [block_text(part, respell=respell) for part in side.header.system]
    fields = {"model": dump(side.header.model)}
    fields |= {key: dump(value) for key, value in side.parameters.items()}
    if system:
        fields["system"] = _array(_marked(t, marks["system"].get(i)) for i, t in enumerate(system))
    if tools:
        fields["tools"] = _array(_marked(t, marks["tools"].get(i)) for i, t in enumerate(tools))
    fields["messages"] = _array(
        f'{{"role":"{role}","content":{_array(texts)}}}'
        if kind != "shuffled"
        else f'{{"content":{_array(texts)},"role":"{role}"}}'
        for role, texts in messages
    )
    body = "{" + ",".join(f'"{key}":{text}' for key, text in fields.items()) + "}"
    if kind == "spaced":
        return body.replace("{", "{ ", 1).encode()
    return body.encode() + (b"\xff" if kind == "broken" else b"")


def block_text(part, *, respell=False):
    """A wire block, written without the codec."""
    if isinstance(part, ToolCall):
        arguments = dump(json.loads(part.arguments)) if respell else part.arguments
        name, call = dump(part.name), dump(part.id)
        return f'{{"type":"tool_use","name":{name},"input":{arguments},"id":{call}}}'
    if isinstance(part, ToolResult):
        content = _array(block_text(leaf) for leaf in part.content)
        error = dump(part.is_error)
        call = dump(part.call_id)
        return (
            f'{{"type":"tool_result","content":{content},"tool_use_id":{call},"is_error":{error}}}'
        )
    if isinstance(part, Text):
        return dump({"type": "text", "text": part.text})
    if isinstance(part, Thinking):
        return dump({"type": "thinking", "thinking": part.text, "signature": part.signature})
    return part.block


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _marked(text, ttl):
    if ttl is None:
        return text
    return text[:-1] + ',"cache_control":' + dump({"type": "ephemeral", "ttl": ttl}) + "}"


def _array(texts):
    return "[" + ",".join(texts) + "]"


# Reading bodies without the codec


def stripped(body):
    """A body without its markers. In texts quotes are escaped, so nothing else can match."""
    return MARKER.sub(b"", body)


def blocks_of(body):
    """Message blocks as JSON text with the role before them; then system and tools; or nothing."""
    try:
        fields = json.loads(stripped(body))
    except ValueError:
        return [], None, None
    blocks = [
        f"{message['role']} {dump(block)}"
        for message in fields["messages"]
        for block in message["content"]
    ]
    return blocks, dump(fields.get("system")), dump(fields.get("tools"))
