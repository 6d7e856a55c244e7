"""One rule for where the data directory is, whoever asks: settings, the client of hooks, the Python client.

From field reports of the kind "a tool made a folder called ~ in my project" (containers with an arbitrary user id, JSON
configuration that expands nothing).
"""

import os

import pytest
from reverie_client.errors import NotConfigured
from reverie_client.home import find_server

from config.data_directory import NoDataDirectory, find_data_directory
from config.settings import UnknownDataDirectory, load_settings
from web.cli.output import BROKEN_HOME, explain_error

UNUSABLE = [
    "rel",
    "rel/dir",
    ".",
    "./x",
    "../x",
    "$HOME/x",
    "${HOME}/x",
    "%USERPROFILE%/x",
    "~nobody-by-this-name/x",
    " /x",
]


def ask_settings(variables):
    return str(load_settings(variables).paths.root)


def ask_python_client(variables):
    # The message of a token that is not there names its folder.
    with pytest.raises(NotConfigured) as missing:
        find_server(environment=variables).token()
    text = str(missing.value)
    if "no token in" not in text:
        raise missing.value
    return text.partition("no token in ")[2].partition("/token.")[0]


READERS = {
    "settings": (ask_settings, UnknownDataDirectory),
    "hooks": (find_data_directory, NoDataDirectory),
    "python": (ask_python_client, NotConfigured),
}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


@pytest.mark.parametrize("named", UNUSABLE)
def test_a_path_that_depends_on_the_folder_is_refused(reader, tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    ask, refusal = reader
    with pytest.raises(refusal, match="REVERIE_HOME must be an absolute path"):
        ask({"REVERIE_HOME": named, "HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", ["", "rel", "."])
def test_without_a_home_directory_no_data_directory_is_guessed(reader, tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    ask, refusal = reader
    with pytest.raises(refusal, match="neither REVERIE_HOME nor HOME"):
        ask({"HOME": home})
    assert list(tmp_path.iterdir()) == []


def test_user_unknown_to_the_system_has_no_home_directory(reader, monkeypatch):
    monkeypatch.delenv("HOME")
    # As `expanduser` answers for an id without an entry.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    ask, refusal = reader
    with pytest.raises(refusal, match="neither REVERIE_HOME nor HOME"):
        ask({})


@pytest.mark.parametrize(
    ("named", "expected"),
    [(None, "{home}/.reverie"), ("", "{home}/.reverie"), ("~/x", "{home}/x"), ("{home}/y", "{home}/y")],
)
def test_absolute_and_home_relative_data_directories_are_accepted(reader, tmp_path, named, expected):
    ask, _ = reader
    variables = {"HOME": str(tmp_path)} | ({} if named is None else {"REVERIE_HOME": named.format(home=tmp_path)})
    assert ask(variables) == expected.format(home=tmp_path)


def test_a_path_with_variables_in_it_is_explained():
    with pytest.raises(NoDataDirectory, match="expands no variables"):
        find_data_directory({"REVERIE_HOME": "$HOME/x", "HOME": "/home/ann"})


def test_unusable_data_directory_has_a_separate_exit_code():
    message, code = explain_error(UnknownDataDirectory("neither"))
    assert (message, code) == ("neither", BROKEN_HOME)
