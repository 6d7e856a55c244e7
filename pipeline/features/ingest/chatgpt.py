"""The data export of ChatGPT: conversations.json, or conversations-000.json and on, alone or in the .zip.

A conversation is a tree of messages, because each can be asked and answered again; `current_node` is the leaf that its
owner saw last. OpenAI publishes no schema: this follows exports since 2023.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
    id_of,
    name_of,
    text_of,
    time_of,
)
from pipeline.features.ingest.json_values import ExportEntry
from pipeline.kernel.records import Kind

SOURCE = "chatgpt"
VERSION = "chatgpt 1"
EXPECTED = "data export of ChatGPT (conversations.json, or the .zip or folder that contains it)"
FILES = re.compile(r"(^|/)conversations([-_ ]?\(?\d+\)?)?\.json$", re.IGNORECASE)

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
    yield from read_export(path, ExportFormat(EXPECTED, FILES, partial(_read_entry, known)), progress)


def _read_entry(known: Known, entry: ExportEntry, position: str) -> Iterable[Reading] | None:
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
        source=SOURCE,
        id=name,
        title=name_of(raw.get("title")),
        began=time_of(raw.get("create_time")),
        ended=time_of(raw.get("update_time")),
        turns=list(_turns(messages)),
        extras=list(_extras(messages)),
    )
    return [read_conversation(VERSION, conversation, known)]


def _find_messages(raw: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the visible messages of a conversation, oldest first; None for other objects."""
    mapping = raw.get("mapping")
    listed = next((raw[name] for name in _LISTS if isinstance(raw.get(name), list)), None)
    if isinstance(mapping, dict):
        nodes = list(_branch(mapping, raw.get("current_node")))
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


def _branch(mapping: Mapping[str, Any], current: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of the branch that ends at the current node, oldest first."""
    name = current if isinstance(current, str) and current in mapping else _latest_leaf(mapping)
    nodes: dict[str, Mapping[str, Any]] = {}
    while isinstance(name, str) and name not in nodes and isinstance(node := mapping.get(name), dict):
        nodes[name] = node
        name = node.get("parent")
    yield from ({"message": node.get("message")} for node in reversed(nodes.values()))


def _latest_leaf(mapping: Mapping[str, Any]) -> str | None:
    leaves = [name for name, node in mapping.items() if isinstance(node, dict) and not node.get("children")]
    return max(leaves, key=lambda name: time_of(_field(mapping[name], "message", "create_time")) or "", default=None)


def _turns(messages: Iterable[Mapping[str, Any]]) -> Iterator[Turn]:
    for message in messages:
        role = _role(message)
        content_type = _field(message, "content", "content_type")
        is_speech = not isinstance(content_type, str) or content_type not in _UNSPOKEN
        spoken = is_speech and message.get("recipient") in (None, "", "all")
        if not spoken or role not in ("user", "assistant"):
            continue
        text = _remove_marks(_text(message)) if role == "assistant" else _text(message) + _format_attachments(message)
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
            yield Extra(Kind.FACT, "", _text(message), at)
        elif recipient in (_WRITES, _REWRITES):
            arguments = _json(_text(message))
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


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if isinstance(parts, str):
        return text_of(parts)
    if not isinstance(parts, list):
        return text_of(_field(content, "text"))
    # Speech has a transcript among the parts; images and sounds are only references.
    texts = [text_of(part.get("text")) if isinstance(part, dict) else text_of(part) for part in parts]
    return "\n\n".join(part for part in texts if part)


def _format_attachments(message: Mapping[str, Any]) -> str:
    files = _field(message, "metadata", "attachments")
    names = [name_of(file.get("name")) for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    named = ", ".join(name for name in names if name)
    return f"\n\nAttached: {named}" if named else ""


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
