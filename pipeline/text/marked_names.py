"""Find names by a sign or a list: handles, branches, error names, and environment variables."""

import errno
import re
from collections.abc import Iterator

from pipeline.records import EntityKind
from pipeline.text.lexicon import load_lexicon

_LEXICON = load_lexicon("components")
_LOOKED_BACK = 32  # characters read before a name for a cue
_BRANCH_TAIL = r"[A-Za-z0-9][\w.#+-]*+(?:/[\w.#+-]++)*+"
_BRANCH = re.compile(
    rf"(?<![\w@/.$=&:#+~-])(?:(?:origin|upstream)/)?(?P<name>(?:{_LEXICON.alternatives('branch_prefixes')})/{_BRANCH_TAIL})"
)
_MENTIONS_BRANCH = re.compile(r"[bB]ranch|[zZ]weig|[rR]ama")
_CUED_BRANCH = re.compile(rf"\b(?i:{_LEXICON.alternatives('branch_cues')})[ ][`\"']?(?P<name>{_BRANCH_TAIL})")
_MAIN_BRANCHES = frozenset({"main", "master", "develop", "trunk"})
_SOURCE_FILE = re.compile(r"\.(?:py|tsx?|jsx?|go|rs|rb|java|md|json|ya?ml|toml|txt|sh|sql|html|css)$")
_HANDLE = re.compile(
    r"(?<![\w@/.`'\"$=&:#+~-])@(?P<name>[A-Za-z](?:[\w-]{0,37}[A-Za-z0-9])?)(?![\w@/('\"-]|\.\w|[ \t]*[{=(])"
    rf"(?![ ](?:{_LEXICON.alternatives('annotation_nouns')})\b|\n[ \t]*(?:@|(?:async )?def |class |export |public ))"
)
_ANNOTATIONS = frozenset(_LEXICON.words("annotations"))
_CAPITALS = re.compile(
    r"(?<![\w$-])(?:SQLSTATE(?:[ :=]?\[?[0-9A-Z]{5}(?!\w))?|ORA-[0-9]{5}|[A-Z][A-Z0-9_]{2,60})(?![\w(-])"
)
_ERROR_CODE = re.compile(r"ORA-[0-9]{5}|TS[1-9][0-9]{3}|E0[0-9]{3}|CS[0-9]{4}|SQLSTATE.*")
_ERROR_NAMES = frozenset(errno.errorcode.values()) | frozenset(_LEXICON.words("error_names"))
_VARIABLE = re.compile(
    r"(?<![\w$])\$(?:\{(?P<braced>[A-Z][A-Z0-9_]{1,60})[}:]|(?P<plain>[A-Z][A-Z0-9_]{1,60})(?!\w))"
    r"|(?<![\w$.-])(?P<assigned>[A-Z][A-Z0-9]{2,60})=(?=[\w/\"'.*-])"
)
_VARIABLE_CUE = re.compile(
    r"\b(?i:env(?:ironment)?[ ]var(?:iable)?s?|umgebungsvariablen?"
    r"|variables?(?:[ ]de[ ]entorno|[ ]d['’]environnement)?)[ ][`\"']?$"
)


def find_marked_names(text: str) -> Iterator[tuple[EntityKind, int, int]]:
    """Yield kind, start and end of each name; names may overlap."""
    for match in _CAPITALS.finditer(text):
        name, before = match[0], text[max(0, match.start() - _LOOKED_BACK) : match.start()]
        if name in _ERROR_NAMES or _ERROR_CODE.fullmatch(name) or _VARIABLE_CUE.search(before):
            yield EntityKind.IDENTIFIER, *match.span()
    if "$" in text or "=" in text:
        for match in _VARIABLE.finditer(text):
            assert match.lastgroup
            yield EntityKind.IDENTIFIER, *match.span(match.lastgroup)
    if "@" in text:
        for match in _HANDLE.finditer(text):
            if match["name"].lower() not in _ANNOTATIONS:
                yield EntityKind.PERSON, *match.span()
    for start, end in _find_branches(text):
        yield EntityKind.IDENTIFIER, start, end


def _find_branches(text: str) -> Iterator[tuple[int, int]]:
    for match in _BRANCH.finditer(text) if "/" in text else ():
        name = match["name"].rstrip(".-+#")
        # "fix/workaround" are two words.
        coined = name.count("/") > 1 or re.search(r"[-_0-9]", name)
        if coined and not _SOURCE_FILE.search(name):
            yield match.start("name"), match.start("name") + len(name)
    for match in _CUED_BRANCH.finditer(text) if _MENTIONS_BRANCH.search(text) else ():
        name = match["name"].rstrip(".-+#")
        if name in _MAIN_BRANCHES or re.search(r"[-/0-9]", name):
            yield match.start("name"), match.start("name") + len(name)
