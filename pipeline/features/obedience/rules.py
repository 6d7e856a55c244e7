"""Read a rule: its clauses, what each forbids or asks for, the files that it names, and an order of acts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache, cached_property, lru_cache, partial
from itertools import chain

from pipeline.features.lessons.advice import ORDINARY
from pipeline.features.lessons.prohibitions import FLAG, READ_CHARS, join_items, words_of
from pipeline.text.lexicon import load_lexicon, word_set, word_sets

KEPT_RULES = 1024
# More words are no example of a command.
EXAMPLE_WORDS = 5
_DELIMITER = re.compile(r"[;!?\n]|\((?!\))|(?<!\()\)|[.,:](?=\s|$)|\s(?:[–—-]|->)\s|\b(?:but|sondern|aber)\b")
# Other ways to say the same.
_SAME = (
    (re.compile(r"\b(?:instead of|rather than|anstelle von)\b"), "statt"),
    (re.compile(r"\b[Pp]refer\b(.{1,40}?)\s(?:over|to)\s"), r"use\1 statt "),
    (re.compile(r"\b(?:read only|off limits|hands off|finger weg|bleib(?:t|en) wie|stays? as)\b"), "read-only"),
    (re.compile(r"(?<=['\"`]),\s+(?=['\"`])"), " or "),
    (re.compile(r"(?<!\S)w/(?=\s)"), "with"),
    (re.compile(r"\bb4\b"), "before"),
    (re.compile(r"\b([Hh]and|[Rr]e)-(?=edit)"), r"\1 "),
)
# Alternatives, such as "unwrap()/expect()", ".tscn/.tres" and "commit/push"; all else with a slash is a path.
_ALTERNATIVES = re.compile(
    r"(?<![\w/.-])(?:\w+\(\)|\.\w+)(?:/(?:\w+\(\)|\.\w+))+(?![\w/])|(?<![\w/.-])[^\W\d_]+/[^\W\d_]+(?![\w/.])"
)
_TOKEN = re.compile(r"`[^`\n]{1,200}`|[^\s`\"“”„«»(){}<>,;]+(?:\(\))?")
_PATH = re.compile(r"(?![a-z]+://)[\w.@*-]*/[\w./*@-]*|\.[a-z][\w.]+")
_SIGNS = re.compile(r"\W+")
_FILE = re.compile(r"[\w.*-]+\.(?P<end>[a-z]\w*)")
# A verb at the end of a German rule: "celery nicht wieder einbauen".
_INFINITIVE = re.compile(r"[a-zäöüß]{4,}en")
# Punctuation that no word of prose has.
_MARKED = re.compile(r"[^\w-]|_")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S+")
_CODE = re.compile(r"[_@]|\w\.\w|\w\(|`")
words_in = partial(word_set, "obedience")


# Rules are kept as they were read, with what is computed from them: a call is compared with each of them.
@dataclass(frozen=True, eq=False)
class Clause:
    """A part of a rule: its words, whether it forbids what they name, and whether the next one is the only way."""

    words: tuple[str, ...]
    forbids: bool = False
    has_only_way: bool = False

    @cached_property
    def folded(self) -> list[str]:
        """Return the words in lower case."""
        return [word.casefold() for word in self.words]

    @cached_property
    def permits(self) -> bool:
        """Return whether the clause names an exception: "in tests it is ok"."""
        return not self.forbids and not words_in("permits").isdisjoint(self.folded)

    @cached_property
    def object(self) -> tuple[str, ...]:
        """Return the words before the place or the condition of the clause."""
        folded = self.folded
        ends = (
            at for at, word in enumerate(folded) if word in words_in("limits") and (at or word in words_in("places"))
        )
        return self.words[: next(ends, None)]

    @cached_property
    def terms(self) -> list[str]:
        """Return the words that may occur in code; only those that no prose has, if there are any."""
        named = self.object
        if any(map(_SIGNS.fullmatch, named[1:])):
            # "Never select * from it".
            return [" ".join(named)]
        terms = [word.strip("`").removesuffix("()") for word in list_content(named)]
        terms = [term for term in terms if not (is_path(term) or term.casefold() in words_in("edits"))]
        return [term for term in terms if _MARKED.search(term)] or terms

    @cached_property
    def places(self) -> list[str]:
        """Return the folders in which the clause is valid."""
        before = dict(zip(self.words[1:], self.folded, strict=False))
        paths = [word for word in self.words if is_path(word)]
        is_alone = len(self.words) == 1
        return [path for path in paths if before.get(path) in words_in("places") or (is_alone and "/" in path)]


@dataclass(frozen=True, slots=True)
class Order:
    """What must be done before an act, or after it: the words of the act, and those of each thing to do."""

    act: tuple[str, ...]
    needed: tuple[tuple[str, ...], ...]
    is_after: bool


@dataclass(frozen=True, eq=False)
class ReadRule:
    """A rule: its text, clauses, paths, ends of the files that it is about, and its order of acts."""

    # In the words that are read.
    text: str
    clauses: tuple[Clause, ...]
    paths: tuple[str, ...]
    suffixes: frozenset[str]
    order: Order | None

    @cached_property
    def words(self) -> frozenset[str]:
        """Return all words, in lower case."""
        return frozenset(word for clause in self.clauses for word in clause.folded)

    @cached_property
    def forbidding(self) -> list[Clause]:
        """Return the clauses that forbid something."""
        return [clause for clause in self.clauses if clause.forbids]

    @cached_property
    def asking(self) -> list[Clause]:
        """Return the clauses that forbid nothing."""
        return [clause for clause in self.clauses if not clause.forbids]

    @cached_property
    def places(self) -> list[str]:
        """Return the folders in which the rule is valid: "apps/admin is on React 17: no useId in there"."""
        named = [path for clause in self.clauses if not clause.permits for path in clause.places]
        return [*named, *self.paths] if "there" in self.words else named

    def excepts(self, path: str) -> bool:
        """Return whether a file is in a place that the rule excepts: "only in tests", "outside of cmd/"."""
        parts = re.split(r"[/._-]", path.casefold())
        for clause in self.clauses:
            folded = clause.folded
            at = next((n for n, word in enumerate(folded) if word in words_in("excepts")), None)
            at = -1 if clause.permits or (not clause.forbids and folded[0] in words_in("only")) else at
            for word in list_content(clause.words[at + 1 :]) if at is not None else ():
                if is_below(path, word) if is_path(word) else any(is_form(part, word) for part in parts):
                    return True
        return False


@lru_cache(KEPT_RULES)
def read_rule(text: str) -> ReadRule:
    """Read a rule."""
    plain = text[:READ_CHARS]
    for pattern, same in _SAME:
        plain = pattern.sub(same, plain)
    plain = join_items(_ALTERNATIVES.sub(_split_alternatives, plain))
    pieces = [list(_list_tokens(piece)) for piece in _DELIMITER.split(plain)]
    clauses = tuple(_list_clauses(pieces))
    tokens = [token for piece in pieces for token in piece]
    kinds = [ends for kind, ends in word_sets("obedience.kinds").items() if kind in map(str.casefold, tokens)]
    paths = tuple(dict.fromkeys(filter(is_path, tokens)))
    return ReadRule(plain, clauses, paths, frozenset(chain(*kinds)), _find_order(pieces, clauses))


def _split_alternatives(match: re.Match[str]) -> str:
    words = match[0].split("/")
    is_split = any(mark in match[0] for mark in "().") or all(
        find_act(word) or word.casefold() in words_in("edits") | words_in("removals") for word in words
    )
    return " or ".join(words) if is_split else match[0]


def is_decidable(text: str) -> bool:
    """Return whether a rule names something by which acts are recognized."""
    rule = read_rule(text)
    return bool(
        rule.paths
        or any(is_literal(word) for clause in rule.clauses for word in clause.words)
        or any(clause.terms for clause in rule.forbidding)
    )


def list_content(words: Sequence[str]) -> list[str]:
    """Return the words with a meaning."""
    return [word for word in words if word.casefold() not in words_in("fillers") and re.search(r"\w", word)]


def is_path(word: str) -> bool:
    """Return whether a word is the path of a file or a folder, and not code such as `console.log`."""
    file = _FILE.fullmatch(word)
    return _PATH.fullmatch(word) is not None or (file is not None and file["end"] in words_in("file_ends"))


def is_file(word: str) -> bool:
    """Return whether a word may be the name of a file."""
    return _FILE.fullmatch(word) is not None


def is_below(path: str, pattern: str) -> bool:
    """Return whether a path is that of a pattern, or below its folder."""
    full, name = f"/{path.lstrip('/')}", pattern.strip("`").removeprefix("./").strip("/")
    # The end of a file, such as ".tscn".
    if name.startswith(".") and "/" not in name and full.endswith(name):
        return True
    if "*" in name:
        return fnmatch(full, f"*/{name}") or fnmatch(full, f"*/{name}/*")
    return f"/{name}/" in full or (full.endswith(f"/{name}") and not pattern.endswith("/"))


def is_literal(word: str) -> bool:
    """Return whether a word is a program, an option, a variable or code."""
    is_known = word.casefold() in load_programs() or find_act(word) is not None
    return is_known or bool(FLAG.fullmatch(word) or ASSIGNMENT.fullmatch(word) or _CODE.search(word))


@cache
def _load_concepts() -> Mapping[str, re.Pattern[str]]:
    entries = load_lexicon("obedience").table("concepts").entries
    return {name: re.compile(expression) for name, expression in entries.items()}


def is_form(said: str, word: str) -> bool:
    """Return whether a word is another form of the same word."""
    stem = re.sub(r"(?:ing|en|es|s|e)$", "", word.casefold())
    return said == word.casefold() or (len(stem) > 3 and said.startswith(stem) and len(said) <= len(word) + 3)


def find_concept(words: Sequence[str]) -> re.Pattern[str] | None:
    """Return the expression for what some words name by its kind, such as hex colors."""
    said = f" {' '.join(words).casefold()}"
    return next((expression for name, expression in _load_concepts().items() if f" {name}" in said), None)


@cache
def load_programs() -> frozenset[str]:
    """Return the programs whose names are no ordinary words."""
    return frozenset(load_lexicon("command_lines").words("manifold"))


@cache
def _load_acts() -> Mapping[str, tuple[str, ...]]:
    acts = load_lexicon("obedience").table("acts")
    return {name: acts.words(name) for name in acts.entries}


def find_act(word: str) -> tuple[str, ...] | None:
    """Return the command that a noun or a verb means, also in another form of the word."""
    folded = word.casefold()
    return next((command for name, command in _load_acts().items() if folded.startswith(name)), None)


def _list_tokens(piece: str) -> Iterator[str]:
    """Yield the words of a piece; a code span of one word keeps its marks."""
    for token in _TOKEN.findall(piece):
        words = token.strip("`").split() if " " in token else [token]
        if any(_SIGNS.fullmatch(word) for word in words[1:]) and words[0] not in load_programs():
            # An expression such as `select *`, and no command.
            words = [" ".join(words)]
        yield from (word.rstrip(".:!?’'").lstrip("‘'") or word for word in words)


def _list_clauses(pieces: Sequence[Sequence[str]]) -> Iterator[Clause]:
    forbids = False
    for piece in pieces:
        # "No sleeps in tests (time.sleep)".
        is_example = forbids and _is_example(piece)
        for clause in _join_verbs([clause for clause in _split_piece(piece) if clause.words]):
            forbids = is_example or clause.forbids
            yield replace(clause, forbids=forbids)


def _is_example(piece: Sequence[str]) -> bool:
    """Return whether a piece is only code, or a command with an option."""
    is_code = len(piece) == 1 and _CODE.search(piece[0]) is not None and not is_path(piece[0])
    return is_code or (1 < len(piece) < EXAMPLE_WORDS and FLAG.fullmatch(piece[-1]) is not None)


def _join_verbs(clauses: Sequence[Clause]) -> Iterator[Clause]:
    """Yield clauses; one that forbids a mere verb forbids what is before it: "Log.d nicht benutzen"."""
    for clause, following in zip(clauses, [*clauses[1:], None], strict=False):
        is_object = following is not None and not clause.forbids and _is_verb(following)
        if is_object and following is not None:
            known = words_in("edits") | words_in("removals")
            verbs = (word for word in following.words if word in known or not _INFINITIVE.fullmatch(word))
            yield Clause((*clause.words, *verbs), forbids=True)
        elif not _is_verb(clause) or clause is clauses[0]:
            yield clause


def _is_verb(clause: Clause) -> bool:
    is_bare = not any(is_path(word) or is_literal(word) for word in clause.object)
    terms = clause.terms
    return (
        clause.forbids and is_bare and (not terms or (len(terms) == 1 and _INFINITIVE.fullmatch(terms[0]) is not None))
    )


def _split_piece(piece: Sequence[str]) -> Iterator[Clause]:
    """Yield the clauses of a piece: a word that forbids starts one, and "only with" forbids what is before it."""
    words: list[str] = []
    forbids = is_replaced = False
    for word, following, way in zip(piece, [*piece[1:], ""], [*piece[2:], "", ""], strict=False):
        folded = word.casefold()
        is_option = FLAG.fullmatch(way) or ASSIGNMENT.fullmatch(way)
        is_only = folded in words_in("only") and following.casefold() in words_in("ways") and not is_option
        if is_only or folded in words_in("forbids") or folded in words_in("instead"):
            # "Instead of requests use httpx": the choice that is asked for comes after the other one.
            is_replaced = folded in words_in("instead") and not words
            yield Clause(tuple(words), forbids or is_only, is_only)
            words, forbids = [word] if folded in words_in("nothing") else [], not is_only
        elif folded in words_in("rejected") or (is_replaced and words and not is_literal(words[-1])):
            # "dayjs was thrown out".
            yield Clause(tuple(words), forbids=True)
            words, forbids, is_replaced = [word] if is_replaced else [], False, False
        elif (
            forbids
            and folded in words_of("conjunctions")
            and not any(w.casefold() in words_in("excepts") for w in words)
        ):
            yield Clause(tuple(words), forbids)
            # "Never kubectl edit or patch".
            words = [first for first in words[:1] if is_literal(first) and not _CODE.search(first)]
        else:
            words.append(word)
    yield Clause(tuple(words), forbids)


def _find_order(pieces: Sequence[Sequence[str]], clauses: Sequence[Clause]) -> Order | None:
    orders = [*(_read_order(piece, following) for piece, following in zip(pieces, [*pieces[1:], ()], strict=True))]
    orders += [_read_condition(clause) for clause in clauses if clause.forbids]
    return next(filter(None, orders), None)


def _read_order(piece: Sequence[str], following: Sequence[str]) -> Order | None:
    """Return the order of "make lint before each commit" or "before you commit: make lint"."""
    folded = [word.casefold() for word in piece]
    place = next((at for at, word in enumerate(folded) if word in words_in("before") | words_in("after")), None)
    if place is None:
        return None
    first, rest = piece[:place], piece[place + 1 :]
    if not list_content(first):
        split = next((at for at, word in enumerate(rest) if at and word.casefold() in ("run", "do", "make")), None)
        # "Before each commit make lint".
        named = next((at for at, word in enumerate(rest, 1) if find_act(word)), len(rest))
        # "Before the commit run the check: make check".
        is_named = bool(following) and (following[0].casefold() in load_programs() | ORDINARY)
        split = named if split is None and named < len(rest) and not is_named else split
        first, rest = (following, rest) if split is None else (rest[split:], rest[:split])
    act, needed = list_content(rest), group_words(first)
    return Order(tuple(act), needed, folded[place] in words_in("after")) if act and needed else None


def _read_condition(clause: Clause) -> Order | None:
    """Return the order of "never push without running make check"."""
    place = next((at for at, word in enumerate(clause.folded) if word in ("without", "ohne")), 0)
    act, needed = list_content(clause.words[:place]), group_words(clause.words[place + 1 :])
    has_option = any(FLAG.fullmatch(word) for group in needed for word in group)
    return (
        Order(tuple(act), needed, is_after=False) if needed and any(map(is_literal, act)) and not has_option else None
    )


def group_words(words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the meaningful words of each part between conjunctions."""
    groups: list[list[str]] = [[]]
    for word in words:
        if word.casefold() in words_of("conjunctions"):
            groups.append([])
        groups[-1] += list_content([word])
    return tuple(tuple(group) for group in groups if group)
