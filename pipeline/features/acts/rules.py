"""Read what a statement asks of edits: where it applies, which code it forbids or requires, and what must stay.

A statement is read by its parts, each with its polarity: "no print() in src/, we have a logger. scripts/ is fine".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from pipeline.features.acts.places import KEPT, Place, is_in, list_endings, list_places
from pipeline.features.lessons.command_rules import ONLY_WORD
from pipeline.features.lessons.prohibitions import CONDITION, FORBIDS, words_of
from pipeline.text.lexicon import load_lexicon, word_set

# Longer texts are documents, which are no rules.
READ_CHARS = 1500
MOST_WORDS_OF_BAN = 6
# The start of the expression of an option.
OPTION = r"(?<!\S)"
QUOTES = "`\"'"
_PART = re.compile(
    r"[.;!?:]+(?=\s|$)|,\s+|\s+[-–—]+>?\s+|\n+"
    r"|\b(?:but|aber|sondern|sino|mais|instead(?! of)|stattdessen|rather(?! than))\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\(([^()\n]{2,160})\)")
_CODE = re.compile(r"`([^`\n]{1,120})`")
_TOKEN = re.compile(r"`[^`\n]{1,120}`|\"[^\"\n]{1,40}\"|(?<!\w)'[^'\n]{2,40}'(?!\w)|[^\s,;`\"“”„«»()\[\]{}]+(?:\(\))?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NOUN = re.compile(r"[^\W\d_][\w-]+")
_IF = re.compile(r"\b(?:if|when|wenn|falls|si|as|weil|because|since|denn|porque|parce)\b", re.IGNORECASE)
_NEW = re.compile(r"\bnew\b|\bneue?s?\b|\bnuev", re.IGNORECASE)
_COMMITS = re.compile(r"\b(?:commit\w*|check(?:ed)? in|einchecken|git add)\b", re.IGNORECASE)
_IMPORTS = re.compile(r"\bimport\w*|\bdepend\w*", re.IGNORECASE)


@cache
def expression(name: str) -> re.Pattern[str]:
    """Return an expression of the lexicon."""
    return re.compile(load_lexicon("acts").entries["expressions"][name], re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ban:
    """Code that must not be written: an expression, and a word that the code contains; the word may be empty.

    `in_commands`: the code is also sought in command lines. `endings` limit it to files with these. A new file whose
    path has all of `path_words` breaks the rule, too. With `unless` in the text, the code is permitted.
    """

    code: re.Pattern[str]
    word: str
    in_commands: bool = False
    endings: frozenset[str] = frozenset()
    path_words: tuple[str, ...] = ()
    unless: str = ""

    @property
    def is_option(self) -> bool:
        """Return whether the code is an option of a program."""
        return self.code.pattern.startswith(OPTION)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a statement asks of edits. Places of `scope` limit it; files of `allowed` are exempt."""

    scope: tuple[Place, ...] = ()
    allowed: tuple[Place, ...] = ()
    allowed_words: frozenset[str] = frozenset()
    endings: frozenset[str] = frozenset()
    bans: tuple[Ban, ...] = ()
    forbids_edit: bool = False
    allows_new: bool = False
    removed_noun: str | None = None
    forbids_commit: bool = False
    required: tuple[str, ...] = ()
    noun: str = ""
    comments: str | None = None
    in_tests: bool | None = None
    is_about_prose: bool = False

    def applies_to(self, file: str) -> bool:
        """Return whether the rule is about a file, in lower case."""
        suffix = file.rpartition(".")[2]
        if is_in(self.allowed, file) or any(word in part for word in self.allowed_words for part in file.split("/")):
            return False
        if self.in_tests is not None and _is_test(file) is not self.in_tests:
            return False
        if self.scope:
            return self.is_in_scope(file)
        if self.endings:
            return suffix in self.endings
        return self.is_about_prose or suffix not in word_set("acts.words", "prose")

    def is_in_scope(self, file: str) -> bool:
        """Return whether a file is in the places of the rule: a file of a folder, if it names both."""
        files = [place for place in self.scope if not place.is_folder and "/" not in place.path]
        folders = [place for place in self.scope if place.is_folder]
        if files and folders and not any("*" in place.path for place in files):
            return is_in(files, file) and is_in(folders, file)
        return is_in(self.scope, file)


def _is_test(file: str) -> bool:
    return (
        re.search(r"(?:^|/)(?:tests?|spec|__tests__|androidtest)/|(?:^|/)test_|[._-](?:test|spec)s?\.|test\.\w+$", file)
        is not None
    )


@dataclass(slots=True)
class _Part:
    text: str
    extra: str
    forbids: re.Match[str] | None
    is_rejected: bool
    is_permitted: bool


@lru_cache(KEPT)
def read_rule(text: str) -> Rule:
    """Return what a statement asks of edits."""
    text = text[:READ_CHARS]
    parts = list(_split(text))
    ruling = [part for part in parts if part.forbids or part.is_rejected]
    stated = " ".join(part.text for part in ruling)
    made = [place for part in parts if expression("generated").search(part.text) for place in _list_scope(part)]
    own = [place for part in ruling for place in _list_scope(part)]
    others = [place for part in parts if part not in ruling and not part.is_permitted for place in _list_scope(part)]
    permitted = [place for part in parts if part.is_permitted for place in list_places(part.text)]
    targets = [place for part in parts for place in _list_targets(part)]
    scope = made or own or others
    is_generated = expression("generated").search(text) is not None
    required, noun = _find_required(parts)
    only_tests = expression("in_tests").search(stated) is not None
    return Rule(
        tuple(scope),
        (*permitted, *targets),
        frozenset(_list_exceptions(text)),
        list_endings(_drop_places(text)),
        tuple(_list_all_bans(text, parts, ruling)),
        bool(scope) and (is_generated or expression("edits").search(stated) is not None),
        _NEW.search(text) is not None and not is_generated,
        _find_removed(ruling),
        bool(own) and _COMMITS.search(stated) is not None,
        tuple(required),
        noun,
        _find_language(text),
        False if expression("but_tests").search(text) else only_tests or None,
        expression("prose").search(text) is not None,
    )


def _list_all_bans(text: str, parts: "Sequence[_Part]", ruling: "Sequence[_Part]") -> list[Ban]:
    """Return the code that a statement forbids."""
    classes = list(_list_classes(text, is_ruled=bool(ruling) or ONLY_WORD.search(text) is not None))
    bans = [*classes, *(ban for part in ruling for ban in _list_bans(part))]
    if classes:
        # The kind of code is more precise.
        bans = [ban for ban in bans if ban.word not in ("TODO", "FIXME")]
    bans += _list_problems(parts) if not ruling else []
    without = expression("without").search(text)
    if without is not None:
        tokens = _list_tokens(text[: without.start()])
        symbols = [token for token in tokens if _is_symbol(token) or re.fullmatch(r"\w+\.\w+(?:\(\))?", token)]
        by_code = {ban.code: ban for ban in (*map(_ban_token, symbols), *bans)}
        bans = [replace(ban, unless=without["needed"].rstrip(".").casefold()) for ban in by_code.values()]
    return [*bans, *_list_rejected(text), *_list_single_places(text)]


def _find_language(text: str) -> str | None:
    """Return the language in which comments have to be: `e` for English, `d` for German."""
    match = expression("comments").search(text)
    if match is None:
        return None
    return "e" if match["language"].casefold()[:3] in ("eng", "ing", "ang") else "d"


def _split(text: str) -> Iterator[_Part]:
    """Yield the parts of a text, each with what it has in brackets."""
    start, before = 0, None
    spans = [match.span() for match in _BRACKETS.finditer(text)]
    ends = [match for match in _PART.finditer(text) if not any(a <= match.start() < b for a, b in spans)]
    for stop, following in [*((match.start(), match.end()) for match in ends), (len(text), len(text))]:
        raw = text[start:stop]
        start = following
        if not raw.strip():
            continue
        extra = " ".join(match[1] for match in _BRACKETS.finditer(raw))
        plain = _BRACKETS.sub(" ", raw)
        if not plain.strip() and before is not None:
            before.extra = f"{before.extra} {extra}"
            continue
        rejected = expression("rejects_before").search(plain) or expression("rejects_after").search(plain)
        permits = expression("permits").search(plain) is not None
        forbids = FORBIDS.search(plain)
        before = _Part(plain, extra, None if permits else forbids, rejected is not None and not permits, permits)
        yield before


def _list_scope(part: _Part) -> Iterator[Place]:
    """Yield the places in which a part applies: not those that something comes from or goes into."""
    imports = _IMPORTS.search(part.text)
    targets = {place.start for place in _list_targets(part)}
    for place in list_places(part.text):
        is_object = imports is not None and part.forbids is not None and place.start > imports.start()
        is_origin = expression("origin").search(part.text[: place.start]) and not _COMMITS.search(part.text)
        if not (is_object or place.start in targets or is_origin):
            yield place
    if part.forbids or part.is_rejected or not expression("sends").search(part.text):
        yield from list_places(part.extra)


def _list_targets(part: _Part) -> Iterator[Place]:
    """Yield the places to which a part sends its reader."""
    if part.forbids is not None:
        return
    is_target = False
    for place in list_places(part.text):
        is_target = is_target or expression("destination").search(part.text[: place.start]) is not None
        if is_target:
            yield place


def _list_exceptions(text: str) -> Iterator[str]:
    for match in re.finditer(r"\b(?:except|außer|ausser|salvo|sauf)\b([^.;)]*)", text, re.IGNORECASE):
        yield from (word.casefold().rstrip("s") for word in _WORD.findall(match[1]) if len(word) > 4)


def _list_bans(part: _Part) -> Iterator[Ban]:
    """Yield the code that a part forbids: after the word that forbids it, or before that word."""
    found = list(_list_bans_after(part)) if part.forbids else []
    if not found:
        rejected = (
            part.forbids
            or expression("rejects_before").search(part.text)
            or expression("rejects_after").search(part.text)
        )
        tokens = _list_tokens(part.text[: rejected.start()]) if rejected else []
        found = [_ban_token(token) for token in tokens if _is_code(token)]
        is_named = part.forbids is None or expression("trailing").fullmatch(part.forbids[0]) is not None
        if (
            not found
            and is_named
            and tokens
            and _WORD.fullmatch(tokens[0])
            and tokens[0].casefold() not in words_of("stops")
        ):
            found = [_ban_word(tokens[0])]
        after = expression("rejects_after").search(part.text) if part.forbids is None else None
        tokens = _list_tokens(part.text[after.end() :]) if after else []
        found += [_ban_token(token) for token in tokens if _is_code(token)]
    yield from found
    for token in _list_tokens(part.extra):
        if re.search(r"\w[-.]\w", token) and (_is_code(token) or "." in token) and not list_places(token):
            yield replace(_ban_token(token), in_commands=True)


def _list_rejected(text: str) -> Iterator[Ban]:
    """Yield the bans of what something else replaces: "httpx instead of requests"."""
    for name in ("rather_than", "replaced", "replaced_by"):
        for match in expression(name).finditer(text):
            word = match["bad"].rstrip(".")
            if word.casefold() not in words_of("stops"):
                yield _ban_token(word) if _is_code(word) else _ban_word(word)


def _list_single_places(text: str) -> Iterator[Ban]:
    """Yield the bans of what is written in one place only: "the version only in version.h"."""
    match = expression("only_in").search(text)
    if match is not None and list_places(text[match.end() - 1 :]):
        noun = re.escape(match["noun"].casefold().rstrip("s"))
        yield Ban(re.compile(rf"(?i)\b\w*{noun}\w*[\"']?[\s:=(]+[\"']?v?\d+\.\d"), "")


def _list_bans_after(part: _Part) -> Iterator[Ban]:
    """Yield the code after the word of a part that forbids it."""
    rest = part.text[part.forbids.end() :] if part.forbids else ""
    imports = _IMPORTS.search(rest)
    if imports is not None:
        for place in list_places(rest[imports.end() :]):
            name = re.escape(place.name)
            code = re.compile(
                rf"^.*\b(?:import|from|require|include|use)\b.*[/\"'@<]{name}(?:[/\"'>].*)?$", re.MULTILINE
            )
            yield Ban(code, re.findall(r"\w+", place.name)[0])
    stop = CONDITION.search(rest) or _IF.search(rest)
    tokens = _list_tokens(rest[: stop.start()] if stop and stop.start() > 1 else rest)
    before = part.text[: part.forbids.start()] if part.forbids else ""
    symbols = [token for token in _list_tokens(before) if _is_symbol(token)]
    operators = [token for token in tokens if re.fullmatch(r"[<>=!+*/%&|-]{1,3}", token)]
    for symbol in symbols:
        for operator in operators:
            yield Ban(re.compile(rf"\b{re.escape(symbol)}(?:\(\))?\s*{re.escape(operator)}"), symbol)
    yield from (_ban_token(token) for token in tokens if _is_code(token))
    yield from _list_phrases(tokens)


def _drop_places(text: str) -> str:
    for place in reversed(list_places(text)):
        text = text[: place.start] + " / " + text[place.end :]
    return text


def _list_tokens(text: str) -> list[str]:
    text = _drop_places(text)
    return [match[0].rstrip(".:!?'") for match in _TOKEN.finditer(text) if match[0].rstrip(".:!?'")]


def _list_phrases(tokens: Sequence[str]) -> Iterator[Ban]:
    """Yield the bans of plain words: the noun, or the two words, at the start of what is forbidden."""
    skipped = word_set("acts.words", "verbs")
    words: list[str] = []
    for token in tokens[:MOST_WORDS_OF_BAN]:
        word = token.casefold()
        if not words and word in skipped:
            continue
        if (
            _NOUN.fullmatch(token) is None
            or word in words_of("fillers")
            or word in words_of("stops")
            or word in words_of("conjunctions")
        ):
            break
        if word in word_set("acts.words", "generic"):
            if words:
                break
            continue
        words.append(token)
    if len(words) == 1:
        yield _ban_word(words[0])
    elif len(words) >= 2:
        one, other = (re.escape(word.casefold().rstrip("s")) for word in words[:2])
        code = re.compile(rf"(?i)\b{one}\w{{0,2}}[\W_]{{1,3}}{other}|\b{other}\w{{0,2}}[\W_]{{1,3}}{one}(?!\w{{3}})")
        stems = tuple(word.casefold().rstrip("s") for word in words[:2])
        yield Ban(code, re.findall(r"\w+", stems[0])[0], path_words=stems)


def _is_symbol(token: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*(?:\(\))?", token) is not None and (
        "_" in token or re.search(r"[a-z][A-Z]", token) is not None or token.endswith("()")
    )


def _is_code(token: str) -> bool:
    """Return whether a word is written like code."""
    if token[0] in QUOTES:
        return len(token.strip(QUOTES)) > 1 or token[0] == "`"
    if re.fullmatch(r"-{1,2}\w", token) or not re.search(r"\w", token) or token.replace(".", "").isdigit():
        return False
    return re.search(r"[a-z][A-Z]|[_()@$#*]|\w[.=]\w|%\w|^-|^:|[A-Za-z]-?\d|[a-z]\w+-\w+-\w+", token) is not None or (
        token.isupper() and len(token) > 3
    )


def _ban_token(token: str) -> Ban:
    """Return the ban of a word of code; `log_*` stands for all words with this start."""
    plain = token.strip(QUOTES).strip()
    if token[0] in QUOTES[1:] and plain.isalpha():
        return Ban(re.compile(rf"(?i)\b{plain}\b"), plain.casefold())
    is_call = plain.endswith("()")
    core = plain.removesuffix("()")
    first = re.search(r"\w+", core)
    start = (
        r"(?<!\w)"
        if is_call
        else r"(?<![\w.])"
        if re.match(r"\w", core)
        else r"(?<!\S)"
        if core.startswith("-")
        else ""
    )
    if core[:1].isupper() and re.search(r"\d$", core):
        start = ""
    body = re.escape(core).replace(r"\*", r"\w*") if len(core) > 1 else re.escape(core)
    end = r"\s*\(" if is_call else r"(?![\w*])" if re.search(r"\w\Z", core) else ""
    if plain.isalpha() and not is_call and plain.casefold() == plain:
        return _ban_word(plain)
    flags = 0 if re.search(r"[a-z]", core) and re.search(r"[A-Z]", core) else re.IGNORECASE
    is_named = re.search(r"\w-\w|\w\.\w|\d|^--\w|=", core) is not None
    word = first[0] if first and start and "*" not in core else ""
    return Ban(re.compile(f"{start}{body}{end}", flags), word, in_commands=is_named and not is_call)


def _ban_word(word: str) -> Ban:
    """Return the ban of a word where it is code: a call, a type, an import or a member."""
    found = re.escape(word.casefold())
    if word.endswith("s") and len(word) > len("class"):
        found = f"(?:{found}|{found[:-1]})"
    code = (
        rf"(?<![\w.\"'/-]){found}!?\(|[:<|,]\s*{found}(?=\s*[>|,;)=\[{{]|\s*$)|\bas\s+{found}\b"
        rf"|^\s*(?:(?:static|const|volatile|unsigned|private|public|final)\s+)*{found}\s+\**\w+\s*[=;,(\[]"
        rf"|->\s*{found}\b|\b(?:import|from|require|include|use)\b[\s(\"'<{{]*{found}\b|(?<![\w.\"'/]){found}\.\w"
        rf"|\({found}\)|//{found}\b"
    )
    code += rf"|(?:^|[;&|]|\bRUN)\s*{found}\s+(?=[\w./-]+(?:[ \t]+[\w./-]+)*\s*$)" if word.casefold() == "sudo" else ""
    return Ban(re.compile(code, re.MULTILINE), word.casefold())


def _list_classes(text: str, *, is_ruled: bool) -> Iterator[Ban]:
    """Yield the kinds of code that a rule names in prose."""
    entries: list[dict[str, Any]] = load_lexicon("acts").entries["classes"]
    for number, entry in enumerate(entries if is_ruled else ()):
        if _class_rule(number).search(text):
            endings = frozenset(entry.get("endings", "").split())
            yield Ban(_class_code(number), "", entry.get("in_commands", False), endings)


@cache
def _class_rule(number: int) -> re.Pattern[str]:
    return re.compile(load_lexicon("acts").entries["classes"][number]["rule"], re.IGNORECASE)


@cache
def _class_code(number: int) -> re.Pattern[str]:
    return re.compile(load_lexicon("acts").entries["classes"][number]["code"], re.MULTILINE)


def _list_problems(parts: Sequence[_Part]) -> list[Ban]:
    """Return the options that a lesson about a problem names before the problem."""
    found = []
    for part in parts:
        problem = expression("problems").search(part.text)
        if problem is not None:
            tokens = _list_tokens(part.text[: problem.start()])
            found += [_ban_token(token) for token in tokens if re.fullmatch(r"-{1,2}\w[\w=-]+", token)]
    return found


def _find_removed(ruling: Sequence[_Part]) -> str | None:
    """Return the noun of what must not be removed or renamed; empty for the file itself, None without such a rule."""
    for part in ruling:
        removes = expression("removes").search(part.text)
        if part.forbids is None or removes is None or expression("edits").search(part.text):
            continue
        words = [word for word in _WORD.findall(part.text[removes.end() :]) if word.casefold() not in words_of("stops")]
        words = [word for word in words if not expression("removes").fullmatch(word)]
        return words[0].casefold().rstrip("s") if words else ""
    return None


def _find_required(parts: Sequence[_Part]) -> tuple[list[str], str]:
    """Return the code that each new thing must have, and the noun of the thing."""
    for part in parts:
        needs = expression("requires").search(part.text) if part.forbids is None and not part.is_permitted else None
        if needs is None:
            continue
        tokens = [token.strip(QUOTES) for token in _list_tokens(part.text) if _is_code(token)]
        tokens = [token for token in tokens if not re.fullmatch(r"[A-Z]{2,}\d*", token)]
        if tokens:
            each = expression("each").search(part.text)
            return tokens, each["noun"].casefold() if each else ""
    return [], ""
