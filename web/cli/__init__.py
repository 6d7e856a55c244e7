"""The reverie command, one file a group.

Nothing heavy is imported until a command needs it: `reverie version` must not pay for a model.
"""

from web.cli.audit import audit
from web.cli.codex import codex_notify
from web.cli.command import Root
from web.cli.completion import completion
from web.cli.doctor import doctor
from web.cli.explain import explain
from web.cli.facts import facts
from web.cli.forget import forget
from web.cli.goals import goals
from web.cli.incognito import incognito
from web.cli.index import queue, rebuild, stats
from web.cli.jobs import errors, jobs
from web.cli.lessons import lessons
from web.cli.lifecycle import down, up
from web.cli.live import tail
from web.cli.mcp import mcp
from web.cli.memories import recall, remember
from web.cli.model import model
from web.cli.records import edit, get, purge, restore
from web.cli.review import candidates, duplicates, why_not_saved
from web.cli.service import service
from web.cli.settings import config, token, version
from web.cli.setup import setup
from web.cli.sleep import consolidate, sleep
from web.cli.snapshots import snapshot
from web.cli.status import status
from web.cli.threads import arcs, entities, graph
from web.cli.workspaces import workspace

HELP = "Memory for AI coding agents that lives in files you own."

cli = Root("reverie", help=HELP)
for command in (
    up,
    down,
    status,
    doctor,
    setup,
    service,
    codex_notify,
    remember,
    recall,
    explain,
    get,
    edit,
    forget,
    restore,
    purge,
    tail,
    facts,
    goals,
    lessons,
    arcs,
    entities,
    graph,
    duplicates,
    candidates,
    why_not_saved,
    audit,
    mcp,
    incognito,
    stats,
    queue,
    jobs,
    errors,
    rebuild,
    sleep,
    consolidate,
    snapshot,
    model,
    workspace,
    config,
    token,
    completion,
    version,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line."""
    cli.main()
