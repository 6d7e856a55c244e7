"""Which workspace a request about a folder is for: the one rule of the hooks and of prepare."""

from pathlib import Path

from flask import request

from config.settings import environment_workspace
from pipeline.services.workspace import Workspace
from pipeline.services.workspaces import choose_workspace
from web.contract import WORKSPACE_HEADER
from web.endpoint import Call


def workspace_of_folder(call: Call, folder: str, *, to_write: bool = False) -> Workspace:
    """Return the workspace that the header names, else the one that a folder belongs to, and note that it is in use.

    To write, a project's own workspace is meant even before there is one.
    """
    # A .reverie.toml that cannot be taken is left out: the command line tells of it, an agent could do nothing.
    chosen = choose_workspace(
        Path(folder) if folder else None,
        call.container.settings,
        explicit=call.workspace_id if WORKSPACE_HEADER in request.headers else None,
        environment=environment_workspace(),
        to_write=to_write,
    ).workspace
    call.container.prefetcher.notify_activity(chosen)
    return call.container.workspace(chosen)
