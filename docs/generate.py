"""Write the parts of the documents that follow from the code: `make docs` runs it, `make lint` checks its output."""

import argparse
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from config.declared import Setting
from config.settings import ENVIRONMENT_ONLY, SETTINGS, WORKSPACE_SETTINGS
from docs.dependencies import list_rows
from pipeline.kernel.records import Kind
from pipeline.sessions.readers.reader import READERS
from web.cli import cli
from web.hosts.hook_entries import CODEX, EVENTS
from web.hosts.host import Host
from web.hosts.hosts import HOSTS
from web.http.app import APIS
from web.http.endpoint import Endpoint
from web.http.openapi import COMMON_PROBLEMS, document
from web.mcp.full_tools import PROFILES
from web.mcp.tool import Tool

DOCS = Path(__file__).parent
TESTED_PROGRAMS = Path(__file__).parents[1] / "tests" / "hosts" / "package.json"
BEHAVIOR = Path(__file__).parents[1] / "web" / "hosts" / "behavior.toml"
# The tables of observed behavior, and the columns of each with the keys that its cells join.
BEHAVIOR_TABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Hooks": {
        "events of a turn with one tool call": ("turn", "failed_call_turn"),
        "a hook may": ("may",),
        "context arrives": ("context",),
        "context before a tool": ("act_context",),
        "limits": ("context_limit", "timeout"),
    },
    "Failures and sessions": {
        "failed turn": ("failed_turn", "failed_turn_note"),
        "failed call": ("failed_call", "failed_call_note"),
        "resume and fork": ("resume", "fork"),
        "compaction": ("compaction",),
    },
    "Subagents": {
        "start": ("subagent_start",),
        "end": ("subagent_end",),
    },
    "MCP servers": {
        "protocol version": ("protocol",),
        "instructions": ("instructions_limit",),
        "result": ("result",),
        "end of a server": ("end",),
    },
}
MARKED = r"(<!-- generated: {name} -->\n).*?(<!-- end of {name} -->)"
# The page explains these by hand.
GLOBAL_OPTIONS = {"--json", "--workspace"}
# So many commands have a common option.
SEVERAL = 3
# A list that several commands accept; the page gives it once.
KINDS = f"[{'|'.join(Kind)}]"


def join_lines(text: str) -> str:
    """Return a text on one line that cannot end a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def render_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(heads), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def render_settings() -> str:
    """Return the table of settings: name, default, accepted values, meaning."""
    return render_table(
        ("setting", "default", "values", "meaning"),
        (
            (f"`{name}`", _code(setting.default), _describe_values(setting), _describe_setting(name, setting))
            for name, setting in SETTINGS.items()
        ),
    )


def _code(value: object) -> str:
    return f"`{value}`" if str(value) else "empty"


def _describe_values(setting: Setting) -> str:
    if setting.choices:
        return " ".join(f"`{choice}`" for choice in setting.choices)
    if setting.most is not None:
        return f"{setting.least} to {setting.most}"
    if setting.least is not None:
        return f"{setting.least} or more"
    return "`true` `false`" if setting.type is bool else "text"


def _describe_setting(name: str, setting: Setting) -> str:
    marks = ["*Workspace.*"] if name in WORKSPACE_SETTINGS else []
    if name in ENVIRONMENT_ONLY and "environment only" not in setting.help:
        marks.append("Environment only.")
    return " ".join([*marks, join_lines(setting.help)])


def render_commands() -> str:
    """Return a section for each command that `--help` lists, and first one for the options of several commands."""
    described = _refer_to_same(_list_commands(cli, "reverie", click.Context(cli)))
    counts = Counter(option for command in described for option in command.options)
    # Of options with the same name, the one with the most frequent text.
    common = {name: text for (name, text), count in reversed(counts.most_common()) if count >= SEVERAL}
    shared = "\n".join(f"- `{name}`: {text}" for name, text in sorted(common.items()))
    return "\n\n".join(
        ["## Options of several commands", shared, *(_render_command(command, common) for command in described)]
    )


@dataclass(frozen=True, slots=True)
class DescribedCommand:
    """A command as `--help` describes it: its full name, arguments, text, and options with their texts."""

    name: str
    arguments: tuple[str, ...]
    text: str
    options: tuple[tuple[str, str], ...]


def _refer_to_same(commands: Iterable[DescribedCommand]) -> list[DescribedCommand]:
    """Return the commands; a second command with the same text and options only names the first one."""
    names: dict[tuple[object, ...], str] = {}
    described = []
    for command in commands:
        name = names.setdefault((command.text, command.arguments, command.options), command.name)
        is_alias = name != command.name
        described.append(replace(command, text=f"The same as `{name}`.", options=()) if is_alias else command)
    return described


def _list_commands(command: click.Command, name: str, context: click.Context) -> Iterator[DescribedCommand]:
    if command is not cli:
        yield _describe_command(command, name, context)
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            below = command.get_command(context, part)
            if below is not None and not below.hidden:
                yield from _list_commands(below, f"{name} {part}", click.Context(below, context, part))


def _describe_command(command: click.Command, name: str, context: click.Context) -> DescribedCommand:
    arguments = tuple(param.make_metavar(context) for param in command.params if isinstance(param, click.Argument))
    options = tuple(
        (_shorten(record[0]), " ".join(record[1].split()))
        for param in command.params
        if isinstance(param, click.Option) and not GLOBAL_OPTIONS.intersection(param.opts)
        for record in [param.get_help_record(context)]
        if record is not None
    )
    return DescribedCommand(name, arguments, " ".join((command.help or "").replace("\b", "").split()), options)


def _render_command(command: DescribedCommand, common: Mapping[str, str]) -> str:
    level = "##" if command.name.count(" ") == 1 else "###"
    own, shared = [], []
    for name, text in command.options:
        meaning, _, limits = text.partition(" [")
        if common.get(name, "").partition(" [")[0] == meaning:
            default = re.search(r"default: ([^\]]+?)(?:; [\d<=x]+)?\]", limits)
            shown = f" (default {default[1]})" if default is not None and common[name] != text else ""
            shared.append(f"`{_long_name(name)}`{shown}")
        else:
            own.append(f"- `{name}`: {text}")
    options = "\n".join([*own, *([f"- Common options: {', '.join(shared)}."] if shared else [])])
    heading = f"{level} `{' '.join([command.name, *command.arguments])}`"
    return "\n\n".join(filter(None, [heading, command.text, options]))


def _long_name(option: str) -> str:
    """Return `--limit` for `-n, --limit N`."""
    return option.rpartition(", ")[2].partition(" ")[0]


def _shorten(option: str) -> str:
    """Return an option with short names for a number and a kind: click writes the type and all kinds."""
    return re.sub(r"(INTEGER|FLOAT)( RANGE)?", "N", option).replace(KINDS, "KIND")


def render_routes() -> str:
    """Return a table of routes per group: method and path, meaning, problems."""
    described = document(endpoint for api in APIS for endpoint in api.endpoints)
    groups = groupby((api for api in APIS if api.endpoints), key=lambda api: api.group)
    return "\n\n".join(
        f"### {group.replace('_', ' ').capitalize()}\n\n"
        + render_table(
            ("route", "meaning", "problems"),
            (_render_route(endpoint, described) for api in apis for endpoint in api.endpoints),
        )
        for group, apis in groups
    )


def _render_route(endpoint: Endpoint, described: Mapping[str, Any]) -> tuple[str, str, str]:
    responses = described["paths"][endpoint.path][endpoint.method.lower()]["responses"]
    problems = sorted(int(code) for code in responses if int(code) >= 400 and int(code) not in COMMON_PROBLEMS)
    summary = f"{join_lines(endpoint.summary).rstrip('.')}."
    return f"`{endpoint.method} {endpoint.path}`", summary, " ".join(map(str, problems))


def render_tools() -> str:
    """Return a table of tools per profile."""
    core = PROFILES["core"]
    added = [tool for tool in PROFILES["full"] if tool not in core]
    heads = ("tool", "use", "arguments (optional ones in brackets)")
    return "\n\n".join(
        f"### {title}\n\n{render_table(heads, map(_render_tool, tools))}"
        for title, tools in (("Profile `core` (the default)", core), ("Added by `--profile full`", added))
    )


def _render_tool(tool: Tool) -> tuple[str, str, str]:
    arguments = " ".join(f"`{name}`" if name in tool.required else f"[`{name}`]" for name in tool.takes)
    return f"`{tool.name}`", join_lines(tool.description), arguments


def render_hosts() -> str:
    """Return the table of hosts: what setup connects, what hooks do, and the tested version."""
    versions = json.loads(TESTED_PROGRAMS.read_text(encoding="utf-8"))["dependencies"]
    heads = ("agent", "hooks", "MCP", "injection", "capture", "import", "resume", "tested version")
    return render_table(heads, (_render_host(host, versions) for host in HOSTS))


def _render_host(host: Host, versions: Mapping[str, str]) -> tuple[str, ...]:
    events = EVENTS.get(host.name, ())
    answers = (
        bool(events),
        True,
        not {"UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt", "PreInvocation"}.isdisjoint(events),
        # Codex has a program for the end of a turn instead of a hook.
        not {"Stop", "AfterAgent"}.isdisjoint(events) or host.name == CODEX,
        any(agent in READERS for agent in host.agents),
        "SessionStart" in events,
    )
    marks = ("✓" if answer else "–" for answer in answers)
    return (f"`{host.name}`", *marks, versions[host.package] if host.package else "configuration only")


def render_behavior() -> str:
    """Return the tables of what hosts were observed to do; a host is in a table if one of its cells is known."""
    hosts = tomllib.loads(BEHAVIOR.read_text(encoding="utf-8"))
    tables = []
    for title, columns in BEHAVIOR_TABLES.items():
        rows = [
            (f"`{name}` {host['version']} ({host['date']})", *cells)
            for name, host in hosts.items()
            if any(cells := [_join_cell(host, keys) for keys in columns.values()])
        ]
        shown = [[cell or "–" for cell in row] for row in rows]
        tables.append(f"### {title}\n\n{render_table(('agent', *columns), shown)}")
    return "\n\n".join(tables)


def _join_cell(host: Mapping[str, Any], keys: Iterable[str]) -> str:
    return "; ".join(_render_value(host[key]) for key in keys if key in host)


def _render_value(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,} characters"
    return join_lines(" → ".join(value) if isinstance(value, list) else value)


def render_dependencies() -> str:
    """Return the table of mandatory dependencies by purpose, with their licences."""
    return render_table(("purpose", "packages (licence)"), list_rows())


PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "reference/settings.md": {"settings": render_settings},
    "reference/cli.md": {"commands": render_commands},
    "reference/http-api.md": {"routes": render_routes},
    "reference/mcp.md": {"tools": render_tools},
    "reference/agent-integrations.md": {"hosts": render_hosts, "behavior": render_behavior},
    "concepts/security-review.md": {"dependencies": render_dependencies},
}


def fill(text: str, renderers: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with its generated parts replaced; raise ValueError where a marker is missing."""
    for name, render in renderers.items():
        match = re.search(MARKED.format(name=name), text, re.DOTALL)
        if match is None:
            raise ValueError(f"the page has no pair of markers for `{name}`")
        text = f"{text[: match.end(1)]}\n{render()}\n\n{text[match.start(2) :]}"
    return text


def main() -> int:
    """Write the generated parts, or with `--check` list the pages that are out of date."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    check = parser.parse_args().check
    outdated = []
    for name, renderers in PARTS.items():
        page = DOCS / name
        text = page.read_text(encoding="utf-8")
        try:
            filled = fill(text, renderers)
        except PackageNotFoundError as error:
            print(f"docs/{name}: skipped, because {error.name} is not installed")
            continue
        if filled != text:
            outdated.append(name)
            if not check:
                page.write_text(filled, encoding="utf-8")
    for name in outdated:
        print(f"docs/{name}: {'out of date; run `make docs`' if check else 'written'}")
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
