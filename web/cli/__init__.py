"""The `reverie` command line.

A command's module is imported when the command runs: `reverie --help` loads none of them, and an agent that waits for
`reverie mcp` loads only that one.
"""

from collections.abc import Mapping

from config.file_modes import make_umask_private
from config.foreign_variables import environment_encoding
from web.cli.command import Entry, Root
from web.cli.output import adapt_streams

HELP = "Memory for AI coding agents, stored in files on your machine."

# The sections of `reverie --help`: each command with its module and a short description.
SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Everyday commands": {
        "up": Entry("lifecycle", "Start Reverie"),
        "down": Entry("lifecycle", "Stop Reverie"),
        "status": Entry("status", "Show what is running"),
        "doctor": Entry("doctor", "Find and fix problems"),
        "setup": Entry("setup", "Connect coding agents"),
        "off": Entry("settings", "Turn off in this project"),
        "on": Entry("settings", "Turn on in this project"),
        "dashboard": Entry("status", "Open the dashboard"),
        "remember": Entry("memories", "Store a memory"),
        "recall": Entry("recall", "Search memories"),
        "list": Entry("memories", "List memories"),
        "today": Entry("today", "What changed today"),
        "tail": Entry("live", "Print events as they happen"),
        "get": Entry("memories", "Show a memory"),
        "edit": Entry("memories", "Change a memory"),
        "forget": Entry("memories", "Archive a memory"),
        "restore": Entry("memories", "Restore an archived memory"),
        "purge": Entry("memories", "Delete permanently"),
        "import": Entry("ingest", "Import from other tools"),
        "index": Entry("ingest", "Index project, Git or PDF"),
        "check": Entry("check", "Check cited code"),
        "export": Entry("export", "Write memories to files"),
        "mcp": Entry("mcp", "Serve an agent over MCP"),
    },
    "Past sessions": {
        "fix": Entry("sessions", "What fixed an error"),
        "how": Entry("sessions", "Which command works here"),
        "blame": Entry("sessions", "What is behind a file"),
        "friction": Entry("sessions", "Errors that return"),
    },
    "Topics (groups of commands)": {
        "facts": Entry("topics", "Values that change"),
        "goals": Entry("topics", "Goals and their progress"),
        "lessons": Entry("topics", "Lessons and their effect"),
        "sessions": Entry("sessions", "Agent sessions, incognito"),
        "me": Entry("topics", "Memories about you"),
        "review": Entry("review", "Memories to review"),
        "graph": Entry("graph", "Entities and threads"),
        "sync": Entry("sync", "Sync with other machines"),
        "team": Entry("team", "Memory shared by a team"),
        "workspace": Entry("workspaces", "Manage workspaces"),
    },
    "Administration": {
        "config": Entry("settings", "Show and change settings"),
        "model": Entry("settings", "Embedding model"),
        "token": Entry("settings", "Token of the server"),
        "user": Entry("users", "Accounts and roles"),
        "service": Entry("lifecycle", "Start Reverie at login"),
        "logs": Entry("logs", "Errors, actions, hook runs"),
        "store": Entry("store", "Snapshots and encryption"),
        "jobs": Entry("jobs", "Maintenance jobs and queue"),
        "sleep": Entry("jobs", "Alias of `jobs run`"),
        "consolidate": Entry("jobs", "Run the job consolidate"),
    },
}

# Commands for programs.
HIDDEN: Mapping[str, Entry] = {"codex-notify": Entry("codex_notify", "Receive a notification from Codex")}

cli = Root("reverie", sections=SECTIONS, hidden=HIDDEN, help=HELP)


def main() -> None:
    """Run the command line."""
    make_umask_private()
    adapt_streams(environment_encoding())
    cli.main()
