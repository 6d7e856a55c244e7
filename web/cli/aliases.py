"""Words that people type instead of a command, and what to suggest for the rest."""

from collections.abc import Mapping

# Words that mean the same as a command.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "add": ("remember",),
    "capture": ("config", "set", "capture"),
    "find": ("recall",),
    "search": ("recall",),
    "show": ("get",),
    "start": ("up",),
    "stop": ("down",),
    "ui": ("dashboard",),
    "web": ("dashboard",),
}

# Words that may mean several things: the answer names each of them.
_DELETE = "To archive a memory, run `reverie forget ID`. To delete it permanently, run `reverie purge ID`."
SUGGESTIONS: Mapping[str, str] = {
    "delete": _DELETE,
    "disable": "To stop Reverie, run `reverie down`. To store nothing new, run `reverie config set capture off`.",
    "help": "Run `reverie --help` to list the commands, and `reverie COMMAND --help` for one of them.",
    "install": "To connect your coding agents, run `reverie setup`. To start Reverie at login, run "
    "`reverie service install`.",
    "remove": _DELETE,
    "restart": "Run `reverie down`, then `reverie up --daemon`.",
    "rm": _DELETE,
    "run": "To start Reverie, run `reverie up`. To run maintenance jobs, run `reverie jobs run JOB`.",
    "undo": "To undo an automatic change, run `reverie logs audit`, then `reverie logs audit undo ID`. To bring back "
    "an archived memory, run `reverie restore ID`.",
    "uninstall": "To disconnect your coding agents, run `reverie setup --remove`. To stop starting Reverie at login, "
    "run `reverie service remove`.",
}
