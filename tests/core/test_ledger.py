"""Which files were touched, told from the names and arguments of tools and from their results."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.ledger import Effect, Ledger, effects_of, settle
from barograph.core.shell import shell_effects


def told(tool, **arguments):
    return [(effect.did, effect.path) for effect in effects_of(tool, json.dumps(arguments))]


TOOLS = [
    ("read_file", {"path": "a.py"}, [("read", "a.py")]),
    ("Read", {"file_path": "/w/a.py"}, [("read", "/w/a.py")]),
    ("mcp__fs__write_file", {"path": "./a.py", "content": "x"}, [("written", "a.py")]),
    ("readManyFiles", {"paths": ["a.py", "b.py"]}, [("read", "a.py"), ("read", "b.py")]),
    ("edit_file", {"path": "a.py", "old": "x", "new": "y"}, [("changed", "a.py")]),
    ("edit_file", {"path": "a.py", "old": "", "new": "y"}, [("made", "a.py")]),
    ("MultiEdit", {"file_path": "a.py", "edits": []}, [("changed", "a.py")]),
    ("str_replace_based_edit_tool", {"command": "view", "path": "a"}, [("read", "a")]),
    ("str_replace_based_edit_tool", {"command": "create", "path": "a"}, [("written", "a")]),
    ("str_replace_editor", {"command": "insert", "path": "a"}, [("changed", "a")]),
    ("delete_file", {"target_file": "a.py"}, [("deleted", "a.py")]),
    ("move_file", {"source": "a", "destination": "b"}, [("deleted", "a"), ("written", "b")]),
    ("rename", {"old_path": "a", "new_path": "b"}, [("deleted", "a"), ("written", "b")]),
    ("copy_file", {"src": "a", "dst": "b"}, [("read", "a"), ("written", "b")]),
    ("create_directory", {"path": "d"}, [("made", "d/")]),
    ("list_files", {"path": "d"}, []),
    ("search_files", {"path": "d", "pattern": "x"}, []),
    ("get_file_info", {"path": "a"}, []),
    ("create_issue", {"title": "x"}, []),
    ("run_tests", {"target": "a.py"}, []),
    ("write_todos", {"todos": []}, []),
]


@pytest.mark.parametrize(("tool", "arguments", "effects"), TOOLS)
def test_a_call_touches_what_its_names_say(tool, arguments, effects):
    assert told(tool, **arguments) == effects


PATCH = """*** Begin Patch
*** Add File: new.py
+x
*** Update File: old.py
*** Move to: moved.py
@@
*** Delete File: gone.py
*** End Patch"""
DIFF = (
    "--- a/src/x.py\n+++ b/src/x.py\n@@\n--- /dev/null\n+++ b/n.py\n@@\n--- a/o.py\n+++ /dev/null\n"
)


def test_patches_name_what_they_touch():
    effects = [("made", "new.py"), ("changed", "old.py"), ("deleted", "old.py")]
    effects += [("written", "moved.py"), ("deleted", "gone.py")]
    assert told("apply_patch", input=PATCH) == effects
    assert told("shell", command=f"apply_patch <<'E'\n{PATCH}\nE") == effects
    diffed = [("changed", "src/x.py"), ("made", "n.py"), ("deleted", "o.py")]
    assert told("apply_diff", diff=DIFF) == diffed


COMMANDS = [
    ("cat a.py b.py | head -n 3", [("read", "a.py"), ("read", "b.py")]),
    ("echo x > a.txt", [("written", "a.txt")]),
    ("echo x >> 'a b.txt' 2>&1", [("written", "a b.txt")]),
    ("make 2> err.log", [("written", "err.log")]),
    ("ls > /dev/null 2>/dev/null", []),
    ("sort < in.txt | tee -a out.txt", [("read", "in.txt"), ("written", "out.txt")]),
    ("rm -rf build/ x.pyc", [("deleted", "build/"), ("deleted", "x.pyc")]),
    ("mv a.py b.py", [("deleted", "a.py"), ("written", "b.py")]),
    (
        "git mv a.py b.py d/",
        [("deleted", "a.py"), ("written", "d/a.py"), ("deleted", "b.py"), ("written", "d/b.py")],
    ),
    ("git rm --cached a.py", [("deleted", "a.py")]),
    ("cp a b", [("read", "a"), ("written", "b")]),
    ("cd src && touch x.py && sed -i 's/a/b/' y.py",
     [("written", "src/x.py"), ("changed", "src/y.py")]),
    ("sed -n 1,5p a.py", [("read", "a.py")]),
    ("mkdir -p a/b", [("made", "a/b/")]),
    ("curl -s -o page.html https://example.org", [("written", "page.html")]),
    ("cat > a.py <<'EOF'\nrm -rf /\necho > b.py\nEOF\nrm c.py",
     [("written", "a.py"), ("deleted", "c.py")]),
    ("rm $FILE; rm `which x`", []),
    ("FOO=1 sudo rm a", [("deleted", "a")]),
    ('git commit -m "rm a > b"', []),
    ("# rm a", []),
    ("ls # don't rm a\nrm b", []),
    ("ls # all\nrm b;\nrm c", [("deleted", "b"), ("deleted", "c")]),
    ('git commit -m "one\nrm a\ntwo"\nrm b', [("deleted", "b")]),
    ("(cd d; touch x) && diff <(cat a) b", [("written", "d/x"), ("read", "d/a")]),
    ("python - <<PY\nopen('a','w')\nPY", []),
]  # fmt: skip


@pytest.mark.parametrize(("command", "effects"), COMMANDS)
def test_a_shell_command_touches_what_can_be_read_off_it(command, effects):
    assert list(shell_effects(command)) == effects


def test_the_ledger_is_net():
    def did(*pairs):
        return [((Effect(verb, path),), "") for verb, path in pairs]

    assert settle(did(("made", "a"), ("changed", "a"), ("read", "a"))) == Ledger(made=("a",))
    assert settle(did(("made", "a"), ("deleted", "a"))) == Ledger()
    assert settle(did(("deleted", "a"), ("made", "a"))) == Ledger(changed=("a",))
    assert settle(did(("read", "a"), ("deleted", "a"))) == Ledger(deleted=("a",))
    assert settle(did(("read", "a"), ("written", "a"))) == Ledger(changed=("a",))
    assert settle(did(("written", "a"), ("written", "a"))) == Ledger(made=("a",))
    overwrote = [((Effect("written", "a"),), "The file a has been updated.")]
    assert settle(overwrote) == Ledger(changed=("a",))


@given(st.text(max_size=300), st.sampled_from(["bash", "apply_patch", "write_file", "move"]))
def test_no_argument_breaks_the_ledger(text, tool):
    effects_of(tool, text)
    for key in ("command", "path", "input", "patch", "source", "paths"):
        effects_of(tool, json.dumps({key: text, "destination": text}))
        effects_of(tool, json.dumps({key: [text, 1, {"path": text}]}))
