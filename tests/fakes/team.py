"""Machines of a team: each a web server and a worker in this process, over one store and one object storage."""

from pathlib import Path
from typing import Any

from config.declared import Secret
from pipeline.kernel.records.recall import Channel
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import digest_all, fast_settings, flush_notes, open_web, open_worker
from web.http.app import create_app


class Machine:
    """A web server and a worker over a store on a server, with a home of their own that holds nothing of it."""

    def __init__(self, home: Path, store: str, vectors: str) -> None:
        self.settings = fast_settings(home, store=Secret(store), vectors=vectors)
        self.container = open_web(self.settings)
        self.worker = open_worker(self.settings)
        self.client = CheckedClient(create_app(self.container), self.container.token)
        self.paths = self.settings.paths.workspace("default")

    def build(self) -> None:
        """Digest everything and build a segment."""
        digest_all(self.worker)
        self.worker.context("default").rebuild_segment()

    def recall(self, text: str, budget_ms: int = 5000) -> dict[str, Any]:
        """Answer a question."""
        return self.client.recall(text, budget_ms=budget_ms)

    def find(self, text: str) -> str:
        """Return the text of the best answer."""
        return str(self.recall(text)["results"][0]["content"])

    def states(self, text: str) -> dict[str, str]:
        """Return for a question the state of each channel with an index; the graph has none."""
        channels = self.recall(text)["channels"].items()
        return {name: report["state"] for name, report in channels if name != Channel.GRAPH}

    def errors(self) -> list[str]:
        """List the components that had errors."""
        flush_notes(self.container)
        return [
            error.component for error in self.container.operations.errors(workspace="default", limit=99, before=None)
        ]

    def close(self) -> None:
        """Let go of everything."""
        self.container.close()
        self.worker.close()
