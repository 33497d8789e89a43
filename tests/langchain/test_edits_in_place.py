"""A caller who writes into its own message objects: what is sent of that, and when."""

import pytest
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from stage import model_at

from barograph.langchain import Barograph
from barograph.langchain.track import _WATCHED_MESSAGES
from barograph.store import MemoryStore

PRIVATE = "my password is 1234"


class Loop:
    """An agent's loop: a history of the caller's own objects, and the text of each request."""

    def __init__(self):
        self.middleware = Barograph(MemoryStore(), session="s")
        self.model = model_at("http://127.0.0.1:1", "s")
        self.history = []
        self.sent = []

    def turn(self, text):
        self.history.append(HumanMessage(text))
        self.call()

    def round(self, said="a result"):
        call_id = f"c{len(self.history)}"
        answer = self.history[-1]
        answer.tool_calls = [{"name": "look", "args": {}, "id": call_id, "type": "tool_call"}]
        self.history.append(ToolMessage(said, tool_call_id=call_id))
        self.call()

    def call(self):
        asked = ModelRequest(model=self.model, messages=list(self.history), tools=[])
        self.history += self.middleware.wrap_model_call(asked, self.answer).result

    def answer(self, request):
        self.sent.append(str([message.content for message in request.messages]))
        return ModelResponse(result=[AIMessage("Yes.")])


def long_turn(rounds):
    """A turn that begins with a secret, and is under way still."""
    loop = Loop()
    loop.turn(PRIVATE)
    for _ in range(rounds):
        loop.round()
    assert PRIVATE in loop.sent[-1]
    return loop


@pytest.mark.parametrize("rounds", [1, _WATCHED_MESSAGES // 2 - 1])
def test_an_edit_of_a_new_message_is_seen_in_mid_turn(rounds):
    loop = long_turn(rounds)

    loop.history[0].content = "removed"
    loop.round()

    assert PRIVATE not in loop.sent[-1]


def test_an_edit_of_an_old_message_is_seen_when_the_next_turn_begins():
    loop = long_turn(_WATCHED_MESSAGES)

    loop.history[0].content = "removed"
    loop.round()
    loop.turn("and now?")

    assert PRIVATE in loop.sent[-2]
    assert PRIVATE not in loop.sent[-1]


def test_what_the_user_says_in_mid_turn_begins_one_for_this():
    loop = long_turn(_WATCHED_MESSAGES)

    loop.history[0].content = "removed"
    answer = loop.history[-1]
    answer.tool_calls = [{"name": "look", "args": {}, "id": "c", "type": "tool_call"}]
    loop.history += [HumanMessage("quickly, please"), ToolMessage("late", tool_call_id="c")]
    loop.call()

    assert PRIVATE not in loop.sent[-1]


def test_an_old_message_that_another_object_took_the_place_of_is_seen_at_once():
    loop = long_turn(_WATCHED_MESSAGES)

    loop.history[0] = HumanMessage("removed")
    loop.round()

    assert PRIVATE not in loop.sent[-1]
