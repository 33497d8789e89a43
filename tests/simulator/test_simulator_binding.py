"""Conformance: thinking is bound to its model and to what precedes it."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_prompts import Driver, assistant, call, error_of, parts, result, text, tool, user

from barograph.simulator import Reply, Switches

BOUND = "claude-opus-5-5"
CONTROLS = "thinking-binding-controls-2026-08-01"
THOUGHT = {"type": "thinking", "thinking": "hm"}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


class Talk:
    """A conversation whose model thinks before each answer."""

    def __init__(self, model=BOUND, **switches):
        self.driver = Driver(
            switches=Switches(**switches),
            script=lambda _body, index: Reply(content=[THOUGHT, text(f"answer {index}")]),
        )
        self.model = model
        self.messages = []
        self.tools = [tool("look"), tool("find")]
        self.system = "system"

    def ask(self, words="more", **body):
        self.messages.append(user(text(words)))
        exchange = self.send(**body)
        if exchange.status == 200:
            content = msgspec.json.decode(exchange.response)["content"]
            self.messages.append(assistant(*content))
        return exchange

    def send(self, *, beta=False, **body):
        made = {"model": self.model, "tools": self.tools, "system": self.system, **body}
        return self.driver.send(*self.messages, beta=CONTROLS if beta else "", **made)


def three_turns(**changes):
    talk = Talk(**changes)
    for words in ("one", "two", "three"):
        assert talk.ask(words).status == 200
    return talk


def told(exchange):
    return [
        (entry["type"].removeprefix("thinking_"), entry["path"], entry["reason"])
        for entry in msgspec.json.decode(exchange.response)["input_transformations"]
    ]


def edit_user(talk):
    talk.messages[2] = user(text("2"))


def edit_answer(talk):
    talk.messages[1]["content"][1] = text("something else")


def inject(talk):
    talk.messages[2] = user(text("two"), text("injected"))


def change_system(talk):
    talk.system = "another"


def change_tool(talk):
    talk.tools = [tool("look"), tool("other")]


def reorder_tools(talk):
    talk.tools.reverse()


def add_tool(talk):
    talk.tools.append(tool("third"))


def drop_turn(talk):
    del talk.messages[2:4]


def drop_middle_thinking(talk):
    del talk.messages[3]["content"][0]


CHANGES = [
    (edit_user, 3),
    (edit_answer, 3),
    (inject, 3),
    (change_system, 1),
    (change_tool, 1),
    (reorder_tools, 1),
    (add_tool, 1),
    (drop_turn, 3),
    (drop_middle_thinking, 5),
]


@pytest.mark.parametrize(("change", "at"), CHANGES)
def test_a_changed_prefix_is_refused_in_the_providers_words(change, at):
    talk = three_turns()
    change(talk)
    talk.messages.append(user(text("more")))
    message = error_of(talk.send())
    assert message == (
        f"messages.{at}.content.0: Invalid `signature` in `thinking` block. The block is bound to"
        " a different conversation. Remove the block, or set"
        ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    )
    assert error_of(talk.send()) == message  # and for ever


def drop_first_thinking(talk):
    del talk.messages[1]["content"][0]


def drop_leading_thinking(talk):
    for at in (1, 3):
        del talk.messages[at]["content"][0]


def drop_all_thinking(talk):
    for at in (1, 3, 5):
        del talk.messages[at]["content"][0]


def move_marker(talk):
    talk.messages[2] = user(text("two", "5m"))


def add_deferred_tool(talk):
    talk.tools.append(tool("third") | {"defer_loading": True})


def spell_content_as_a_string(talk):
    talk.messages[0] = {"role": "user", "content": "one"}


def change_nothing(talk):
    del talk


HARMLESS = [
    change_nothing,
    drop_first_thinking,
    drop_leading_thinking,
    drop_all_thinking,
    move_marker,
    add_deferred_tool,
    spell_content_as_a_string,
]


@pytest.mark.parametrize("change", HARMLESS)
def test_what_changes_nothing_before_a_block_leaves_it_valid(change):
    talk = three_turns()
    change(talk)
    exchange = talk.ask(beta=True, tool_choice={"type": "none"}, max_tokens=77)
    assert told(exchange) == []


@pytest.mark.parametrize(("change", "at"), CHANGES)
def test_dropping_instead_is_reported_and_leaves_what_came_before(change, at):
    talk = three_turns()
    change(talk)
    exchange = talk.ask(beta=True, thinking=DROP)
    assert exchange.status == 200
    entries = told(exchange)
    assert entries[0] == ("dropped", f"messages.{at}.content.0", "prefix_binding_mismatch")
    thinking = [block for block in exchange.blocks if block.kind == "thinking"]
    sent = sum(block["type"] == "thinking" for m in talk.messages[:-1] for block in m["content"])
    assert len(thinking) == sent - len(entries)


def test_a_dropped_block_costs_nothing_and_breaks_the_cache_from_there_on():
    talk = three_turns()
    talk.messages[0]["content"][0] = text("one", "5m")
    before = talk.ask(cache_control={"type": "ephemeral"})
    talk.messages[2] = user(text("2"))
    after = talk.ask(beta=True, thinking=DROP, cache_control={"type": "ephemeral"})
    dropped = [block.tokens for block in before.blocks if block.kind == "thinking"][1:]
    assert len(told(after)) == len(dropped) + 1
    assert after.hit is None  # thinking parameters changed as well
    again = talk.ask(beta=True, thinking=DROP, cache_control={"type": "ephemeral"})
    assert parts(again)[0] == after.total_tokens


def test_blocks_made_after_a_change_stay_valid_while_nothing_more_changes():
    talk = three_turns()
    edit_user(talk)
    for _ in range(2):
        assert len(told(talk.ask(beta=True, thinking=DROP))) == 2
    for at in (3, 5):  # the client drops them itself from now on
        talk.messages[at]["content"] = talk.messages[at]["content"][1:]
    assert talk.ask().status == 200


def test_a_streamed_answer_reports_what_was_dropped_at_its_end_too():
    talk = three_turns()
    edit_user(talk)
    exchange = talk.ask(beta=True, thinking=DROP, stream=True)
    assert len(told(exchange)) == 2


def test_without_the_beta_header_nothing_is_reported_and_nothing_can_be_asked_for():
    talk = three_turns()
    assert "input_transformations" not in msgspec.json.decode(talk.ask().response)
    assert f"`anthropic-beta: {CONTROLS}`" in error_of(talk.send(thinking=DROP))


def test_an_unknown_behavior_is_refused():
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "ignore"}}
    assert "Input should be 'error' or 'drop_block'" in error_of(Talk().ask(thinking=thinking))


@pytest.mark.parametrize("model", ["claude-fable-5-1", "claude-mythos-5-1", "claude-sonnet-5-5"])
def test_the_models_of_preserved_thinking_check_it(model):
    talk = three_turns(model=model)
    edit_user(talk)
    assert talk.ask().status == 400


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5", "claude-fable-5"])
def test_other_models_do_not(model):
    talk = three_turns(model=model)
    edit_user(talk)
    assert talk.ask(beta=True, thinking=DROP).status == 200


def test_older_accounts_opt_in():
    talk = three_turns(thinking_binding="opt_in")
    edit_user(talk)
    allowed = talk.ask(beta=True)
    assert {kind for kind, _, _ in told(allowed)} == {"mismatch_allowed"}
    assert [block.kind for block in allowed.blocks].count("thinking") == 3
    error = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
    assert talk.ask(beta=True, thinking=error).status == 400


def test_the_check_can_be_off():
    talk = three_turns(thinking_binding="off")
    edit_user(talk)
    assert told(talk.ask(beta=True)) == []


@pytest.mark.parametrize(("switch", "status"), [("accept", 200), ("mismatch", 400)])
def test_a_signature_of_others_is_a_switch(switch, status):
    talk = Talk(foreign_thinking=switch)
    thought = THOUGHT | {"signature": "omitted:200"}
    talk.messages = [user(text("one")), assistant(thought, text("a"))]
    assert talk.ask().status == status


def test_a_scripted_signature_is_sent_as_it_is():
    thought = THOUGHT | {"signature": "sig"}
    driver = Driver(script=[Reply(content=[thought, text("a")])])
    assert msgspec.json.decode(driver.send(user(text("a"))).response)["content"][0] == thought


def test_a_changed_text_does_not_fit_its_signature():
    talk = Talk(model="claude-opus-4-8")
    talk.ask()
    talk.messages[1]["content"][0]["thinking"] = "hum"
    assert talk.ask().status == 400


def test_interleaved_and_redacted_thinking_is_bound_block_by_block():
    redacted = {"type": "redacted_thinking", "data": ""}
    content = [THOUGHT, text("I look."), THOUGHT, call("t1")]
    script = [Reply(content=content), Reply(content=[redacted, text("b")]), Reply(content="c")]
    driver = Driver(script=script)
    messages = [user(text("a"))]
    for answer in (user(result("t1")), user(text("more"))):
        reply = driver.send(*messages, model=BOUND)
        messages += [assistant(*msgspec.json.decode(reply.response)["content"]), answer]
    assert messages[3]["content"][0]["data"]
    del messages[1]["content"][1]
    assert error_of(driver.send(*messages, model=BOUND)).startswith("messages.1.content.1: ")


def test_a_model_does_not_see_thinking_that_it_cannot_read():
    talk = Talk(model="claude-opus-4-8")
    talk.ask()
    talk.model = BOUND
    switched = talk.ask(beta=True)
    assert told(switched) == [("dropped", "messages.1.content.0", "model_binding_mismatch")]
    assert "thinking" not in [block.kind for block in switched.blocks]
    again = talk.ask(beta=True)  # what it thought itself stays
    assert len(told(again)) == 1


# Properties

_EDITS = st.lists(
    st.tuples(st.sampled_from(["ask", "edit", "unthink", "mark"]), st.integers(0, 20)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40)
@given(_EDITS)
def test_property_dropping_never_fails_and_an_append_only_tail_stays_valid(moves):
    talk = Talk()
    talk.ask()
    for move, at in moves:
        chosen = talk.messages[at % len(talk.messages)]
        match move:
            case "edit":
                chosen["content"][-1] = text(f"edited {at}")
            case "unthink":
                chosen["content"] = chosen["content"][-1:]
            case "mark":
                chosen["content"][-1] = text(chosen["content"][-1]["text"], "5m")
        for other in talk.messages[:-4]:  # four markers are allowed
            other["content"][-1].pop("cache_control", None)
        assert talk.ask(beta=True, thinking=DROP).status == 200
    lost = told(talk.ask(beta=True, thinking=DROP))
    assert told(talk.ask(beta=True, thinking=DROP)) == lost
    for _, path, _ in lost:
        message = talk.messages[int(path.split(".")[1])]
        message["content"] = message["content"][1:]
    assert talk.ask().status == 200
