"""The summary of a setup in terminals of different widths."""

import pytest

from pipeline.sessions.discovery import StoredSessions
from web.cli import render
from web.features.hosts.report import (
    ImportOffer,
    list_connections,
    list_titles,
    show_agents,
    show_next_steps,
    show_plan,
)
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hosts import HOSTS
from web.hosts.installed_files import read_state
from web.hosts.setup_plan import plan_setup

# The lines of a setup without sessions: what is planned, connected, its server and the undo.
OTHER_LINES = 4


@pytest.fixture
def summarize(tmp_path, monkeypatch, capsys):
    """Return the lines that setup prints in a terminal of some width."""

    def print_summary(hosts, width):
        monkeypatch.setattr(render, "PIPE_WIDTH", width)
        host_env = HostEnvironment(tmp_path, "linux", lambda _name: None, lambda _name: None)
        reverie = Installation(tmp_path)
        changes = plan_setup(hosts, host_env, reverie, read_state(tmp_path / "data"))
        connections = list_connections(hosts, host_env, reverie, changes)
        show_plan(hosts, connections, changes, tmp_path, removes=False)
        show_agents(list_titles(hosts, changes), changes, removed=False)
        show_next_steps("http://127.0.0.1:7077", "reverie setup --remove")
        return capsys.readouterr().out.splitlines()

    return print_summary


@pytest.mark.parametrize("count", [1, 3, 8, len(HOSTS)])
def test_each_agent_has_one_row_in_eighty_columns(summarize, count):
    lines = summarize(HOSTS[:count], 80)
    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0] for line in lines[1 : count + 1]] == [host.title for host in HOSTS[:count]]
    assert all(" in ~/." in line for line in lines[1 : count + 1])
    wrapped = sum(line.startswith("  ") for line in lines)
    assert len(lines) == count + OTHER_LINES + wrapped
    assert wrapped <= count / 6


def test_files_are_named_where_their_names_fit(summarize):
    claude = HOSTS[0]
    row = "Claude Code  hooks, tools, rules  "
    names = "~/.claude/settings.json (new), ~/.claude.json (new), ~/.claude/CLAUDE.md (new)"
    width = len(row + names)
    assert [summarize([claude], width - less)[1] for less in (0, 1)] == [row + names, f"{row}3 files in ~/.claude, ~"]
    assert summarize([claude], 56)[1] == f"{row}3 files in ~, …"


def test_sessions_of_many_agents_are_wrapped_between_words(monkeypatch, capsys):
    monkeypatch.setattr(render, "PIPE_WIDTH", 80)
    sessions = [
        StoredSessions(host.name, host.title, 1000 + number, 0, 2**20, f"2026-0{number}-01")
        for number, host in enumerate(HOSTS[:8], 1)
    ]
    ImportOffer(sessions).show()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == (
        "Past sessions: Claude Code 1,001, Codex 1,002, Cursor 1,003, VS Code 1,004, Windsurf 1,005, "
        "Gemini CLI 1,006, Zed 1,007, opencode 1,008 (8.0 MiB, since 2026-01-01)"
    )
