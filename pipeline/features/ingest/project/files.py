"""List a project's files, decide how to read each, and give the reasons for skipped ones.

In a checkout git lists the files. Elsewhere all files are used except those in unwanted folders.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from config.operating_system import READ_NO_FOLLOW
from pipeline.features.ingest.fields import Skipped
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import root_of_folder


class SkippedFile(Exception):
    """A skipped file, and the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FileKind(StrEnum):
    """The way to read a file."""

    CODE = "code"
    MANIFEST = "manifest"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Language:
    """A programming language, and the grammar that parses it."""

    name: str
    grammar: str


MAX_KEY_CHARS: Final = 1024
MAX_FILE_BYTES: Final = 1024 * 1024

IGNORED: Final = "ignored by git"
UNWANTED: Final = "folder of dependencies or caches"
ANOTHER: Final = "another repository"
LINK: Final = "symbolic link"
SPECIAL: Final = "not a regular file"
UNREADABLE: Final = "cannot be read"
BAD_NAME: Final = "name is not valid UTF-8"
LONG_NAME: Final = f"path longer than {MAX_KEY_CHARS} characters"

_GIT: Final = ".git"
# Git's message for a folder whose owner it does not trust.
_ADVICE: Final = "git config"
_LISTING: Final = ("ls-files", "-z", "--exclude-standard")
# Folders without useful files even if they are not ignored. Folders such as `build`, `dist`, `target` or `vendor` may
# contain handwritten files.
_UNWANTED_NAMES: Final = frozenset(
    """
    node_modules bower_components jspm_packages site-packages __pycache__ .venv .tox .nox .eggs .direnv .hg .svn .jj
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .gradle .terraform .next .nuxt .svelte-kit
    .parcel-cache .turbo .yarn .pnpm-store .cargo .idea .vs .cache
    """.split()  # noqa: SIM905 - readable as words
)
# Marks such a folder under any name: a virtual environment, a cache (as cargo marks `target`).
_MARKS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})

MANIFESTS: Final = frozenset(
    {"pyproject.toml", "package.json", "cargo.toml", "go.mod", "pom.xml", "makefile", "gnumakefile", "justfile"}
)
_LOCKS: Final = re.compile(
    r".*\.lock|.*\.lockb|.*\.lockfile|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.(?:sum|work\.sum)"
)
_PROSE: Final = re.compile(r"readme(?:\.(?:md|markdown|mdx|rst|txt|adoc))?|.*\.(?:md|markdown|mdx|rst)")
# They do not explain the project; the history has their changes.
_FORMALITIES: Final = re.compile(
    r"(?:licen[sc]e|copying|notice|changelog|changes|history|news|releases?(?:[-_]notes)?|authors|contributors|maintainers"
    r"|code[-_]of[-_]conduct|third[-_]?party[-_\w]*|pull_request_template|issue_template)"
    r"(?:[-_][\w.-]*?)?(?:\.(?:md|markdown|mdx|rst|txt|adoc))?"
)
# Agents read these files themselves, and memory tools keep these notes; `reverie import memories` reads both.
_FOR_AGENTS: Final = re.compile(
    r"(?:AGENTS|CLAUDE|GEMINI|SKILL)(?:\.local|\.override)?\.md|copilot-instructions\.md|.*\.mdc"
)
_FOLDER_FOR_AGENTS: Final = re.compile(
    r"(?:.*/)?\.(?:claude|cursor|windsurf|clinerules|roo|kilocode|kiro|junie|continue|grok|serena|qwen)/.*"
)
_MINIFIED: Final = re.compile(r".*[.-]min\.[cm]?js")

_BY_ENDING: Final = {
    "py": Language("Python", "python"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), Language("JavaScript", "javascript")),
    **dict.fromkeys(("ts", "mts", "cts"), Language("TypeScript", "typescript")),
    "tsx": Language("TypeScript", "tsx"),
    "go": Language("Go", "go"),
    "rs": Language("Rust", "rust"),
    "java": Language("Java", "java"),
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


@dataclass(frozen=True, slots=True)
class File:
    """A file's key, which is its POSIX path below the root, and its path."""

    key: str
    path: str

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]


def list_files(root: Path) -> list[File | Skipped]:
    """Return every file below a resolved root in order of names, and skipped ones with their reason.

    Raises InvalidField if git does not trust the folder of a checkout.
    """
    listed = {file.key: file for file in _walk(str(root))}
    return [listed[key] for key in sorted(listed)]


def read_file(path: str) -> tuple[bytes, float]:
    """Return a regular file's bytes, at most 1 MiB, and its modification time; raise SkippedFile for other files."""
    try:
        # The file may have been replaced by a link or a pipe.
        with os.fdopen(os.open(path, READ_NO_FOLLOW), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SkippedFile(SPECIAL)
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SkippedFile(UNREADABLE) from error
    if len(data) > MAX_FILE_BYTES:
        raise SkippedFile("larger than 1 MiB")
    return data, status.st_mtime


def _walk(root: str) -> Iterator[File | Skipped]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        if listed := _list_by_git(root, folder):
            yield from listed
            continue
        try:
            with os.scandir(Path(root, folder)) as listing:
                names = [entry.name for entry in listing if entry.name != _GIT]
        except OSError:
            yield Skipped(_storable(folder) or ".", UNREADABLE)
            continue
        if folder and not _MARKS.isdisjoint(names):
            yield Skipped(_storable(folder), UNWANTED)
            continue
        for name in names:
            look = _look(root, f"{folder}{name}")
            if isinstance(look, str):
                waiting.append(look)
            else:
                yield look


def _list_by_git(root: str, folder: str) -> list[File | Skipped]:
    """Return the files that git lists in a checkout; none outside of one, or if all are ignored."""
    path = Path(root, folder)
    if not (os.path.lexists(path / _GIT) if folder else root_of_folder(path)):
        return []
    try:
        git = Git(path)
        names, closed = git.list_paths(*_LISTING, "--cached", "--others")
        ignored, _ = git.list_paths(*_LISTING, "--others", "--ignored", "--directory")
    except InvalidField as error:
        # The ignore rules of another user's folder are not known before git trusts its owner.
        if _ADVICE in error.errors[0].msg:
            raise
        return []
    if not names:
        return []
    real: dict[str, bool] = {}
    entries = [_look_in_checkout(root, f"{folder}{name}", real) for name in names]
    return [
        *(Skipped(_storable(f"{folder}{name}"), IGNORED) for name in ignored),
        *(Skipped(_storable(f"{folder}{name}/"), UNREADABLE) for name in closed),
        *(entry for entry in entries if entry is not None),
    ]


def _look_in_checkout(root: str, key: str, real: dict[str, bool]) -> File | Skipped | None:
    """Return the file at a path that git lists; None if it was deleted since the commit."""
    above = key.rstrip("/").rpartition("/")[0]
    parts = above.split("/")
    unwanted = next((end for end, part in enumerate(parts, 1) if part in _UNWANTED_NAMES), 0)
    if unwanted:
        return Skipped(_storable("/".join([*parts[:unwanted], ""])), UNWANTED)
    parent = f"{root}/{above}".rstrip("/")
    # A committed folder may have become a link out of the project.
    if parent not in real:
        real[parent] = os.path.realpath(parent) == parent
    if not real[parent]:
        return Skipped(_storable(above), LINK)
    try:
        os.lstat(f"{root}/{key}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Skipped(_storable(key), UNREADABLE)
    entry = _look(root, key.rstrip("/"))
    return Skipped(_storable(entry), ANOTHER) if isinstance(entry, str) else entry


def _look(root: str, key: str) -> File | Skipped | str:
    """Return the entry at a path: a file, a folder's key with a trailing slash, or the reason to skip it."""
    path = f"{root}/{key}"
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return Skipped(_storable(key), UNREADABLE)
    reason = None
    if stat.S_ISLNK(mode):
        # A target within the project is found at its own path; a target outside is not part of the project.
        reason = LINK
    elif stat.S_ISDIR(mode) and key.rpartition("/")[2] in _UNWANTED_NAMES:
        reason = UNWANTED
    elif not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        reason = SPECIAL
    elif key != _storable(key):
        reason = LONG_NAME if len(key) > MAX_KEY_CHARS else BAD_NAME
    end = "/" if stat.S_ISDIR(mode) else ""
    if reason is not None:
        return Skipped(f"{_storable(key)}{end}", reason)
    return f"{key}/" if end else File(key, path)


def _storable(key: str) -> str:
    """Return a key that can be stored, for any file name."""
    return key.encode("utf-8", "replace").decode()[:MAX_KEY_CHARS]


def kind_of_file(key: str) -> FileKind:
    """Return the way to read a file; raise SkippedFile for an unsupported file."""
    name = key.rpartition("/")[2]
    folded = name.casefold()
    if folded in MANIFESTS:
        return FileKind.MANIFEST
    is_code, is_prose = language_of(name) is not None, _PROSE.fullmatch(folded) is not None
    is_for_agents = _FOR_AGENTS.fullmatch(name) or (is_prose and _FOLDER_FOR_AGENTS.fullmatch(key))
    reasons = (
        (_LOCKS.fullmatch(folded), "lock file"),
        (_MINIFIED.fullmatch(folded), "minified"),
        (not is_code and _FORMALITIES.fullmatch(folded), "licence, change log or formality"),
        (not is_code and is_for_agents, "instructions that agents read anyway"),
        (not is_code and not is_prose, "neither source code nor documentation"),
    )
    if reason := next((reason for applies, reason in reasons if applies), None):
        raise SkippedFile(reason)
    return FileKind.CODE if is_code else FileKind.PROSE


def language_of(name: str) -> Language | None:
    """Return the language of a file's name."""
    stem, _, ending = name.rpartition(".")
    return _BY_ENDING.get(ending.lower()) if stem else None


def text_of(data: bytes) -> str:
    """Return the bytes as text; raise SkippedFile for binary content."""
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
    """Raise SkippedFile for the text of a generated source file."""
    if len(text) > MEAN_LINE_CHARS * 10 and len(text) > MEAN_LINE_CHARS * count_lines(text):
        raise SkippedFile("minified")
    if _GENERATED.search("\n".join(_COMMENTS.findall(text[:HEAD_CHARS]))):
        raise SkippedFile("generated")


def count_lines(text: str) -> int:
    """Return the number of lines of a text."""
    return text.count("\n") + (not text.endswith("\n"))
