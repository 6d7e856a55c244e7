"""Find what a text cites of a repository: paths, symbols, constants with values, commands and commits.

Only marked or unmistakable forms count: a word that is perhaps no citation is left out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter

MOST_CITATIONS = 400
# In reStructuredText, a sign before a name shortens it or prevents a link.
_SPAN = re.compile(r"(?<!`)`[~!]?([^`\n]{2,200})`(?!`)")
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_EXTENSION = r"\.[A-Za-z][A-Za-z0-9]{0,9}"
_PATH = re.compile(rf"(?:\./)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*{_EXTENSION}|(?:\./)?(?:[\w.@+-]+/)+[\w.@+-]*")
_BARE_PATH = re.compile(rf"(?<![\w./\\@:~$%{{<*-])(?:\./)?(?:[\w.+-]+/)+[\w+-][\w.+-]*{_EXTENSION}(?![\w/\\(@*{{<$-])")
_LINES = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L\d+)?|::[\w\[\]:.-]+)$")
_SYMBOL = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(\(\))?")
_CONSTANT = re.compile(
    r"""(?<![\w.$-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\ *(?:=|:=)\ *
    (-?\d[\d_]*(?:\.\d+)?(?![\w.]*[\w])|"[^"\n`]{0,80}"|'[^'\n`]{0,80}'|True\b|False\b|true\b|false\b)""",
    re.VERBOSE,
)
_COMMAND = re.compile(
    r"(?:\$ )?(?:(make) ([A-Za-z][\w.-]*)|(?:(?:npm|pnpm|yarn|bun) run) ([A-Za-z][\w:.-]*)"
    r"|(?:npm|yarn|pnpm) (test|start)"
    r"|(?:uv|poetry|pdm) run ([A-Za-z][\w-]*))"
    r"(?=$| (?!-C\b|-f\b))"
)
_COMMIT = re.compile(r"\b(?:commits?|revision|verified(?: at)?)[ :]+[`@]{0,2}([0-9a-f]{7,40})(?![\w-])", re.IGNORECASE)
_VERIFIED = re.compile(r"\bverified[ :]+(?:at )?@`?([0-9a-f]{7,40})(?![\w-])", re.IGNORECASE)
# Extensions that are rather parts of a name: `os.path`, `config.get`.
_FILE_EXTENSIONS = frozenset(
    """
    bash c cc cfg conf cpp cs css csv cts cxx dart env ex exs gif go gradle graphql h hpp html ico in ini ipynb java
    jpeg jpg js json jsonl jsx kt kts less lock lua m md mdx mjs mk ml mm mts pdf php pl png proto ps1 py pyi pyx rb rs
    rst sass scala scss sh sql svelte svg swift tf toml ts tsx txt vue webp xml yaml yml zig zsh
    """.split()  # noqa: SIM905 - readable as words
)
# A statement about the past, a plan or an example: what it cites need not exist.
_NOT_CURRENT = re.compile(
    r"\b(no longer|removed?|removes|removing|deleted?|deletes|deleting|drop(?:s|ped)?"
    r"|renam(?:ed?|es|ing)|replac(?:ed?|es|ing)"
    r"|moved?|formerly|previously|used to|was|were|had|old|legacy|deprecated|obsolete|gone|instead|not|never|nor"
    r"|don't|doesn't|isn't|missing|lacks?|earlier|will|would|should|could|might|may"
    r"|create[sd]?|add(?:s|ed)?|plan(?:s|ned)?|todo|e\.g|example|examples|for instance|such as|"
    r"generate[sd]?|generates|writes?|written|output|outputs|produces?|suppose|imagine|placeholder|proposed?|split|merged?"
    r"|lived|existed|became|g[eo]ts? rid of|ceased?|any ?more|there (?:is|are) no|my|your|their"
    r"|originally|initially|at first|went|came|began|broke|hid|gave|grew|fell|took|threw|ran|did|(?:re)?wrote)\b|→|->",
    re.IGNORECASE,
)
# A statement about a version of the project: it may concern an earlier one.
_DATED = re.compile(
    r"\b(?:before|until|till|up to|prior to|since|in|with|as of|from|after|versions?|releases?)[ ]+(?:[a-z]\w*[ ]+)?"
    r"v?\d+(?:\.\d+)+(?!\w|[ ]*(?:%|[mµn]?s\b|[kmg]i?b\b|seconds?\b|minutes?\b|hours?\b))"
    r"|\b(?:before|until|till|prior to|versions?|releases?)[ ]+(?:[a-z]\w*[ ]+)?v?\d+\b|\bin [a-z]\w* v?\d+,",
    re.IGNORECASE,
)
# Replaces a citation or a code span in a sentence.
_MARK = "\0"
# A verb in the past tense, and words before a participle: "parsed the file", but "is parsed", "limited by".
_PAST_VERB = re.compile(
    r"\b\w+[^\We]ed(?=[ ]*(?:[.,;!?]|\Z|\0)|[ ]+(?:the|an?|all|every|each|its|no|into|to|until|out|away)\b)",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"\b(?:is|are|be|been|being|gets?|has|have|as|if|when|once)\b(?:[ ]+[\w-]+){0,3}[ ]*\Z", re.IGNORECASE
)
# The heading of a part about the past.
_PAST_HEADING = re.compile(r"\b(removed|deprecated|changelog|history|archived?|obsolete)\b", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$", re.MULTILINE)
_BULLET = re.compile(r"[ \t]*[-*+][ \t]")
_IN_LIST = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]|[ \t]+\S|[ \t]*$")
# What comes between a name and its explanation in a list.
_EXPLAINED = re.compile(r"\W{0,4}(?::|[-–—=](?=\s))")
# The place between the text of a link and its target.
_LINK = "]("
LONGEST_LIST = 2000
DEEPEST_HEADING = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|\n[ \t]*(?:```|~~~)[^\n]*(?:\n|\Z)")


class CitationKind(StrEnum):
    """What a citation names."""

    PATH = "path"
    SYMBOL = "symbol"
    CONSTANT = "constant"
    COMMAND = "command"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation: its text and place, the name to resolve, and the value of a constant.

    It `is_current` if its sentence states the present, and not the past, a plan or an example.
    """

    kind: CitationKind
    text: str
    name: str
    start: int
    value: str | None = None
    is_current: bool = True

    @property
    def end(self) -> int:
        """Return where the citation ends in its text."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Page:
    """A text, the places of its code blocks, and those of its parts about the past."""

    text: str
    fenced: tuple[tuple[int, int], ...]
    past: tuple[tuple[int, int], ...]


def find_citations(text: str) -> tuple[Citation, ...]:
    """Return the citations of a text in their order, without repetitions."""
    fenced = tuple(found.span() for found in _FENCE.finditer(text))
    page = _Page(text, fenced, tuple(_find_past_parts(text, fenced)))
    found = [*_find_marked(page), *_find_bare(page)]
    first: dict[tuple[CitationKind, str, str | None], Citation] = {}
    for citation in sorted(found, key=lambda citation: citation.start):
        key = (citation.kind, citation.name, citation.value)
        if key not in first or (citation.is_current and not first[key].is_current):
            first[key] = citation
    return tuple(sorted(first.values(), key=lambda citation: citation.start)[:MOST_CITATIONS])


def find_verified_commits(text: str) -> tuple[str, ...]:
    """Return the commits at which a text says that it was verified."""
    return tuple(dict.fromkeys(found[1].lower() for found in _VERIFIED.finditer(text)))


def is_file_name(name: str) -> bool:
    """Return whether the last part of a path has an extension of files."""
    return name.rpartition("/")[2].rpartition(".")[2] in _FILE_EXTENSIONS


def _find_past_parts(text: str, fenced: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the places of the parts under a heading about the past, with the headings below it."""
    past: tuple[int, int] | None = None
    for heading in _HEADING.finditer(text):
        if _is_within(heading.start(), fenced):
            continue
        level, name = len(heading[1]), heading[2].strip()
        if past is not None and level <= past[1]:
            yield past[0], heading.start()
            past = None
        if past is None and _PAST_HEADING.search(name):
            # The title of a text says more about its project than about its parts.
            is_title = level == 1 and not _PAST_HEADING.fullmatch(name)
            past = heading.start(), DEEPEST_HEADING if is_title else level
    if past is not None:
        yield past[0], len(text)


def _find_marked(page: _Page) -> Iterator[Citation]:
    for span in _SPAN.finditer(page.text):
        if _is_within(span.start(), page.fenced):
            continue
        inner = span[1].strip()
        start = span.start(1) + span[1].index(inner)
        citation = _read_marked(inner, start, is_current=_is_current(page, span.start(), span.end()))
        if citation is not None:
            names_only = citation.kind is CitationKind.SYMBOL and _is_listed_alone(page.text, *span.span())
            yield replace(citation, is_current=False) if names_only else citation


def _read_marked(inner: str, start: int, *, is_current: bool) -> Citation | None:
    """Return the citation that a marked text is, None for anything else."""
    if command := _COMMAND.match(inner):
        tool = "make" if command[1] else "entry" if command[5] else "script"
        name = command[2] or command[3] or command[4] or command[5]
        return Citation(CitationKind.COMMAND, command[0], f"{tool} {name}", start, is_current=is_current)
    path = _LINES.sub("", inner)
    if _PATH.fullmatch(path) and ".." not in path and ("/" in path or is_file_name(path)):
        name = path.removeprefix("./")
        is_path = is_file_name(name) or name.endswith("/")
        return Citation(CitationKind.PATH, inner, name, start, is_current=is_current) if is_path else None
    symbol = _SYMBOL.fullmatch(inner)
    if symbol and (symbol[2] or _is_code_name(symbol[1])):
        return Citation(CitationKind.SYMBOL, inner, symbol[1], start, is_current=is_current)
    return None


def _find_bare(page: _Page) -> Iterator[Citation]:
    """Yield citations that need no marks: paths of files, constants with a value, and commits."""
    text = page.text
    for path in _BARE_PATH.finditer(text):
        if not _is_within(path.start(), page.fenced) and is_file_name(path[0]) and ".." not in path[0]:
            # The target of a link must exist, also in a sentence that is not judged.
            current = text.endswith(_LINK, 0, path.start()) or _is_current(page, *path.span())
            yield Citation(CitationKind.PATH, path[0], path[0].removeprefix("./"), path.start(), is_current=current)
    for constant in _CONSTANT.finditer(text):
        if not _is_within(constant.start(), page.fenced):
            current = _is_current(page, *constant.span())
            yield Citation(CitationKind.CONSTANT, constant[0], constant[1], constant.start(), constant[2], current)
    for commit in _COMMIT.finditer(text):
        # Without the sign, digits alone may be a number, and letters alone a word.
        is_marked = text[commit.start(1) - 1] == "@"
        if is_marked or (re.search(r"\d", commit[1]) and re.search("[a-f]", commit[1], re.IGNORECASE)):
            yield Citation(CitationKind.COMMIT, commit[1], commit[1].lower(), commit.start(1))


def _is_code_name(name: str) -> bool:
    """Return whether a name is surely one of code: an inner underscore, or an inner capital after a small letter."""
    stem = name.strip("_")
    return len(stem) >= 4 and ("_" in stem or re.search("[a-z][A-Z]", stem) is not None) and not stem.isdigit()


def _is_within(offset: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place is in one of the spans, which are in order and do not overlap."""
    number = bisect_right(spans, offset, key=itemgetter(0))
    return number > 0 and offset < spans[number - 1][1]


def _is_current(page: _Page, start: int, end: int) -> bool:
    """Return whether the sentence around a citation, and the introduction of its list, state the present."""
    if _is_within(start, page.past):
        return False
    text = page.text
    before = list(_SENTENCE_END.finditer(text, max(0, start - 400), start))
    after = _SENTENCE_END.search(text, end, end + 400)
    opening = before[-1].end() if before else max(0, start - 400)
    sentence = text[opening:start] + f" {_MARK} " + text[end : after.start() if after else end + 400]
    stated = f"{sentence} {_find_introduction(text, start) or ''}"
    plain = re.sub(r"`[^`\n]*`", f" {_MARK} ", stated)
    return not (
        _NOT_CURRENT.search(plain)
        or _DATED.search(plain)
        or any(
            _AUXILIARY.search(plain, max(0, verb.start() - 80), verb.start()) is None
            for verb in _PAST_VERB.finditer(plain)
        )
    )


def _find_introduction(text: str, start: int) -> str | None:
    """Return the line that introduces the list around a place, None if the text starts with the list."""
    opening = max(0, start - LONGEST_LIST)
    *earlier, line = text[opening:start].split("\n")
    if not line or not _IN_LIST.match(line):
        return ""
    outside = next((other for other in reversed(earlier) if not _IN_LIST.match(other)), None)
    if outside is None:
        return None if opening == 0 else ""
    return outside if outside.rstrip(" \t*_").endswith(":") else ""


def _is_listed_alone(text: str, start: int, end: int) -> bool:
    """Return whether a name is in a list without heading and introduction: it may list what was removed."""
    is_bullet = _BULLET.match(text) is not None
    return is_bullet and _find_introduction(text, start) is None and not _EXPLAINED.match(text, end)
