"""Skills: an index of all of them in the frame, and a tool that reads one.

**Which ones are described.** Each skill is in the index, always: what has no place there is never
found. Where the budget is too small for all descriptions, those that were used last keep theirs, as
far as the log of the agent knows of uses, and the alphabet decides among the others. What is left
are names; they are shown even where the budget is too small for them too.

**What changes it.** A section of the frame is sent again when its text changes, so recency decides
which skills are described and never in which order they stand: that is the alphabet's. Where all
fit, using a skill changes nothing; else only using one that was shown by its name alone does.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

from barograph.core.errors import UsageError
from barograph.core.skilltexts import (
    described_chars,
    no_such_file,
    no_such_skill,
    skill_file,
    skill_index,
    skill_row,
    skill_text,
)
from barograph.core.tooling import LOAD_SKILL
from barograph.core.trust import Trust
from barograph.frame.skillfiles import Skill, SkillFolders, files_of, read_file
from barograph.frame.source import MODES, Ask, Caller, Source, SourceTool

_SOURCE: Final = "skills"
_USED: Final = "used"

_NO_CUT_CHARS: Final = 1_000_000_000
"""The composer cuts nothing: what has to give way is decided here."""


def skills(
    folders: str | Path | Sequence[str | Path],
    *,
    budget_chars: int = 8_000,
    trust: Trust = "operator",
) -> Source:
    """A source of the frame that lists skills, with the tool `load_skill` that reads one.

    Args:
        folders: whose folders have a `SKILL.md` each; of two skills with one name, the one of the
            earlier folder counts.
        budget_chars: the most that the index may have, as far as the names have room in it; at 0
            there is neither an index nor a tool.
        trust: whose word the skills are. What is not the operator's is shown as material.

    Raises:
        UsageError: a negative budget, no such folder, or no library that reads YAML.
    """
    if budget_chars < 0:
        raise UsageError(
            f"budget_chars of the skills is {budget_chars}.",
            next_step="Give the most characters of the index, or 0 for none.",
        )
    if budget_chars == 0:
        # Asked in no mode. As it is still there, an index that was shown before is taken back.
        return Source(name=_SOURCE, compose=lambda _: None, modes=frozenset())
    given = [folders] if isinstance(folders, str | Path) else folders
    shelf = _Shelf(SkillFolders(given), budget_chars, trust)
    return Source(
        name=_SOURCE,
        compose=shelf.index,
        budget_chars=_NO_CUT_CHARS,
        trust=trust,
        modes=MODES,
        tools=(SourceTool(name=LOAD_SKILL, run=shelf.load_skill, subagents=True),),
    )


def plan_index(found: Sequence[Skill], used: Sequence[str], budget_chars: int) -> str:
    """The index of skills within a budget; empty where there are none.

    Args:
        found: all that are to be listed.
        used: names of those that were used, the last one first.
        budget_chars: what gives way beyond it are descriptions, never names.
    """
    if not found:
        return ""
    rows = {one.name: skill_row(one.name, one.description) for one in sorted(found, key=_name)}
    text = skill_index(list(rows.values()), ())
    if len(text) <= budget_chars:
        return text
    longer = {name: described_chars(name, row) for name, row in rows.items()}
    any_name = next(iter(rows))
    left_chars = budget_chars - (len(_index(rows, {any_name})) - longer[any_name])
    described = set[str]()
    for name in dict.fromkeys((*used, *rows)):
        if name in rows and longer[name] <= left_chars:
            left_chars -= longer[name]
            described.add(name)
    return _index(rows, described)


def _index(rows: dict[str, str], described: set[str]) -> str:
    return skill_index(
        [row for name, row in rows.items() if name in described],
        [name for name in rows if name not in described],
    )


class _Shelf:
    """Skills as a model sees them: those that are for users only are not there."""

    def __init__(self, folders: SkillFolders, budget_chars: int, trust: Trust) -> None:
        self._folders, self._budget_chars, self._trust = folders, budget_chars, trust
        # Who starts the agent is told of broken skills now, and no turn waits for all of them.
        self._found()

    def index(self, ask: Ask) -> str:
        """The index for a turn."""
        return plan_index(tuple(self._found().values()), _used(ask), self._budget_chars)

    def load_skill(
        self,
        caller: Caller,
        name: Annotated[str, "Name of the skill, as the index has it."],
        file: Annotated[str, "One of its files, to read that instead."] = "",
    ) -> str:
        """Read the instructions of a skill, or one of its files."""
        found = self._found()
        skill = found.get(name.strip())
        if skill is None:
            return no_such_skill(name, _near(name, found), list(found))
        files = files_of(skill)
        if not file:
            text = skill_text(
                skill.name,
                skill.text,
                folder=str(skill.folder),
                files=list(files),
                trust=self._trust,
            )
        elif file in files:
            text = skill_file(skill.name, file, read_file(files[file]), trust=self._trust)
        else:
            return no_such_file(skill.name, file, _near(file, files), list(files))
        if _used(caller)[:1] != (skill.name,):
            caller.keep({skill.name: _USED})
        return text

    def _found(self) -> dict[str, Skill]:
        return {n: one for n, one in self._folders.read().items() if not one.is_for_user}


def _used(by: Ask | Caller) -> tuple[str, ...]:
    """Names of the skills that an agent path used, the last one first."""
    return tuple(reversed(tuple(by.state.path(by.path).kept.of(_SOURCE))))


def _name(skill: Skill) -> str:
    return skill.name


def _near(name: str, names: Iterable[str]) -> list[str]:
    return get_close_matches(name.strip().casefold(), list(names))
