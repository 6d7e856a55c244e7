"""What becomes of a file, by its name alone."""

import re
from enum import StrEnum
from typing import Final

from pipeline.ingest.project.languages import language_of
from pipeline.ingest.project.unfit import Unfit


class Use(StrEnum):
    """How a file is read."""

    CODE = "code"
    MANIFEST = "manifest"
    PROSE = "prose"


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


def use_of(name: str) -> Use:
    """Return how a file is read; raise Unfit for one that is not."""
    folded = name.casefold()
    if folded in MANIFESTS:
        return Use.MANIFEST
    if _LOCKS.fullmatch(folded):
        raise Unfit("lock file")
    if _MINIFIED.fullmatch(folded):
        raise Unfit("minified")
    if language_of(name) is not None:
        return Use.CODE
    if _FORMALITIES.fullmatch(folded):
        raise Unfit("licence, change log or formality")
    if _FOR_AGENTS.fullmatch(name):
        raise Unfit("instructions that agents read anyway")
    if _PROSE.fullmatch(folded):
        return Use.PROSE
    raise Unfit("neither source code nor documentation")
