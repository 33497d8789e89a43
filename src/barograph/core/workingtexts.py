"""What a model is told of its working state, in the frame and by the tools that change it.

What it set may come from anybody whose text it read before. So each line of that stands behind a
mark of its own, and nothing in it can pass for a heading, an envelope or a marker of ours. Whose
words they are is always said: whoever runs the agent speaks in the goal alone that they gave.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barograph.core.envelope import escape_tags
from barograph.core.texts import MARK_CLOSES, MARK_OPENS
from barograph.core.tooling import READ_WORKING, UPDATE_WORKING

_LINE: Final = "> "
_HEAD: Final = (
    f"[Your working state as this turn began. {UPDATE_WORKING} changes it, {READ_WORKING} shows "
    "what holds by now.]"
)
_GIVEN: Final = "Goal, given by whoever runs you:"
_GOAL: Final = "Goal, in your own words:"
_PLAN: Final = "Plan, in your own words:"
_TASKS: Final = "Open tasks, in your own words:"


def working_section(goal: str, plan: str, tasks: Mapping[str, str], *, is_given: bool) -> str:
    """What the frame says of a working state; empty where nothing is set.

    Args:
        goal: what the agent is to reach; may have several lines, as the plan may.
        plan: how it means to reach it.
        tasks: what is still to do, by short ids; one line each.
        is_given: whether the goal is from whoever runs the agent.
    """
    said = _said(goal, plan, tasks, is_given=is_given)
    return "\n".join((_HEAD, *said)) if said else ""


def working_now(goal: str, plan: str, tasks: Mapping[str, str], *, is_given: bool) -> str:
    """The answer to one who asks what holds."""
    said = _said(goal, plan, tasks, is_given=is_given)
    if not said:
        return "[Nothing is set: no goal, no plan and no open task.]"
    return "\n".join(("[This holds now:]", *said))


def working_changed(what: Sequence[str], now: str) -> str:
    """The answer to a change that was made.

    Args:
        what: pieces of it, none where it changes nothing.
        now: what holds after it.
    """
    if not what:
        return f"[Nothing was given that changes anything.]\n{now}"
    return f"[Done: {', '.join(what)}.]\n{now}"


def working_refused(why: Sequence[str], now: str) -> str:
    """The answer to a change of which nothing was made, since a part of it cannot be.

    Args:
        why: whole sentences.
        now: what holds still.
    """
    return f"[Nothing was changed. {' '.join(why)}]\n{now}"


def set_or_cleared(what: str, text: str) -> str:
    """That a goal or a plan was set, or cleared where its text is empty."""
    return f"{what} set" if text else f"{what} cleared"


def tasks_added(names: Sequence[str]) -> str:
    """That tasks were added."""
    return f"added {', '.join(names)}"


def tasks_finished(names: Sequence[str]) -> str:
    """That tasks were finished."""
    return f"finished {', '.join(names)}"


def too_long(what: str, chars: int, most_chars: int) -> str:
    """Why a text was refused that is longer than may be."""
    return f"{what} has {chars:,} characters, at most {most_chars:,} may be: shorten it."


def too_many(count: int, most: int) -> str:
    """Why tasks were refused that would be more than may be open."""
    return f"{count} tasks would be open, at most {most} may be: finish some, or put some together."


def task_empty(place: int) -> str:
    """Why a task was refused that says nothing."""
    return f"Task {place} of add_tasks says nothing: leave it out."


def tasks_unknown(asked: Sequence[str], opened: Sequence[str]) -> str:
    """Why tasks could not be finished that are not open."""
    names = ", ".join(f"'{_plain(' '.join(one.split()))[:20]}'" for one in asked[:12])
    open_now = f"open are {', '.join(opened)}" if opened else "no task is open"
    return f"Not open: {names}; {open_now}."


GOAL_IS_GIVEN: Final = (
    "The goal was given by whoever runs you, and only they change it: leave goal out."
)


def _said(goal: str, plan: str, tasks: Mapping[str, str], *, is_given: bool) -> list[str]:
    lines: list[str] = []
    if goal:
        lines += [_GIVEN if is_given else _GOAL, *_quoted(goal.split("\n"))]
    if plan:
        lines += [_PLAN, *_quoted(plan.split("\n"))]
    if tasks:
        lines += [_TASKS, *_quoted(f"{name}: {text}" for name, text in tasks.items())]
    return lines


def _quoted(lines: Iterable[str]) -> list[str]:
    # As one text, since a tag may be spelled over several lines.
    return [_LINE + line for line in _plain("\n".join(lines)).split("\n")]


def _plain(text: str) -> str:
    """A text that can be taken for no tag and no marker of ours."""
    return escape_tags(text.replace(MARK_OPENS, "[").replace(MARK_CLOSES, "]"))
