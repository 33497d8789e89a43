"""Send recorded calls again: through the stock client over HTTP, or straight into the engine."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from barograph.audit.recorded import RecordedCall, WireBlock, WireMessage
from barograph.core.canonical import dump_json
from barograph.core.engine import Engine
from barograph.core.events import HeaderSet
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header, Refused, ToolReturned, ToolStarted
from barograph.core.parts import Leaf, Part, Text, ToolCall, ToolResult
from barograph.core.policy import Policy
from barograph.core.readback import derive_body
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.anthropic.response import part_of, read_response
from barograph.simulator import SimulatedProvider
from barograph.store import Store
from barograph.store.session import Session

MAX_TOKENS = 1024
MADE_BY = "barograph replay"
_OK = 200

Mode = Literal["invoke", "stream", "ainvoke", "astream", "direct"]


class Agent(Struct, frozen=True, kw_only=True):
    """One agent of a recording, as it is replayed.

    Attributes:
        session: its session at the simulator, and in the log unless it runs in a tool call.
        account: API key; agents with one key share a cache.
        model: the model that every call names.
        system: its system prompt.
        tools: its tool definitions, in wire form.
    """

    session: str
    account: str
    model: str
    system: str
    tools: tuple[Mapping[str, Any], ...]


class Driver(Protocol):
    """Plays the calls of one agent in order."""

    @property
    def place(self) -> tuple[str, str]:
        """Session and agent path under which the log has its calls."""
        ...

    def play(self, call: RecordedCall, *, now: float) -> bool:
        """Send one call at that virtual time; False where the provider refused it."""
        ...

    def run_tool(self, call: WireBlock, result: WireBlock, body: Callable[[], None]) -> None:
        """Run a tool call of this agent; `body` plays the agents inside it."""
        ...

    def child(self, agent: Agent) -> "Driver":
        """A driver for an agent inside the tool call that runs now."""
        ...

    def close(self) -> None:
        """Release what the driver holds."""
        ...


class DirectDriver:
    """Engine and simulator in one process, without a client between them.

    Args:
        agent: who calls.
        session: where its log goes.
        provider: who answers.
        path: its agent path.
    """

    def __init__(
        self, agent: Agent, session: Session, provider: SimulatedProvider, path: str = "main"
    ) -> None:
        self._session, self._provider, self._path = session, provider, path
        self._headers = {"x-api-key": agent.account, "x-sim-session": agent.session}
        self._codec = session.engine.codec
        self._header = Header(
            model=agent.model,
            system=(Text(agent.system),),
            tools=dump_json(list(agent.tools)).decode() if agent.tools else "",
        )
        parameters = {"model": agent.model, "max_tokens": MAX_TOKENS}
        self._assumed = HeaderSet(
            at=0.0,
            path=path,
            model=agent.model,
            system=self._header.system,
            tools=self._header.tools,
            parameters=dump_json(parameters).decode(),
            changed=(),
        )
        self._history: list[tuple[Incoming, ...]] = []
        self._sent, self._known, self._now = 0, 0, 0.0
        self._running = ""

    @classmethod
    def open(
        cls, agent: Agent, store: Store, provider: SimulatedProvider, policy: Policy
    ) -> "DirectDriver":
        """A driver for an agent with a session of its own."""
        engine = Engine(AnthropicCodec(), without_stops(policy))
        session = Session.open(store, agent.session, engine, at=0.0, made_by=MADE_BY)
        return cls(agent, session, provider)

    @property
    def place(self) -> tuple[str, str]:
        """Session and agent path under which the log has its calls."""
        return self._session.id, self._path

    def run_tool(self, call: WireBlock, result: WireBlock, body: Callable[[], None]) -> None:
        """Log the tool call around its body."""
        call_id, name, now = call["id"], call["name"], self._now
        number = self._session.state.path(self._path).numbers[call_id]
        self._running = f"{self._path}/{name}#{number}"
        arguments = dump_json(call["input"]).decode()
        self._session.take(
            ToolStarted(at=now, path=self._path, call_id=call_id, name=name, arguments=arguments)
        )
        body()
        self._session.take(
            ToolReturned(
                at=now,
                path=self._path,
                call_id=call_id,
                name=name,
                parts=(_part(result),),
                is_error=bool(result.get("is_error")),
            )
        )

    def child(self, agent: Agent) -> "DirectDriver":
        """A driver for an agent inside the tool call that runs now."""
        return DirectDriver(agent, self._session, self._provider, self._running)

    def play(self, call: RecordedCall, *, now: float) -> bool:
        """Send one call; what the simulator answers becomes history."""
        self._now = now
        if call.cut is not None and call.cut < len(self._history):
            del self._history[call.cut :]
            self._sent, self._known = 0, 0
        self._history.extend(read_wire_message(message) for message in call.append)
        new = [incoming for group in self._history[self._sent :] for incoming in group]
        send, _ = self._session.want(
            CallWanted(
                at=now,
                path=self._path,
                header=self._header,
                messages=tuple(new),
                known=self._known,
                reserve_tokens=MAX_TOKENS,
            )
        )
        self._sent, self._known = len(self._history), send.seen
        return self._exchange(now, call)

    def close(self) -> None:
        """Nothing to release."""

    def _exchange(self, now: float, call: RecordedCall) -> bool:
        path = self._session.state.path(self._path)
        surface = replace(self._session.state.surface(self._path), header=self._assumed)
        if path.planned is None:
            return False
        order = ("model", "max_tokens", "system", "tools", "messages")
        body = self._codec.join_body(derive_body(self._codec, surface, path.planned, order))
        self._session.leave(at=now, path=self._path, header=self._header, body=body, observed=True)
        headers = {**self._headers, "x-sim-now": repr(now)}
        exchange = self._provider.handle(body, headers)
        answer = None
        if exchange.status == _OK:
            answer = read_response(exchange.response, streamed=False)
        if answer is None:
            refused = Refused(
                at=now,
                path=self._path,
                error="refused",
                status=exchange.status,
                message=exchange.response.decode(errors="replace"),
            )
            self._session.take(refused)
            return False
        self._session.take(
            Answered(
                at=now,
                path=self._path,
                parts=answer.parts,
                stop_reason=answer.stop_reason,
                usage=answer.usage,
                provider_id=answer.provider_id,
            )
        )
        if call.response:
            self._history.append((Incoming("assistant", answer.parts),))
        return True


def without_stops(policy: Policy) -> Policy:
    """The policy, for a recording: it goes on, whatever would have been handed back."""
    return replace(policy, cap_rounds=None, stall_stop_repeats=None)


def read_wire_message(message: WireMessage) -> tuple[Incoming, ...]:
    """A recorded message as the engine takes it."""
    parts = tuple(_part(block) for block in _blocks(message["content"]))
    if message["role"] == "assistant":
        return (Incoming("assistant", parts),)
    return (Incoming("user", parts),)


def _part(block: Mapping[str, Any]) -> Part:
    if block["type"] == "tool_use":
        return ToolCall(block["id"], block["name"], dump_json(block["input"]).decode())
    if block["type"] == "tool_result":
        leaves = tuple(_leaf(item) for item in _blocks(block.get("content") or []))
        return ToolResult(block["tool_use_id"], leaves, is_error=bool(block.get("is_error")))
    return _leaf(block)


def _leaf(block: Mapping[str, Any]) -> Leaf:
    return part_of(block, dump_json(block).decode())  # type: ignore[return-value]  # no call here


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
