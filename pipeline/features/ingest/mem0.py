"""Read memories of mem0, as returned by its `get_all()` and as backed up by OpenMemory.

The formats are `{"results": […]}` (with the page counts of the platform), a list in older versions, and `{"memories":
[…]}` in the backup. The owner of a memory is stored in the metadata: a separate scope would hide it from the importing
user.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.features.ingest.exports import ExportFormat, read_export
from pipeline.features.ingest.fields import (
    Known,
    Progress,
    Reading,
    Readings,
    Skipped,
    digest_of_json,
    id_of,
    metadata_of,
    read_item,
    session_of,
    split_text,
    tags_of,
    text_of,
    time_of,
)
from pipeline.features.ingest.json_values import ExportEntry
from pipeline.kernel.records import Draft, Source

SOURCE = "mem0"
VERSION = "mem0 1"
EXPECTED = 'export of mem0 (the JSON of get_all(): {"results": […]} or a list of memories)'
FILES = re.compile(r"\.json$")

_LISTS = (None, "results", "memories", "items", "data")
_TEXTS = ("memory", "content", "text", "data")
# Fields around the memories: counts and links of a page, and tables of a backup that mean nothing alone.
_AROUND = ("count", "previous", "total", "page", "size", "pages", "page_size", "user", "export_meta")
_TABLES = ("apps", "categories", "memory_categories", "status_history", "access_controls")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "app", "role", "attributed_to", "expiration_date")


def read_mem0(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the memories of an export."""
    yield from read_export(path, ExportFormat(EXPECTED, FILES, partial(_read_entry, known)), progress)


def _read_entry(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
    if entry.name in _AROUND or entry.name in _TABLES:
        return ()
    if entry.name == "next":
        return [Skipped(position, "this is one page of several; import the others too")] if entry.value else ()
    if entry.name == "relations":
        return [Skipped(position, "a relation between entities")]
    if entry.number is None or entry.name not in _LISTS:
        return None
    row = {"memory": entry.value} if isinstance(entry.value, str) else entry.value
    if not isinstance(row, dict) or not any(field in row for field in _TEXTS):
        return None
    return [_read_row(known, row, position)]


def _read_row(known: Known, row: Mapping[str, Any], position: str) -> Reading:
    key = id_of(row.get("id")) or position
    if row.get("state") in ("deleted", "archived"):
        return Skipped(key, str(row["state"]))
    text = next((content for field in _TEXTS if (content := text_of(row.get(field)))), "")
    if not text:
        return Skipped(key, "no text")
    # The score of a search is not part of a memory.
    digest = digest_of_json(VERSION, {field: value for field, value in row.items() if field != "score"})
    return read_item(known, key, digest, _drafts(row, text))


def _drafts(row: Mapping[str, Any], text: str) -> Iterator[Draft]:
    metadata = row.get("metadata")
    fields: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    for content in split_text(text):
        yield Draft(
            content=content,
            tags=tags_of(SOURCE, row.get("categories")),
            metadata=metadata_of({**{field: row.get(field) for field in _OWNERS}, **fields}),
            session_id=session_of(SOURCE, id_of(row.get("run_id"))),
            source=Source.IMPORT,
            occurred_at=time_of(row.get("created_at")) or time_of(row.get("updated_at")),
        )
