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
        Entry("up", "web.features.lifecycle.commands", "Start Reverie"),
        Entry("down", "web.features.lifecycle.commands", "Stop Reverie"),
        Entry("status", "web.features.lifecycle.status", "Show what is running"),
        Entry("setup", "web.features.hosts.commands", "Connect coding agents"),
        Entry("off", "web.features.configuration.commands", "Turn off in this project"),
        Entry("on", "web.features.configuration.commands", "Turn on in this project"),
        Entry("dashboard", "web.features.lifecycle.status", "Open the dashboard"),
        Entry("remember", "web.features.memories.commands", "Store a memory"),
        Entry("recall", "web.features.recall.commands", "Search memories"),
        Entry("list", "web.features.memories.commands", "List memories"),
        Entry("get", "web.features.memories.commands", "Show a memory"),
        Entry("edit", "web.features.memories.commands", "Change a memory"),
        Entry("forget", "web.features.memories.commands", "Archive a memory"),
        Entry("restore", "web.features.memories.commands", "Restore an archived memory"),
        Entry("purge", "web.features.memories.commands", "Delete permanently"),
        Entry("mcp", "web.cli.mcp", "Serve an agent over MCP"),
    ),
    "Past sessions": (
        Entry("fix", "web.features.sessions.commands", "What fixed an error"),
        Entry("how", "web.features.sessions.commands", "Which command works here"),
        Entry("blame", "web.features.sessions.commands", "What is behind a file"),
        Entry("friction", "web.features.sessions.commands", "Errors that return"),
    ),
    "Topics (groups of commands)": (Entry("sessions", "web.features.sessions.commands", "Agent sessions, incognito"),),
    "Administration": (
        Entry("config", "web.features.configuration.commands", "Show and change settings"),
        Entry("token", "web.features.configuration.commands", "Token of the server"),
        Entry("service", "web.features.lifecycle.commands", "Start Reverie at login"),
        Entry("logs", "web.features.prompt.logs", "Errors, actions, hook runs"),
        Entry("store", "web.features.snapshots.commands", "Snapshots and encryption"),
        Entry("jobs", "web.features.maintenance.commands", "Maintenance jobs and queue"),
        Entry("sleep", "web.features.maintenance.commands", "Alias of `jobs run`"),
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
