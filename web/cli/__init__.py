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

# The sections of `reverie --help`, with the commands that belong to no feature.
SECTIONS: Mapping[str, tuple[Entry, ...]] = {
    "Everyday commands": (
        Entry("up", "web.cli.lifecycle", "Start Reverie"),
        Entry("down", "web.cli.lifecycle", "Stop Reverie"),
        Entry("status", "web.cli.status", "Show what is running"),
        Entry("setup", "web.cli.setup", "Connect coding agents"),
        Entry("off", "web.cli.settings", "Turn off in this project"),
        Entry("on", "web.cli.settings", "Turn on in this project"),
        Entry("dashboard", "web.cli.status", "Open the dashboard"),
        Entry("remember", "web.cli.memories", "Store a memory"),
        Entry("recall", "web.cli.recall", "Search memories"),
        Entry("list", "web.cli.memories", "List memories"),
        Entry("get", "web.cli.memories", "Show a memory"),
        Entry("edit", "web.cli.memories", "Change a memory"),
        Entry("forget", "web.cli.memories", "Archive a memory"),
        Entry("restore", "web.cli.memories", "Restore an archived memory"),
        Entry("purge", "web.cli.memories", "Delete permanently"),
        Entry("mcp", "web.cli.mcp", "Serve an agent over MCP"),
    ),
    "Past sessions": (
        Entry("fix", "web.cli.sessions", "What fixed an error"),
        Entry("how", "web.cli.sessions", "Which command works here"),
        Entry("blame", "web.cli.sessions", "What is behind a file"),
        Entry("friction", "web.cli.sessions", "Errors that return"),
    ),
    "Topics (groups of commands)": (Entry("sessions", "web.cli.sessions", "Agent sessions, incognito"),),
    "Administration": (
        Entry("config", "web.cli.settings", "Show and change settings"),
        Entry("token", "web.cli.settings", "Token of the server"),
        Entry("service", "web.cli.lifecycle", "Start Reverie at login"),
        Entry("logs", "web.cli.logs", "Errors, actions, hook runs"),
        Entry("store", "web.cli.store", "Snapshots and encryption"),
        Entry("jobs", "web.cli.jobs", "Maintenance jobs and queue"),
        Entry("sleep", "web.cli.jobs", "Alias of `jobs run`"),
    ),
}

# Commands for programs.
HIDDEN = (Entry("codex-notify", "web.cli.codex_notify", "Receive a notification from Codex"),)

cli = Root("reverie", sections=SECTIONS, hidden=HIDDEN, help=HELP)


def main() -> None:
    """Run the command line."""
    make_umask_private()
    adapt_streams(environment_encoding())
    cli.main()
