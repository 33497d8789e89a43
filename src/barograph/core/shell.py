"""What a shell command does to files, as far as it can be read off the command.

Redirections and a small table of commands are understood, `cd` within the command is followed, and
here-documents are skipped. What depends on a variable, a substitution or a script is left out: an
effect that is named did happen if the command succeeded.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

Did: TypeAlias = Literal["read", "made", "written", "changed", "deleted"]
"""What happened to a file; `written` is made or changed, whichever the file was before."""

_MOST_CHARS: Final = 20_000
_HEREDOC: Final = re.compile(r"<<-?\s{0,4}(['\"]?)([A-Za-z_]\w{0,40})\1")
_PUNCTUATION: Final = ";&|<>()\n"
# all of it but what redirects into or from a file
_SEPARATOR: Final = re.compile(r"[;&|()\n]+|[<>]+\(|<<<?-?|[<>;&|()\n]*\n[<>;&|()\n]*")
_REDIRECTS: Final[dict[str, Did]] = {
    ">": "written",
    ">|": "written",
    "&>": "written",
    ">>": "written",
    "&>>": "written",
    ">&": "written",
    "<": "read",
}
_WRAPPERS: Final = frozenset({"sudo", "command", "env", "time", "nohup", "then", "do", "else", "!"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_UNKNOWN: Final = re.compile(r"[$`]")

# Each operand of these is a file.
_ALL: Final[dict[str, Did]] = {
    "cat": "read",
    "less": "read",
    "more": "read",
    "nl": "read",
    "tac": "read",
    "bat": "read",
    "rm": "deleted",
    "unlink": "deleted",
    "touch": "written",
    "tee": "written",
    "truncate": "changed",
    "head": "read",
    "tail": "read",
    "git rm": "deleted",
}
_FOLDERS: Final[dict[str, Did]] = {"mkdir": "made", "rmdir": "deleted"}
_VALUED: Final = frozenset({"-n", "-c", "-s", "--size", "--lines", "--bytes", "--suffix"})
_IN_PLACE: Final = re.compile(r"-[a-zA-Z]*i(?:\..*)?|--in-place(?:=.*)?")
_OUTPUTS: Final = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document")}

Effects: TypeAlias = Iterator[tuple[Did, str]]


def shell_effects(command: str) -> Effects:
    """What a command did to which files, in order, if it succeeded."""
    folder = ""
    for words in _commands(_without_heredocs(command[:_MOST_CHARS])):
        operands: list[str] = []
        pending: Did | None = None
        for word in words:
            if pending is not None:
                yield from _at(folder, pending, word)
                pending = None
            elif word in _REDIRECTS:
                if operands and operands[-1].isdecimal():
                    operands.pop()  # a file descriptor
                pending = _REDIRECTS[word]
            else:
                operands.append(word)
        while operands and (operands[0] in _WRAPPERS or _ASSIGNMENT.match(operands[0])):
            operands.pop(0)
        if not operands:
            continue
        name, *given = operands
        if name == "cd":
            folder = posixpath.join(folder, given[0]) if given else ""
            continue
        for did, path in _of_command(name, given):
            yield from _at(folder, did, path)


def _of_command(name: str, given: Sequence[str]) -> Effects:
    name = name.rsplit("/", 1)[-1]
    if name == "git" and given:
        name, given = f"git {given[0]}", given[1:]
    files = [word for word in given if not word.startswith("-")]
    if name in ("mv", "git mv", "cp"):
        yield from _transfers(files, moves=name != "cp")
    elif name in _FOLDERS:
        yield from ((_FOLDERS[name], path.rstrip("/") + "/") for path in files)
    elif name in ("sed", "perl"):
        yield from _edits(name, given, files)
    elif name in _OUTPUTS:
        for option, value in pairwise(given):
            if option in _OUTPUTS[name]:
                yield "written", value
    elif name in _ALL:
        yield from ((_ALL[name], path) for path in _operands(given))


def _edits(name: str, given: Sequence[str], files: Sequence[str]) -> Effects:
    has_script = any(word in ("-e", "-f", "--expression", "--file") for word in given)
    named = files[1:] or (files if has_script else ())
    if any(_IN_PLACE.fullmatch(word) for word in given):
        yield from (("changed", path) for path in named)
    elif name == "sed":
        yield from (("read", path) for path in named)


def _operands(given: Sequence[str]) -> Iterator[str]:
    skip = False
    for word in given:
        if skip:
            skip = False
        elif word in _VALUED:
            skip = True
        elif not word.startswith(("-", "+")):
            yield word


def _transfers(files: Sequence[str], *, moves: bool) -> Effects:
    if len(files) < 2:
        return
    *sources, target = files
    into_folder = len(sources) > 1 or target.endswith("/")
    for source in sources:
        yield ("deleted" if moves else "read"), source
        if into_folder:
            yield "written", posixpath.join(target, posixpath.basename(source.rstrip("/")))
        else:
            yield "written", target


def _at(folder: str, did: Did, path: str) -> Effects:
    if not path or path.startswith(("/dev/", "&")) or path.isdecimal() or _UNKNOWN.search(path):
        return
    if _UNKNOWN.search(folder):
        if path.startswith("/"):
            yield did, path
        return
    yield did, posixpath.join(folder, path)


def _commands(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    in_comment = False
    try:
        for word in lexer:
            if _SEPARATOR.fullmatch(word):
                yield words
                words = []
                in_comment = in_comment and "\n" not in word
            else:
                in_comment = in_comment or word.startswith("#")
                if not in_comment:
                    words.append(word)
    except ValueError:  # a quote that is never closed
        return
    yield words


def _without_heredocs(text: str) -> str:
    kept: list[str] = []
    until: str | None = None
    for line in text.split("\n"):
        if until is not None:
            if line.strip() == until:
                until = None
            continue
        found = _HEREDOC.search(line)
        if found:
            until = found.group(2)
            line = line[: found.start()] + line[found.end() :]  # noqa: PLW2901 - the rest of it
        if not line.lstrip().startswith("#"):
            kept.append(line)
    return "\n".join(kept)
