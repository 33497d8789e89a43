"""Working state: the goal, the plan and the open tasks of an agent, which outlive every fold.

**What it does.** The model sets them with a tool, and each turn begins with what is in force. They
are in the log, for each agent path, so the next process goes on with them, and history that is
taken back takes along what was set in it. A frame is frozen while its turn lasts, so another tool
reads what holds by now.

**What always holds.** A change is made as a whole or not at all, and its answer says which. Nothing
is cut when it is set. What is read from a log is shown as far as it is legal, whatever it holds:
what is too long is cut with words that say so, what is none of it is left out.

**Out of scope.** How it is kept (`core.kept`) and what is said of it (`workingtexts`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.canonical import clean_text
from barograph.core.errors import UsageError
from barograph.core.state import is_main
from barograph.core.texts import cut_to_budget
from barograph.core.tooling import READ_WORKING, UPDATE_WORKING
from barograph.core.workingtexts import (
    GOAL_IS_GIVEN,
    set_or_cleared,
    task_empty,
    tasks_added,
    tasks_finished,
    tasks_unknown,
    too_long,
    too_many,
    working_changed,
    working_now,
    working_refused,
    working_section,
)
from barograph.frame.source import MODES, Ask, Caller, Source, SourceTool

GOAL_CHARS: Final = 500
PLAN_CHARS: Final = 1_500
TASK_CHARS: Final = 200
MOST_TASKS: Final = 12

_SOURCE: Final = "working state"
_GOAL: Final = "goal"
_PLAN: Final = "plan"
_LAST: Final = "last task"
_TASK: Final = re.compile(r"t([1-9][0-9]{0,8})")

_BUDGET_CHARS: Final = 20_000
"""More than all of it at its caps, with what is said around it: the composer cuts nothing."""


class Working(Struct, frozen=True, kw_only=True):
    """What is in force for an agent, each of it within its cap.

    Attributes:
        goal: empty where there is none, as is the plan.
        is_given: whether the goal is from whoever runs the agent.
        plan: one line or several.
        tasks: the open ones, by their ids, in the order in which they came.
        unseen: how many more are open than may be.
        last: number of the task that came last. No number comes twice.
    """

    goal: str = ""
    is_given: bool = False
    plan: str = ""
    tasks: Mapping[str, str] = {}
    unseen: int = 0
    last: int = 0


class Change(Struct, frozen=True):
    """What is to be kept, and how it is told; nothing is kept where a part was refused."""

    texts: Mapping[str, str]
    done: Sequence[str]
    refused: Sequence[str]


def working_state(*, goal: str = "") -> Source:
    """A source of the frame that tells an agent of its goal, its plan and its open tasks.

    With it go the tools `update_working_state` and `read_working_state`. Each agent path has a
    state of its own, that of a subagent too.

    Args:
        goal: of the main agent, at most 500 characters. The model cannot change one that is given
            here; without it, it sets its own.

    Raises:
        UsageError: the goal is too long.
    """
    desk = _Desk(goal)
    return Source(
        name=_SOURCE,
        compose=desk.section,
        budget_chars=_BUDGET_CHARS,
        trust="operator",
        modes=MODES,
        subagents=True,
        tools=(
            SourceTool(name=UPDATE_WORKING, run=desk.update),
            SourceTool(name=READ_WORKING, run=desk.read),
        ),
    )


def read_working(kept: Mapping[str, str]) -> Working:
    """What is legal of what was kept, whoever kept it."""
    found = sorted(
        (int(match[1]), text)
        for match, text in ((_TASK.fullmatch(key), _one_line(text)) for key, text in kept.items())
        if match and text
    )
    last = _TASK.fullmatch(kept.get(_LAST, ""))
    return Working(
        goal=cut_to_budget(_lines(kept.get(_GOAL, "")), GOAL_CHARS),
        plan=cut_to_budget(_lines(kept.get(_PLAN, "")), PLAN_CHARS),
        tasks={f"t{number}": _cut_task(text) for number, text in found[:MOST_TASKS]},
        unseen=max(0, len(found) - MOST_TASKS),
        last=max([int(last[1]) if last else 0, *(number for number, _ in found)]),
    )


def plan_change(
    working: Working,
    *,
    goal: str | None = None,
    plan: str | None = None,
    add_tasks: Sequence[str] = (),
    finish_tasks: Sequence[str] = (),
) -> Change:
    """What a wish of a model changes; None leaves a goal or a plan as it is."""
    said = _plan_texts(working, goal, plan)
    tasks = _plan_tasks(working, add_tasks, tuple(dict.fromkeys(map(str.strip, finish_tasks))))
    return Change(
        {**said.texts, **tasks.texts},
        (*said.done, *tasks.done),
        (*said.refused, *tasks.refused),
    )


def _plan_texts(working: Working, goal: str | None, plan: str | None) -> Change:
    texts, refused = dict[str, str](), list[str]()
    for key, given, was, most_chars in (
        (_GOAL, goal, working.goal, GOAL_CHARS),
        (_PLAN, plan, working.plan, PLAN_CHARS),
    ):
        text = was if given is None else _lines(given)
        if text == was:
            continue
        texts[key] = text
        if key == _GOAL and working.is_given:
            refused.append(GOAL_IS_GIVEN)
        elif len(text) > most_chars:
            refused.append(too_long(f"The {key}", len(text), most_chars))
    return Change(texts, [set_or_cleared(key, text) for key, text in texts.items()], refused)


def _plan_tasks(working: Working, new: Sequence[str], finished: Sequence[str]) -> Change:
    added = {f"t{working.last + place}": _one_line(text) for place, text in enumerate(new, 1)}
    unknown = [name for name in finished if name not in working.tasks]
    count = len(working.tasks) + working.unseen - len(finished) + len(unknown) + len(added)
    refused = [tasks_unknown(unknown, tuple(working.tasks))] if unknown else []
    if added and count > MOST_TASKS:
        refused.append(too_many(count, MOST_TASKS))
    else:
        refused += _flaws(tuple(added.values()))
    done = [tasks_finished(finished)] if finished else []
    done += [tasks_added(tuple(added))] if added else []
    last = {_LAST: f"t{working.last + len(added)}"} if added else {}
    return Change({**dict.fromkeys(finished, ""), **added, **last}, done, refused)


def _flaws(tasks: Sequence[str]) -> list[str]:
    """What is wrong with tasks that are to be added."""
    flaws = []
    for place, text in enumerate(tasks, 1):
        if not text:
            flaws.append(task_empty(place))
        elif len(text) > TASK_CHARS:
            flaws.append(too_long(f"Task {place} of add_tasks", len(text), TASK_CHARS))
    return flaws


class _Desk:
    """Where agents set what they work at, and read it."""

    def __init__(self, goal: str) -> None:
        self._given = _lines(goal)
        if len(self._given) > GOAL_CHARS:
            raise UsageError(
                f"The goal of the working state has {len(self._given):,} characters.",
                next_step=f"Give at most {GOAL_CHARS:,}, and say the rest in the first message.",
            )

    def section(self, ask: Ask) -> str:
        """What a turn begins with."""
        working = self._in_force(ask.path, ask.kept(_SOURCE))
        return working_section(working.goal, working.plan, working.tasks, is_given=working.is_given)

    def update(
        self,
        caller: Caller,
        goal: Annotated[
            str | None,
            f"What you are to reach, at most {GOAL_CHARS} characters; an empty text clears it.",
        ] = None,
        plan: Annotated[
            str | None,
            f"How you mean to reach it, at most {PLAN_CHARS} characters; an empty text clears it.",
        ] = None,
        add_tasks: Annotated[
            Sequence[str],
            f"Tasks to open, at most {TASK_CHARS} characters each; {MOST_TASKS} may be open.",
        ] = (),
        finish_tasks: Annotated[
            Sequence[str], "Ids, such as t1, of tasks that are done or not wanted any more."
        ] = (),
    ) -> str:
        """Set your goal, your plan and your open tasks, which stay in your sight.

        What you leave out stays as it is. Every turn begins with what is set then.
        """
        kept = _kept_for(caller)
        working = self._in_force(caller.path, kept)
        change = plan_change(
            working, goal=goal, plan=plan, add_tasks=add_tasks, finish_tasks=finish_tasks
        )
        if change.refused:
            return working_refused(change.refused, _now(working))
        if change.texts:
            caller.keep(change.texts)
        left = self._in_force(caller.path, {**kept, **change.texts})
        return working_changed(change.done, _now(left))

    def read(self, caller: Caller) -> str:
        """Read the goal, the plan and the open tasks as they are now."""
        return _now(self._in_force(caller.path, _kept_for(caller)))

    def _in_force(self, path: str, kept: Mapping[str, str]) -> Working:
        working = read_working(kept)
        if self._given and is_main(path):
            return replace(working, goal=self._given, is_given=True)
        return working


def _kept_for(caller: Caller) -> Mapping[str, str]:
    return caller.state.path(caller.path).kept.of(_SOURCE)


def _now(working: Working) -> str:
    return working_now(working.goal, working.plan, working.tasks, is_given=working.is_given)


def _lines(text: str) -> str:
    """A text whose lines end in one way only, without those that say nothing."""
    lines = (line.rstrip() for line in clean_text(text).splitlines())
    return "\n".join(line for line in lines if line)


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())


def _cut_task(text: str) -> str:
    return text if len(text) <= TASK_CHARS else text[: TASK_CHARS - 1] + "\u2026"
