"""What a model is told in mid-turn, and a user when a turn is handed back."""

from collections.abc import Sequence
from typing import Final

from barograph.core.envelope import escape_tags
from barograph.core.texts import attribute

_REQUEST: Final = "request"


def nudge(
    *, rounds: int | None, repeats: int | None, request: str = "", plan: Sequence[str] = ()
) -> str:
    """A reminder in mid-turn.

    Args:
        rounds: rounds since the user asked for something; None where they are not the reason.
        repeats: rounds in a row that were the same; None where there was no stall.
        request: what the user asked for last; empty where it is not known.
        plan: lines that tell the model's own plan; none where it has set none.
    """
    said = ["[Note from the system, not from the user."]
    if repeats is not None:
        said.append(
            f"Your last {repeats} rounds made the same tool calls with the same arguments and got "
            "the same results. Once more is unlikely to help: try another way, or say what stops "
            "you."
        )
    if rounds is not None:
        said.append(
            f"You have worked for {rounds} rounds on this request. Before you go on, read your "
            "instructions and the request again and compare them with what you have done. Do what "
            "is still missing and nothing else; if nothing is, give your answer."
        )
    if request:
        shown = f"<{_REQUEST}>\n{escape_tags(request)}\n</{_REQUEST}>"
        said.append(f"The request, as the user made it:\n{shown}\n")
    if plan:
        steps = "\n".join(f"- {escape_tags(line)}" for line in plan)
        said.append(f"Your plan, as you set it last:\n{steps}\n")
    return " ".join(said) + "]"


def steps_done(done: int, total: int) -> str:
    """How far a plan is, where its steps are not all shown."""
    return f"{done} of {total} steps are done"


def steps_left_out(count: int) -> str:
    """How many steps of a plan are not shown."""
    return f"and {count} more steps"


_NAMED_TOOLS: Final = 20


def new_tools(names: Sequence[str]) -> str:
    """What a model is told of tools that came in mid-session.

    Args:
        names: their names; the first twenty are said.
    """
    shown = ", ".join(attribute(name) for name in names[:_NAMED_TOOLS])
    more = len(names) - _NAMED_TOOLS
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"[Note from the system, not from the user. You have new tools from now on: {shown}{rest}.]"
    )


def rounds_spent(rounds: int) -> str:
    """Why a turn is stopped that had all its rounds."""
    return f"after {rounds} rounds, which is the limit for one request"


def tokens_spent(tokens: int) -> str:
    """Why a turn is stopped that had all its tokens."""
    return f"after {tokens:,} tokens, which is over the limit for one request"


def money_spent(usd: float) -> str:
    """Why a turn is stopped that had all its money."""
    return f"after ${usd:,.4f}, which is over the limit for one request"


def rounds_alike(repeats: int) -> str:
    """Why a turn is stopped that goes round in circles."""
    return f"because the last {repeats} rounds made the same tool calls and got the same results"


def handed_back(why: str) -> str:
    """The last words of a turn that is stopped, said to the user in the agent's place.

    Args:
        why: it is, in words that follow "Stopped".
    """
    return (
        f"[Stopped {why}. This is not a final answer: the work may be unfinished. What was done is "
        'kept. Answer "continue" to go on from here, or say what to do instead.]'
    )
