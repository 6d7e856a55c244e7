"""Find what a text cites of a repository: paths, symbols, constants with values, commands and commits.

Only marked or unmistakable forms count: a word that is perhaps no citation is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MOST_CITATIONS = 400
_SPAN = re.compile(r"(?<!`)`([^`\n]{2,200})`(?!`)")
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
    bash c cc cfg conf cpp cs css csv cts cxx dart env ex exs go gradle graphql h hpp html ini ipynb java js json jsonl
    jsx kt kts less lock lua m md mdx mjs mk ml mm mts php pl proto ps1 py pyi pyx rb rs rst sass scala scss sh sql
    svelte svg swift tf toml ts tsx txt vue xml yaml yml zig zsh
    """.split()  # noqa: SIM905 - readable as words
)
# A statement about the past, a plan or an example: what it cites need not exist.
_NOT_CURRENT = re.compile(
    r"\b(no longer|removed?|removes|removing|deleted?|deletes|deleting|drop(?:s|ped)?"
    r"|renam(?:ed?|es|ing)|replac(?:ed?|es|ing)"
    r"|moved?|formerly|previously|used to|was|were|had|old|legacy|deprecated|obsolete|gone|instead|not|never|nor"
    r"|don't|doesn't|isn't|missing|lacks?|earlier|will|would|should|could|might|may"
    r"|create[sd]?|add(?:s|ed)?|plan(?:s|ned)?|todo|e\.g|example|examples|for instance|such as|"
    r"generate[sd]?|generates|writes?|written|output|outputs|produces?|suppose|imagine|placeholder|proposed?|split|merged?)\b|→|->",
    re.IGNORECASE,
)
# The heading of a part about the past.
_PAST_HEADING = re.compile(r"\b(removed|deprecated|changelog|history|archived?|obsolete)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)")


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


def find_citations(text: str) -> tuple[Citation, ...]:
    """Return the citations of a text in their order, without repetitions."""
    fenced = [found.span() for found in _FENCE.finditer(text)]
    found = [*_find_marked(text, fenced), *_find_bare(text, fenced)]
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


def _find_marked(text: str, fenced: list[tuple[int, int]]) -> Iterator[Citation]:
    for span in _SPAN.finditer(text):
        if _is_within(span.start(), fenced):
            continue
        current = _is_current(text, span.start(), span.end())
        inner = span[1].strip()
        start = span.start(1) + span[1].index(inner)
        if citation := _read_marked(inner, start, is_current=current):
            yield citation


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


def _find_bare(text: str, fenced: list[tuple[int, int]]) -> Iterator[Citation]:
    """Yield citations that need no marks: paths of files, constants with a value, and commits."""
    for path in _BARE_PATH.finditer(text):
        if not _is_within(path.start(), fenced) and is_file_name(path[0]) and ".." not in path[0]:
            current = _is_current(text, *path.span())
            yield Citation(CitationKind.PATH, path[0], path[0].removeprefix("./"), path.start(), is_current=current)
    for constant in _CONSTANT.finditer(text):
        if not _is_within(constant.start(), fenced):
            current = _is_current(text, *constant.span())
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


def _is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _is_current(text: str, start: int, end: int) -> bool:
    """Return whether the sentence around a citation states the present."""
    before = list(_SENTENCE_END.finditer(text, max(0, start - 400), start))
    after = _SENTENCE_END.search(text, end, end + 400)
    opening = before[-1].end() if before else max(0, start - 400)
    heading = text.rfind("\n#", 0, start)
    if (found := _HEADING.match(text, heading + 1)) and _PAST_HEADING.search(found[1]):
        return False
    sentence = text[opening:start] + " " + text[end : after.start() if after else end + 400]
    return _NOT_CURRENT.search(re.sub(r"`[^`\n]*`", " ", sentence)) is None
