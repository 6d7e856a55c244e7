"""The reverie command, one file a group.

Nothing is imported until a command needs it: `reverie version` must not pay for a model, nor an agent's host, which
waits for `reverie mcp`, for forty commands that it does not call.
"""

from config.modes import close_umask
from config.settings import environment_encoding
from web.cli.command import Root
from web.cli.output import adapt_streams

HELP = "Memory for AI coding agents that lives in files you own."

# Each command's module, in the order in which they are of use.
MODULES = {
    "up": "lifecycle",
    "serve": "lifecycle",
    "down": "lifecycle",
    "status": "status",
    "doctor": "doctor",
    "setup": "setup",
    "service": "service",
    "codex-notify": "codex",
    "remember": "memories",
    "recall": "recall",
    "explain": "recall",
    "list": "memories",
    "get": "memories",
    "edit": "memories",
    "move": "memories",
    "forget": "memories",
    "restore": "memories",
    "share": "sharing",
    "purge": "memories",
    "dashboard": "status",
    "tail": "status",
    "facts": "facts",
    "goals": "goals",
    "lessons": "goals",
    "me": "said",
    "sessions": "said",
    "distill": "said",
    "hooks": "said",
    "arcs": "graph",
    "entities": "graph",
    "graph": "graph",
    "duplicates": "review",
    "candidates": "review",
    "refused": "review",
    "why-not-saved": "review",
    "audit": "review",
    "index": "ingest",
    "import": "ingest",
    "mcp": "mcp",
    "incognito": "settings",
    "stats": "jobs",
    "queue": "jobs",
    "jobs": "jobs",
    "errors": "jobs",
    "journal": "jobs",
    "rebuild": "jobs",
    "sleep": "jobs",
    "consolidate": "jobs",
    "snapshot": "workspaces",
    "sync": "sync",
    "team": "team",
    "export": "export",
    "encrypt": "encryption",
    "decrypt": "encryption",
    "migrate": "migrate",
    "model": "settings",
    "workspace": "workspaces",
    "config": "settings",
    "token": "settings",
    "user": "people",
    "completion": "settings",
    "version": "settings",
}

cli = Root("reverie", modules=MODULES, help=HELP)


def main() -> None:
    """Run the command line."""
    close_umask()
    adapt_streams(environment_encoding())
    cli.main()
