"""Memories: write, read, change, forget."""

from pipeline.records import Memory
from pipeline.services.workspace import Workspace
from pipeline.write import revise


def archive(workspace: Workspace, memory_id: str) -> Memory:
    """Archive a memory, which restoring it undoes; raise NotFound where there is none."""
    return revise.archive(workspace.database, memory_id)
