import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from config.paths import HomePaths
from config.settings import SETTINGS, WORKSPACE_SETTINGS, Settings, environment_of, explain_settings, load_settings
from config.toml_files import SettingsError, UnreadableSettings
from config.workspace_configs import ConfigFiles, save_setting, save_workspace_setting


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "workspaces" / "mine").mkdir(parents=True)
    return tmp_path


def read_own(folder, workspace_id="mine"):
    return ConfigFiles(HomePaths(folder)).read(workspace_id)


def load(folder, *, home=None, own=None, **environment):
    for file, text in ((folder / "config.toml", home), (folder / "workspaces" / "mine" / "config.toml", own)):
        if text is not None:
            file.write_text(text)
    return load_settings({"REVERIE_HOME": str(folder), **environment}, read_own(folder))


def test_each_settings_source_overrides_the_previous(folder):
    layers = [
        ({}, Settings().hook_max_chars),
        ({"home": "hook_max_chars = 1000"}, 1000),
        ({"own": "hook_max_chars = 2000"}, 2000),
        ({"REVERIE_HOOK_MAX_CHARS": "3000"}, 3000),
    ]
    given_so_far = {}
    for layer, expected in layers:
        given_so_far |= layer
        assert load(folder, **given_so_far).hook_max_chars == expected


def test_every_setting_value_has_an_origin(folder):
    load(folder, home="port = 1234", own="hook_max_chars = 2000")
    environment = {"REVERIE_HOME": str(folder), "REVERIE_LOG_LEVEL": "DEBUG"}
    origins = {o.name: o for o in explain_settings(environment, read_own(folder))}
    assert (origins["port"].value, origins["port"].origin) == (1234, str(folder / "config.toml"))
    assert origins["hook_max_chars"].origin.endswith("workspaces/mine/config.toml")
    assert origins["log_level"].origin == "environment"
    assert origins["host"].origin == "default"
    assert set(origins) == set(SETTINGS)
    assert all(o.help for o in origins.values())


def test_there_are_few_settings():
    assert len(SETTINGS) <= 50
    assert set(SETTINGS) >= WORKSPACE_SETTINGS


@pytest.mark.parametrize(
    ("written", "meant"), [("prot", "port"), ("embeding_model", "embedding_model"), ("queueurl", "queue_url")]
)
def test_an_unknown_name_suggests_the_nearest(folder, written, meant):
    with pytest.raises(SettingsError, match=f"unknown setting {written}; did you mean {meant}"):
        load(folder, home=f'{written} = "x"')
    (folder / "config.toml").unlink()
    message = f"environment: unknown setting REVERIE_{written.upper()}; did you mean {meant}"
    with pytest.raises(SettingsError, match=message):
        load(folder, **{f"REVERIE_{written.upper()}": "x"})


def test_a_name_like_nothing_suggests_nothing(folder):
    with pytest.raises(SettingsError) as refusal:
        load(folder, home="zzzzzz = 1")
    assert "did you mean" not in str(refusal.value)


def test_a_workspace_may_set_its_own_few_settings_only(folder):
    for name in set(SETTINGS) - WORKSPACE_SETTINGS:
        with pytest.raises(SettingsError, match=f"{name} cannot differ between workspaces"):
            load(folder, own=f'{name} = "x"')


def test_another_workspaces_file_is_not_read(folder):
    load(folder, own="hook_max_chars = 2000")
    for own in (None, read_own(folder, "other")):
        assert load_settings({"REVERIE_HOME": str(folder)}, own).hook_max_chars != 2000


@pytest.mark.parametrize("workspace_id", ["../mine", "", "mine/../mine"])
def test_invalid_workspace_id_has_no_settings(folder, workspace_id):
    with pytest.raises(ValueError, match="workspace id"):
        read_own(folder, workspace_id)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "70000"),
        ("PORT", "http"),
        ("LOG_LEVEL", "loud"),
        ("WORKSPACE", "Not An Id"),
        ("WORKSPACE", "trailing\n"),
        ("EMBEDDING_MODEL", ""),
        ("QUEUE_URL", "amqp://localhost"),
        ("LLM_URL", "ftp://localhost"),
        ("BACKOFF_S", "nan"),
        ("BACKOFF_S", "-1"),
        ("WEB_THREADS", "2.5"),
    ],
)
def test_a_value_that_cannot_be_taken_is_named_with_its_place(folder, name, value):
    if value == "":
        with pytest.raises(SettingsError, match=r"config\.toml: embedding_model"):
            load(folder, home='embedding_model = ""')
        return
    with pytest.raises(SettingsError, match=f"environment: {name.lower()}: "):
        load(folder, **{f"REVERIE_{name}": value})


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("review = true", "review", True),
        ("backoff_s = 3", "backoff_s", 3.0),
        ("port = 7100.0", "port", 7100),
        ('port = " 7100 "', "port", 7100),
        ('review = "on"', "review", True),
    ],
)
def test_a_value_is_taken_in_every_form_that_says_it(folder, written, name, value):
    found = getattr(load(folder, home=written), name)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "written", ["port = true", "port = 7100.5", 'port = "7_100"', "review = 2", "host = 7", "backoff_s = inf"]
)
def test_a_value_of_another_type_is_refused(folder, written):
    with pytest.raises(SettingsError, match=r"config\.toml: \w+: must be "):
        load(folder, home=written)


def test_llm_api_key_is_masked_in_text_representations(folder):
    settings = load(folder, REVERIE_LLM_API_KEY="sk-hidden")
    assert settings.llm_api_key.reveal() == "sk-hidden"
    assert "hidden" not in f"{settings} {settings!r} {settings.llm_api_key}"


def test_data_directory_can_be_set_only_by_the_environment(folder):
    with pytest.raises(SettingsError, match="home can only be set by REVERIE_HOME"):
        load(folder, home='home = "/elsewhere"')


def test_empty_variable_counts_as_unset(folder):
    assert load(folder, REVERIE_PORT="") == load(folder)


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"[port]\nx = 1", b"port = 1\nport = 2"])
def test_a_file_that_cannot_be_read_is_named(folder, content):
    (folder / "config.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"config\.toml"):
        load(folder)


def test_other_programs_variables_are_none_of_ours(folder):
    assert load(folder, REVERIEPORT="1", PORT="1", XREVERIE_PORT="1").port == 7077


def test_data_directory_defaults_to_the_users_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings({}).paths.root == tmp_path / ".reverie"


def test_settings_cannot_be_changed(folder):
    with pytest.raises(AttributeError, match="cannot assign"):
        load(folder).port = 1


def test_saving_a_setting_keeps_others_and_rejects_invalid_values(folder):
    paths = HomePaths(folder)
    load(folder, home='log_level = "DEBUG"')
    save_setting(paths, "port", 9000)
    assert tomllib.loads(paths.config.read_text()) == {"log_level": "DEBUG", "port": 9000}
    for name, value in (("port", "http"), ("prot", 1)):
        with pytest.raises(SettingsError):
            save_setting(paths, name, value)
    assert tomllib.loads(paths.config.read_text()) == {"log_level": "DEBUG", "port": 9000}
    assert sorted(Path(folder).glob("config*")) == [paths.config]


def test_saving_keeps_comments_and_layout(folder):
    paths = HomePaths(folder)
    paths.config.write_bytes(b"# ours\r\nport  = 7100 # ssh\r\n\r\n# quiet\r\nlog_level = 'ERROR'\r\n")
    save_setting(paths, "port", 9000)
    save_setting(paths, "workspace", "mine")
    assert paths.config.read_bytes() == (
        b"# ours\r\nport  = 9000 # ssh\r\n\r\n# quiet\r\nlog_level = 'ERROR'\r\nworkspace = \"mine\"\n"
    )


def test_workspace_settings_file_is_rewritten_completely_or_not_at_all(folder):
    paths, configs = HomePaths(folder), ConfigFiles(HomePaths(folder))
    file = paths.workspace("mine").config
    save_workspace_setting(configs, "mine", "review", value=True)
    file.write_text(f"# ours\n{file.read_text()}")
    for name, value in (("review", "maybe"), ("review", 7), ("port", 7099), ("prot", 1), ("hook_max_chars", 1)):
        with pytest.raises(SettingsError, match=r"workspaces/mine/config\.toml"):
            save_workspace_setting(configs, "mine", name, value)
    assert file.read_text() == "# ours\nreview = true\n"
    assert sorted(file.parent.glob("config*")) == [file]
    save_workspace_setting(configs, "new", "incognito", value=True)
    assert load_settings(environment_of(paths), read_own(folder, "new")).incognito
    assert not load_settings(environment_of(paths), read_own(folder)).incognito
    for _ in range(2):
        save_workspace_setting(configs, "mine", "review", None)
    assert file.read_text() == "# ours\n"


def test_a_file_that_cannot_be_read_is_not_written(folder):
    paths = HomePaths(folder)
    file = paths.workspace("mine").config
    file.write_text("review =")
    with pytest.raises(UnreadableSettings, match=r"workspaces/mine/config\.toml"):
        save_workspace_setting(ConfigFiles(paths), "mine", "review", value=True)
    assert file.read_text() == "review ="


@given(st.integers(1, 65535), st.sampled_from(["DEBUG", "ERROR"]))
def test_file_and_environment_say_the_same_in_the_same_words(port, level):
    by_environment = load_settings({"REVERIE_HOME": "/nowhere", "REVERIE_PORT": str(port), "REVERIE_LOG_LEVEL": level})
    assert (by_environment.port, by_environment.log_level) == (port, level)
