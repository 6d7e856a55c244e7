"""Convert a memory to a Markdown note (fields as YAML front matter, text as the body) and back."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import FieldError, InvalidField
from pipeline.records import Kind, Memory

SUFFIX = ".md"
MAX_FILE_BYTES = 1024 * 1024
SLUG_CHARS = 48
_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Note:
    """A note in a folder. It is new if it has no id. `digest` is the digest of the exported text."""

    file: Path
    id: str | None
    workspace: str | None
    kind: Kind
    content: str
    tags: tuple[str, ...]
    pinned: bool
    digest: str | None

    @property
    def is_edited(self) -> bool:
        """Return whether its text changed since the export."""
        return self.digest != digest_of(self.content)


def digest_of(text: str) -> str:
    """Return a short digest of a text, which detects edits."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def path_of(memory: Memory) -> Path:
    """Return the path of a memory's note, relative to the folder of its workspace."""
    words = re.sub(r"[^a-z0-9]+", "-", memory.content[: 2 * SLUG_CHARS].casefold()).strip("-")[:SLUG_CHARS].strip("-")
    return Path(memory.kind, f"{words or 'memory'}-{memory.id[-8:].lower()}{SUFFIX}")


def render_note(workspace: str, memory: Memory) -> str:
    """Return a memory of a workspace as a note."""
    fields: dict[str, Any] = {
        "reverie": memory.id,
        "workspace": workspace,
        "digest": digest_of(memory.content),
        "kind": str(memory.kind),
        "tags": list(memory.tags),
        "pinned": memory.pinned,
        "importance": round(memory.importance, 3),
        "source": str(memory.source),
        "trust": str(memory.trust),
        "scope": str(memory.scope.kind) if memory.scope.id is None else f"{memory.scope.kind}:{memory.scope.id}",
        "created_at": memory.created_at,
        "occurred_at": memory.occurred_at,
    }
    optional = {"valid_from": memory.valid_from, "valid_to": memory.valid_to, "archived_at": memory.archived_at}
    fields |= {name: value for name, value in optional.items() if value is not None}
    if memory.details:
        fields["details"] = dict(memory.details)
    if memory.metadata:
        fields["metadata"] = dict(memory.metadata)
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{front}---\n\n{memory.content}\n"


def read_notes(folder: Path) -> Iterator[Note]:
    """Yield the notes of a folder except hidden files; raise InvalidField for an invalid note."""
    for file in sorted(folder.rglob(f"*{SUFFIX}")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not file.is_symlink() and not hidden:
            yield _read_note(file)


def holds_notes(folder: Path) -> bool:
    """Return whether a folder is an export: whether any of its notes has a memory id."""
    for file in folder.rglob(f"*{SUFFIX}"):
        if file.is_file() and not file.is_symlink():
            with file.open(encoding="utf-8", errors="replace") as stream:
                if stream.read(64).startswith("---\nreverie: "):
                    return True
    return False


def _read_note(file: Path) -> Note:
    if file.stat().st_size > MAX_FILE_BYTES:
        raise InvalidField(FieldError(file.name, f"is larger than {MAX_FILE_BYTES} bytes"))
    text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields: Mapping[str, Any] = {}
    if front is not None:
        try:
            fields = yaml.safe_load(front[1]) or {}
        except yaml.YAMLError as error:
            raise InvalidField(FieldError(file.name, "its fields are no YAML")) from error
    if not isinstance(fields, Mapping):
        raise InvalidField(FieldError(file.name, "its fields are no YAML"))
    tags = fields.get("tags") or []
    kind = str(fields.get("kind", Kind.FACT))
    if not isinstance(tags, list) or kind not in list(Kind):
        raise InvalidField(FieldError(file.name, "its kind or its tags cannot be read"))
    known = fields.get("reverie")
    digest, named = fields.get("digest"), fields.get("workspace")
    return Note(
        file,
        None if known is None else str(known),
        None if named is None else str(named),
        Kind(kind),
        text[front.end() if front else 0 :].strip(),
        tuple(str(tag) for tag in tags),
        bool(fields.get("pinned", False)),
        None if digest is None else str(digest),
    )
