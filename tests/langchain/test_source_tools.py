"""Sources that bring tools: what a tool keeps is in the log, and the next turn is told of it."""

import json
import time

import pytest
from stage import Run, ask, calling, config, prove_sound, sent_texts

from barograph.core.errors import UsageError
from barograph.core.events import SourceKept
from barograph.core.policy import Policy
from barograph.core.trust import Item
from barograph.frame import Source, SourceTool
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def _jot(caller, what: str, times: int = 1) -> str:
    """Write something down for the next turn."""
    if what == "nonsense":
        raise UsageError("That is nonsense.", next_step="Write down what makes sense.")
    caller.keep({"note": what * times})
    return f"Written down by {caller.path}."


def _count(caller) -> str:
    """Count one more."""
    counted = int(caller.state.path(caller.path).kept.of("pad").get("count", "0")) + 1
    time.sleep(0.05)
    caller.keep({"count": str(counted)})
    return f"That makes {counted}."


def _pad(**more):
    return Source(
        name="pad",
        compose=lambda ask: ask.kept("pad").get("note"),
        trust="operator",
        tools=(SourceTool(name="jot", run=_jot), SourceTool(name="count", run=_count)),
        **more,
    )


@pytest.fixture
def run(simulator, session, store):
    def make(**more):
        return Run(simulator, session, store, {"frame": [_pad()], **more})

    return make


def _jotting(number, **given):
    return calling((f"j{number}", "jot", given))


def test_what_a_tool_keeps_is_said_in_the_next_turn(run, store, session):
    pad = run()
    pad.say("Remember the tide.", _jotting(1, what="High tide at six."), DONE)
    messages = pad.say("When?", DONE)

    kept = [(event.source, event.key, event.text) for event in pad.of(SourceKept)]
    assert kept == [("pad", "note", "High tide at six.")]
    assert "High tide at six." in _last_request(pad)
    assert any(message.content == "Written down by main." for message in messages)
    prove_sound(store, session, pad.exchanges)


def test_another_process_goes_on_with_what_was_kept(run, store, session):
    pad = run()
    pad.say("Remember the tide.", _jotting(1, what="High tide at six."), DONE)
    pad.restart()
    pad.say("When?", DONE)

    assert "High tide at six." in _last_request(pad)


def test_texts_of_a_class_of_their_own_are_kept_and_told_as_texts(simulator, session, store):
    class Words(str):
        __slots__ = ()

    def jot(caller):
        """Write something down."""
        caller.keep({Words("note"): Words("High tide at six.")})
        return Words("Written down.")

    tides = Source(
        name=Words("pad"),
        compose=lambda ask: [
            Item(id=Words("tide"), text=Words(text), trust=Words("derived"))
            for text in ask.kept("pad").values()
        ],
        tools=(SourceTool(name="jot", run=jot),),
    )
    pad = Run(simulator, session, store, {"frame": [tides]})
    pad.say("Remember.", calling(("j", "jot", {})), DONE)
    pad.say("When?", DONE)

    assert "High tide at six." in _last_request(pad)
    prove_sound(store, session, pad.exchanges)


def test_what_is_kept_anew_takes_the_place_of_what_was_there(run):
    pad = run()
    pad.say("Remember.", _jotting(1, what="six"), DONE)
    pad.say("No, later.", _jotting(2, what="seven", times=2), DONE)
    pad.say("When?", DONE)

    newest = _last_request(pad).rpartition("When?")[2]
    assert "sevenseven" in newest
    assert "six" not in newest


def test_what_was_kept_in_a_turn_that_is_taken_back_is_not_kept(run, simulator, session, store):
    pad = run()
    pad.say("Hello.", DONE)
    before = pad.agent.get_state(config(session)).config
    pad.say("Remember.", _jotting(1, what="High tide at six."), DONE)
    simulator.play(session, [DONE])
    pad.agent.invoke(ask("When?"), before)

    assert "High tide" not in _last_request(pad)
    prove_sound(store, session, pad.exchanges)


def test_of_calls_that_a_round_asks_for_at_once_each_finds_what_the_one_before_kept(run):
    pad = run()
    pad.say("Count.", calling(*((f"c{n}", "count", {}) for n in range(4))), DONE)

    assert [event.text for event in pad.of(SourceKept)] == ["1", "2", "3", "4"]


def test_an_error_of_the_tool_is_its_answer(run):
    pad = run()
    messages = pad.say("Remember.", _jotting(1, what="nonsense"), DONE)

    assert any("That is nonsense. Write down" in str(message.content) for message in messages)


def test_the_tool_is_offered_with_its_words_and_without_the_caller(run):
    pad = run()
    pad.say("Hello.", DONE)

    offered = {one["name"]: one for one in _offered(pad)}["jot"]
    assert offered["description"] == "Write something down for the next turn."
    assert set(offered["input_schema"]["properties"]) == {"what", "times"}
    assert offered["input_schema"]["required"] == ["what"]


def test_it_is_offered_at_first_also_where_other_tools_are_to_be_found(run):
    pad = run(policy=Policy(base_tools=("look",)))
    pad.say("Hello.", DONE)

    assert {"jot", "look", "search_tools"} <= {one["name"] for one in _offered(pad)}


def test_a_source_that_is_not_asked_in_a_mode_brings_no_tools_there():
    with_it = Barograph("memory", frame=[_pad(modes=frozenset({"private"}))], mode="private")
    without = Barograph("memory", frame=[_pad()], mode="private")

    assert "jot" in {tool.name for tool in with_it.tools}
    assert "jot" not in {tool.name for tool in without.tools}


def test_outside_of_a_session_the_tool_says_so():
    tools = {tool.name: tool for tool in Barograph("memory", frame=[_pad()]).tools}

    assert "in a session only" in tools["jot"].invoke({"what": "x"})


def _offered(pad):
    return json.loads(pad.exchanges[-1].request)["tools"]


def _last_request(pad):
    return "\n".join(text or "" for text in sent_texts(pad.exchanges[-1]))


@pytest.mark.parametrize("name", ["jot", "read_original"])
def test_a_tool_whose_name_another_one_has_is_refused(store, name):
    other = Source(
        name="other", compose=lambda _: None, tools=(SourceTool(name=name, run=lambda _: ""),)
    )
    with pytest.raises(UsageError, match=f"More than one tool has the name {name}"):
        Barograph(store, frame=[_pad(), other])
