"""Convert a memory to a Markdown note (fields as YAML front matter, text as the body) and back."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import Kind

SUFFIX = ".md"
MAX_FILE_BYTES = 1024 * 1024
MAX_DEPTH = 70
SLUG_CHARS = 48
_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_EXPORTED = re.compile(r"\ufeff?---[ \t]*\r?\nreverie: ")
# Fields that a note has under another name or in another form, and values that belong to one machine.
_OTHER_FORM = ("id", "content", "content_hash", "tier", "recall_count", "merge_count", "instructs")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that leaves dates as they are written."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the loader's own interface
        start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class Note:
    """A note in a folder. It is new if it has no id.

    `digest` is the digest of the exported text, `marks` that of the exported tags and pin. `entry` has all fields in
    the form of an exported memory.
    """

    file: Path
    id: str | None
    workspace: str | None
    kind: Kind
    content: str
    tags: tuple[str, ...]
    pinned: bool
    digest: str | None
    marks: str | None
    entry: Mapping[str, Any]

    @property
    def is_edited(self) -> bool:
        """Return whether its text changed since the export."""
        return self.digest != digest_of(self.content)

    @property
    def is_marked(self) -> bool:
        """Return whether its tags or its pin changed since the export."""
        return self.marks != marks_of(self.tags, pinned=self.pinned)


def digest_of(text: str) -> str:
    """Return a short digest of a text, which detects edits."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def marks_of(tags: Sequence[str], *, pinned: bool) -> str:
    """Return a short digest of tags and pin, which detects edits."""
    return digest_of(json.dumps([sorted(tags), pinned]))


def path_of(exported: Mapping[str, Any]) -> Path:
    """Return the path of an exported memory's note, relative to the folder of its workspace."""
    start = exported["content"][: 2 * SLUG_CHARS].casefold()
    words = re.sub(r"[^a-z0-9]+", "-", start).strip("-")[:SLUG_CHARS].strip("-")
    return Path(exported["kind"], f"{words or 'memory'}-{exported['id'][-8:].lower()}{SUFFIX}")


def render_note(exported: Mapping[str, Any]) -> str:
    """Return an exported memory as a note."""
    content = exported["content"]
    fields: dict[str, Any] = {
        "reverie": exported["id"],
        "workspace": exported["workspace"],
        "digest": digest_of(content),
        "marks": marks_of(exported["tags"], pinned=exported["pinned"]),
    }
    fields |= {
        name: value
        for name, value in exported.items()
        if name not in (*fields, *_OTHER_FORM)
        and (name in ("tags", "pinned", "importance") or value not in (None, False, [], {}))
    }
    # Through JSON, since YAML writes enumerations and tuples with the names of their types.
    front = yaml.safe_dump(json.loads(json.dumps(fields)), sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{front}---\n\n{content}\n"


def list_notes(folder: Path) -> list[Path]:
    """List the notes of a folder except hidden files; a single file is a note."""
    if folder.is_file():
        return [folder]
    return [
        file
        for file in sorted(folder.rglob(f"*{SUFFIX}"))
        if file.is_file()
        and not file.is_symlink()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def holds_notes(folder: Path) -> bool:
    """Return whether a folder or file is an export: whether any of its notes has a memory id."""
    files = [folder] if folder.suffix == SUFFIX and folder.is_file() else folder.rglob(f"*{SUFFIX}")
    for file in files:
        if file.is_file() and not file.is_symlink():
            with file.open(encoding="utf-8", errors="replace", newline="") as stream:
                if _EXPORTED.match(stream.read(64)):
                    return True
    return False


def read_note(file: Path) -> Note:
    """Read a note; raise InvalidField if its fields cannot be read."""
    if file.stat().st_size > MAX_FILE_BYTES:
        raise InvalidField(FieldError(file.name, f"is larger than {MAX_FILE_BYTES} bytes"))
    text = file.read_text(encoding="utf-8-sig", errors="replace").replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields: Mapping[str, Any] = {}
    if front is not None:
        try:
            fields = _load_fields(front[1])
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise InvalidField(FieldError(file.name, "its fields are no YAML")) from error
    if not isinstance(fields, Mapping):
        raise InvalidField(FieldError(file.name, "its fields are no YAML"))
    tags = fields.get("tags") or []
    kind = str(fields.get("kind", Kind.FACT))
    if not isinstance(tags, list) or kind not in list(Kind):
        raise InvalidField(FieldError(file.name, "its kind or its tags cannot be read"))
    known, named, digest, marks = (
        None if fields.get(name) is None else str(fields[name]) for name in ("reverie", "workspace", "digest", "marks")
    )
    content = text[front.end() if front else 0 :].strip()
    return Note(
        file,
        known,
        named,
        Kind(kind),
        content,
        tuple(str(tag) for tag in tags),
        bool(fields.get("pinned", False)),
        digest,
        marks,
        {**fields, "id": fields.get("reverie"), "content": content, "scope": _read_scope(fields.get("scope"))},
    )


def _load_fields(front: str) -> Any:
    depth = 0
    for event in yaml.parse(front, _Loader):
        # Repeated by an alias, a short text has values without end.
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > MAX_DEPTH:
            raise yaml.YAMLError("an alias, or too many levels")
    return yaml.load(front, _Loader) or {}  # noqa: S506 - a safe loader


def _read_scope(scope: Any) -> Any:
    """Return a scope as a mapping; an earlier export has it as a text, such as `session:s1`."""
    if not isinstance(scope, str):
        return scope
    kind, _, name = scope.partition(":")
    return {"kind": kind, "id": name or None}
