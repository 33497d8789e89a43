"""Play the agents of a recording where they ran: subagents inside the tool call that began them.

A tool call that holds an agent runs in a thread of its own, as LangGraph runs it, and stays open
while its agent has calls left. The recording's order is kept: one call is under way at a time, and
the thread whose turn it is plays it. An agent whose tool call is not in the recording is an agent
of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from queue import Queue
from threading import Thread

from barograph.audit.drivers import Agent, Driver
from barograph.audit.recorded import AgentTrack, RecordedCall, Recording, WireBlock

_MISSING_RESULT = "[not recorded]"


class Troupe:
    """All agents of a recording.

    Args:
        recording: what is played.
        agents: who plays each track, by its name in the recording.
        open_driver: makes a driver for an agent with a session of its own.
    """

    def __init__(
        self,
        recording: Recording,
        agents: dict[str, Agent],
        open_driver: Callable[[Agent], Driver],
    ) -> None:
        self._agents, self._open = agents, open_driver
        self._tracks = {track.agent: track for track in recording.agents}
        self._left = {track.agent: len(track.calls) for track in recording.agents}
        self._inside = {
            track.parent_tool_use_id: track.agent
            for track in recording.agents
            if track.parent_tool_use_id is not None
        }
        self._alone: dict[str, Driver] = {}
        self._nested: dict[str, _OpenTool] = {}
        self.places: dict[str, tuple[str, str]] = {}

    def play(self, call: RecordedCall, *, now: float) -> None:
        """Play one call, where its agent runs; then open the tool calls that hold agents."""
        tool = self._nested.get(call.agent)
        if tool is not None:
            tool.play(call, now)
            driver, context = tool.driver, tool.context
        else:
            driver, context = self._driver_of(call.agent), copy_context()
            driver.play(call, now=now)
        self.places[self._agents[call.agent].session] = driver.place
        self._left[call.agent] -= 1
        for block in call.response:
            name = self._inside.get(block.get("id", ""))
            if block["type"] == "tool_use" and name is not None:
                result = _result_of(block["id"], self._tracks[call.agent])
                self._nested[name] = _OpenTool(driver, self._agents[name], block, result, context)
        if tool is not None and not self._left[call.agent]:
            tool.finish()

    def close(self) -> None:
        """End what is still open."""
        for tool in self._nested.values():
            tool.finish()
        for driver in self._alone.values():
            driver.close()

    def _driver_of(self, name: str) -> Driver:
        if name not in self._alone:
            self._alone[name] = self._open(self._agents[name])
        return self._alone[name]


class _OpenTool:
    """A tool call under way in its own thread, and the agent inside it."""

    def __init__(
        self, parent: Driver, agent: Agent, call: WireBlock, result: WireBlock, context: Context
    ) -> None:
        self._parent, self._agent, self._call, self._result = parent, agent, call, result
        self._inbox: Queue[tuple[RecordedCall, float] | None] = Queue()
        self._outbox: Queue[BaseException | None] = Queue()
        self._thread = Thread(target=context.copy().run, args=(self._run,), daemon=True)
        self._thread.start()
        self._wait()

    def play(self, call: RecordedCall, now: float) -> None:
        """Let the agent make one call."""
        self._inbox.put((call, now))
        self._wait()

    def finish(self) -> None:
        """Let the tool return."""
        if self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._parent.run_tool(self._call, self._result, self._serve)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._outbox.put(error)

    def _serve(self) -> None:
        self.context = copy_context()
        self.driver = self._parent.child(self._agent)
        self._outbox.put(None)
        for call, now in self._orders():
            self.driver.play(call, now=now)
            self._outbox.put(None)

    def _orders(self) -> Iterator[tuple[RecordedCall, float]]:
        while (order := self._inbox.get()) is not None:
            yield order

    def _wait(self) -> None:
        error = self._outbox.get()
        if error is not None:
            raise error


def _result_of(call_id: str, track: AgentTrack) -> WireBlock:
    """The recorded result of a tool call, as its agent saw it."""
    for call in track.calls:
        for message in call.append:
            for block in _blocks(message["content"]):
                if block["type"] == "tool_result" and block["tool_use_id"] == call_id:
                    return block
    return {"type": "tool_result", "tool_use_id": call_id, "content": _MISSING_RESULT}


def _blocks(content: str | Sequence[WireBlock]) -> Sequence[WireBlock]:
    return () if isinstance(content, str) else content
