"""Settings: the one reader of the environment."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.errors import SettingsError
from barograph.core.policy import Policy
from barograph.settings import (
    StoreSettings,
    current_settings,
    default_store_path,
    home,
    load_settings,
)


def test_home_is_the_folder_that_the_variable_names(monkeypatch, tmp_path):
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "new"))
    assert home() == tmp_path / "new"
    assert default_store_path() == tmp_path / "new" / "sessions.db"


def test_naming_a_home_creates_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("BAROGRAPH_HOME", str(tmp_path / "new"))
    default_store_path()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", [None, ""])
def test_without_the_variable_home_is_the_users_data_folder(monkeypatch, empty):
    monkeypatch.delenv("BAROGRAPH_HOME", raising=False)
    if empty is not None:
        monkeypatch.setenv("BAROGRAPH_HOME", empty)
    assert home().is_absolute()
    assert home().name == "barograph"


def test_a_tilde_in_the_variable_means_the_users_folder(monkeypatch):
    monkeypatch.setenv("BAROGRAPH_HOME", "~/logs")
    assert home() == Path("~/logs").expanduser()


def test_a_home_that_is_a_file_is_refused_with_the_next_step(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    monkeypatch.setenv("BAROGRAPH_HOME", str(file))
    with pytest.raises(SettingsError, match="is a file") as caught:
        default_store_path()
    assert caught.value.ids == {"variable": "BAROGRAPH_HOME", "path": str(file)}
    assert caught.value.next_step
    assert file.read_text() == "kept"


def test_the_home_of_an_unknown_user_is_refused(monkeypatch):
    monkeypatch.setenv("BAROGRAPH_HOME", "~no-such-user-here/logs")
    with pytest.raises(SettingsError, match="not known"):
        home()


# Layers


@pytest.fixture
def project(tmp_path):
    """A folder in a project, and ways to write its files; the user's folder is apart from it."""
    return Project(tmp_path)


class Project:
    def __init__(self, folder):
        self.user, self.root = folder / "home", folder / "project"
        self.inner = self.root / "src" / "deep"
        self.inner.mkdir(parents=True)
        self.user.mkdir()
        self.environ = {"BAROGRAPH_HOME": str(self.user)}

    def write(self, name, text, *, folder=None):
        file = (folder or self.root) / name
        file.write_text(text, "utf-8")
        return file

    def load(self, **code):
        return load_settings(self.inner, self.environ, **code)


def test_without_any_file_the_defaults_hold(project):
    settings = project.load()

    assert settings.policy == Policy()
    assert settings.store == StoreSettings(path=project.user / "sessions.db")
    assert {str(origin) for origin in settings.origins.values()} == {"default"}


def test_each_layer_hides_the_one_before_and_says_where_it_stands(project):
    def ttl():
        settings = project.load(**code)
        return settings.policy.ttl, str(settings.origins["policy.ttl"])

    code = {}
    assert ttl() == (None, "default")
    user = project.write("config.toml", '# mine\n[policy]\nttl = "5m"\n', folder=project.user)
    assert ttl() == ("5m", f"{user}:3")
    file = project.write("barograph.toml", '[store]\n\n[policy]\n"ttl" = "1h"\n')
    assert ttl() == ("1h", f"{file}:4")
    project.environ["BAROGRAPH_POLICY__TTL"] = "5m"
    assert ttl() == ("5m", "BAROGRAPH_POLICY__TTL")
    code = {"policy__ttl": "1h"}
    assert ttl() == ("1h", "policy__ttl")


def test_layers_are_merged_key_by_key(project):
    project.write("config.toml", '[policy]\nprofile = "fleet"\nttl = "5m"\n', folder=project.user)
    project.write("barograph.toml", '[policy]\ntool_order = ["read", "write"]\n')
    project.environ["BAROGRAPH_STORE__SYNCHRONOUS"] = "full"
    settings = project.load(store__busy_timeout_seconds=1)

    assert settings.policy == Policy(profile="fleet", ttl="5m", tool_order=("read", "write"))
    assert settings.store.synchronous == "full"
    assert settings.store.busy_timeout_seconds == 1.0


def test_the_nearest_project_file_alone_counts(project):
    project.write("barograph.toml", '[policy]\nttl = "1h"\nprofile = "fleet"\n')
    project.write("pyproject.toml", '[tool.barograph.policy]\nttl = "5m"\n', folder=project.inner)
    settings = project.load()

    assert (settings.policy.ttl, settings.policy.profile) == ("5m", "interactive")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[tool.barograph.policy]\nttl = "1h"\n', 2),
        ('[tool.other]\nttl = "5m"\n[tool.barograph]\npolicy.ttl = "1h"\n', 4),
        ('[tool]\nbarograph = { policy = { ttl = "1h" } }\n', 2),
        ('[tool."barograph"]\npolicy = { ttl = "1h" }\n', 2),
        ('tool.barograph.policy.ttl = "1h"\n', 1),
    ],
)
def test_every_spelling_of_a_table_in_pyproject(project, text, line):
    file = project.write("pyproject.toml", text)
    settings = project.load()

    assert settings.policy.ttl == "1h"
    assert str(settings.origins["policy.ttl"]) == f"{file}:{line}"


@pytest.mark.parametrize(
    "text", ['[project]\nname = "barograph"\n', "not TOML at all", "[tool.barograph-x]\n", ""]
)
def test_a_pyproject_without_our_table_is_passed_over(project, text):
    project.write("pyproject.toml", text, folder=project.inner)
    project.write("barograph.toml", '[policy]\nttl = "1h"\n')

    assert project.load().policy.ttl == "1h"


def test_paths_start_where_they_are_written(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project.user))
    file = project.write("barograph.toml", '[store]\npath = "logs/s.db"\n')
    assert project.load().store.path == file.parent / "logs" / "s.db"
    project.environ["BAROGRAPH_STORE__PATH"] = "s.db"
    assert project.load().store.path == project.inner / "s.db"
    assert project.load(store__path=Path("/elsewhere/s.db")).store.path == Path("/elsewhere/s.db")
    project.environ["BAROGRAPH_STORE__PATH"] = "~/s.db"
    assert project.load().store.path == project.user / "s.db"


def test_variables_that_are_no_settings_and_empty_ones_are_passed_over(project):
    for name in ("BAROGRAPH_CORPUS", "BAROGRAPH_CASES", "BAROGRAPH_CASEKIT"):
        project.environ[name] = "/some/folder"
    project.environ |= {"BAROGRAPH_POLICY__TTL": "", "OTHER_POLICY__TTL": "x"}

    assert project.load().policy.ttl is None


def test_a_variable_may_list_names_and_give_numbers(project):
    project.environ |= {
        "BAROGRAPH_POLICY__TOOL_ORDER": "read, write,",
        "BAROGRAPH_POLICY__START_TOKENS_PER_CHAR": "0.3",
    }
    policy = project.load().policy

    assert policy.tool_order == ("read", "write")
    assert policy.start_tokens_per_char == 0.3


def test_a_variable_is_read_in_the_type_of_its_knob(project):
    project.environ |= {
        "BAROGRAPH_POLICY__PRUNE_AFTER_ROUNDS": "4",
        "BAROGRAPH_POLICY__WINDOW_TOKENS": "100000",
        "BAROGRAPH_POLICY__PRUNE_AT_RATIO": "0.7",
        "BAROGRAPH_POLICY__KEEP_IMAGES": "false",
        "BAROGRAPH_POLICY__TTL": "1h",
    }
    policy = project.load().policy

    assert (policy.prune_after_rounds, policy.window_tokens) == (4, 100_000)
    assert (policy.prune_at_ratio, policy.keep_images, policy.ttl) == (0.7, False, "1h")


def test_none_takes_a_value_away(project):
    project.write("config.toml", "[policy]\nttl = '1h'\ncap_rounds = 9\n", folder=project.user)
    project.write("barograph.toml", "[policy]\nttl = 'none'\nnudge_at_rounds = 'none'\n")
    policy = project.load(policy__cap_rounds=None).policy

    assert (policy.ttl, policy.nudge_at_rounds, policy.cap_rounds) == (None, None, None)


def test_a_model_has_a_table_of_its_own(project):
    project.write("barograph.toml", '[policy.by_model."claude-haiku"]\nwindow_tokens = 9000\n')
    policy = project.load().policy
    assert policy.of("claude-haiku-4-5").window_tokens == 9000
    assert policy.of("claude-opus-4-8").window_tokens is None


def test_loading_depends_on_what_is_passed_in_alone(project, monkeypatch):
    monkeypatch.setenv("BAROGRAPH_POLICY__TTL", "nonsense")
    monkeypatch.chdir(project.user)

    assert project.load().policy.ttl is None


def test_the_process_is_read_where_it_runs(project, monkeypatch):
    project.write("barograph.toml", '[store]\npath = "here.db"\n')
    monkeypatch.chdir(project.inner)
    monkeypatch.setenv("BAROGRAPH_HOME", str(project.user))
    monkeypatch.setenv("BAROGRAPH_POLICY__TTL", "1h")

    assert current_settings(policy__profile="fleet").policy == Policy(ttl="1h", profile="fleet")
    assert default_store_path() == project.root / "here.db"


def test_a_folder_that_was_deleted_holds_no_project(project, monkeypatch):
    monkeypatch.setenv("BAROGRAPH_HOME", str(project.user))
    monkeypatch.chdir(project.inner)
    project.inner.rmdir()

    assert default_store_path() == project.user / "sessions.db"


# What is refused


WRONG = [
    (
        "[policy]\ntll = '1h'\n",
        "barograph.toml:2",
        "policy.tll = '1h' is no setting",
        "policy.ttl?",
    ),
    ("[polcy]\nttl = '1h'\n", "barograph.toml:2", "polcy.ttl = '1h'", "policy.ttl?"),
    ("[polcy]\n", "barograph.toml:1", "polcy = {} is no setting", "tables are policy and store"),
    ("ttl = '1h'\n", "barograph.toml:1", "ttl = '1h' is no setting", "policy.ttl"),
    ("policy = 3\n", "barograph.toml:1", "policy = 3 is a table", ""),
    ("[policy]\nttl = '7m'\n", ":2", "policy.ttl = '7m' cannot", "'auto', '5m', '1h'"),
    ("[policy]\nttl = 5\n", ":2", "policy.ttl = 5 cannot", "'auto', '5m', '1h'"),
    ("[policy.ttl]\n", ":1", "policy.ttl = {} cannot", "'auto', '5m', '1h'"),
    ("[policy]\nprofile = ['fleet']\n", ":2", "cannot", "'fleet', 'subagent'"),
    ("[policy]\ntool_order = 'a,,a'\n", ":2", "cannot", "each tool once"),
    ("[policy]\ntool_order = [1]\n", ":2", "tool_order = [1] cannot", "list of names"),
    ("[policy]\nbase_tools = 3\n", ":2", "base_tools = 3 cannot", "list of names"),
    ("[policy]\nstart_tokens_per_char = 3\n", ":2", "= 3 cannot", "above 0 and at most 2"),
    ("[policy]\nstart_tokens_per_char = true\n", ":2", "= True cannot", "above 0 and at most 2"),
    ("[policy]\nstart_tokens_per_char = 'x'\n", ":2", "= 'x' cannot", "above 0 and at most 2"),
    ("[policy]\nstart_tokens_per_char = nan\n", ":2", "= nan cannot", "above 0 and at most 2"),
    ("[policy]\nprune_after_rounds = 2.5\n", ":2", "= 2.5 cannot", "above 0"),
    ("[policy]\nprune_after_rounds = 'none'\n", ":2", "= 'none' cannot", "above 0"),
    ("[policy]\nwindow_tokens = 'big'\n", ":2", "= 'big' cannot", "above 0"),
    ("[policy]\nkeep_images = 'maybe'\n", ":2", "= 'maybe' cannot", "true or false"),
    ("[policy]\ntool_result_chars = 5\n", ":2", "= 5 cannot", "table of names"),
    ("[policy]\ntool_result_chars = {a = 'x'}\n", ":2", "cannot", "above -1"),
    ("[policy]\nby_model = 5\n", ":2", "= 5 cannot", "for each model"),
    ("[policy]\nby_model = {a = 5}\n", ":2", "cannot", "for each model"),
    ("[policy]\nby_model = {a = {ttl = 5}}\n", ":2", "cannot", "some of prune_after_rounds"),
    ("[policy]\nby_model = {a = {rent_ratio = 'x'}}\n", ":2", "cannot", "above 0"),
    ("[policy]\nnudge_at_rounds = 0\n", ":2", "= 0 cannot", "from 1 to 100000, or None"),
    ("[policy]\nresets = 'never'\n", ":2", "= 'never' cannot", "'request', 'message'"),
    ("[store]\nbusy_timeout_seconds = -1\n", ":2", "= -1 cannot", "0 to 3600"),
    ("[store]\nbusy_timeout_seconds = []\n", ":2", "= [] cannot", "0 to 3600"),
    ("[store]\nsynchronous = 'off'\n", ":2", "= 'off' cannot", "'normal', 'full'"),
    ("[store]\npath = ''\n", ":2", "path = '' cannot", "path of a file"),
    ("[store]\npath = 3\n", ":2", "path = 3 cannot", "path of a file"),
    ("[store]\npath = '~nobody-here-x/s'\n", ":2", "not known", ""),
]


@pytest.mark.parametrize(("text", "place", "what", "allowed"), WRONG)
def test_a_wrong_key_or_value_is_refused_with_place_and_range(project, text, place, what, allowed):
    project.write("barograph.toml", text)
    with pytest.raises(SettingsError) as caught:
        project.load(policy__ttl="1h")

    assert place in caught.value.what
    assert what in caught.value.what
    assert allowed in caught.value.next_step


def test_a_variable_and_a_keyword_are_named_too(project):
    with pytest.raises(SettingsError, match=r"policy__tttl: policy\.tttl = '1h' is no setting"):
        project.load(policy__tttl="1h")
    project.environ["BAROGRAPH_POLICYTTL"] = "1h"
    with pytest.raises(SettingsError, match="BAROGRAPH_POLICYTTL: policyttl") as caught:
        project.load()
    assert "Did you mean policy.ttl?" in caught.value.next_step


def test_a_wrong_value_is_refused_where_a_stronger_layer_hides_it(project):
    project.write("config.toml", "[policy]\nttl = '7m'\n", folder=project.user)
    project.write("barograph.toml", "[policy]\nttl = '1h'\n")

    with pytest.raises(SettingsError, match="'7m'"):
        project.load()


def test_an_error_shows_no_secret(project):
    secret = "sk-ant-api03-1234567890abcdef"  # noqa: S105 - made up
    project.environ["BAROGRAPH_API_KEY"] = secret
    with pytest.raises(SettingsError, match="Secrets do not belong in settings") as caught:
        project.load()

    assert secret not in str(caught.value) + str(caught.value.ids)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("barograph.toml", b"[policy\nttl = 1"),
        ("barograph.toml", b"\xff\xfe"),
        ("barograph.toml", None),
        ("pyproject.toml", b"[tool.barograph]\npolicy = "),
    ],
)
def test_a_file_that_cannot_be_read_is_named(project, name, content):
    file = project.root / name
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"cannot be read|is not TOML") as caught:
        project.load()

    assert caught.value.ids["path"] == str(file)
    assert str(file) in caught.value.what
    assert caught.value.next_step


def test_malformed_toml_is_named_with_its_line(project):
    project.write("config.toml", "[policy]\nttl = = 1\n", folder=project.user)

    with pytest.raises(SettingsError, match=r"config\.toml is not TOML: .*line 2"):
        project.load()


def test_two_project_files_in_one_folder_are_one_too_many(project):
    project.write("barograph.toml", "")
    project.write("pyproject.toml", "[tool.barograph]\n")

    with pytest.raises(SettingsError, match=r"Both .* and ") as caught:
        project.load()
    assert caught.value.next_step == "Keep one of them."


@given(
    st.dictionaries(
        st.from_regex(r"BAROGRAPH_[A-Z_]{0,30}", fullmatch=True), st.text(), max_size=3
    ),
    st.text(max_size=60),
)
def test_whatever_is_written_either_holds_or_is_refused(environ, text):
    with TemporaryDirectory() as folder:
        home_of_all = {"BAROGRAPH_HOME": folder} | environ | {"BAROGRAPH_HOME": folder}
        (Path(folder) / "barograph.toml").write_text(text, "utf-8", "surrogatepass")
        with suppress(SettingsError):
            assert load_settings(Path(folder), home_of_all).store.path.is_absolute()
