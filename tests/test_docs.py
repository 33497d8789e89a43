"""The documentation is held to the code: what it shows runs, what it lists is all there is.

`python tests/test_docs.py` writes the generated parts anew. They stand between two comments,
`<!-- generated: NAME -->` and `<!-- end -->`; their text comes from the code and its docstrings.
"""

import inspect
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
import msgspec
import pytest
from click.testing import CliRunner

from barograph.audit import (
    context,
    differences,
    explain,
    lifetimes,
    reading,
    segments,
    series,
    verify,
)
from barograph.cli import _knowledge, main
from barograph.core import (
    breakpoints,
    divergence,
    errors,
    events,
    ingest,
    masking,
    parts,
    policy,
    texts,
    trust,
    verdict,
)
from barograph.core.engine import TRANSITIONS
from barograph.simulator.switches import Switches
from barograph.store import SessionInfo, SqliteStore, documents, knowledge, repair

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
EVENTS = get_args(events.Event)
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[a-z ]+) -->\n)?^```(?P<lang>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PLACEHOLDERS = re.compile(r"[A-Z]{4,}|…")

# What a field means where its class does not say: the same everywhere.
USUAL = {
    "at": "time, seconds since the epoch, given by the adapter",
    "path": "agent path",
    "call": "number of the call in the session, from 1",
    "turn": "turn of this agent path, from 1",
    "round": "round of the turn, from 1",
    "parts": "the content",
    "role": "who speaks: `user`, `assistant` or `tool`",
    "call_id": "id of the tool call",
    "name": "name of the tool",
    "native_id": "the framework's own id, if it has one",
    "usage": "tokens as reported; null where the provider reported none",
    "session": "id of the session",
    "stop_reason": "why the model stopped, in the provider's word",
    "request_id": "the provider's id of the request",
    "provider_id": "the provider's id of the answer",
    "latency_seconds": "from the plan of the call to the end of the answer",
    "arguments": "JSON text as generated",
    "is_error": "whether the tool failed",
    "block": "raw JSON of the native block",
    "ttl": "lifetime of the entry it writes",
    "slot": "why it stands there; null where it was not ours",
}
# The same for fields that mean something else in each class.
OWN = {
    "SessionOpened.made_by": "who wrote the log, and its version",
    "SessionOpened.policy": "name of the policy",
    "SessionOpened.renderer": "wire format of its requests",
    "SessionOpened.mode": "the kind of run that it began as",
    "TurnEnded.rounds": "rounds that the turn took",
    "MessageLeftOut.reason": "why it may not be sent",
    "HeaderSet.model": "model id",
    "CallFailed.error": "class of the error",
    "CallFailed.status": "HTTP status, if there was one",
    "CallFailed.message": "what the error said, shortened",
    "ToolEnded.error": "the exception, where the tool raised one",
    "ConfigChanged.knob": "the knob",
    "ConfigChanged.before": "its value until now, as JSON text",
    "ConfigChanged.after": "its value from here on, as JSON text",
    "ArchiveMissed.reason": "what the store said",
    "Nudged.text": "the text as sent",
    "Usage.read_tokens": "tokens read from the cache",
    "Usage.write_5m_tokens": "tokens written with the short lifetime",
    "Usage.write_1h_tokens": "tokens written with the long lifetime",
    "Usage.uncached_tokens": "all other input tokens",
    "Usage.output_tokens": "output tokens",
    "Deviation.where": "`system`, `tools`, the index of a message, or `body`",
    "Deviation.text": "the piece as sent; null when it is as rendered again",
    "Text.text": "the text",
    "Thinking.text": "the reasoning",
    "Thinking.signature": "the provider's signature",
    "ToolCall.id": "id of the call",
    "ToolResult.content": "what the tool answered",
    "Opaque.kind": "native type of the block",
    "NamedBy.seq": "number of the event",
    "NamedBy.event": "its type",
    "NamedBy.cause": "the cause it states",
    "ParameterChange.key": "the parameter",
    "ParameterChange.before": "earlier value, as JSON text; empty where absent",
    "ParameterChange.after": "later value, as JSON text; empty where absent",
    "TakenIn.origin": "the path as it was given",
    "TakenIn.document": "what became of it",
    "Failed.origin": "the path as it was given",
    "Failed.what": "what is wrong with it",
    "Failed.next_step": "what can be done",
    "Taken.documents": "those that were taken in",
    "Taken.failed": "those that were not",
    "Taken.others": "how many files of folders were of kinds that are not read",
    "Mark.segment": "the segment it stands on",
    "Mark.block": "index of the block in the segment",
}
ARGUMENTS = {
    "SESSION": "An id, a beginning of one that fits no other, or `latest`.",
    "[SESSION]": "The same; all sessions without it.",
    "CALL": "Number of a call.",
    "HANDLE": "What a stub names: `#` and a number.",
    "[HANDLE]": "`#` and the number of the event that brought the message; without one, all pins.",
    "[CALL]": "Number of a call; all calls without it.",
    "[OTHER]": "Number of a later call.",
    "PATH...": "Recordings, or folders that hold some.",
    "[FILE]...": "Files, or folders that hold some.",
    "QUERY": "Any text.",
    "[ID]...": "Id of a document, or a beginning of one that fits no other.",
    "{show}": "What to do; there is one so far.",
    "[SCENARIO]": "A TOML or JSON file; without it, every request gets the same text.",
    "TURN": "The number of a turn of the agent path, or `latest`.",
    "MODULE:AGENT": "What holds an agent, or a function without arguments that makes one.",
}


# Written from the code


def type_in_words(hint: Any) -> str:  # noqa: PLR0911 - one arm for each kind of type
    if hint in (parts.Parts, tuple[parts.Leaf, ...]):
        return "list of parts"
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin in (Union, types.UnionType):
        return " or ".join(type_in_words(arg) for arg in args)
    if origin is tuple:
        if args[-1] is Ellipsis:
            return f"list of {type_in_words(args[0])}"
        return "pair of " + " and ".join(map(type_in_words, args))
    if origin is dict:
        return "object"
    simple = {str: "text", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    return simple.get(hint) or f"`{hint.__name__}`"


def described(kind: type) -> tuple[str, dict[str, str]]:
    """The text of a class's docstring without its attributes, and what it says of each."""
    text = inspect.getdoc(kind) or ""
    head, _, tail = text.partition("\nRaises:\n")[0].partition("\nAttributes:\n")
    found: dict[str, str] = {}
    for line in tail.splitlines():
        if match := re.match(r"    (\w+): (.*)", line):
            name = match[1]
            found[name] = match[2]
        elif line.strip():
            found[name] += " " + line.strip()
    return head.strip(), found


def table_of(kind: Any) -> str:
    _, meanings = described(kind)
    hints = get_type_hints(kind)
    bodies = getattr(kind, "BODIES", ())
    lines = ["| Field | Type | Meaning |", "|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        meaning = (
            meanings.get(field.name)
            or OWN.get(f"{kind.__name__}.{field.name}")
            or USUAL.get(field.name, "")
        )
        meaning = meaning.rstrip(".").replace("None", "null").replace("|", "\\|")
        if field.name in bodies:
            meaning = f"{meaning}; stored as a body where large" if meaning else "stored as a body"
        lines.append(f"| `{field.name}` | {type_in_words(hints[field.name])} | {meaning} |")
    return "\n".join(lines)


def section_of(kind: Any, title: str) -> str:
    text, _ = described(kind)
    return f"{title}\n\n{text}\n\n{table_of(kind)}\n"


def tag_of(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


def generated_events() -> str:
    return "\n".join(section_of(kind, f"### `{tag_of(kind)}`") for kind in EVENTS)


def generated_event_values() -> str:
    kinds = (events.Usage, events.Breakpoint, events.Deviation)
    return "\n".join(section_of(kind, f"### {kind.__name__}") for kind in kinds)


def generated_parts() -> str:
    kinds = get_args(parts.Part)
    return "\n".join(section_of(kind, f"### `{tag_of(kind)}`") for kind in kinds)


def generated_transitions() -> str:
    columns = list(dict.fromkeys(kind for _, kind in TRANSITIONS))
    phases = list(dict.fromkeys(phase for phase, _ in TRANSITIONS))
    lines = [
        "| phase | " + " | ".join(f"`{kind.__name__}`" for kind in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for phase in phases:
        cells = [TRANSITIONS.get((phase, kind), "refused") for kind in columns]
        lines.append(f"| `{phase}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def generated_repairs() -> str:
    rows = (
        ("the tool was not started", texts.NOT_STARTED),
        ("it was started and did not end", texts.OUTCOME_UNKNOWN),
        ("it raised", texts.failed("ValueError: ...")),
        ("nothing", texts.NO_RESULT),
    )
    lines = [f"| {known} | `{text}` |" for known, text in rows]
    return "\n".join(["| What the log knows | Text |", "|---|---|", *lines]) + "\n"


def generated_masks() -> str:
    lines = [
        f"| `{rule.name}` | {rule.what}{'; with `--mask-emails`' if rule.optional else ''} |"
        for rule in masking.RULES
    ]
    return "\n".join(["| Kind | What is masked |", "|---|---|", *lines]) + "\n"


def generated_policy() -> str:
    return table_of(policy.Policy) + "\n"


def generated_switches() -> str:
    return table_of(Switches) + "\n"


def generated_errors() -> str:
    return "```text\n" + (errors.__doc__ or "").split("```")[1].strip("\n") + "\n```\n"


JSON_STRUCTS = (
    SessionInfo,
    _knowledge.Taken,
    _knowledge.TakenIn,
    _knowledge.Failed,
    knowledge.Added,
    documents.Entry,
    repair.Repair,
    repair.Unread,
    trust.Item,
    explain.CallRow,
    explain.Totals,
    series.SeriesRow,
    series.Figures,
    context.Composition,
    lifetimes.TtlAdvice,
    lifetimes.Choice,
    context.Threshold,
    context.KindShare,
    context.NamedShare,
    context.LargePiece,
    verdict.Verdict,
    divergence.Divergence,
    verdict.NamedBy,
    segments.SegmentView,
    segments.BlockView,
    reading.Source,
    differences.Difference,
    differences.SegmentChange,
    differences.BlockChange,
    differences.ParameterChange,
    differences.Mark,
    verify.Verification,
    verify.Finding,
)


def generated_json() -> str:
    return "\n".join(section_of(kind, f"#### {kind.__name__}") for kind in JSON_STRUCTS)


def generated_commands() -> str:
    lines = ["| Command | What it does |", "|---|---|"]
    for name, command in commands().items():
        line = (command.help or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"| [`barograph {name}`](#barograph-{name.replace(' ', '-')}) | {line} |")
    return "\n".join(lines) + "\n"


def options_table(name: str) -> str:
    lines = ["| Argument or option | Meaning |", "|---|---|"]
    for param in commands()[name].params:
        if isinstance(param, click.Argument):
            shown = param.make_metavar(click.Context(commands()[name]))
            meaning = ARGUMENTS[shown]
        else:
            assert isinstance(param, click.Option)
            shown = "/".join(param.opts)
            if not param.is_flag:
                shown += " " + param.make_metavar(click.Context(commands()[name]))
            meaning = param.help or ""
            if param.show_default:
                meaning += f" Default: `{param.default}`."
        lines.append(f"| `{shown.replace('|', ', ')}` | {meaning} |")
    return "\n".join(lines) + "\n"


def commands() -> dict[str, click.Command]:
    assert isinstance(main, click.Group)
    context = click.Context(main)
    found: dict[str, click.Command] = {}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            found |= {f"{name} {below}": one for below, one in sorted(command.commands.items())}
        elif command is not None:
            found[name] = command
    return found


def generated(name: str) -> str:
    if name.startswith("options "):
        return options_table(name.removeprefix("options "))
    return str(globals()["generated_" + name.replace(" ", "_")]())


GENERATED = re.compile(r"(<!-- generated: ([a-z ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def regenerated(text: str) -> str:
    return GENERATED.sub(lambda found: f"{found[1]}\n{generated(found[2])}\n{found[4]}", text)


@pytest.mark.parametrize("page", NAMES)
def test_generated_parts_are_what_the_code_says(page):
    text = (ROOT / page).read_text("utf-8")

    assert regenerated(text) == text, "run: python tests/test_docs.py"


def test_what_is_generated_has_a_place():
    text = "".join(page.read_text("utf-8") for page in PAGES)

    there = {found[2] for found in GENERATED.finditer(text)}
    own = {name[10:].replace("_", " ") for name in globals() if name.startswith("generated_")}
    assert own | {f"options {name}" for name in commands()} == there


def test_every_event_and_field_has_its_row_and_its_meaning():
    text = (ROOT / "docs/reference/events.md").read_text("utf-8")

    for kind in EVENTS:
        section = text.partition(f"### `{tag_of(kind)}`\n")[2].partition("\n### ")[0]
        for field in msgspec.structs.fields(kind):
            assert f"| `{field.name}` |" in section, (tag_of(kind), field.name)


@pytest.mark.parametrize("page", NAMES)
def test_no_field_is_without_a_meaning(page):
    text = (ROOT / page).read_text("utf-8")

    assert re.findall(r"^\| `\w+` \| .* \|  \|$", text, re.MULTILINE) == []


@pytest.mark.parametrize("page", NAMES)
def test_every_test_that_a_page_names_is_there(page):
    named = set(re.findall(r"`(test_[a-z0-9_]{12,})`", (ROOT / page).read_text("utf-8")))
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))

    assert {name for name in named if f"def {name}(" not in tests} == set()


# Words


def literals(hint: Any) -> set[str]:
    if get_origin(hint) is Literal:
        return {str(value) for value in get_args(hint)}
    return set().union(*map(literals, get_args(hint))) if get_args(hint) else set()


def vocabulary() -> set[str]:
    words = {tag_of(kind) for kind in (*EVENTS, *get_args(parts.Part))}
    for kind in (*EVENTS, policy.Policy, events.Breakpoint):
        for hint in get_type_hints(kind).values():
            words |= literals(hint)
    words |= {field.name for field in msgspec.structs.fields(policy.Policy)}
    words |= literals(verdict.Cause) | literals(verdict.Evidence) | literals(ingest.Verdict)
    return words | {"header", "insurance", "anchor", "tail", "rewound", "edited", "answered"}


@pytest.mark.parametrize("word", sorted(vocabulary()))
def test_the_glossary_has_every_word_of_log_and_policy(word):
    text = (ROOT / "docs/glossary.md").read_text("utf-8")

    assert f"`{word}`" in text


def test_the_slots_in_the_glossary_are_those_of_the_planner():
    source = inspect.getsource(breakpoints)

    assert set(re.findall(r'"(header|insurance|anchor|tail)"', source)) == {
        "header",
        "insurance",
        "anchor",
        "tail",
    }


@pytest.mark.parametrize("page", NAMES)
def test_a_page_speaks_of_barograph_alone(page):
    text = (ROOT / page).read_text("utf-8")

    for word in ("/work/", "../shared", "DESIGN.md", "FEATURES.md", "/tmp", "/root"):  # noqa: S108
        assert word not in text
    assert [line for line in text.splitlines() if line.endswith(" ")] == []


# Commands and links


def command_lines(text: str) -> list[str]:
    """Every command line shown: in blocks, and between single backticks."""
    found = []
    for block in FENCE.finditer(text):
        for line in block["body"].splitlines():
            shown = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if shown.startswith("barograph ") and block["lang"] in ("", "text", "sh", "console"):
                found.append(re.split(r"\s{2,}| \| | > | #", shown)[0])
    outside = FENCE.sub("", text)
    return [*found, *re.findall(r"`(barograph [a-z][^`]*)`", outside)]


@pytest.mark.parametrize("page", NAMES)
def test_every_command_line_shown_parses(page):
    for line in command_lines((ROOT / page).read_text("utf-8")):
        name, *args = shlex.split(line)[1:]
        if name not in commands() and args:
            name, args = f"{name} {args[0]}", args[1:]
        assert name in commands(), line
        command = commands()[name]
        known = {opt for param in command.params for opt in param.opts}
        assert {arg for arg in args if arg.startswith("--")} <= known | {"--help"}, line
        if args and not PLACEHOLDERS.search(line) and "--help" not in args:
            command.make_context(name, list(args))


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", NAMES)
def test_every_link_leads_somewhere(page):
    text = FENCE.sub("", (ROOT / page).read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert goal.is_file(), target
        # the site holds docs/ and nothing else
        assert not page.startswith("docs/") or goal.is_relative_to(ROOT / "docs"), target
        assert not anchor or anchor in anchors(goal), target


def test_every_page_is_linked():
    links = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            links.add((page.parent / target).resolve())
    assert [page for page in PAGES if page not in links and page.name != "README.md"] == []


# What is shown runs


def run_page(page: str, folder: Path) -> None:
    """Run the marked blocks of a page from its top: code, files, commands with their output."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in FENCE.finditer((ROOT / page).read_text("utf-8")):
        match (block["mark"] or "").split():
            case ["runnable"]:
                exec(compile(block["body"], page, "exec"), names)  # noqa: S102 - our own page
            case ["recording"]:
                (folder / "oslo.jsonl").write_text(block["body"], "utf-8")
            case ["checked"]:
                check_output(block["body"])


def check_output(shown: str) -> None:
    """A command's output holds the lines shown, in their order; `...` stands for any lines."""
    command, output = "", ""
    for line in shown.splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ barograph ")
            ran = CliRunner().invoke(main, shlex.split(command))
            output = ran.output
        elif line.strip() not in ("", "..."):
            before, found, output = output.partition(line)
            assert found, f"{command}: {line!r} is not in what follows:\n{output or before}"


def test_the_test_file_shown_passes(tmp_path):
    blocks = FENCE.finditer((ROOT / "docs/howto.md").read_text("utf-8"))
    (source,) = (block["body"] for block in blocks if block["mark"] == "runnable pytest")
    (tmp_path / "test_agent.py").write_text(source, "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr


RUNNING = [name for name in NAMES if "<!-- runnable" in (ROOT / name).read_text("utf-8")]


def test_what_the_pages_show_runs_as_shown(tmp_path, monkeypatch):
    # one test for all pages: loading LangChain takes longer than everything they do with it
    from barograph.simulator import Reply, Simulator

    opened: list[SqliteStore] = []
    create = SqliteStore.__init__
    monkeypatch.setattr(
        SqliteStore,
        "__init__",
        lambda store, *args, **kwargs: opened.append(store) or create(store, *args, **kwargs),
    )
    for name in [name for name in os.environ if name.startswith(("LANGSMITH", "LANGCHAIN"))]:
        monkeypatch.delenv(name)
    with Simulator(lambda _body, _index: Reply(content="30 days.")) as simulator:
        # a model that is named and not made here finds the simulator instead of the network
        monkeypatch.setenv("ANTHROPIC_BASE_URL", simulator.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        for page in RUNNING:
            folder = tmp_path / page.replace("/", "-")
            folder.mkdir()
            monkeypatch.chdir(folder)
            monkeypatch.setenv("BAROGRAPH_HOME", str(folder / "home"))
            run_page(page, folder)
    for store in opened:  # a page need not close what it opened to show something else
        store.close()


if __name__ == "__main__":
    for doc in PAGES:
        doc.write_text(regenerated(doc.read_text("utf-8")), "utf-8")
