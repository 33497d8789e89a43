"""`barograph config show`: what holds, and where it comes from."""

import json

import pytest


@pytest.fixture
def show(run, monkeypatch, tmp_path):
    """Run the command in a folder of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda *args: run("config", "show", *args, store=None)


def test_every_value_in_effect(show, tmp_path):
    result = show()

    assert result.exit_code == 0
    assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
        ["setting", "value"],
        ["policy.base_tools", "(not set)"],
        ["policy.by_model", "{}"],
        ["policy.cap_rounds", "(not set)"],
        ["policy.cap_tokens", "(not set)"],
        ["policy.cap_usd", "(not set)"],
        ["policy.collapse_repeats", "False"],
        ["policy.compact_at_ratio", "(not set)"],
        ["policy.compact_to_ratio", "0.3"],
        ["policy.diagnostics", "auto"],
        ["policy.fanout_wait_seconds", "30.0"],
        ["policy.identity", "(not set)"],
        ["policy.keep_images", "True"],
        ["policy.keep_results", "(empty)"],
        ["policy.keep_warm_seconds", "3600.0"],
        ["policy.keep_warm_tokens", "0"],
        ["policy.lifetime", "auto"],
        ["policy.markers", "auto"],
        ["policy.max_result_chars", "50000"],
        ["policy.mcp_max_result_chars", "(not set)"],
        ["policy.name", "balanced"],
        ["policy.nudge_at_rounds", "25"],
        ["policy.nudge_every_rounds", "(not set)"],
        ["policy.on_mismatch", "warn"],
        ["policy.on_store_error", "continue"],
        ["policy.pause_ratio", "0.0"],
        ["policy.profile", "interactive"],
        ["policy.prune_after_rounds", "10"],
        ["policy.prune_at_ratio", "(not set)"],
        ["policy.read_ratio", "(not set)"],
        ["policy.relief_ratio", "0.1"],
        ["policy.rent_ratio", "0.64"],
        ["policy.resets", "request"],
        ["policy.server_result_chars", "{}"],
        ["policy.stall_nudge_repeats", "3"],
        ["policy.stall_stop_repeats", "6"],
        ["policy.start_tokens_per_char", "0.25"],
        ["policy.summary", "model"],
        ["policy.summary_ratio", "0.1"],
        ["policy.tool_order", "(empty)"],
        ["policy.tool_result_chars", "{}"],
        ["policy.ttl", "(not set)"],
        ["policy.window_tokens", "(not set)"],
        ["policy.write_ratio", "(not set)"],
        ["store.busy_timeout_seconds", "5.0"],
        ["store.path", str(tmp_path / "home" / "sessions.db")],
        ["store.synchronous", "normal"],
    ]


def test_where_every_value_comes_from(show, tmp_path, monkeypatch):
    file = tmp_path / "project" / "barograph.toml"
    file.write_text('[policy]\nprofile = "desktop"\ntool_order = ["read", "write"]\n')
    monkeypatch.setenv("BAROGRAPH_STORE__SYNCHRONOUS", "full")
    lines = [" ".join(line.split()) for line in show("--origin").stdout.splitlines()]

    assert lines[0] == "setting value origin"
    assert f"policy.profile desktop {file}:2" in lines
    assert f"policy.tool_order read, write {file}:3" in lines
    assert f"policy.lifetime 1h policy.profile ({file}:2)" in lines
    assert "store.synchronous full BAROGRAPH_STORE__SYNCHRONOUS" in lines
    assert "policy.ttl (not set) default" in lines


def test_a_lifetime_that_is_given_decides_over_the_profile(show, monkeypatch):
    monkeypatch.setenv("BAROGRAPH_POLICY__TTL", "1h")
    lines = [" ".join(line.split()) for line in show("--origin").stdout.splitlines()]

    assert "policy.lifetime 1h policy.ttl (BAROGRAPH_POLICY__TTL)" in lines


def test_the_same_for_a_program(show, tmp_path):
    file = tmp_path / "project" / "barograph.toml"
    file.write_text('[policy]\ntool_order = ["read"]\n')
    document = json.loads(show("--json").stdout)
    found = {setting["key"]: setting for setting in document["settings"]}

    assert document["schema"] == "barograph.config/1"
    assert found["policy.tool_order"] == {
        "key": "policy.tool_order",
        "value": ["read"],
        "origin": {"layer": "project", "place": str(file), "line": 2},
    }
    assert found["policy.ttl"]["value"] is None
    assert found["policy.ttl"]["origin"] == {"layer": "default", "place": None, "line": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[policy", "is not TOML"),
        ("[policy]\nttll = 1\n", "Did you mean policy.ttl?"),
        ("[policy]\nttl = 1\n", "Choose one of 'auto', '5m', '1h'"),
        ('[policy]\nttl = "\\u001b[2J"\n', "\\x1b[2J"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_settings_end_every_command_with_words_and_exit_code_2(
    show, run, tmp_path, *, text, words, as_json
):
    (tmp_path / "project" / "barograph.toml").write_text(text)
    flags = ["--json"] if as_json else []
    for result in (show(*flags), run("sessions", *flags), run("why", "latest", *flags)):
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "\x1b" not in result.stderr
        stated = json.loads(result.stderr) if as_json else {"what": result.stderr, "next_step": ""}
        assert words in stated["what"].replace("\x1b", "\\x1b") + stated["next_step"]


def test_two_project_files(show, tmp_path):
    (tmp_path / "project" / "barograph.toml").write_text("")
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.barograph]\n")
    result = show()

    assert result.exit_code == 2
    assert "Keep one of them." in result.stderr


@pytest.mark.parametrize("args", [(), ("edit",), ("show", "more"), ("show", "--nope")])
def test_a_mistake_on_the_command_line(run, args):
    assert run("config", *args, store=None).exit_code == 2


def test_the_store_of_the_settings_is_the_one_that_is_read(show, run, recorded, tmp_path):
    assert "No sessions yet" in run("sessions", store=None).stderr
    (tmp_path / "project" / "barograph.toml").write_text(f'[store]\npath = "{recorded}"\n')

    assert "refactor-billing" in run("sessions", store=None).stdout
    assert run("why", "latest", store=None).exit_code == 0
