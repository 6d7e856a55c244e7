"""What a server in the background gets of the shell that starts it.

From field reports of the kind "whichever terminal started the daemon first decides for all projects".
"""

from pathlib import Path

import pytest

from config import process
from config.program_variables import list_workspace_variables, select_daemon_variables
from config.settings import SETTINGS, WORKSPACE_SETTINGS, Settings, environment_incognito, load_settings

ROOT = Path("/data/reverie")


def variable_of(setting):
    return f"REVERIE_{setting.upper()}"


@pytest.mark.parametrize("setting", sorted(WORKSPACE_SETTINGS | {"workspace"}))
def test_nothing_that_may_differ_by_workspace_is_handed_on(setting):
    assert select_daemon_variables({variable_of(setting): "x"}, ROOT) == {"REVERIE_HOME": str(ROOT)}


@pytest.mark.parametrize("setting", sorted(set(SETTINGS) - WORKSPACE_SETTINGS - {"workspace", "home"}))
def test_settings_of_the_machine_are_handed_on(setting):
    assert select_daemon_variables({variable_of(setting): "x"}, ROOT)[variable_of(setting)] == "x"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONSTARTUP",
            "PYTHONWARNINGS",
            "PYTHONINSPECT",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
        ),
        *(
            "GIT_DIR",
            "GIT_WORK_TREE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_PROJECT_DIR",
            "LD_PRELOAD",
            "DATABASE_URL",
            "PGHOST",
        ),
        *("REVERIE_UNKNOWN", "OPENAI_API_KEY", "PWD", "OLDPWD", "BASH_ENV", "ENV"),
    ],
)
def test_a_project_s_own_variables_stay_with_it(name):
    assert name not in select_daemon_variables({name: "x"}, ROOT)


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "https_proxy", "HTTPS_PROXY", "no_proxy"),
        *("AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL_S3", "HF_HUB_OFFLINE", "HF_HOME", "OMP_NUM_THREADS", "SSL_CERT_FILE"),
        *("OPENBLAS_NUM_THREADS", "XDG_CONFIG_HOME", "PGPASSFILE", "PGSSLROOTCERT", "SystemRoot", "LD_LIBRARY_PATH"),
    ],
)
def test_machine_and_user_variables_are_passed_to_the_daemon(name):
    assert select_daemon_variables({name: "x"}, ROOT)[name] == "x"


def test_the_data_directory_is_the_resolved_one():
    assert select_daemon_variables({"REVERIE_HOME": "~/x"}, ROOT) == {"REVERIE_HOME": str(ROOT)}


def test_workspace_variables_of_the_shell_are_listed():
    given = {"REVERIE_INCOGNITO": "true", "REVERIE_CAPTURE": "", "REVERIE_PORT": "7099", "REVERIE_HOOK_RECALL": "on"}
    assert list_workspace_variables(given) == ["REVERIE_HOOK_RECALL", "REVERIE_INCOGNITO"]


def test_a_server_has_no_workspace_of_the_shell_that_started_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_WORKSPACE", "client-a")
    monkeypatch.setattr(process, "configure_logging", lambda *_arguments, **_options: None)
    assert process.start_program("web", None, str, []).workspace == Settings().workspace
    assert load_settings().workspace == Settings().workspace


@pytest.mark.parametrize(
    ("given", "expected"), [("true", True), ("1", True), ("false", False), ("", False), (None, False)]
)
def test_the_environment_makes_requests_incognito(given, expected):
    assert environment_incognito({} if given is None else {"REVERIE_INCOGNITO": given}) is expected
