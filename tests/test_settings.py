"""Settings: the one reader of the environment."""

from pathlib import Path

import pytest

from barograph.core.errors import SettingsError
from barograph.settings import default_store_path, home


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
