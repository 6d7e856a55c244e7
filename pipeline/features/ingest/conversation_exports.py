"""The data exports of ChatGPT and of claude.ai: their JSON files, alone or in .zip files.

ChatGPT: conversations.json, or conversations-000.json and on. A conversation is a tree of messages, because each can be
asked and answered again; `current_node` is the leaf that its owner saw last. This follows exports since 2023.

Claude: conversations.json, projects.json and memories.json, which since 2026 is one file per account. The messages of a
conversation are in one list, including retries. If they name their parents, only the branch that was written last is
read. This follows exports since 2024.

No schema is published for either.
"""

import json
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

CHATGPT = "chatgpt"
CHATGPT_VERSION = "chatgpt 1"
CHATGPT_EXPECTED = "data export of ChatGPT (conversations.json, or the .zip or folder that contains it)"
CHATGPT_FILES = re.compile(r"(^|/)conversations([-_ ]?\(?\d+\)?)?\.json$", re.IGNORECASE)

# Messages of the assistant to a tool are not answers, except its notes and the documents that it writes.
_NOTES = "bio"
_WRITES, _REWRITES = "canmore.create_textdoc", "canmore.update_textdoc"
# Content types that are not part of the conversation; an unknown type is read as text.
_UNSPOKEN = frozenset(
    """
    thoughts reasoning_recap model_editable_context user_editable_context execution_output system_error
    tether_browsing_code tether_browsing_display tether_quote sonic_webpage app_pairing_content
    """.split()  # noqa: SIM905 - readable as words
)
# Fields of messages in a list instead of a tree.
_LISTS = ("linear_conversation", "messages")

_PRIVATE = "\ue200-\ue20f"
_MARK = re.compile("( ?)\ue200([^\ue200\ue201]*)\ue201")
_MARKS = re.compile(f"[{_PRIVATE}]")
_FOOTNOTE = re.compile(r" ?【\d+(?::\d+)?†[^】\n]*】")


def read_chatgpt(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the conversations of an export, each as the branch that was seen last."""
    yield from read_export(
        path, ExportFormat(CHATGPT_EXPECTED, CHATGPT_FILES, partial(_read_chatgpt_entry, known)), progress
    )


def _read_chatgpt_entry(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
    raw = entry.value
    if entry.number is None or not isinstance(raw, dict):
        return None
    messages = _find_messages(raw)
    if messages is None:
        return None
    name = id_of(raw.get("conversation_id")) or id_of(raw.get("id"))
    if not name:
        return [Skipped(position, "a conversation without an id")]
    if raw.get("is_do_not_remember") is True:
        return [Skipped(name, "marked as not to be remembered")]
    conversation = Conversation(
        source=CHATGPT,
        id=name,
        title=name_of(raw.get("title")),
        began=time_of(raw.get("create_time")),
        ended=time_of(raw.get("update_time")),
        turns=list(_chatgpt_turns(messages)),
        extras=list(_extras(messages)),
    )
    return [read_conversation(CHATGPT_VERSION, conversation, known)]


def _find_messages(raw: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the visible messages of a conversation, oldest first; None for other objects."""
    mapping = raw.get("mapping")
    listed = next((raw[name] for name in _LISTS if isinstance(raw.get(name), list)), None)
    if isinstance(mapping, dict):
        current = raw.get("current_node")
        is_known = isinstance(current, str) and current in mapping
        branch = _list_branch(mapping, current if is_known else _latest_leaf(mapping), "parent")
        nodes = [{"message": node.get("message")} for node in branch]
    elif listed is not None:
        nodes = [item for item in listed if isinstance(item, dict)]
    else:
        return None
    messages = (node.get("message", node) for node in nodes)
    return [
        message
        for message in messages
        if isinstance(message, dict) and _field(message, "metadata", "is_visually_hidden_from_conversation") is not True
    ]


def _latest_leaf(mapping: Mapping[str, Any]) -> str | None:
    leaves = [name for name, node in mapping.items() if isinstance(node, dict) and not node.get("children")]
    return max(leaves, key=lambda name: time_of(_field(mapping[name], "message", "create_time")) or "", default=None)


def _chatgpt_turns(messages: Iterable[Mapping[str, Any]]) -> Iterator[Turn]:
    for message in messages:
        role = _role(message)
        content_type = _field(message, "content", "content_type")
        is_speech = not isinstance(content_type, str) or content_type not in _UNSPOKEN
        spoken = is_speech and message.get("recipient") in (None, "", "all")
        if not spoken or role not in ("user", "assistant"):
            continue
        text = (
            _remove_marks(_chatgpt_text(message))
            if role == "assistant"
            else _chatgpt_text(message) + _format_attachments(_field(message, "metadata", "attachments"), "name")
        )
        yield Turn(role == "user", text.strip(), time_of(message.get("create_time")))


def _role(message: Mapping[str, Any]) -> Any:
    author = message.get("author")
    return author if isinstance(author, str) else _field(message, "author", "role") or message.get("role")


def _extras(messages: Iterable[Mapping[str, Any]]) -> Iterator[Extra]:
    title = ""
    for message in messages:
        if _role(message) != "assistant":
            continue
        at = time_of(message.get("create_time"))
        recipient = message.get("recipient")
        if recipient == _NOTES:
            yield Extra(Kind.FACT, "", _chatgpt_text(message), at)
        elif recipient in (_WRITES, _REWRITES):
            arguments = _json(_chatgpt_text(message))
            if recipient == _WRITES:
                title = name_of(arguments.get("name"))
            yield Extra(Kind.DOCUMENT, title, text_of(arguments.get("content")) or _find_rewritten(arguments), at)


def _find_rewritten(arguments: Mapping[str, Any]) -> str:
    """Return a document's new text if it was replaced completely; a patch is useless without the patched text."""
    updates = arguments.get("updates")
    whole = [update for update in updates if isinstance(update, dict)] if isinstance(updates, list) else []
    if len(whole) != 1 or whole[0].get("pattern") not in (".*", "^.*$", r"[\s\S]*"):
        return ""
    return text_of(whole[0].get("replacement"))


def _chatgpt_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if isinstance(parts, str):
        return text_of(parts)
    if not isinstance(parts, list):
        return text_of(_field(content, "text"))
    # Speech has a transcript among the parts; images and sounds are only references.
    texts = [text_of(part.get("text")) if isinstance(part, dict) else text_of(part) for part in parts]
    return "\n\n".join(part for part in texts if part)


def _remove_marks(text: str) -> str:
    """Return an answer without its citation marks, which only ChatGPT can resolve."""
    return _FOOTNOTE.sub("", _MARKS.sub("", _MARK.sub(_expand_mark, text)))


def _expand_mark(mark: re.Match[str]) -> str:
    """Return the replacement of a mark: a name or a link's text, nothing for a citation."""
    kind, *fields = mark[2].split("\ue202")
    if not fields or kind not in ("entity", "url"):
        return ""
    if kind == "entity" and fields[0].startswith("["):
        try:
            fields = [field for field in json.loads(fields[0])[1:2] if isinstance(field, str)]
        except (ValueError, RecursionError):
            fields = []
    return mark[1] + "".join(fields[:1])


def _json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _field(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


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
_FILES = ("attachments", "files")
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
    return _list_branch(by_name, step, "parent_message_uuid")


def _list_branch(nodes: Mapping[str, Any], leaf: Any, parent: str) -> list[Mapping[str, Any]]:
    """Return the nodes of the branch that ends at a leaf, oldest first; a field of each names its parent."""
    branch: dict[str, Mapping[str, Any]] = {}
    while isinstance(leaf, str) and leaf not in branch and isinstance(node := nodes.get(leaf), dict):
        branch[leaf] = node
        leaf = node.get(parent)
    return list(reversed(branch.values()))


def _turn(message: Mapping[str, Any]) -> Turn:
    asked = _sender(message) in _ASKING
    files = {name_of(file.get("file_name")): file for name in _FILES for file in _objects(message.get(name))}
    text = _text(message) + (_format_attachments([*files.values()], "file_name") if asked else "")
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


def _format_attachments(files: Any, field: str) -> str:
    named = ", ".join(name for file in _objects(files) if (name := name_of(file.get(field))))
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
