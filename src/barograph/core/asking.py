"""The call that asks for a summary: what it shows, and to whom.

The agent's own model is shown what is about to be hidden as the agent's calls left it in the cache,
and a directive behind it. A summariser of its own has none of that in its cache, and perhaps a
smaller window. It is shown a transcript: one message with a record for each message, written from
the log and shortened as far as its window makes that necessary, the longest first.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from barograph.core.bounds import bound_text
from barograph.core.compaction import Plan
from barograph.core.events import SummaryAsked
from barograph.core.inputs import CallWanted, Header, Summariser
from barograph.core.notes import Spoken
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.pressure import ratio_of
from barograph.core.texts import quoted, summarise
from barograph.core.work import Work

SUMMARY: Final = "~summary"
"""Name, in an agent path, of calls that ask for a summary; no tool can have it."""

_DIRECTIVE_TOKENS: Final = 700
"""More than the question takes, in any tokenizer."""

_ROOM_RATIO: Final = 0.9
"""Of the rest of a window, what a transcript takes: its length in tokens is an estimate."""

_LEAST_CHARS: Final = 300
"""Where a record would be shorter, the oldest are left out instead."""


def question(
    work: Work, given: CallWanted, plan: Plan, failures: tuple[str, ...], policy: Policy
) -> tuple[SummaryAsked, CallWanted]:
    """The event that asks for a summary, and the call that goes out for it."""
    by = f"{given.path}/{SUMMARY}#{work.state.path(given.path).summaries + 1}"
    directive = Text(summarise(plan.narrative_chars))
    asked = SummaryAsked(
        at=given.at,
        path=given.path,
        by=by,
        entries=plan.spans[plan.told - 1].stop,
        parts=(directive,),
        failures=failures,
        cause=plan.cause,
        starts=tuple(span.start for span in plan.spans),
        stops=tuple(span.stop for span in plan.spans),
        budget_chars=plan.budget_chars,
    )
    wanted = replace(given, path=by, diagnosable=False)
    teller = given.summariser
    if teller is None:
        return asked, wanted
    ratio = ratio_of(work.state.factors, teller.model, policy.start_tokens_per_char)
    ratio = max(ratio, plan.gauge.tokens_per_char)  # of a model that was not heard yet, a guess
    facts = work.codec.facts_of(teller.model)
    window = teller.window_tokens or facts.window_tokens
    window = min(window, work.state.windows.get(teller.model, window))
    room_tokens = _ROOM_RATIO * (window - teller.reserve_tokens - _DIRECTIVE_TOKENS)
    room_tokens /= 1 + len(failures)  # perhaps it was too long
    told = _hidden(work, given.path, plan)
    transcript = Text(write_transcript(told, most_chars=int(room_tokens / ratio)))
    asked = replace(asked, entries=0, parts=(transcript, directive), is_transcript=True)
    return asked, replace(wanted, **_of_its_own(teller, window))


def write_transcript(spoken: Sequence[Spoken], *, most_chars: int) -> str:
    """Messages as records, together about so many characters at most, the longest shortened."""
    records = [(one, text) for one in spoken if (text := _said(one))]
    while records:
        written = _fitting(records, most_chars)
        if written is not None:
            return written
        records = records[max(1, len(records) // 8) :]
    return ""


def _fitting(records: Sequence[tuple[Spoken, str]], most_chars: int) -> str | None:
    """The records under the largest limit that lets them fit; None where none does."""
    most = max(len(text) for _, text in records)
    low, high, best = _LEAST_CHARS, max(most, _LEAST_CHARS), None
    while low <= high:
        cap = (low + high) // 2
        written = "\n".join(_record(one, text, cap) for one, text in records)
        if len(written) <= most_chars:
            low, best = cap + 1, written
        else:
            high = cap - 1
    return best


def _record(one: Spoken, text: str, cap_chars: int) -> str:
    handle = f"#{one.seq}"
    shown = bound_text(text, cap_chars=cap_chars, handle=handle)
    return quoted(shown, handle=handle, said_by=one.role, moment="")


def _said(one: Spoken) -> str:
    """What a message says, its thinking aside."""
    said = []
    for part in one.parts:
        if isinstance(part, Text):
            said.append(part.text)
        elif isinstance(part, ToolCall):
            said.append(f"{part.name}: {part.arguments}")
        elif isinstance(part, ToolResult):
            said += [leaf.text for leaf in part.content if isinstance(leaf, Text)]
    return "\n".join(said)


def _hidden(work: Work, path: str, plan: Plan) -> list[Spoken]:
    """All messages that the compaction stands for, as they entered."""
    entries = work.state.surface(path).entries
    runs = (entries.span(span.start, span.stop) for span in plan.spans)
    hidden = {seq for run in runs for one in run for seq in one.hides or (one.seq,)}
    return [one for one in work.state.path(path).spoken if one.seq in hidden]


def _of_its_own(teller: Summariser, window_tokens: int) -> dict[str, object]:
    return {
        "header": Header(model=teller.model),
        "reserved": 0,
        "foreign": 0,
        "reserve_tokens": teller.reserve_tokens,
        "window_tokens": window_tokens,
    }
