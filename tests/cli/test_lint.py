"""`barograph lint`: each defect of an agent is named, and nothing is sent or written meanwhile."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from barograph.cli import main
from barograph.core.errors import UsageError
from barograph.core.prefixlint import lint
from barograph.langchain.rehearsal import agent_of, rehearse, rehearsing

with rehearsing():
    from lintable import agents


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Lint by command, with the package of agents where it can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LINTABLE_STORE", str(tmp_path / "sessions.db"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return lambda *arguments: CliRunner().invoke(main, ["lint", *arguments])


def found(given, runs=2):
    """What two runs in this process show."""
    agent = agent_of(given)
    return [(one.label, one.kind) for one in lint([rehearse(agent) for _ in range(runs)])]


@pytest.mark.parametrize(
    "name",
    ["clean", "bare", "remembering", "framed", "make", "make_later"],
)
def test_an_agent_that_stays_the_same_is_clean(name):
    assert found(getattr(agents, name)) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("session_id", "id"),
        ("counter", "text"),
        ("retried", "moment"),
        ("async_only", "moment"),
        ("clock", "moment"),
    ],
)
def test_what_changes_from_call_to_call_is_named(name, kind, monkeypatch):
    times = iter(range(1_800_000_000, 1_900_000_000, 61))

    class Clock(agents.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(next(times), tz)

    monkeypatch.setattr(agents, "datetime", Clock)

    assert found(getattr(agents, name)) == [("system prompt", kind)]


def test_the_repr_of_an_object_is_suspect_from_one_run():
    assert found(agents.shown, runs=1) == [("system prompt", "address")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (agents.make_with, "make_with needs arguments"),
        (agents.make_nothing, "is no agent, and makes none: it is of int"),
        (agents.anything, "is no agent"),
        (agents.fails, "failed before its first model call"),
    ],
    ids=["arguments", "a number", "a text", "an error"],
)
def test_what_is_no_agent_that_can_be_run_is_refused_with_the_reason(given, said):
    with pytest.raises(UsageError, match=said):
        found(given)


def test_a_set_has_another_order_in_another_process(run):
    shown = run("lintable.agents:colours", "--json")

    assert shown.exit_code == 1
    document = json.loads(shown.stdout)
    assert list(document) == ["schema", "agent", "runs", "processes", "findings"]
    assert document["schema"] == "barograph.lint/1"
    (finding,) = document["findings"]
    assert (finding["kind"], finding["grade"], finding["between"]) == (
        "order",
        "proven",
        "processes",
    )


def test_a_clean_agent_ends_with_0_and_leaves_nothing_behind(run, tmp_path):
    shown = run("lintable.agents:clean")

    assert shown.exit_code == 0, shown.output
    assert "are the same in 5 runs in 4 processes" in shown.stdout
    assert list(tmp_path.rglob("*.db*")) == []


def test_a_module_that_exits_and_leaves_a_thread_running_keeps_nobody_waiting(run):
    began = time.monotonic()
    shown = run("lintable.busy:give_up")

    assert time.monotonic() - began < 60
    assert shown.exit_code == 2
    assert "SystemExit: there is no config" in shown.stderr


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("lintable.agents", "names no agent"),
        ("lintable.nothing:agent", "cannot be imported"),
        ("lintable.agents:nobody", "has no nobody"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_mistake_in_use(run, named, said):
    shown = run(named)

    assert shown.exit_code == 2
    assert said in shown.stderr
