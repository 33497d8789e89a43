"""A session talked into being: an agent, a client and a simulated provider, without a socket.

    talk = Talk(store)
    talk.call(say="hello", reply="hi")
    talk.call(say="read it", reply=[("read", {"path": "a.py"})], results=["text of a.py"])
    talk.call(reply="done")

Each path keeps its own history, and each call is 10 seconds after the one before.
"""

import json

from msgspec.structs import replace

from barograph.core.engine import Engine
from barograph.core.events import HeaderSet
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header, Refused, ToolReturned, ToolStarted
from barograph.core.learning import learn
from barograph.core.parts import Text, ToolResult, calls_in
from barograph.core.policy import Policy
from barograph.core.readback import derive_body
from barograph.core.steering import HandBack
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.anthropic.response import read_response
from barograph.simulator.provider import SimulatedProvider
from barograph.simulator.script import Reply
from barograph.store.session import Session

MODEL = "claude-opus-4-8"
SYSTEM = "You are careful. " * 400
TOOLS = [
    {
        "name": "read",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
    {
        "name": "search",
        "description": "Search the documents.",
        "input_schema": {"type": "object", "properties": {"words": {"type": "string"}}},
    },
]


class Talk:
    def __init__(
        self, store, session="s1", *, policy=None, codec=None, at=1_000_000.0, mode="normal"
    ):
        self.store = store
        self.codec = codec or AnthropicCodec()
        self.provider = SimulatedProvider()
        self.name = session
        self.at, self.mode = at, mode
        self.model, self.system, self.tools = MODEL, SYSTEM, TOOLS
        self.parameters = {"max_tokens": 100}
        self.histories = {}
        self.exchanges = []
        self._calls = 0
        self.engine = Engine(self.codec, policy or Policy())
        self.session = None
        self.restart()

    def restart(self):
        """Go on with a session that is opened anew: all it knows is what its log holds."""
        if self.session is not None:  # the lease of a process that ended is free
            self.store.release(self.name, self.session._tail.writer.holder)
        self.session = Session.open(
            self.store, self.name, self.engine, at=self.at, made_by="talk", mode=self.mode
        )

    def call(
        self,
        *,
        path="main",
        say=None,
        frame=None,
        reply="ok",
        results=(),
        after=10.0,
        reserved=0,
        usage=True,
        edit=None,
        leaves=True,
        fails=None,
        answers=True,
    ):
        """One call; `reply` is a text or a list of (tool, arguments), `edit` changes the body.

        `frame` is what sources offer, where the call begins a turn.
        """
        self.at += after
        history = self.histories.setdefault(path, [])
        if say is not None:
            history.append(Incoming("user", (Text(say),)))
        tools = json.dumps(self.tools, ensure_ascii=False, separators=(",", ":"))
        system = (Text(self.system),) if self.system else ()
        header = Header(model=self.model, system=system, tools=tools if self.tools else "")
        wanted = CallWanted(
            at=self.at,
            path=path,
            header=header,
            messages=tuple(history),
            reserved=reserved,
            frame=frame,
        )
        send, _ = self.session.want(wanted)
        if isinstance(send, HandBack):
            history.append(Incoming("assistant", (Text(send.text),)))
            return
        if not leaves:
            return
        body = self._body(path, header, send)
        if edit is not None:
            body = edit(body)
        self.session.leave(at=self.at, path=path, header=header, body=body, observed=True)
        if fails is not None:
            status, message = fails
            self.session.take(
                Refused(at=self.at + 1, path=path, error="ApiError", status=status, message=message)
            )
            return
        if answers:
            self._answer(path, history, body, reply, results, usage=usage)

    def log(self, event):
        """Log an event that no input makes yet, such as a fold."""
        state = self.session.state
        state = learn(self.codec, state, state.fold.seq + 1, event)
        self.session._tail.commit([event], state)

    def entries(self, path="main"):
        return self.session.state.surface(path).entries

    def _body(self, path, header, send):
        parameters = json.dumps({"model": self.model, **self.parameters}, separators=(",", ":"))
        event = HeaderSet(
            at=0.0,
            path=path,
            model=header.model,
            system=header.system,
            tools=header.tools,
            parameters=parameters,
            changed=(),
        )
        order = ("model", *self.parameters, "system", "tools", "messages")
        plan = self.session.state.path(path).planned
        surface = replace(send.surface, header=event)
        return self.codec.join_body(derive_body(self.codec, surface, plan, order))

    def _answer(self, path, history, body, reply, results, *, usage):
        self._calls += 1
        blocks = [{"type": "text", "text": reply}]
        if not isinstance(reply, str):
            blocks = [
                {"type": "tool_use", "id": f"toolu_{self._calls}_{i}", "name": name, "input": given}
                for i, (name, given) in enumerate(reply)
            ]
        self.provider.play("talk", [Reply(content=blocks, output_tokens=20)])
        headers = {"x-api-key": "k", "x-sim-session": "talk", "x-sim-now": str(self.at)}
        exchange = self.provider.handle(body, headers)
        assert exchange.status == 200, exchange.response
        answer = read_response(exchange.response, streamed=False)
        self.session.take(
            Answered(
                at=self.at + 1.5,
                path=path,
                parts=answer.parts,
                stop_reason=answer.stop_reason,
                usage=answer.usage if usage else None,
                request_id=f"req_{self._calls}",
            )
        )
        history.append(Incoming("assistant", answer.parts))
        for call, text in zip(calls_in(answer.parts), results, strict=False):
            parts = (ToolResult(call, (Text(text),)),)
            began = ToolStarted(at=self.at + 2, path=path, call_id=call, name="t", arguments="{}")
            self.session.take(began)
            self.session.take(
                ToolReturned(
                    at=self.at + 3, path=path, call_id=call, name="t", parts=parts, is_error=False
                )
            )
            history.append(Incoming("tool", parts))
