"""Read memories that other programs exported as JSON: those of mem0 and OpenMemory, and of PMB.

mem0: what its `get_all()` returns, and the backup of OpenMemory. The formats are `{"results": […]}` (with the page
counts of the platform), a list in older versions, and `{"memories": […]}` in the backup. The owner of a memory is
stored in the metadata: a separate scope would hide it from the importing user.

PMB: what `pmb export --format json` writes (version 1.2.3). Its events have a type, and details in their metadata:
lessons, failures and values of keys are facts there, a decision is an activity.
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
    name_of,
    read_item,
    session_of,
    split_text,
    tags_of,
    text_of,
    time_of,
)
from pipeline.features.ingest.json_values import ExportEntry
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Draft, GoalStatus, Kind, Source
from pipeline.write.fact_placement import fact_key
from pipeline.write.fields import check_details

MEM0 = "mem0"
MEM0_VERSION = "mem0 1"
MEM0_EXPECTED = 'export of mem0 (the JSON of get_all(): {"results": […]} or a list of memories)'
MEM0_FILES = re.compile(r"\.json$")

_LISTS = (None, "results", "memories", "items", "data")
_TEXTS = ("memory", "content", "text", "data")
# Fields around the memories: counts and links of a page, and tables of a backup that mean nothing alone.
_MEM0_AROUND = ("count", "previous", "total", "page", "size", "pages", "page_size", "user", "export_meta")
_TABLES = ("apps", "categories", "memory_categories", "status_history", "access_controls")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "app", "role", "attributed_to", "expiration_date")


def read_mem0(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the memories of an export."""
    yield from read_export(path, ExportFormat(MEM0_EXPECTED, MEM0_FILES, partial(_read_entry, known)), progress)


def _read_entry(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
    if entry.name in _MEM0_AROUND or entry.name in _TABLES:
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
    return [_read_mem0_row(known, row, position)]


def _read_mem0_row(known: Known, row: Mapping[str, Any], position: str) -> Reading:
    key = id_of(row.get("id")) or position
    if row.get("state") in ("deleted", "archived"):
        return Skipped(key, str(row["state"]))
    text = next((content for field in _TEXTS if (content := text_of(row.get(field)))), "")
    if not text:
        return Skipped(key, "no text")
    # The score of a search is not part of a memory.
    digest = digest_of_json(MEM0_VERSION, {field: value for field, value in row.items() if field != "score"})
    return read_item(known, key, digest, _draft_mem0(row, text))


def _draft_mem0(row: Mapping[str, Any], text: str) -> Iterator[Draft]:
    metadata = row.get("metadata")
    fields: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    for content in split_text(text):
        yield Draft(
            content=content,
            tags=tags_of(MEM0, row.get("categories")),
            metadata=metadata_of({**{field: row.get(field) for field in _OWNERS}, **fields}),
            session_id=session_of(MEM0, id_of(row.get("run_id"))),
            source=Source.IMPORT,
            occurred_at=time_of(row.get("created_at")) or time_of(row.get("updated_at")),
        )


SOURCE = "pmb"
VERSION = "pmb 1"
EXPECTED = "export of PMB (the JSON that `pmb export --format json` writes)"
FILES = re.compile(r"\.json$")

_AROUND = ("exported_at", "n_events")
_KINDS = {
    "qa": Kind.QA,
    "goal": Kind.GOAL,
    "goal_update": Kind.ACTIVITY,
    "activity": Kind.ACTIVITY,
    "git": Kind.ACTIVITY,
    "file": Kind.ACTIVITY,
    "test": Kind.ACTIVITY,
    "milestone": Kind.MILESTONE,
    "code": Kind.CODE,
    "summary": Kind.EPISODE,
}
_KINDS_BY_METADATA = {"lesson": Kind.LESSON, "failure": Kind.LESSON, "decision": Kind.DECISION}
_STATUSES = {
    "pending": GoalStatus.OPEN,
    "in_progress": GoalStatus.IN_PROGRESS,
    "done": GoalStatus.DONE,
    "cancelled": GoalStatus.DROPPED,
}
# Stored in other fields, or PMB's own bookkeeping.
_MAPPED = frozenset(
    {"tags", "query", "chain_name", "goal_status", "goal_progress", "due_at", "language", "memory_type"}
    | {"keyed_fact_key", "keyed_fact_subject", "keyed_fact_attribute", "keyed_fact_value", "supersedes"}
    | {"kind", "activity_kind", "valid_from", "importance_clamped", "project_name"}
)


def read_pmb(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the memories of an export."""
    yield from read_export(path, ExportFormat(EXPECTED, FILES, _RowReader(known)), progress)


class _RowReader:
    """Reads events; their workspace precedes them."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._workspace = ""

    def __call__(self, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
        if entry.name == "workspace" and isinstance(entry.value, dict):
            self._workspace = name_of(entry.value.get("name"))
            return ()
        if entry.name in _AROUND:
            return ()
        row = entry.value
        if entry.name != "events" or entry.number is None or not isinstance(row, dict):
            return None
        return [self._read_row(row, id_of(row.get("ulid")) or position)]

    def _read_row(self, row: Mapping[str, Any], key: str) -> Reading:
        raw_metadata = row.get("metadata")
        metadata: Mapping[str, Any] = raw_metadata if isinstance(raw_metadata, dict) else {}
        text = text_of(row.get("content"))
        if reason := _reason_to_skip(row, metadata, text):
            return Skipped(key, reason)
        # The number of reads in PMB is not useful here.
        written = {field: value for field, value in row.items() if field != "access_count"}
        digest = digest_of_json(VERSION, [written, self._workspace])
        return read_item(self._known, key, digest, _drafts(row, metadata, text, self._workspace))


def _reason_to_skip(row: Mapping[str, Any], metadata: Mapping[str, Any], text: str) -> str:
    is_index = metadata.get("index_artifact") is True or metadata.get("source") == "project"
    reasons = {
        "no text": not text,
        "archived": row.get("archived") is True,
        "an index of a project's files": is_index,
        "extracted from another memory": row.get("type") == "fact_atom" or metadata.get("extracted") is True,
        "a lesson without a text": metadata.get("draft") is True,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _drafts(row: Mapping[str, Any], metadata: Mapping[str, Any], text: str, workspace: str) -> Iterable[Draft]:
    nature = name_of(metadata.get("kind") or metadata.get("activity_kind") or metadata.get("memory_type"))
    typed = name_of(row.get("type"))
    kind, details = _kind_and_details(typed, nature, metadata, text)
    if kind is Kind.QA and (question := text_of(metadata.get("query"))):
        text = f"Q: {question}\n\nA: {text}"
    others = [name for name in (typed, nature) if name not in ("fact", "activity", kind)]
    project = name_of(metadata.get("project_name") or metadata.get("project"))
    extra = {field: value for field, value in metadata.items() if field not in _MAPPED}
    for content in split_text(text):
        yield Draft(
            content=content,
            kind=kind,
            # The metadata of a decision was meant for an activity.
            importance=None if kind is Kind.DECISION else _importance(row.get("importance")),
            tags=tags_of(SOURCE, metadata.get("tags"), *others, project),
            metadata=metadata_of({**extra, "project": project, "workspace": workspace}),
            source=Source.IMPORT,
            occurred_at=time_of(metadata.get("valid_from")) or time_of(row.get("timestamp")),
            details=details,
        )


def _kind_and_details(
    typed: str, nature: str, metadata: Mapping[str, Any], text: str
) -> tuple[Kind, Mapping[str, Any]]:
    if fact := _fact_fields(metadata):
        return Kind.KEYED_FACT, fact
    kind = _KINDS_BY_METADATA.get(nature) or _KINDS.get(typed) or Kind.FACT
    details = {name: value for name, value in _fields(kind, metadata, text).items() if value not in (None, "")}
    # One by one, so that a field that the kind rejects does not affect the others.
    checked = {name: _check_details(kind, {name: value}).get(name) for name, value in details.items()}
    return kind, {name: value for name, value in checked.items() if value is not None}


def _fields(kind: Kind, metadata: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    percent, status = metadata.get("goal_progress"), metadata.get("goal_status")
    goal = {
        "status": _STATUSES.get(status) if isinstance(status, str) else None,
        "progress": percent / 100 if isinstance(percent, int | float) and 0 <= percent <= 100 else None,
        "due_at": time_of(metadata.get("due_at")),
    }
    fields: Mapping[Kind, Mapping[str, Any]] = {
        Kind.QA: {"question": metadata.get("query"), "answer": text},
        Kind.MILESTONE: {"chain": metadata.get("chain_name")},
        Kind.CODE: {"language": metadata.get("language")},
        Kind.GOAL: goal,
    }
    return fields.get(kind, {})


def _fact_fields(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a keyed value, empty if it cannot be stored as one."""
    fields = {name: metadata.get(f"keyed_fact_{name}") for name in ("subject", "attribute", "value")}
    fact = _check_details(Kind.KEYED_FACT, fields)
    try:
        if fact:
            fact_key(fact["subject"], fact["attribute"])
    except InvalidField:
        return {}
    return fact


def _check_details(kind: Kind, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return check_details(kind, fields, "details")
    except InvalidField:
        return {}


def _importance(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None
