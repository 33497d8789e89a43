"""Small recorded sessions, written by hand."""

import json


def user(*blocks):
    return {
        "role": "user",
        "content": [block if isinstance(block, dict) else text(block) for block in blocks],
    }


def text(said):
    return {"type": "text", "text": said}


def use(call_id, name="read", **given):
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id, said):
    return {"type": "tool_result", "tool_use_id": call_id, "content": said}


def call(number, append, response, **more):
    return {
        "call": number,
        "t": f"2026-01-01T00:{number:02}:00Z",
        "model": "claude-opus-4-5",
        "agent": "main",
        "system": None,
        "tools": None,
        "append": append,
        "response": response,
        "stop_reason": "tool_use"
        if response and response[-1]["type"] == "tool_use"
        else "end_turn",
        "usage": None,
        "events": [],
        **more,
    }


LONG = "a line of what the tool found\n" * 60

SESSION = [
    call(1, [user("read two files")], [text("Reading."), use("t1", path="a"), use("t2", path="b")]),
    call(2, [user(result("t1", LONG), result("t2", LONG))], [use("t3", path="c")]),
    call(3, [user(result("t3", LONG))], [text("Read.")]),
    # the harness folds what came before
    call(4, [user("summary of it all", "now the tests")], [use("t4", "run")], replace_from=0),
    call(5, [user(result("t4", "ok"))], [text("They pass.")]),
]

NESTED = [
    call(
        1, [user("delegate")], [use("p1", "Task", prompt="look"), use("p2", "Task", prompt="act")]
    ),
    call(2, [user("look")], [use("s1", path="x")], agent="sub:one", parent_tool_use_id="p1"),
    call(3, [user("act")], [use("s2", path="y")], agent="sub:two", parent_tool_use_id="p2"),
    call(4, [user(result("s1", LONG))], [text("seen")], agent="sub:one", parent_tool_use_id="p1"),
    call(5, [user(result("s2", LONG))], [text("acted")], agent="sub:two", parent_tool_use_id="p2"),
    call(6, [user(result("p1", "seen"), result("p2", "acted"))], [text("All done.")]),
]


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
