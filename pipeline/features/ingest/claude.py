"""The data export of claude.ai: conversations.json, projects.json and memories.json, alone or in .zip files.

The messages of a conversation are in one list, including retries. If they name their parents, only the branch that was
written last is read. Claude's memories of its owner are in memories.json, or since 2026 in one file per account.
Anthropic publishes no schema: this follows exports since 2024.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.features.ingest.exports import Conversation, ExportFormat, Extra, Turn, read_conversation, read_export
from pipeline.features.ingest.fields import (
    Known,
    Progress,
    Reading,
    Readings,
    Skipped,
    digest_of,
    id_of,
    name_of,
    read_item,
    split_under_heading,
    text_of,
    time_of,
)
from pipeline.features.ingest.json_values import ExportEntry
from pipeline.kernel.records import Draft, Kind, Source

SOURCE = "claude"
VERSION = "claude 1"
EXPECTED = "data export of claude.ai (conversations.json, or the .zip or folder that contains it)"
FILES = re.compile(
    r"(^|/)(conversations(-\d+)?\.json|(memories|projects)(-\d+)?\.json|(memories|projects)/[^/]+\.json)$"
)

# The fields of an account's memories: a list of such objects, or a single one.
_ACCOUNT, _MEMORY_FIELDS = "account_uuid", ("conversations_memory", "project_memories", "memory_files")
# A project in a separate file, and the field with its instructions for Claude.
_PROJECT, _TOLD = re.compile(r"(?:^|/)projects/([^/ ]+)\.json"), "prompt_template"
# Replaces a block that the plain text of a message cannot show.
_PLACEHOLDER = re.compile(r"\n{0,2}```\nThis block is not supported on your current device yet\.\n```\n{0,2}")
_SPOKEN = ("text", "voice_note")
_MESSAGES = ("chat_messages", "messages")
_ASKING = ("human", "user")
# The tools that write a document, and the fields with its title and its text.
_WRITERS = {"artifacts": ("title", "content"), "create_file": ("path", "file_text")}
_WHOLE = (None, "create", "rewrite")


# A key, a title, a text and its time.
_Text = tuple[str, str, Any, str | None]


def read_claude(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the conversations and projects of an export, and Claude's memories of their owner."""
    yield from read_export(path, ExportFormat(EXPECTED, FILES, partial(_read_entry, known)), progress)


def _read_entry(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
    value = entry.value
    if entry.name == _ACCOUNT:
        return ()
    if entry.name is not None:
        return _read_field(known, entry, position)
    if not isinstance(value, dict):
        return None
    messages = next((value[name] for name in _MESSAGES if isinstance(value.get(name), list)), None)
    if messages is not None:
        return [_conversation(known, value, messages, position)]
    if isinstance(value.get("docs"), list):
        return _read_project(known, value, position)
    return _read_texts(known, _list_memories(value)) if any(name in value for name in _MEMORY_FIELDS) else None


def _read_field(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
    """Read a field of an object that is a complete file: an account's memories, or a project."""
    field = {str(entry.name): [entry.value] if entry.number else entry.value}
    if entry.name in _MEMORY_FIELDS:
        return _read_texts(known, _list_memories(field))
    return _read_project(known, field, position) if _PROJECT.search(position) else None


# Conversations


def _conversation(known: Known, raw: Mapping[str, Any], listed: Sequence[Any], position: str) -> Reading:
    name = id_of(raw.get("uuid")) or id_of(raw.get("id"))
    if not name:
        return Skipped(position, "a conversation without an id")
    messages = _branch([item for item in listed if isinstance(item, dict)], raw.get("current_leaf_message_uuid"))
    title = name_of(raw.get("name"))
    summary = text_of(raw.get("summary"))
    conversation = Conversation(
        source=SOURCE,
        id=name,
        title=title,
        began=time_of(raw.get("created_at")),
        ended=time_of(raw.get("updated_at")),
        turns=[_turn(item) for item in messages if _sender(item) in (*_ASKING, "assistant")],
        extras=[
            *([Extra(Kind.EPISODE, title, summary)] if summary else []),
            *(extra for item in messages for extra in (*_read_attachments(item), *_read_documents(item))),
        ],
    )
    return read_conversation(VERSION, conversation, known)


def _branch(messages: Sequence[Mapping[str, Any]], current: Any) -> list[Mapping[str, Any]]:
    """Return the messages of the branch that was written last, oldest first; all of them if none names a parent."""
    by_name = {message["uuid"]: message for message in messages if isinstance(message.get("uuid"), str)}
    parents = {name: message.get("parent_message_uuid") for name, message in by_name.items()}
    followed = {parent for parent in parents.values() if isinstance(parent, str)}
    if not followed & by_name.keys():
        return list(messages)
    leaves = [name for name in by_name if name not in followed]
    # Of two equally late messages, choose the later one in the list.
    latest = max(reversed(leaves), key=lambda name: time_of(by_name[name].get("created_at")) or "", default=None)
    step = current if isinstance(current, str) and current in by_name else latest
    branch: dict[str, Mapping[str, Any]] = {}
    while isinstance(step, str) and step in by_name and step not in branch:
        branch[step] = by_name[step]
        step = parents[step]
    return list(reversed(branch.values()))


def _turn(message: Mapping[str, Any]) -> Turn:
    asked = _sender(message) in _ASKING
    text = _text(message) + (_format_attachments(message) if asked else "")
    return Turn(asked, text.strip(), time_of(message.get("created_at")))


def _sender(message: Mapping[str, Any]) -> Any:
    return message.get("sender") or message.get("role")


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if plain := text_of(content):
        return plain
    blocks = [content] if isinstance(content, dict) else _objects(content)
    if not blocks:
        return _PLACEHOLDER.sub("\n\n", text_of(message.get("text")))
    # The plain text next to the blocks mixes the answer with Claude's thoughts.
    texts = (text_of(block.get("text")) for block in blocks if block.get("type", "text") in _SPOKEN)
    return "\n\n".join(text for text in texts if text)


def _format_attachments(message: Mapping[str, Any]) -> str:
    files = [*_objects(message.get("attachments")), *_objects(message.get("files"))]
    named = ", ".join(dict.fromkeys(name for file in files if (name := name_of(file.get("file_name")))))
    return f"\n\nAttached: {named}" if named else ""


def _read_attachments(message: Mapping[str, Any]) -> Iterator[Extra]:
    for attachment in _objects(message.get("attachments")):
        title = name_of(attachment.get("file_name")) or "Pasted text"
        yield Extra(
            Kind.DOCUMENT, title, text_of(attachment.get("extracted_content")), time_of(message.get("created_at"))
        )


def _read_documents(message: Mapping[str, Any]) -> Iterator[Extra]:
    for block in _objects(message.get("content")):
        tool, arguments = block.get("name"), block.get("input")
        if (
            block.get("type") == "tool_use"
            and isinstance(tool, str)
            and tool in _WRITERS
            and isinstance(arguments, dict)
        ):
            title, text = (arguments.get(field) for field in _WRITERS[tool])
            if arguments.get("command") in _WHOLE:
                yield Extra(Kind.DOCUMENT, name_of(title), text_of(text), time_of(message.get("created_at")))


# Projects


def _read_project(known: Known, raw: Mapping[str, Any], position: str) -> Iterable[Reading]:
    """Return the readings of a project's purpose, of its instructions for Claude, and of each of its documents."""
    of_file = _PROJECT.search(position)
    project = id_of(raw.get("uuid")) or (of_file[1] if of_file is not None else "")
    if not project:
        return [Skipped(position, "a project without an id")]
    title, began = name_of(raw.get("name")), time_of(raw.get("created_at"))
    texts: list[_Text] = [
        (f"project {project}", title or "A project", raw.get("description"), began),
        (f"instructions of {project}", f"Instructions of {title or 'a project'}", raw.get(_TOLD), began),
    ]
    for document in _objects(raw.get("docs")):
        heading = " › ".join(name for name in (title, name_of(document.get("filename"))) if name)
        key, at = f"document {id_of(document.get('uuid'))}", time_of(document.get("created_at"))
        texts.append((key, heading, document.get("content"), at))
    return _read_texts(known, (text for text in texts if text_of(text[2])))


# Memories


def _list_memories(export: Mapping[str, Any]) -> Iterator[_Text]:
    if whole := text_of(export.get("conversations_memory")):
        yield "memory", "What Claude remembers", whole, None
    projects = export.get("project_memories")
    for name, text in projects.items() if isinstance(projects, dict) else ():
        yield f"memory of project {id_of(name)}", "What Claude remembers of a project", text, None
    for file in _objects(export.get("memory_files")):
        title = name_of(file.get("path")) or "A file of Claude's memory"
        yield f"memory file {title}", title, file.get("content"), time_of(file.get("updated_at"))


def _read_texts(known: Known, texts: Iterable[_Text]) -> Iterator[Reading]:
    """Yield a document for each text."""
    for key, title, content, at in texts:
        text = text_of(content)
        digest = digest_of([VERSION, title, text, at or ""])
        drafts = (
            Draft(
                content=piece,
                kind=Kind.DOCUMENT,
                tags=(SOURCE,),
                source=Source.IMPORT,
                occurred_at=at,
                details={"title": title},
            )
            for piece in split_under_heading(title, text)
        )
        yield read_item(known, key, digest, drafts)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
