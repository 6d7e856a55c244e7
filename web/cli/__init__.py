"""The reverie command, one file a group.

Nothing heavy is imported until a command needs it: `reverie version` must not pay for a model.
"""

from web.cli.command import Root
from web.cli.incognito import incognito
from web.cli.index import queue, rebuild, stats
from web.cli.lifecycle import down, up
from web.cli.memories import recall, remember
from web.cli.model import model
from web.cli.settings import config, token, version
from web.cli.sleep import consolidate, sleep
from web.cli.snapshots import snapshot
from web.cli.status import status
from web.cli.workspaces import workspace

HELP = "Memory for AI coding agents that lives in files you own."

cli = Root("reverie", help=HELP)
for command in (
    up,
    down,
    status,
    remember,
    recall,
    incognito,
    stats,
    queue,
    rebuild,
    sleep,
    consolidate,
    snapshot,
    model,
    workspace,
    config,
    token,
    version,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line."""
    cli.main()
