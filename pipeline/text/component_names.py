"""Find the names of services, repositories, machines and packages that are written in lower case with hyphens.

The parts of some words say that they are names: a last part that only software has ("billing-service"), a number
("pine-04"), a private domain ("db-1.internal"). Other words are names if they are no ordinary compound ("read-only",
"follow-up": a closed class of first and last parts) and are used as names are: without an article, and not before a
noun. Outside of English, where compounds are rarely written so, the second condition is left out.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from functools import partial

from pipeline.kernel.records import EntityKind
from pipeline.text.languages import may_be_foreign
from pipeline.text.lexicon import load_lexicon, word_set

_LEXICON = load_lexicon("components")
_LOOKED_BACK, _LOOKED_AHEAD = 40, 24  # characters read around a name for a cue

_HYPHENATED = re.compile(r"(?<![\w@/.$=&#+~:-])[A-Za-z][A-Za-z0-9]*+(?:-[A-Za-z0-9]++)++(?![\w/@=(-]|\.\w)")
_DOMAIN = rf"\.(?:(?P<private>{_LEXICON.alternatives('private_domains')})|(?:com|net|org|io|dev|eu|de))(?![\w(/-]|\.\w)"
_DOMAIN_END = re.compile(_DOMAIN)
_HOST = re.compile(
    r"(?<![\w@/.$=&#+~-])[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?){0,5}?" + _DOMAIN
)
_REPOSITORY = re.compile(
    r"(?<![\w@/.$=&#+~:-])[a-z][a-z0-9]*+/(?P<name>[a-z][a-z0-9]*+(?:-[a-z0-9]++)++)(?![\w/@=(-]|\.\w)"
)
# "web01": zero-padded, unlike "sha256" and "http2".
_PADDED_NUMBER = re.compile(r"0[1-9](?![\w@/=(-]|\.\w)")
_STEM = re.compile(r"(?<![\w@/.$=&#+~-])[a-z]{2,12}$")
_VERSION = re.compile(r"v[0-9]{1,2}")
_LOWER_CASE = re.compile(r"[a-z][a-z0-9]+")
_PLAIN_WORD = re.compile(r"(?<![\w@/.$=&#+~-])[a-z][a-z0-9]++(?![\w@/=-]|\.\w)")
_PACKAGE_ACTION = re.compile(rf"\b(?i:{_LEXICON.alternatives('package_actions')})[ ]$")
_PACKAGE_CUE = re.compile(rf"\b(?i:{_LEXICON.alternatives('package_cues')})[ ]+[`\"']?$")
_COMPONENT_CUE = re.compile(rf"\b(?i:{_LEXICON.alternatives('component_cues')})[ ]+[`\"']?$")
_WORD_BEFORE = re.compile(r"(?:(?P<start>^|[.!?:\n])|[;,(\"“–—*>|`])[ \t\"-]*$|(?P<word>[^\W_]+)[ ]+[`\"“']?$")
_WORD_AFTER = re.compile(
    r"[`\"”']?(?:(?:['’]s?)?(?:[ \t]*$|[ \t]*[.,;:!?)\n–—]|['’]s)|[ ]+(?P<word>[^\W_]+)|[ ]+[@(#`–—=])"
)

_words = partial(word_set, "components")
_ARTICLES = frozenset({"the", "our", "their"})
_OBJECT = re.compile(r"[ ]+(?:the|an?|our|its|their|every|all|no|it|them|into|away)\b")


def find_component_names(text: str) -> Iterator[tuple[EntityKind, int, int]]:
    """Yield kind, start and end of each name."""
    if "-" in text:
        for match in _HYPHENATED.finditer(text):
            if match[0].islower() and (kind := _judge(text, *match.span())):
                yield kind, *match.span()
        for match in _REPOSITORY.finditer(text) if "/" in text else ():
            if not _is_ordinary(match["name"].split("-")):
                yield EntityKind.IDENTIFIER, *match.span()
    for match in _HOST.finditer(text) if _DOMAIN_END.search(text) else ():
        if match["private"] or match[0].count(".") > 1:
            yield EntityKind.IDENTIFIER, *match.span()
    for match in _PADDED_NUMBER.finditer(text):
        if stem := _STEM.search(text, max(0, match.start() - _LOOKED_BACK), match.start()):
            yield EntityKind.IDENTIFIER, stem.start(), match.end()
    yield from _find_packages(text)


def _find_packages(text: str) -> Iterator[tuple[EntityKind, int, int]]:
    listed, cued = _words("packages"), _words("cued_packages")
    if (listed | cued).isdisjoint(_LOWER_CASE.findall(text)):
        return
    for match in _PLAIN_WORD.finditer(text):
        if match[0] in listed or (
            match[0] in cued and _PACKAGE_ACTION.search(text[max(0, match.start() - _LOOKED_BACK) : match.start()])
        ):
            yield EntityKind.PACKAGE, *match.span()


def find_hyphenated_names(text: str, names: Mapping[str, EntityKind]) -> Iterator[tuple[EntityKind, int, int]]:
    """Yield each hyphenated word that is a name in the workspace, unless it is an ordinary compound, too."""
    for match in _HYPHENATED.finditer(text) if names else ():
        kind = names.get(match[0])
        if kind and not _is_ordinary(match[0].split("-")):
            yield kind, *match.span()


def find_hyphenated_words(text: str) -> set[str]:
    """Return the hyphenated words of a text that are in lower case."""
    return {match[0] for match in _HYPHENATED.finditer(text) if match[0].islower()}


def _judge(text: str, start: int, end: int) -> EntityKind | None:
    parts = text[start:end].split("-")
    before = text[max(0, start - _LOOKED_BACK) : start]
    if parts[-1].isdigit():
        return EntityKind.IDENTIFIER if _is_numbered(parts) else None
    if _is_package(parts, before):
        return EntityKind.PACKAGE
    if _is_component(parts):
        return EntityKind.IDENTIFIER
    is_ordinary, is_ordinary_abroad = _is_ordinary(parts), _is_ordinary_abroad(parts)
    # The language is the most expensive question.
    if is_ordinary and is_ordinary_abroad:
        return None
    is_foreign = may_be_foreign(text)
    if is_ordinary_abroad if is_foreign else is_ordinary:
        return None
    is_name = is_foreign or _COMPONENT_CUE.search(before) or _is_used_as_name(before, text[end : end + _LOOKED_AHEAD])
    return EntityKind.IDENTIFIER if is_name else None


def _is_numbered(parts: list[str]) -> bool:
    *names, number = parts
    stem = names[-1]
    return (
        len(number) < 4
        and not stem.isdigit()
        and (len(stem) > 2 or stem in _words("machine_stems"))
        and not _words("counters") & {stem, names[0]}
    )


def _is_package(parts: list[str], before: str) -> bool:
    if _is_ordinary(parts) or parts[-1] in _words("component_ends"):
        return False
    return bool(_words("package_parts") & {parts[0], parts[-1]} or _PACKAGE_CUE.search(before))


def _is_component(parts: list[str]) -> bool:
    """Return whether the last part names a component that the other parts distinguish from others of its sort."""
    while len(parts) > 2 and (parts[-1] in _words("qualifiers") or _VERSION.fullmatch(parts[-1])):
        parts = parts[:-1]
    if _VERSION.fullmatch(parts[-1]):
        return len(parts[0]) > 2 and parts[0] not in _words("counters")
    if _words("generic_parts").issuperset(parts[:-1]) or parts[0] in _words("prefixes"):
        return False
    return parts[-1] in _words("component_ends")


def _is_ordinary(parts: list[str]) -> bool:
    return (
        parts[0] in _words("prefixes")
        or _is_ordinary_end(parts[-1])
        or not _words("inner_words").isdisjoint(parts)
        or any(len(part) == 1 for part in parts)
    )


def _is_ordinary_abroad(parts: list[str]) -> bool:
    return (
        parts[0] in _words("foreign_prefixes")
        or parts[-1] in _words("foreign_suffixes")
        or (parts[0] in _words("prefixes") and _is_ordinary_end(parts[-1]))
        or not _words("inner_words").isdisjoint(parts)
        or any(len(part) == 1 for part in parts)
    )


def _is_ordinary_end(part: str) -> bool:
    stem = part.removesuffix("s")
    if {part, stem} & _words("suffixes"):
        return True
    return part.endswith(_LEXICON.words("suffix_endings")) and part not in _words("nouns")


def _is_used_as_name(before: str, after: str) -> bool:
    previous, following = _WORD_BEFORE.search(before), _WORD_AFTER.match(after)
    if previous is None or following is None:
        return False
    # Ordinary words have a capital at the start of a sentence.
    if previous["start"] is not None:
        return True
    word, next_word = previous["word"], following["word"]
    if word and word.lower() in _ARTICLES:
        return next_word in _words("component_nouns")
    if word is not None and not _may_precede(word, before[: previous.start("word")]):
        return False
    if next_word is None or next_word in _words("words_after") | _words("component_nouns") or not next_word.islower():
        return True
    return _is_verb(next_word, after[following.end() :], starts_clause=word is None or word in _words("conjunctions"))


def _is_verb(word: str, after: str, *, starts_clause: bool) -> bool:
    """Return whether the word after a name is a verb: "drops the profile"; "real-time prices" has a noun."""
    has_object = bool(_OBJECT.match(after))
    return (starts_clause and (has_object or word.endswith(("s", "ed")))) or (has_object and word.endswith(("s", "ed")))


def _may_precede(word: str, before: str) -> bool:
    if word in _words("words_before") or (word.endswith(("ed", "ing", "s")) and word not in _words("not_verbs")):
        return True
    # An imperative starts a sentence.
    return word[0].isupper() and word.lower() in _words("words_before") and not before.strip(" -*\n\t").endswith(",")


# Names with a sign or in a list: handles, branches, error names, and environment variables

_CUE_CHARS = 32  # characters read before a name for a cue
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
        name, before = match[0], text[max(0, match.start() - _CUE_CHARS) : match.start()]
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
