"""Tool that indexes a project."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.features.ingest.usecases import open_reader, source_name
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.text.quoting import quote
from web.mcp.tool import Effect, Server, Tool, ToolCall, ToolResult, one_of, segment

PAGE_OF_ITEMS = 1000


@dataclass(frozen=True, slots=True)
class SourcesApi:
    """The sources API over a tool's server, for an import."""

    server: Server

    def source_items(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield every known item of a source."""
        cursor = None
        while True:
            query = {"limit": PAGE_OF_ITEMS} | ({"cursor": cursor} if cursor else {})
            page = self.server.call("GET", f"/v1/sources/{segment(source)}/items", query=query)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def put_items(self, source: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Sync the memories of a source with some of its items."""
        return self.server.call("PUT", f"/v1/sources/{segment(source)}/items", {"items": list(items)})

    def forget_items(self, source: str, keys: Sequence[str], created: Sequence[str] = ()) -> Any:
        """Forget items that a source no longer has; `created` are memories that the same import created."""
        body = {"keys": list(keys)} | ({"created": list(created)} if created else {})
        return self.server.call("POST", f"/v1/sources/{segment(source)}/forget", body)


def index(call: ToolCall) -> ToolResult:
    """Index the caller's project, or its git history."""
    if not call.folder:
        problem = "needs the folder of the project, which is unknown here; run `reverie index` in that folder"
        raise InvalidField(FieldError("what", problem))
    from web.features.ingest.uploads import Intake

    name, folder = str(call.arguments["what"]), Path(call.folder).resolve()
    read = open_reader(name, folder, lambda *_told: None)
    intake = Intake(SourcesApi(call.server), source_name(name, folder), sweeps=name == "project", dry=False)
    counts = intake.take(read)
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.memories.items()))
    return ToolResult(f"Indexed {quote(str(folder))}: {counts.items.total()} items; memories: {outcomes or 'none new'}")


TOOLS = (
    Tool(
        "index",
        "Index the files of your project, or its git history; update the index after changes.",
        index,
        {"what": one_of(("project", "git"))},
        ("what",),
        effect=Effect.ADDS,
        reads_folder=True,
        place=115,
    ),
)
