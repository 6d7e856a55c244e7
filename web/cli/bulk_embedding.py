"""Embed the pending memories of a data directory in this process."""

from typing import TYPE_CHECKING

from pipeline.enums import Device
from web.cli.job_runs import open_worker

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.services.bulk_embedding import Embedded


def embed_pending(settings: "Settings", requested: Device, workspace_id: str | None) -> tuple[Device, "Embedded"]:
    """Embed what is pending in a workspace, or in all; return the device and the numbers."""
    from pipeline.services.bulk_embedding import BulkEmbedding, Embedded
    from pipeline.services.workspace_listing import list_workspaces

    workspace_ids = list_workspaces(settings) if workspace_id is None else [workspace_id]
    embedding, total = BulkEmbedding(requested), Embedded()
    with open_worker(settings) as worker:
        for name in workspace_ids:
            total += embedding.run(worker.context(name), worker.stages(name), worker.owner, worker.policy)
    return embedding.device, total
