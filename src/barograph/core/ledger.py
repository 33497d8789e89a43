"""The artifact ledger: files read, made, changed and deleted, from tool calls and their results.

**What it does.** The name of a tool and the names of its arguments tell what a call does to which
file; its result tells whether it happened. A call whose result is an error did nothing.

**What always holds.** The ledger is net: a file that was made and deleted again is not in it, one
that was deleted and made again was changed. It does not depend on what a model says it did.

**Out of scope.** What a program does that a tool starts, such as a build.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from barograph.core.canonical import parse_json
from barograph.core.shell import Did, shell_effects


class Effect(Struct, frozen=True):
    """What a call does to one file, if it succeeds."""

    did: Did
    path: str


class Ledger(Struct, frozen=True, kw_only=True):
    """Where the files stand, each path once, in the order in which they were first touched.

    Attributes:
        read: files that were read and are otherwise as they were.
        made: files that were not there before.
        changed: files that were there before and have other content now.
        deleted: files that were there before.
    """

    read: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


# What a word in a tool's name says the tool does; the first word that is found here counts.
# fmt: off
_VERBS: Final[Mapping[str, Did | str]] = {
    "read": "read", "view": "read", "cat": "read", "open": "read",
    "write": "written", "save": "written", "create": "made", "touch": "written",
    "edit": "changed", "replace": "changed", "insert": "changed", "append": "written",
    "update": "changed", "patch": "patch", "modify": "changed",
    "delete": "deleted", "remove": "deleted", "unlink": "deleted", "rm": "deleted",
    "move": "move", "rename": "move", "mv": "move", "copy": "copy", "cp": "copy",
    "mkdir": "folder", "diff": "patch",
    "bash": "shell", "shell": "shell", "terminal": "shell", "exec": "shell", "execute": "shell",
    "command": "shell", "cmd": "shell",
}
# The same word of a tool that only looks, or whose object is no file.
_LOOKS: Final = frozenset({"list", "search", "find", "glob", "grep", "info", "stat", "exists"})
_FOLDERS: Final = frozenset({"directory", "folder", "dir"})
_PATHS: Final = (
    "path", "file_path", "filepath", "file", "filename", "file_name", "target_file",
    "absolute_path", "relative_path", "notebook_path", "paths", "files", "file_paths",
)
_SOURCES: Final = ("source", "src", "from", "old_path", "source_path", "from_path", *_PATHS)
_TARGETS: Final = (
    "destination", "dest", "dst", "to", "new_path", "target", "destination_path", "to_path",
    "target_path", "new_name",
)
_OLD: Final = ("old", "old_string", "old_str", "old_text", "search")
_COMMANDS: Final = ("command", "cmd", "script", "code")
_PATCHES: Final = ("patch", "input", "diff", "patch_text", "content")
_SUBCOMMANDS: Final[Mapping[str, Did]] = {
    "view": "read", "create": "written", "str_replace": "changed", "insert": "changed",
    "undo_edit": "changed",
}
# fmt: on
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PATCHED: Final = re.compile(
    r"^\*\*\* (?P<verb>Add File|Update File|Delete File|Move to): (?P<path>.{1,1000})$",
    re.MULTILINE,
)
_DIFFED: Final = re.compile(
    r"^--- (?P<old>[^\t\n]{1,1000})[^\n]*\n\+\+\+ (?P<new>[^\t\n]{1,1000})", re.MULTILINE
)
_WAS_THERE: Final = re.compile(
    r"\b(?:updated|overwrote|overwritten|modified|edited|replaced)\b", re.IGNORECASE
)
_IS_NEW: Final = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)
_ANSWER_CHARS: Final = 200


def effects_of(tool: str, arguments: str) -> tuple[Effect, ...]:
    """What a call does to which files, if it succeeds.

    Args:
        tool: the tool's name, with or without the server it is from.
        arguments: the JSON text of its arguments.

    >>> effects_of("write_file", '{"path": "./a.txt", "content": "x"}')
    (Effect(did='written', path='a.txt'),)
    """
    given = parse_json(arguments)
    if not isinstance(given, dict):
        return ()
    words = [word.lower() for word in _WORDS.findall(tool.rsplit("__", 1)[-1])]
    if not _LOOKS.isdisjoint(words):
        return ()
    verb = next((_VERBS[word] for word in words if word in _VERBS), None)
    if verb == "made" and not _FOLDERS.isdisjoint(words):
        verb = "folder"
    command = _first(given, _COMMANDS)
    if isinstance(command, list):
        command = " ".join(str(word) for word in command)
    if isinstance(command, str) and command in _SUBCOMMANDS:
        verb = _SUBCOMMANDS[command]
    found = dict.fromkeys(
        Effect(did, posixpath.normpath(path) + ("/" if path.endswith("/") else ""))
        for did, path in _effects(verb, given, command)
        if path.strip() and "\x00" not in path
    )
    return tuple(found)


def _effects(
    verb: str | None, given: Mapping[str, object], command: object
) -> Iterator[tuple[Did, str]]:
    match verb:
        case "shell":
            if isinstance(command, str):
                is_patch = "*** Begin Patch" in command
                yield from patch_effects(command) if is_patch else shell_effects(command)
        case "patch":
            patches = [text for key in _PATCHES if isinstance(text := given.get(key), str)]
            yield from (effect for text in patches for effect in patch_effects(text))
        case "move" | "copy":
            source, target = _first(given, _SOURCES), _first(given, _TARGETS)
            if isinstance(source, str) and isinstance(target, str):
                yield ("deleted" if verb == "move" else "read"), source
                yield "written", target
        case "folder":
            yield from (("made", path.rstrip("/") + "/") for path in _paths(given))
        case "changed":
            is_new = any(given.get(key) == "" for key in _OLD)
            yield from (("made" if is_new else "changed", path) for path in _paths(given))
        case "read" | "made" | "written" | "deleted":
            yield from ((verb, path) for path in _paths(given))
        case _:
            pass


def patch_effects(patch: str) -> Iterator[tuple[Did, str]]:
    """What a patch does to which files: the form with `*** Add File:` lines, or a unified diff."""
    updated: str | None = None
    for found in _PATCHED.finditer(patch):
        path = found["path"].strip()
        match found["verb"]:
            case "Add File":
                yield "made", path
            case "Delete File":
                yield "deleted", path
            case "Move to":
                if updated is not None:
                    yield "deleted", updated
                yield "written", path
            case _:
                yield "changed", path
        updated = path
    for found in _DIFFED.finditer(patch):
        old, new = (found[side].strip().split("/", 1) for side in ("old", "new"))
        if found["old"].strip() == "/dev/null":
            yield "made", new[-1]
        elif found["new"].strip() == "/dev/null":
            yield "deleted", old[-1]
        else:
            yield "changed", new[-1]


def settle(done: Iterable[tuple[tuple[Effect, ...], str]]) -> Ledger:
    """The ledger after calls that succeeded.

    Args:
        done: for each, in the order of the results, its effects and what the tool answered.
    """
    before: dict[str, bool] = {}  # whether a file was there when it was first touched
    now: dict[str, Did] = {}
    for effects, answer in done:
        head = answer[:_ANSWER_CHARS]
        for effect in effects:
            path, did = effect.path, effect.did
            if did == "written":
                did = _written(head, is_known=now.get(path) not in (None, "deleted"))
            if path not in before:
                before[path] = did != "made"
                now[path] = did
            elif did == "deleted" or now[path] == "deleted" or did != "read":
                now[path] = did
    kinds: dict[str, list[str]] = {"read": [], "made": [], "changed": [], "deleted": []}
    for path, did in now.items():
        was = before[path]
        if did == "deleted" and not was:
            continue
        kind = did if did in ("read", "deleted") else ("changed" if was else "made")
        kinds[kind].append(path)
    return Ledger(**{kind: tuple(paths) for kind, paths in kinds.items()})


def _written(head: str, *, is_known: bool) -> Did:
    if is_known or (_WAS_THERE.search(head) and not _IS_NEW.search(head)):
        return "changed"
    return "made"


def _first(given: Mapping[str, object], keys: Iterable[str]) -> object:
    return next((given[key] for key in keys if given.get(key)), None)


def _paths(given: Mapping[str, object]) -> Iterator[str]:
    for key in _PATHS:
        value = given.get(key)
        if isinstance(value, str):
            yield value
            return
        if isinstance(value, list):
            for item in value:
                path = item.get("path") if isinstance(item, dict) else item
                if isinstance(path, str):
                    yield path
            return
