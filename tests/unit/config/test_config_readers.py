"""The server and the Python client read one address from one config.toml.

From field reports of the kind "two readers of a configuration file disagree": a port with an underscore, quoted keys,
comments within strings, a byte order mark, line ends of Windows.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from reverie_client.errors import NotConfigured
from reverie_client.home import find_server

from config.settings import load_settings
from config.toml_files import SettingsError, UnreadableSettings


def ask_settings(home):
    return load_settings({"REVERIE_HOME": str(home)}).url


def ask_python_client(home):
    return find_server(environment={"REVERIE_HOME": str(home)}).url


REFUSALS = (SettingsError, NotConfigured, ValueError)


def ask_all(home):
    """Return what each reader says, None for a refusal."""
    answers = []
    for ask in (ask_settings, ask_python_client):
        try:
            answers.append(ask(home))
        except REFUSALS:
            answers.append(None)
    return answers


def write(home, content):
    (home / "config.toml").write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("port = 7_099", "http://127.0.0.1:7099"),
        ('"port" = 7099', "http://127.0.0.1:7099"),
        ("'port'=7099", "http://127.0.0.1:7099"),
        ('"p\\u006frt" = 7099', "http://127.0.0.1:7099"),
        ("port = 0x1BBB", "http://127.0.0.1:7099"),
        ("port = 7099.0", "http://127.0.0.1:7099"),
        ('port = "7099"', "http://127.0.0.1:7099"),
        ("port = 7099 # not 7077", "http://127.0.0.1:7099"),
        ("port\t=\t7099\r\nhost = '127.0.0.9'\r\n", "http://127.0.0.9:7099"),
        ("\ufeffport = 7099\n", "http://127.0.0.1:7099"),
        ('host = "::" # every address', "http://[::1]:7077"),
        ('llm_model = """\nport = 1\nhost = "x"\n"""\nport = 7099', "http://127.0.0.1:7099"),
        ("# port = 1\n", "http://127.0.0.1:7077"),
        ("", "http://127.0.0.1:7077"),
    ],
)
def test_every_dialect_is_read_alike(tmp_path, content, expected):
    write(tmp_path, content)
    assert ask_all(tmp_path) == [expected] * 2


@pytest.mark.parametrize(
    "content",
    [
        "port = 1\nport = 2",
        "port = 07077",
        "port",
        "port = true",
        "port = 0",
        "port = 65536",
        'port = "7_099"',
        'port = ""',
        "port = 70.5",
        "port = [7077]",
        "port.x = 1",
        "port = {x = 1}",
        "host = 1",
        'host = "a',
        b"port = 7077 # \xff",
        "x = " + "[" * 5000,
    ],
)
def test_setting_rejected_by_the_server_is_ignored_by_every_reader(tmp_path, content):
    write(tmp_path, content)
    assert ask_all(tmp_path) == [None] * 2


KEYS = st.sampled_from(["port", '"port"', "'port'"])
PORTS = st.integers(1, 65535)
NUMBERS = PORTS.flatmap(
    lambda port: st.sampled_from(
        [str(port), f"{port:_}", f"0x{port:x}", f"{port}.0", f'"{port}"', f"'{port}'", f"+{port}"]
    )
)
HOSTS = st.sampled_from(
    ['"127.0.0.1"', "'127.0.0.1'", '"::1"', '"0.0.0.0"', '"::"', '"local\\u0068ost"', '"127.0.0.#"']
)
OTHERS = st.sampled_from(
    ["# port = 1", "", 'llm_model = "port = 1"', "llm_model = 'host = \"x\"'", 'llm_model = """a\nport = 2\n"""', "  "]
)


@given(
    st.lists(OTHERS, max_size=1),
    st.none() | st.tuples(KEYS, NUMBERS),
    st.none() | HOSTS,
    st.sampled_from(["", " # 1", "\t# host = 'x'"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_readers_agree_on_any_file(others, port, host, comment, end, marked):
    lines = list(others)
    if port is not None:
        lines.append(f"{port[0]} = {port[1]}{comment}")
    if host is not None:
        lines.append(f"host = {host}{comment}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write(home, ("\ufeff" if marked else "") + end.join([*lines, ""]))
        [first, second] = ask_all(home)
        assert first == second
        assert first is not None


@pytest.mark.parametrize(
    ("content", "line"), [("a = 1\nport = \n", "line 2"), (b"# one\n# two\nport = '\xfc'\n", "line 3")]
)
def test_unreadable_settings_error_names_file_line_and_reason(tmp_path, content, line):
    write(tmp_path, content)
    with pytest.raises(UnreadableSettings) as refused:
        ask_settings(tmp_path)
    assert str(tmp_path / "config.toml") in str(refused.value)
    assert line in str(refused.value)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(UnreadableSettings, match="Is a directory"):
        ask_settings(tmp_path)
