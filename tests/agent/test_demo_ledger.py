"""The ledger of the demo, compared with what the demo did to the files."""

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from barograph.agent.coder import copy_sample, moves, prompts
from barograph.agent.loop import run_coder
from barograph.core.canonical import dump_json
from barograph.core.digest import write_digest
from barograph.core.ledger import Ledger, settle
from barograph.core.notes import has_failed, take_notes
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.simulator import Simulator


def contents(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def parts_of(message):
    """A message of the framework, as typed parts."""
    if isinstance(message, HumanMessage):
        return "user", "caller", (Text(message.content),)
    if isinstance(message, ToolMessage):
        said = (Text(str(message.content)),)
        result = ToolResult(message.tool_call_id, said, is_error=message.status == "error")
        return "tool", "tool", (result,)
    assert isinstance(message, AIMessage)
    calls = [
        ToolCall(call["id"], call["name"], dump_json(call["args"]).decode())
        for call in message.tool_calls
    ]
    texts = [Text(str(message.text))] if message.text else []
    return "assistant", "model", (*texts, *calls)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    root = copy_sample(tmp_path_factory.mktemp("demo") / "work")
    before = contents(root)
    with Simulator() as simulator:
        simulator.play("ledger", moves())
        model = ChatAnthropic(
            model="claude-opus-4-8",
            base_url=simulator.url,
            api_key=SecretStr("ledger"),
            max_tokens=1024,
            default_headers={"x-sim-session": "ledger"},
        )
        run = run_coder(model=model, middleware=[], workspace=root)
    notes = [
        note
        for seq, message in enumerate(run.messages, start=1)
        for note in take_notes(seq, *parts_of(message))
    ]
    return before, contents(root), run.messages, notes


def ledger_of(notes) -> Ledger:
    calls = {note.call_id: note for note in notes if note.kind == "called"}
    results = [note for note in notes if note.kind == "result"]
    return settle(
        (calls[note.call_id].effects, note.text)
        for note in results
        if not has_failed(calls[note.call_id].tool, note)
    )


def test_what_was_made_changed_and_deleted_is_what_the_file_system_says(demo):
    before, after, _, notes = demo
    ledger = ledger_of(notes)
    assert set(ledger.made) == after.keys() - before.keys() != set()
    assert set(ledger.deleted) == before.keys() - after.keys()
    changed = {path for path in before.keys() & after.keys() if before[path] != after[path]}
    assert set(ledger.changed) == changed != set()


def test_what_was_read_is_what_the_tool_for_it_answered(demo):
    _, _, messages, notes = demo
    answered = {
        item.tool_call_id
        for item in messages
        if isinstance(item, ToolMessage) and item.status != "error"
    }
    calls = [call for item in messages if isinstance(item, AIMessage) for call in item.tool_calls]
    read = {
        call["args"]["path"]
        for call in calls
        if call["name"] == "read_file" and call["id"] in answered
    }
    ledger = ledger_of(notes)
    assert set(ledger.read) == read - {*ledger.made, *ledger.changed}


def test_the_digest_of_the_demo_holds_what_was_asked_and_what_was_done(demo):
    _, _, _, notes = demo
    digest = write_digest(notes, budget_chars=12_000)
    assert all(prompt in digest for prompt in prompts())
    ledger = ledger_of(notes)
    assert all(path in digest for path in (*ledger.made, *ledger.changed, *ledger.read))
    # the edit that failed went through at the second try; the file that is not there still is not
    errors = digest.split("## Open errors\n")[1].split("\n## ")[0]
    assert "edit_file" not in errors
    assert "no such file: 'docs/aging.md'" in errors
