"""Describe a file of a project: a document's title, and the texts of its memories."""

from typing import NamedTuple

from pipeline.ingest.project.files import (
    FileKind,
    SkippedFile,
    check_written_by_people,
    count_lines,
    language_of,
)
from pipeline.ingest.project.imports import ProjectTree, resolve
from pipeline.ingest.project.manifests import render_manifest
from pipeline.ingest.project.outline import outline_of
from pipeline.ingest.project.prose import render_prose
from pipeline.ingest.project.render import render_outline


class Description(NamedTuple):
    """A document's title, empty without one, and the texts of a file's memories."""

    title: str
    parts: list[str]


def describe_file(key: str, kind: FileKind, text: str, tree: ProjectTree) -> Description:
    """Return the description of a file; raise SkippedFile if it gives no memory."""
    name = key.rpartition("/")[2]
    if kind is FileKind.MANIFEST:
        return Description("", render_manifest(key, name, text))
    if kind is FileKind.PROSE:
        return Description(*render_prose(key, text))
    check_written_by_people(text)
    language = language_of(name)
    assert language is not None
    outline = outline_of(text.encode(), language.grammar)
    if not (outline.purpose or outline.symbols or outline.imports):
        raise SkippedFile("defines nothing")
    lines = count_lines(text)
    head = f"{key} · {language.name}, {lines} line{'s' if lines != 1 else ''}"
    return Description("", render_outline(head, outline, resolve(outline.imports, language.grammar, key, tree)))
