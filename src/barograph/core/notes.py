"""What is noted of a message when it is seen, for the digest that may one day replace it.

**What it does.** Each message is looked at once, when it comes. A note refers to the texts of the
message and copies none, so noting costs what is new; facts and error lines are looked for only when
a digest is written.

**What always holds.** Who said something is decided here, by the role and the origin of the
message and never by its words. Only a message of the caller in the role of the user states rules.
A summary, whoever made it, is nobody's speech.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from barograph.core.canonical import digest, one_spelling, parse_json
from barograph.core.events import Origin
from barograph.core.ledger import Effect, effects_of
from barograph.core.nods import is_nod
from barograph.core.parts import Parts, Role, Text, ToolCall, ToolResult
from barograph.core.summaries import is_ours, is_summary

NoteKind: TypeAlias = Literal["said", "nod", "recap", "called", "result", "answer"]


class Note(Struct, frozen=True, kw_only=True):
    """What a digest may say of one message, or of one call or result in it.

    Attributes:
        seq: the event by which the message came; its handle is `#seq`.
        kind: `said` by the user; `nod`, said and asking for nothing; `recap`, a summary that is
            not ours; `called` and `result` of a tool; `answer`, the model's text without calls.
        text: what was said or answered.
        pinned: whether it is kept whatever happens.
        rules: what the user laid down in it, word for word, in order.
        call_id: of the call, or of the call that a result answers.
        tool: name of the tool that is called.
        about: what a call and a later try of it share: the tool and its files or arguments.
        effects: what a call does to files, if it succeeds.
        plan: the steps of a plan or todo list that a call sets, done ones marked `[x]`.
        is_error: whether a result says that the call failed.
    """

    seq: int
    kind: NoteKind
    text: str = ""
    pinned: bool = False
    rules: tuple[str, ...] = ()
    call_id: str = ""
    tool: str = ""
    about: bytes = b""
    effects: tuple[Effect, ...] = ()
    plan: tuple[str, ...] = ()
    is_error: bool = False


# A line up to this length is a rule as a whole; of a longer one, the sentence is.
LINE_CHARS: Final = 240
_MOST_RULES: Final = 50
_FENCE: Final = ("```", "~~~")
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?])\s+(?=\S)")
_RULE: Final = re.compile(
    r"\b(?:always|never|must|mustn't|shall not|should not|shouldn't|may not|make sure|be sure to"
    r"|ensure|avoid|under no circumstances|from now on|at all times|not allowed|forbidden"
    r"|required to|no matter what|without (?:my |explicit )?(?:approval|consent|permission))\b"
    r"|(?:^|[,;:.!(\u2013\u2014-]\s{0,3}|\b(?:please|and|but|so|you|also)\s)"
    r"(?:do not|don't|don\u2019t|only|keep|prefer)\b",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(
    r"[\s>*_#-]{0,8}((?:[A-Z][A-Z0-9_-]{1,20}[ ]?){1,4}|[A-Z][a-z]{2,14}):[*_]{0,2}\s"
)
_RULE_LABEL: Final = re.compile(
    r"rule|constraint|requirement|important|policy|invariant|never|always|must", re.IGNORECASE
)
_EXIT: Final = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: code| status)?[ :=]{1,3}[1-9]\d{0,4}\b", re.IGNORECASE
)
_FAILS: Final = re.compile(
    r"\s{0,8}(?:<tool_use_error>|error\b|traceback \(most|fatal:|failed\b)", re.IGNORECASE
)
_RUNS: Final = re.compile(
    r"run|bash|shell|exec|command|terminal|test|build|lint|check|compile", re.IGNORECASE
)
_RED: Final = re.compile(
    r"^(?:FAILED\b|=+ .{0,200}\b[1-9]\d* failed|Traceback \(most recent)", re.MULTILINE
)
_ENDS_CHARS: Final = 4_000
_PLANS: Final = re.compile(r"todo|plan|task_list|tasklist", re.IGNORECASE)
_STEPS: Final = ("todos", "plan", "steps", "items", "tasks", "newTodos")
_STEP_TEXTS: Final = ("content", "step", "text", "title", "task", "description", "name")
_DONE: Final = frozenset({"completed", "complete", "done", "finished", "true"})


class Spoken(Struct, frozen=True):
    """A message as it entered: its event, role, origin and content.

    Notes are taken of it when a digest is written, since that is rare and messages are many.
    """

    seq: int
    role: Role
    origin: Origin
    parts: Parts


def notes_of(spoken: Spoken, *, pinned: bool = False) -> tuple[Note, ...]:
    """What is to be noted of a message that entered, and perhaps is pinned."""
    return take_notes(spoken.seq, spoken.role, spoken.origin, spoken.parts, pinned=pinned)


def take_notes(
    seq: int, role: Role, origin: Origin, parts: Parts, *, pinned: bool = False
) -> tuple[Note, ...]:
    """What is to be noted of a message.

    Args:
        seq: the event by which it came.
        role: its role.
        origin: who it is from; a text of ours in the role of the user is not the user's.
        parts: its content, as it came.
        pinned: whether it is kept whatever happens.
    """
    return tuple(_notes(seq, role, origin, parts, pinned=pinned))


def _notes(seq: int, role: Role, origin: Origin, parts: Parts, *, pinned: bool) -> Iterator[Note]:
    texts = tuple(part for part in parts if isinstance(part, Text))
    text = "\n".join(part.text for part in texts)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if is_summary(parts):
        if not is_ours(parts):
            yield Note(seq=seq, kind="recap")
        return
    if role == "user" and origin == "caller" and text.strip():
        kind: NoteKind = "nod" if is_nod(texts) else "said"
        yield Note(seq=seq, kind=kind, text=text, pinned=pinned, rules=rules_in(text))
    elif role == "assistant" and text.strip() and (pinned or not calls):
        yield Note(seq=seq, kind="answer", text=text, pinned=pinned)
    for call in calls:
        yield _called(seq, call)
    for part in parts:
        if isinstance(part, ToolResult):
            said = "\n".join(leaf.text for leaf in part.content if isinstance(leaf, Text))
            is_error = part.is_error or origin == "repair"
            yield Note(
                seq=seq,
                kind="result",
                text=said,
                pinned=pinned,
                call_id=part.call_id,
                is_error=is_error,
            )


@lru_cache(maxsize=256)
def sets_plan(tool: str) -> bool:
    """Whether a tool of that name sets a plan or a todo list."""
    return bool(_PLANS.search(tool))


def last_plan(spoken: Iterable[Spoken]) -> tuple[str, ...]:
    """The steps of the newest plan that a call set and that did not fail.

    Args:
        spoken: messages, the newest first; none is looked at beyond that call.
    """
    failed: set[str] = set()
    for one in spoken:
        for part in reversed(one.parts):
            if isinstance(part, ToolResult) and (part.is_error or one.origin == "repair"):
                failed.add(part.call_id)
            elif isinstance(part, ToolCall) and part.id not in failed and sets_plan(part.name):
                steps = _plan_of(part)
                if steps:
                    return steps
    return ()


def _called(seq: int, call: ToolCall) -> Note:
    effects = effects_of(call.name, call.arguments)
    paths = "\n".join(effect.path for effect in effects)
    about = digest(
        call.name.encode("utf-8", "replace"),
        (paths or one_spelling(call.arguments)).encode("utf-8", "replace"),
    )
    return Note(
        seq=seq,
        kind="called",
        call_id=call.id,
        tool=call.name,
        about=about,
        effects=effects,
        plan=_plan_of(call) if sets_plan(call.name) else (),
    )


def has_failed(tool: str, result: Note) -> bool:
    """Whether a result says that its call failed, be it by its words alone."""
    if result.is_error or _FAILS.match(result.text):
        return True
    if not _RUNS.search(tool):
        return False
    ends = result.text[:_ENDS_CHARS], result.text[-_ENDS_CHARS:]
    return any(_EXIT.search(end) or _RED.search(end) for end in ends)


def rules_in(text: str) -> tuple[str, ...]:
    r"""What a text of the user lays down, word for word: no code, no quotes, no questions.

    >>> rules_in("Please fix the parser.\nNever push to main.\nMust it be quick?")
    ('Never push to main.',)
    """
    rules: dict[str, None] = {}
    in_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith(_FENCE):
            in_code = not in_code
        if in_code or line.lstrip().startswith(">"):
            continue
        for piece in _pieces(line):
            if is_marked_rule(piece) or (not piece.endswith("?") and _RULE.search(piece)):
                rules[piece] = None
    return tuple(rules)[:_MOST_RULES]


def _pieces(line: str) -> Iterator[str]:
    """A line, or the sentences of a long one."""
    line = line.strip()
    if len(line) <= LINE_CHARS:
        yield line
        return
    for sentence in _SENTENCE_ENDS.split(line):
        if len(sentence) <= LINE_CHARS:
            yield sentence


def label_of(text: str) -> str:
    """The label that a user has put before a statement, such as `FACT`; empty if there is none."""
    found = _LABEL.match(text)
    return found.group(1) if found else ""


def is_marked_rule(text: str) -> bool:
    """Whether the user has put a label before it that calls it a rule."""
    return bool(_RULE_LABEL.search(label_of(text)))


def _plan_of(call: ToolCall) -> tuple[str, ...]:
    given = parse_json(call.arguments)
    if not isinstance(given, dict):
        return ()
    steps = next((given[key] for key in _STEPS if isinstance(given.get(key), list)), ())
    assert isinstance(steps, list | tuple)  # noqa: S101 - narrows the type
    return tuple(line for step in steps if (line := _step(step)))


def _step(step: object) -> str:
    if isinstance(step, str):
        return f"[ ] {step}"
    if not isinstance(step, dict):
        return ""
    said = next((step[key] for key in _STEP_TEXTS if isinstance(step.get(key), str)), "")
    status = str(step.get("status", step.get("done", ""))).lower()
    if not said:
        return ""
    mark = "x" if status in _DONE else (">" if status.startswith("in") else " ")
    return f"[{mark}] {said}"
