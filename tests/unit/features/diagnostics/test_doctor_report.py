from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from web.features.diagnostics.commands import Mask

HOME = Path("~").expanduser()
TOKEN = "ghp_9fK2mQ7xWv3LsT8bRz5YcN1dHj6GpE4aUo0i"


@pytest.fixture(scope="module")
def mask():
    return Mask("/srv/ann/memory", ["default", "acme-payroll", "acme"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/srv/ann/memory/token is empty", "DATA/token is empty"),
        (
            "cannot read /srv/ann/memory/workspaces/acme/config.toml",
            "cannot read DATA/workspaces/workspace-2/config.toml",
        ),
        (f"3.11.2, {HOME}/venv/bin/python", "3.11.2, PATH"),
        (f"{HOME}like is another folder", "PATH is another folder"),
        (
            f"these files no longer mention Reverie: /srv/Nordwind/shop/.mcp.json, {HOME}/kunden/nordwind/CLAUDE.md",
            "these files no longer mention Reverie: PATH, PATH",
        ),
        ("no hook for prompts in /srv/Nordwind Ltd/shop/.claude/settings.json", "no hook for prompts in PATH PATH"),
        (r"cannot read C:\Kunden\Nordwind\x.json", "cannot read PATH"),
        (
            "others can read /srv/ann/memory/workspaces/nordwind/events.sqlite",
            "others can read DATA/workspaces/NAME/events.sqlite",
        ),
        ("others can read /srv/ann/memory/servers/nordwind.json", "others can read DATA/servers/NAME"),
        ("Claude Code: team nordwind: refused", "Claude Code: team NAME: refused"),
        ("http://127.0.0.1:7077 answers", "http://127.0.0.1:7077 answers"),
        ("https://memory.acme.example/v1 refuses", "https://ADDRESS refuses"),
        ("http://127.0.0.1.acme.example refuses", "http://ADDRESS refuses"),
        ("postgresql://ann@db.acme.example/reverie is down", "postgresql://ADDRESS is down"),
        ("of ann@acme.example", "of ADDRESS"),
        ("one\n| two", "one \\| two"),
    ],
)
def test_user_data_is_masked(mask, text, masked):
    assert mask.text(text) == masked


def test_the_name_of_a_workspace_is_replaced_in_its_own_results_only(mask):
    assert mask.workspace("default") == "default"
    assert mask.workspace("acme-payroll") == "workspace-1"
    assert mask.workspace("never-listed") == "workspace"
    assert mask.text("acme is broken", "acme") == "workspace-2 is broken"
    assert mask.text("an acme of speed") == "an acme of speed"


# However far into the text the report is cut off.
@given(st.text("abc 1|/", max_size=320))
def test_secret_is_masked_at_any_position(mask, before):
    shown = mask.text(f"{before} {TOKEN}")
    assert TOKEN[:8] not in shown
