"""Check what rule files and memories cite against the checkout on this machine; no store is read."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.features.citations.history import Finding, State
from pipeline.features.citations.parser import find_citations, find_verified_commits
from pipeline.features.citations.resolve import find_changed_since, list_rule_files, resolve_citations
from pipeline.kernel.enums import Kind
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.git.branches import list_branches
from pipeline.kernel.git.repository import root_of_folder
from pipeline.kernel.kinds import STATES_PRESENT
from pipeline.kernel.records import BRANCH_TAG, branch_tag

MAX_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A file or memory with the state of its citations.

    `verified` are the commits at which the text says it was verified, each with the cited files that changed since;
    None if the repository does not have the commit.
    """

    source: str
    text: str
    findings: tuple[Finding, ...]
    verified: Mapping[str, tuple[str, ...] | None]

    @property
    def broken(self) -> tuple[Finding, ...]:
        """Return the citations that are wrong."""
        return tuple(finding for finding in self.findings if finding.is_broken)

    @property
    def holding(self) -> tuple[Finding, ...]:
        """Return the citations that hold."""
        return tuple(finding for finding in self.findings if finding.state is State.HOLDS)


def find_root(folder: Path) -> Path:
    """Return the root of the checkout that contains a folder; raise InvalidField outside of a checkout."""
    root = root_of_folder(folder)
    if root is None:
        raise InvalidField(FieldError("path", "is not in a git checkout; run the command in one"))
    return root


def check_files(root: Path, paths: Sequence[Path]) -> list[CheckedText]:
    """Check files, or without paths the rule and memory files of the checkout."""
    files = [file for path in paths for file in _expand(root, path)] or [root / name for name in list_rule_files(root)]
    named = {_name(root, file): _read(file) for file in files}
    return _check(root, list(named), list(named.values()), are_files=True)


def check_memories(root: Path, memories: Sequence[Mapping[str, Any]]) -> list[CheckedText]:
    """Check memories in the form of the HTTP API that state what is so at present; events are left out."""
    stating = [memory for memory in memories if Kind(memory["kind"]) in STATES_PRESENT]
    return _check(root, [str(memory["id"]) for memory in stating], [str(memory["content"]) for memory in stating])


def list_gone_branches(root: Path, memories: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the branch of each memory that was written on a branch which the checkout does not have, by its id."""
    tags = {str(memory["id"]): tag for memory in memories for tag in memory["tags"] if re.fullmatch(BRANCH_TAG, tag)}
    existing = set(map(branch_tag, list_branches(root))) if tags else set()
    return {memory_id: tag.partition(":")[2] for memory_id, tag in tags.items() if tag not in existing}


def _check(root: Path, sources: Sequence[str], texts: Sequence[str], *, are_files: bool = False) -> list[CheckedText]:
    found = resolve_citations(root, [find_citations(text) for text in texts], are_files=are_files)
    verified = find_changed_since(root, [find_verified_commits(text) for text in texts], found)
    return [
        CheckedText(source, text, tuple(findings), changed)
        for source, text, findings, changed in zip(sources, texts, found, verified, strict=True)
    ]


def _expand(root: Path, path: Path) -> list[Path]:
    """Return a file, or the rule and memory files in a folder of the checkout."""
    if not path.is_dir():
        return [path]
    folder = Path(os.path.realpath(path))
    return [root / name for name in list_rule_files(root) if (root / name).is_relative_to(folder)]


def _name(root: Path, file: Path) -> str:
    absolute = Path(os.path.realpath(file))
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else str(file)


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(MAX_FILE_BYTES).decode("utf-8", "replace")
