"""Scenario files, and the fixture for tests of others."""

import json
import os
import subprocess
import sys

import msgspec
import pytest
from wire_prompts import MODEL, text, user

from barograph.core.errors import SettingsError
from barograph.simulator import SimulatedProvider, testing
from barograph.simulator.scenario import load_model_facts, load_scenario

DOOR = """
[sessions.default]
replies = [
  { thinking = "?", text = "I look.", tool_calls = [{ name = "look", input = { b = 1, a = 2 } }] },
  { text = "Open.", output_tokens = 7, stop_reason = "refusal" },
]

[sessions.loop]
when_over = "repeat"
replies = [{ text = "again" }]

[sessions.raw]
replies = [{ content = [{ type = "text", text = "raw" }] }]

[[faults]]
kind = "overloaded"
session = "default"
index = 1

[switches]
first_token_seconds = 2
bound_models = ["claude-test"]

[tokens]
tokens_per_1000_chars = 1000
"""


def provider_of(scenario):
    made = SimulatedProvider(rule=scenario.rule, switches=scenario.switches, faults=scenario.faults)
    for session, script in scenario.sessions.items():
        made.play(session, script)
    return made


def ask(made, session="default", words="a"):
    body = {"model": MODEL, "max_tokens": 9, "messages": [user(text(words))]}
    exchange = made.handle(msgspec.json.encode(body), {"x-sim-session": session})
    return exchange, msgspec.json.decode(exchange.response)


def write(tmp_path, content, name="door.toml"):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    return path


def test_a_scenario_plays_its_sessions_faults_and_switches(tmp_path):
    made = provider_of(load_scenario(write(tmp_path, DOOR)))
    exchange, first = ask(made, words="abcdef")
    assert exchange.total_tokens == 6 + 4
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    assert first["content"][2]["input"] == {"b": 1, "a": 2}
    assert first["content"][2]["id"] == "toolu_default_0_0"
    assert list(first["content"][2]["input"]) == ["b", "a"]
    assert first["stop_reason"] == "tool_use"
    assert ask(made)[0].status == 529
    last = ask(made)[1]
    assert (last["stop_reason"], last["usage"]["output_tokens"]) == ("refusal", 7)
    assert ask(made)[0].status == 400
    assert [ask(made, "loop")[1]["content"][0]["text"] for _ in range(3)] == ["again"] * 3
    assert ask(made, "raw")[1]["content"] == [text("raw")]


def test_a_scenario_can_be_json_and_empty(tmp_path):
    path = write(tmp_path, json.dumps({"sessions": {"a": {"replies": [{"text": "b"}]}}}), "a.json")
    assert ask(provider_of(load_scenario(path)), "a")[1]["content"] == [text("b")]
    assert load_scenario(write(tmp_path, "")).sessions == {}


@pytest.mark.parametrize(
    ("content", "place", "allowed"),
    [
        ("session = 1", " has no key 'session'", "sessions, faults, switches, tokens"),
        ("[sessions.a]\nreply = 1", ": sessions.a has no key 'reply'", "replies, when_over"),
        (
            '[sessions.a]\nreplies = [{ words = "x" }]',
            ": sessions.a.replies.0 has no key 'words'",
            "thinking, text, tool_calls, content",
        ),
        (
            '[sessions.a]\nreplies = [{ tool_calls = [{ tool = "x" }] }]',
            ": sessions.a.replies.0.tool_calls.0 has no key 'tool'",
            "name, input, id",
        ),
        (
            '[sessions.a]\nreplies = [{ text = "a", content = [] }]',
            ": sessions.a.replies.0 has content, so it takes no text",
            "content",
        ),
        ("[sessions.a]\nreplies = 3", ": sessions.a cannot be read", "replies"),
        ("[sessions.a]", ": sessions.a cannot be read", "replies"),
        ("[switches]\nreads = true", ": switches has no key 'reads'", "reads_refresh_shorter"),
        ("[switches]\nrandom_miss_rate = 2.0", "random_miss_rate is 2.0", "random_miss_rate"),
        ('[[faults]]\nkind = "sleepy"', ": faults.0: There is no fault 'sleepy'", "rate_limit"),
        ('[[faults]]\nkind = "cut"\nafter = 1', "A fault has no field 'after'", "after_events"),
        ("[tokens]\nper_char = 1", ": tokens has no key 'per_char'", "tokens_per_1000_chars"),
    ],
)
def test_what_is_wrong_in_a_scenario_is_named_with_what_is_allowed(
    tmp_path, content, place, allowed
):
    path = write(tmp_path, content)
    with pytest.raises(SettingsError) as caught:
        load_scenario(path)
    assert caught.value.what.startswith(str(path))
    assert place in caught.value.what
    assert allowed in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "a = ", "is not valid TOML"),
        ("a.json", "{", "is not valid JSON"),
        ("b.json", "[]", "holds no object"),
    ],
)
def test_a_file_that_cannot_be_read_says_so(tmp_path, name, content, words):
    with pytest.raises(SettingsError, match=words):
        load_scenario(write(tmp_path, content, name))
    with pytest.raises(SettingsError, match="cannot be read"):
        load_scenario(tmp_path / "missing.toml")


def test_model_facts_change_what_they_name_and_leave_the_rest(tmp_path):
    path = write(tmp_path, "[claude-opus-4-8]\nwindow_tokens = 9000\n[mine]\nminimum_tokens = 0\n")
    facts = load_model_facts(path)
    assert (facts("claude-opus-4-8").window_tokens, facts("claude-opus-4-8").input_usd) == (9000, 5)
    assert facts("mine").minimum_tokens == 0
    assert facts("claude-opus-5").window_tokens == 1_000_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[m]\nwindow = 1", "m has no key 'window'"),
        ('[m]\nwindow_tokens = "big"', "m cannot be read"),
        ("m = 3", "m is no table"),
    ],
)
def test_wrong_model_facts_are_named(tmp_path, content, words):
    with pytest.raises(SettingsError, match=words) as caught:
        load_model_facts(write(tmp_path, content))
    assert "window_tokens" in caught.value.next_step


def test_the_example_of_a_scenario_can_be_played(tmp_path):
    from barograph.simulator import scenario

    example = scenario.__doc__.split("```toml\n")[1].split("```")[0]
    made = provider_of(load_scenario(write(tmp_path, example)))
    assert [ask(made)[0].status for _ in range(3)] == [200, 529, 200]


def test_the_example_of_the_fixture_runs(tmp_path):
    example = testing.__doc__.split("```python\n")[1].split("```")[0]
    write(tmp_path, example, "test_example.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
