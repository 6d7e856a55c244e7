"""The commands of Reverie in the files of hosts, as `reverie setup` and their users have written them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from web.hosts import toml_edits
from web.hosts.entries import CannotEdit
from web.hosts.hook_entries import EVENTS, is_our_hook, read_client_words
from web.hosts.host import is_our_server
from web.hosts.installed_files import InstalledFile, read
from web.hosts.jsonc import JsoncDocument
from web.hosts.plugin_file import read_command

# Timeouts of hooks above this number are in milliseconds.
LONGEST_TIMEOUT_S = 600
# How long the plugins of hosts wait for the hook client.
PLUGIN_TIMEOUT_S = 6.0
# The names under which hosts keep the variables of an MCP server.
ENVIRONMENT_KEYS = ("env", "environment")


@dataclass(frozen=True, slots=True)
class HookCommand:
    """The command of a host for one of its events, and how many seconds the host waits for it."""

    host: str
    event: str
    file: Path
    words: Sequence[str]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command by which a host starts `reverie mcp`, and its variables."""

    host: str
    file: Path
    words: Sequence[str]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """A file or a command of a host that cannot be read, and why."""

    host: str
    problem: str


Found = HookCommand | ServerCommand | UnreadableEntry


def list_commands(records: Mapping[str, InstalledFile], platform: str) -> Iterator[Found]:
    """Yield the commands of Reverie in the files that setup changed."""
    for name, record in sorted(records.items()):
        file = Path(name)
        if file.suffix == ".js":
            yield from _list_plugin_hooks(file)
        if file.suffix not in (".json", ".jsonc", ".toml"):
            continue
        try:
            document = _parse(file)
        except (CannotEdit, UnicodeDecodeError) as error:
            yield from (UnreadableEntry(host, f"{file}: {error}") for host in sorted(record.hosts))
            continue
        yield from _list_hooks(document, file, record.hosts, platform)
        for value in _walk(document):
            if is_our_server(value):
                words, variables = _read_server(value)
                yield from (ServerCommand(host, file, words, variables) for host in sorted(record.hosts))


def _parse(file: Path) -> Any:
    content = read(file)
    if content is None:
        return {}
    text = content.decode()
    return toml_edits.parse(text) if file.suffix == ".toml" else JsoncDocument.read(text).root.value


def _list_hooks(document: Any, file: Path, hosts: frozenset[str], platform: str) -> Iterator[Found]:
    events = document.get("hooks") if isinstance(document, dict) else None
    for event, groups in (events if isinstance(events, dict) else {}).items():
        for handler in _walk(groups):
            if not is_our_hook(handler):
                continue
            command = str(handler.get("command", ""))
            try:
                words = read_client_words(command, platform)
            except ValueError as error:
                yield from (UnreadableEntry(host, f"{file}: {command}: {error}") for host in sorted(hosts))
                continue
            if words:
                yield HookCommand(words[1], str(event), file, words, _read_timeout_s(handler.get("timeout")))


def _list_plugin_hooks(file: Path) -> Iterator[HookCommand]:
    words = read_command((read(file) or b"").decode(errors="replace"))
    if len(words) > 1:
        yield from (HookCommand(words[1], event, file, words, PLUGIN_TIMEOUT_S) for event in EVENTS.get(words[1], ()))


def _read_timeout_s(timeout: Any) -> float:
    value = float(timeout) if isinstance(timeout, int | float) and timeout > 0 else LONGEST_TIMEOUT_S
    return value / 1000 if value > LONGEST_TIMEOUT_S else value


def _read_server(value: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    command = value.get("command")
    words = list(command) if isinstance(command, list) else [command, *(value.get("args") or ())]
    found = [value[key] for key in ENVIRONMENT_KEYS if isinstance(value.get(key), dict)]
    variables = {str(name): str(text) for entry in found[:1] for name, text in entry.items()}
    return [str(word) for word in words], variables


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a value."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _walk(part)
