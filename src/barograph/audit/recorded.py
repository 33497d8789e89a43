"""Reads a recorded session into calls that a replay can send again.

Each call is a delta on the same agent's previous request plus its response, exactly as the file
format has it (see `lines`), in content that the provider accepts (see `legal`). With
`rewrites="ignore"` the compactions and clearings of the recording harness are undone: the history
is never cut, and of a line that rewrites it only what the history does not hold yet is appended,
because several harnesses send again what they keep.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from barograph.audit.history import Content, History
from barograph.audit.legal import Legaliser
from barograph.audit.lines import (
    Line,
    RecordedUsage,
    WireBlock,
    WireMessage,
    find_recordings,
    name_of,
    not_a_recording,
    read_fit,
    read_lines,
)

__all__ = [
    "AgentTrack",
    "RecordedCall",
    "RecordedUsage",
    "Recording",
    "Rewrites",
    "WireBlock",
    "WireMessage",
    "find_recordings",
    "read_recording",
]

Rewrites = Literal["apply", "ignore"]


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One model call. Its content is shared with other calls: read it, never change it.

    Attributes:
        number: the call's number in the file.
        agent: `main` or `sub:<id>`.
        t_seconds: start of the response, from the first time in the file; None if not recorded.
        model: the recorded model; None if not recorded.
        system: the agent's recorded system prompt in force; None if not recorded.
        cut: how many messages of the history (previous request and previous response of this
            agent) are kept; None for all of them.
        append: the messages that follow, in the provider's wire form.
        response: the response's content; empty for an aborted call, which adds nothing.
        stop_reason: in Anthropic's vocabulary.
        usage: the recorded token counts; None if not recorded.
        events: what the harness recorded between the previous call and this one.
    """

    number: int
    agent: str
    t_seconds: float | None
    model: str | None
    system: str | None
    cut: int | None
    append: tuple[WireMessage, ...]
    response: tuple[WireBlock, ...]
    stop_reason: str
    usage: RecordedUsage | None
    events: tuple[dict[str, Any], ...]


class AgentTrack(Struct, frozen=True, kw_only=True):
    """One agent's calls, a session of its own.

    Attributes:
        agent: `main` or `sub:<id>`.
        parent_tool_use_id: the tool call that started it; None for `main`.
        system: the system prompt recorded on its first call; None if not recorded.
        calls: its calls in file order.
    """

    agent: str
    parent_tool_use_id: str | None
    system: str | None
    calls: tuple[RecordedCall, ...]


class Recording(Struct, frozen=True, kw_only=True):
    """A recorded session.

    Attributes:
        name: the file name without its suffixes.
        calls: all calls in file order.
        agents: the same calls by agent, in order of first call.
        tool_names: every tool that was called, sorted.
        notes: what was changed or found irregular, each with its number; zeros are left out.
        base_tokens: tokens of tools and system as estimated beside the file; None if unknown.
        tokens_per_char: recorded tokens of a recorded character; None if unknown.
    """

    name: str
    calls: tuple[RecordedCall, ...]
    agents: tuple[AgentTrack, ...]
    tool_names: tuple[str, ...]
    notes: dict[str, int]
    base_tokens: int | None
    tokens_per_char: float | None


def read_recording(path: Path, *, rewrites: Rewrites = "apply") -> Recording:
    """Read one recorded session.

    Args:
        path: a `.jsonl` or `.jsonl.gz` file.
        rewrites: whether the harness's own rewriting of the history is applied or undone.

    Raises:
        UsageError: the file cannot be read or is not a recorded session.
    """
    reader = _Reader(path, rewrites)
    calls = tuple(reader.calls())
    fit = read_fit(path)
    return Recording(
        name=name_of(path),
        calls=calls,
        agents=tuple(_track(agent, reader.parents[agent], calls) for agent in reader.parents),
        tool_names=tuple(sorted(reader.legal.tool_names)),
        notes=reader.all_notes(),
        base_tokens=fit.base_tokens if fit else None,
        tokens_per_char=fit.tokens_per_char if fit else None,
    )


def _track(agent: str, parent: str | None, calls: tuple[RecordedCall, ...]) -> AgentTrack:
    own = tuple(call for call in calls if call.agent == agent)
    return AgentTrack(agent=agent, parent_tool_use_id=parent, system=own[0].system, calls=own)


class _Reader:
    """Reads the lines of one file in order; the agents' histories are its state."""

    def __init__(self, path: Path, rewrites: Rewrites) -> None:
        self._path = path
        self._rewrites = rewrites
        self._notes: Counter[str] = Counter()
        self._histories: dict[str, History] = {}
        self._start: datetime | None = None
        self.legal = Legaliser(self._notes)
        self.parents: dict[str, str | None] = {}

    def calls(self) -> Iterator[RecordedCall]:
        for number, line in read_lines(self._path):
            try:
                yield self._call(line)
            except ValueError as error:
                raise not_a_recording(self._path, str(error), line=number) from error

    def all_notes(self) -> dict[str, int]:
        total = Counter(self._notes)
        for history in self._histories.values():
            total.update(history.pairing.notes())
        return {name: total[name] for name in sorted(total) if total[name]}

    def _call(self, line: Line) -> RecordedCall:
        self.parents.setdefault(line.agent, line.parent_tool_use_id)
        history = self._histories.setdefault(line.agent, History())
        self._follow_system(history, line.system)
        cut, append = self._request(history, line)
        history.pairing.request(cut, append)
        response = self._response(history, line.response or [])
        return RecordedCall(
            number=line.call,
            agent=line.agent,
            t_seconds=self._seconds(line.t),
            model=line.model,
            system=history.system,
            cut=cut,
            append=append,
            response=tuple(response),
            stop_reason=self.legal.stop_reason(line.stop_reason, response),
            usage=line.usage,
            events=tuple(line.events),
        )

    def _follow_system(self, history: History, system: str | None) -> None:
        if system is None:  # the format names a system prompt only where it changes
            return
        self._notes["system_changes"] += history.system is not None and system != history.system
        history.system = system

    def _request(self, history: History, line: Line) -> tuple[int | None, tuple[WireMessage, ...]]:
        cut = line.replace_from
        if cut is not None and cut > history.recorded_length:
            raise ValueError(
                f"`replace_from` is {cut}, but the history of agent {line.agent!r} has only "
                f"{history.recorded_length} messages"
            )
        contents: list[Content] = [
            (message.role, self._legal(message.role, message.content)) for message in line.append
        ]
        if cut is None:
            return None, history.extend(contents)
        if self._rewrites == "apply":
            self._notes["rewrites_applied"] += 1
            return history.cut(cut), history.extend(contents)
        append = history.extend_uncut(cut, contents)
        self._notes["rewrites_ignored"] += 1
        self._notes["blocks_already_held"] += sum(len(blocks) for _, blocks in contents) - sum(
            len(message["content"]) for message in append
        )
        return None, append

    def _legal(self, role: str, recorded: str | list[WireBlock]) -> list[WireBlock]:
        content = self.legal.content(role, recorded)
        self._notes["empty_messages_dropped"] += not content
        return content

    def _response(self, history: History, recorded: list[WireBlock]) -> list[WireBlock]:
        if not recorded:
            self._notes["empty_responses"] += 1
            return []
        response = self._legal("assistant", recorded)
        history.pairing.response(response)
        history.extend([("assistant", response)])
        return response

    def _seconds(self, time: datetime | None) -> float | None:
        if time is None:
            return None
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        self._start = self._start or time
        return (time - self._start).total_seconds()
