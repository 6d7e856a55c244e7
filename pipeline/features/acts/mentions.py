"""Read which files, folders, code and commands a memory names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import PurePosixPath

from pipeline.features.citations.parser import is_file_name
from pipeline.features.lessons.prohibitions import FORBIDS, list_acts, list_clauses, spell_out, words_of
from pipeline.text.lexicon import load_lexicon, word_set, word_sets
from pipeline.text.similarity.choices import NAMES

# Longer texts are documents, which are no rules.
READ_CHARS = 2000
# Texts that are kept as they were read.
KEPT = 2048
SHORTEST_NAME = 3
_WORD = re.compile(r"[^\W_][\w.+-]*")
_PATH = re.compile(
    r"(?<![\w@./\\:-])(?:"
    r"(?:~|\.{1,2})?/?(?:[\w.@+*-]+/)+[\w.@+*{},-]*"
    r"|\.?[\w@+*-][\w.@+*-]*\.[A-Za-z][\w]{0,9}(?![\w(])"
    r"|\.[a-z][\w.-]{2,20}"
    r"|[A-Z][a-z]+file(?![\w])"
    r")"
)
_ENDING = re.compile(r"(?<![\w*)\]/])\*?\.(\w{1,10})(?![\w.(/*-])")
_SYMBOL = re.compile(r"(?<![\w/.-])(?:[A-Za-z_]\w*(?:\.|::|->))*([A-Za-z_]\w*)(\(\))?(?![\w/])")
_CODE = re.compile(r"`([^`\n]{1,120})`")
_QUOTED = re.compile(r"[\"“„«']([^\s\"“”„«»'][^\"“”„«»'\n]{0,60})[\"“”»']")
_NOT_FILES = re.compile(
    r"(?:node|next|vue|nuxt|express|three|d3|chart|react|backbone|ember|moment|i18n|asp|e\.g|z\.b|i\.e|u\.a|d\.h)\.?\w*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Code that a clause forbids: a marked text as it is, or a word where it is code."""

    expression: re.Pattern[str]
    word: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a text names. Paths, folders and globs are in lower case; `endings` limit the text to files with these."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    globs: tuple[str, ...]
    endings: frozenset[str]
    symbols: frozenset[str]
    patterns: tuple[Pattern, ...]

    def list_keys(self) -> Iterator[str]:
        """Yield the keys under which an act may find the text."""
        for file in self.files:
            yield f"f:{PurePosixPath(file).name}"
        for folder in self.folders:
            yield f"d:{PurePosixPath(folder).name}"
        for glob in self.globs:
            yield f"x:{PurePosixPath(glob).suffix.lstrip('.')}" if "." in PurePosixPath(glob).name else "g:"
        for ending in self.endings:
            yield f"x:{ending}"
        for symbol in self.symbols:
            yield f"s:{symbol}"
        for pattern in self.patterns:
            yield f"p:{pattern.word}"


@lru_cache(KEPT)
def read_mentions(text: str) -> Mentions:
    """Return what a text names."""
    text = text[:READ_CHARS]
    files, folders, globs = [], [], []
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".,:;").removeprefix("./")
        name = path.rstrip("/").rpartition("/")[2]
        if "*" in path or "{" in path:
            globs.append(path.lower())
        elif path.endswith("/"):
            folders.append(path.rstrip("/").lower())
        elif is_file_name(path) or name.startswith(".") or name.endswith("file"):
            if _NOT_FILES.fullmatch(path) is None and not re.fullmatch(r"\.[a-z]{1,4}", path):
                files.append(path.lower())
        elif "/" in path and len(path) > SHORTEST_NAME and not path.startswith("/"):
            folders.append(path.lower())
    folders += _list_named_folders(text)
    return Mentions(
        tuple(dict.fromkeys(files)),
        tuple(dict.fromkeys(folders)),
        tuple(dict.fromkeys(globs)),
        frozenset(_list_endings(text)),
        frozenset(_list_symbols(text)),
        tuple(_list_patterns(text)),
    )


def _list_named_folders(text: str) -> Iterator[str]:
    """Yield the folders that a noun marks: "the vendor folder", "im Ordner `gen`"."""
    words = [word.strip("`'\".,:;()") for word in text.split()]
    nouns = word_set("acts.words", "folders")
    for number, word in enumerate(words):
        if word.casefold() not in nouns:
            continue
        for near in (number - 1, number + 1):
            name = words[near].rstrip("/").casefold() if 0 <= near < len(words) else ""
            if len(name) >= SHORTEST_NAME and re.fullmatch(r"[\w./-]+", name) and not _is_prose(name):
                yield name.lstrip("./")


def _list_endings(text: str) -> Iterator[str]:
    for match in _ENDING.finditer(text):
        yield match[1].lower()
    known = word_sets("acts.languages")
    for word in re.findall(r"[^\W\d_]+\+*", text.casefold()):
        yield from known.get(word, ()) if len(word) > 2 else ()


def _list_symbols(text: str) -> Iterator[str]:
    marked = {code[1].strip() for code in _CODE.finditer(text)}
    for match in _SYMBOL.finditer(text):
        if match[2] or _is_code_name(match[1]):
            yield match[1]
    for code in marked:
        symbol = _SYMBOL.fullmatch(code)
        if symbol and len(symbol[1]) >= SHORTEST_NAME and not _is_prose(symbol[1].casefold()):
            yield symbol[1]


def _is_code_name(name: str) -> bool:
    stem = name.strip("_")
    return (
        len(stem) > SHORTEST_NAME and ("_" in stem or re.search("[a-z][A-Z]", stem) is not None) and not stem.isdigit()
    )


def _list_patterns(text: str) -> Iterator[Pattern]:
    """Yield the code that the clauses of a rule forbid."""
    for clause, _ in list_clauses(text):
        forbids = FORBIDS.search(clause)
        if forbids is None:
            continue
        rest = clause[forbids.end() :]
        marked = [
            *(code[1].strip() for code in _CODE.finditer(rest)),
            *(quoted[1] for quoted in _QUOTED.finditer(rest)),
        ]
        for code in dict.fromkeys(marked):
            first = re.search(r"\w+", code)
            if first is not None and len(code) > 1 and not is_file_name(code):
                yield Pattern(_match_marked(code), first[0])
        for word in _list_code_words(rest):
            yield Pattern(_match_word(word), word)


def _list_code_words(rest: str) -> Iterator[str]:
    """Yield the words after a prohibition that are code: `print`, `any`, `TODO`."""
    known = word_set("acts.words", "ordinary_code")
    for match in re.finditer(r"[A-Za-z_][\w.]*(?:\(\))?", _CODE.sub(" ", rest)):
        word = match[0].rstrip(".").removesuffix("()")
        is_call = match[0].endswith("()") or "." in word.strip(".")
        if is_call or word.casefold() in known or _is_code_name(word) or (word.rstrip("s").isupper() and len(word) > 3):
            yield word.rstrip("s") if word.rstrip("s").isupper() else word


@cache
def _match_marked(code: str) -> re.Pattern[str]:
    code = code.rstrip("()") if code.endswith("()") else code
    start, end = r"(?<!\w)" if re.match(r"\w", code) else "", r"(?!\w)" if re.search(r"\w\Z", code) else ""
    return re.compile(f"{start}{re.escape(code)}{end}")


@cache
def _match_word(word: str) -> re.Pattern[str]:
    """Return the expression of a word where it is code: a call, a type, a member, a name of several parts."""
    found = re.escape(word)
    if not word.islower() or not word.isalpha():
        return re.compile(rf"(?<![\w.]){found}(?!\w)")
    return re.compile(
        rf"(?<![\w.\"'-]){found}(?=\(|!\()|(?<=[:<|])\s*{found}(?![\w'\" ])|\bas\s+{found}\b"
        rf"|^\s*{found}\b(?=\s+\w+\s*[=;(])",
        re.MULTILINE,
    )


def _is_prose(word: str) -> bool:
    return word in words_of("stops") or word in words_of("fillers") or word in ("code", "this", "that", "each", "every")


def list_text_keys(text: str, *, is_rule: bool) -> frozenset[str]:
    """Return the keys of a text; the words of a rule are keys too, since a command is named by ordinary words."""
    text = text[:READ_CHARS]
    keys = set(read_mentions(text).list_keys())
    marked = " ".join(code[1] for code in _CODE.finditer(text))
    keys.update(f"w:{word}" for word in _list_words(text if is_rule else marked))
    for clause, _ in list_clauses(text) if is_rule else ():
        keys.update(f"w:{word}" for word in _list_words(spell_out(clause)))
        for act in list_acts(clause):
            keys.update(f"w:{command[0]}" for command in act.commands)
            keys.update(f"w:{client}" for client in words_of("clients") if act.statements is not None)
    for group, names in NAMES.items():
        if names.search(text):
            keys.update(f"w:{name}" for name in _list_rivals(group))
    return frozenset(keys)


@cache
def _list_rivals(group: str) -> tuple[str, ...]:
    return tuple(name for name in load_lexicon("rival_choices").entries["groups"][group] if name.isalpha())


def _list_words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text.casefold()):
        word = match[0].rstrip(".-+")
        if len(word) > 1 and not _is_prose(word):
            yield word


def matches_file(mentions: Mentions, path: str) -> bool:
    """Return whether a text names a file by its name, its folder or a pattern."""
    lowered = path.lower()
    parts = PurePosixPath(lowered).parts
    if any(_is_under(lowered, folder) for folder in mentions.folders) and not mentions.files:
        return not mentions.endings or PurePosixPath(lowered).suffix.lstrip(".") in mentions.endings
    if any(_is_glob_of(glob, lowered) for glob in mentions.globs):
        return True
    for file in mentions.files:
        if "/" in file:
            if f"/{lowered}".endswith(f"/{file}") or (len(parts) > 1 and f"/{file}".endswith(f"/{lowered}")):
                return True
        elif parts[-1] == file:
            # A folder of the same text says which of the files with this name is meant.
            named = [folder for folder in mentions.folders if not folder.endswith(file)]
            return not named or any(_is_under(lowered, folder) for folder in named)
    return False


def _is_under(path: str, folder: str) -> bool:
    inner = f"/{folder.strip('/')}/"
    return inner in f"/{path}"


def _is_glob_of(glob: str, path: str) -> bool:
    for form in _expand(glob):
        if fnmatchcase(path, form) or fnmatchcase(f"/{path}", f"*/{form}"):
            return True
        if "/" not in form and fnmatchcase(PurePosixPath(path).name, form):
            return True
    return False


@lru_cache(KEPT)
def _expand(glob: str) -> tuple[str, ...]:
    braces = re.search(r"\{([^{}]*)\}", glob)
    forms = [glob] if braces is None else [glob.replace(braces[0], one) for one in braces[1].split(",")]
    return tuple(form.replace("**/", "*").replace("**", "*") for form in forms)
