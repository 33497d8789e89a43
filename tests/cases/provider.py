"""The simulator, with scripted errors and scripted usage on top.

What a script says is answered by the simulator after its own rules: a request that the provider
would refuse is refused here, script or not. Only errors and usage that a case prescribes are put in
front of it. A request for a summary is answered from a script of its own, and kept apart from those
of the agents. Tokens are counted as the cases reckon: four characters each, unless one says else.
"""

import json
from collections import defaultdict, deque

from msgspec.structs import replace

from barograph.core.texts import NARRATIVE_CLOSES, NARRATIVE_OPENS, summarise
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Exchange, Reply, Simulator, TokenRule
from cases.observed import Sent
from cases.registry import UnknownWordError

_QUESTION = " ".join(summarise(1).split()[10:20])
MODEL = "claude-opus-5"  # of the smallest minimum: what is short in a case can still be cached


class ScriptedProvider:
    """Answers each agent from its own queue of replies and errors."""

    def __init__(self, clock, windows=None, tokens_per_char=0.25):
        self.sent = []
        self.asked = []
        self.moments = []
        self.summaries = deque()
        self.queues = defaultdict(deque)
        self.usages = deque()
        self.usage_always = ...
        self._is_asked = False
        self._kinds = {}
        self._windows = windows or {}
        rule = TokenRule(tokens_per_1000_chars=round(1000 * tokens_per_char))
        self.simulator = Simulator(clock=clock, facts=self._facts_of, rule=rule, keep_bodies=False)
        self._answer = self.simulator.provider.handle
        self.simulator.provider.handle = self._handle

    def expect(self, agent, items, *, kind=None):
        """Add to what an agent's model will say."""
        if agent not in self._kinds:
            self._kinds[agent] = kind or agent
            self.simulator.play(agent, lambda _body, _index: self._next_reply(agent))
        self.queues[agent].extend(items)

    def forget_rest(self, agent):
        """Drop what a turn left unsaid."""
        self.queues[agent].clear()

    def _next_reply(self, agent):
        queue = self.queues[agent]
        if self._is_asked:
            told = self.summaries.popleft() if self.summaries else ""
            return Reply(content=f"{NARRATIVE_OPENS}{told}{NARRATIVE_CLOSES}")
        return Reply(content=queue.popleft()["content"]) if queue else None

    def _handle(self, body, headers):
        agent = headers["x-sim-session"]
        self._is_asked = _QUESTION in json.dumps(json.loads(body)["messages"][-1:])
        queue = self.summaries if self._is_asked else self.queues[agent]
        scripted = bool(queue) and isinstance(queue[0], dict) and "error" in queue[0]
        if scripted:
            exchange = self._refused(queue.popleft()["error"], body, headers)
        else:
            exchange = self._with_usage(self._answer(body, headers))
        label, _, _ = agent.partition("@")
        sent = Sent(
            agent=label,
            kind=self._kinds[agent],
            model=json.loads(body).get("model", ""),
            body=body,
            status=exchange.status,
            response=exchange.response,
            tokens=exchange.total_tokens,
            scripted=scripted,
        )
        (self.asked if self._is_asked else self.sent).append(sent)
        self.moments += ["summarise"] if self._is_asked else []
        return exchange

    def _refused(self, error, body, headers):
        if error == "timeout":
            error = {"status": 408, "message": "the request timed out"}
        if not isinstance(error, dict) or "status" not in error:
            raise UnknownWordError(f"a model error is {error!r}")
        kind = {429: "rate_limit_error", 529: "overloaded_error"}
        fault = {"type": kind.get(error["status"], "invalid_request_error"), **error}
        answer = {
            "type": "error",
            "error": {k: fault[k] for k in ("type", "message", "code") if k in fault},
        }
        return Exchange(
            number=0,
            session=headers["x-sim-session"],
            index=-1,
            attempt=0,
            now_seconds=0.0,
            account="",
            request=body,
            headers={},
            status=error["status"],
            response=json.dumps(answer).encode(),
            request_id=f"req_case_{len(self.sent)}",
        )

    def _with_usage(self, exchange):
        usage = self.usages.popleft() if self.usages else self.usage_always
        if usage is ... or exchange.status != 200:
            return exchange
        message = json.loads(exchange.response)
        message["usage"] = {"input_tokens": 0, "output_tokens": 0, **(usage or {})}
        return replace(exchange, response=json.dumps(message).encode())

    def _facts_of(self, model):
        window = self._windows.get(model)
        facts = facts_of(MODEL if window else model)
        return replace(facts, window_tokens=window) if window else facts
