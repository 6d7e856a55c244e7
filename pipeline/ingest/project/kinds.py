"""What becomes of a file by its name and its text: how it is read, in which language, or why it is left out."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class SkippedFile(Exception):
    """A file that is left out, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FileKind(StrEnum):
    """How a file is read."""

    CODE = "code"
    MANIFEST = "manifest"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Language:
    """A programming language as people name it, and the grammar that reads it."""

    name: str
    grammar: str


MANIFESTS: Final = frozenset(
    {"pyproject.toml", "package.json", "cargo.toml", "go.mod", "pom.xml", "makefile", "gnumakefile", "justfile"}
)
_LOCKS: Final = re.compile(
    r".*\.lock|.*\.lockb|.*\.lockfile|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.(?:sum|work\.sum)"
)
_PROSE: Final = re.compile(r"readme(?:\.(?:md|markdown|mdx|rst|txt|adoc))?|.*\.(?:md|markdown|mdx|rst)")
# They tell nothing of how the project works; what changed when is in its history.
_FORMALITIES: Final = re.compile(
    r"(?:licen[sc]e|copying|notice|changelog|changes|history|news|releases?(?:[-_]notes)?|authors|contributors|maintainers"
    r"|code[-_]of[-_]conduct|third[-_]?party[-_\w]*|pull_request_template|issue_template)"
    r"(?:[-_][\w.-]*?)?(?:\.(?:md|markdown|mdx|rst|txt|adoc))?"
)
# Agents are given these as they are. Quoted from memory they would only be said twice.
_FOR_AGENTS: Final = re.compile(
    r"(?:AGENTS|CLAUDE|GEMINI|SKILL)(?:\.local|\.override)?\.md|copilot-instructions\.md|.*\.mdc"
)
_MINIFIED: Final = re.compile(r".*[.-]min\.[cm]?js")

_PYTHON: Final = Language("Python", "python")
_JAVASCRIPT: Final = Language("JavaScript", "javascript")
_TYPESCRIPT: Final = Language("TypeScript", "typescript")
_TSX: Final = Language("TypeScript", "tsx")
_GO: Final = Language("Go", "go")
_RUST: Final = Language("Rust", "rust")
_JAVA: Final = Language("Java", "java")

_BY_ENDING: Final = {
    "py": _PYTHON,
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _JAVASCRIPT),
    **dict.fromkeys(("ts", "mts", "cts"), _TYPESCRIPT),
    "tsx": _TSX,
    "go": _GO,
    "rs": _RUST,
    "java": _JAVA,
}

MEAN_LINE_CHARS: Final = 500
HEAD_CHARS: Final = 3000

_COMMENTS: Final = re.compile(r"^[ \t]*(?://|#|/?\*|--|<!--|\"\"\").*", re.MULTILINE)
_GENERATED: Final = re.compile(
    r"(?:\bauto-?|automatically |code |\b(?:is|was|been) |^\W*)generated\b"
    r".{0,200}?\bdo(?:n't| not) (?:edit|modify|change)"
    r"|\bdo(?:n't| not) (?:edit|modify|change)\b.{0,80}?(?:\bauto-?|automatically |\b(?:is|was|been) )generated\b"
    r"|@generated\b",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


def kind_of_file(name: str) -> FileKind:
    """Return how a file is read; raise SkippedFile for one that is not."""
    folded = name.casefold()
    if folded in MANIFESTS:
        return FileKind.MANIFEST
    if _LOCKS.fullmatch(folded):
        raise SkippedFile("lock file")
    if _MINIFIED.fullmatch(folded):
        raise SkippedFile("minified")
    if language_of(name) is not None:
        return FileKind.CODE
    if _FORMALITIES.fullmatch(folded):
        raise SkippedFile("licence, change log or formality")
    if _FOR_AGENTS.fullmatch(name):
        raise SkippedFile("instructions that agents read anyway")
    if _PROSE.fullmatch(folded):
        return FileKind.PROSE
    raise SkippedFile("neither source code nor documentation")


def language_of(name: str) -> Language | None:
    """Return the language of a file's name."""
    stem, _, ending = name.rpartition(".")
    return _BY_ENDING.get(ending.lower()) if stem else None


def text_of(data: bytes) -> str:
    """Return what the bytes say; raise SkippedFile for what is no text."""
    if b"\0" in data:
        raise SkippedFile("binary")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkippedFile("not valid UTF-8") from error
    if not text.strip():
        raise SkippedFile("empty")
    return text


def check_written_by_people(text: str) -> None:
    """Raise SkippedFile for the text of a source file that a program wrote."""
    if len(text) > MEAN_LINE_CHARS * 10 and len(text) > MEAN_LINE_CHARS * count_lines(text):
        raise SkippedFile("minified")
    if _GENERATED.search("\n".join(_COMMENTS.findall(text[:HEAD_CHARS]))):
        raise SkippedFile("generated")


def count_lines(text: str) -> int:
    """Return how many lines a text has."""
    return text.count("\n") + (not text.endswith("\n"))
