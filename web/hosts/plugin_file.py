"""A plugin of a host that takes program files instead of settings for its hooks."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from web.hooks.client import HOOK_CLIENT
from web.hosts.entries import AddedEntries, CannotEdit, EntryUndo, HostEntry, PluginFile, RemovedEntries
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Target

MARK = "// Written by `reverie setup`; `reverie setup --remove` deletes this file."
_PLUGINS = Path(__file__).parent / "plugins"
# What all plugins share: the start of the hook client.
_CLIENT = "client.js"
_COMMAND = re.compile(r"^const COMMAND = (\[.*\]);$", re.MULTILINE)


def plugin_target(
    host: str, host_env: HostEnvironment, reverie: Installation, path: Path, *, program: str = ""
) -> Target:
    """Return the file of a host's plugin, which starts the hook client at each event.

    `program` names the host that has the same plugins, if it is another.
    """
    command = [reverie.program(host_env, HOOK_CLIENT), host, *reverie.options(host_env)]
    parts = [(_PLUGINS / name).read_text(encoding="utf-8") for name in (_CLIENT, f"{program or host}.js")]
    # On one line, in which `reverie doctor` looks for the server.
    body = "\n".join((f"{MARK}\nconst COMMAND = {json.dumps(command)};", *parts))
    return Target(path, "plugin", (PluginFile(body),))


def read_command(text: str) -> list[str]:
    """Return the words of the command that a plugin starts; none if it was not written by Reverie."""
    found = _COMMAND.search(text) if text.startswith(MARK) else None
    return [str(word) for word in json.loads(found[1])] if found else []


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the plugin; raise CannotEdit if another program or a person wrote the file."""
    [entry] = entries
    assert isinstance(entry, PluginFile)
    if text is not None and not text.startswith(MARK):
        raise CannotEdit("it was not written by Reverie; rename it and run the setup again")
    return AddedEntries(entry.body, undo)


def remove_entries(text: str, _entries: Sequence[HostEntry], _undo: EntryUndo | None) -> RemovedEntries:
    """Return no text if the file is the plugin."""
    is_ours = text.startswith(MARK)
    return RemovedEntries("" if is_ours else text, bare=is_ours)
