"""Decide whether an act kept or broke a rule that names a command, a file, an option or a word.

A rule is read by its clauses: what it asks for, what it forbids, where, and what comes before or after what. Without
such a name, it is not decidable.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from itertools import chain
from pathlib import PurePath

from pipeline.features.lessons.advice import ORDINARY
from pipeline.features.lessons.prohibitions import CONDITION, FLAG, READ_CHARS, words_of
from pipeline.features.obedience.acts import Act
from pipeline.prompt.tool_calls.command_rules import Verdict, judge, list_environments
from pipeline.text.command_lines import Invocation, has_option, rehearses
from pipeline.text.languages import find_language, is_function_word
from pipeline.text.lexicon import load_lexicon, word_set, word_sets

KEPT_RULES = 1024
# Maximum number of earlier acts that are compared.
MOST_BEFORE = 200
# A shorter comment shows no language.
LEAST_FUNCTION_WORDS = 1
_DELIMITER = re.compile(r"[;!?\n()]|[.,:](?=\s|$)|\s[–—-]\s|\b(?:but|sondern|aber)\b")
_TOKEN = re.compile(r"`[^`\n]{1,200}`|[^\s`\"“”„«»(){}<>,;]+")
_PATH = re.compile(r"[\w.@*-]*/[\w./*@-]*|[\w-]+\.[a-z]\w{0,5}|\.[a-z][\w.]+")
_SHORT_FLAG = re.compile(r"-[A-Za-z]")
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S+")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+|/\S+")


def _words(name: str) -> frozenset[str]:
    return word_set("obedience", name)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a rule: its words, and whether it forbids what they name."""

    words: tuple[str, ...]
    forbids: bool = False
    # Only the next clause says how it is done.
    has_only_way: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What must be done before an act, or after it: the words of both."""

    act: tuple[str, ...]
    needed: tuple[tuple[str, ...], ...]
    is_after: bool


@dataclass(frozen=True, slots=True)
class ReadRule:
    """A rule: its text, clauses, paths, kinds of files, and its order of acts."""

    text: str
    clauses: tuple[Clause, ...]
    paths: tuple[str, ...]
    suffixes: frozenset[str]
    order: Order | None

    @property
    def words(self) -> frozenset[str]:
        """Return all words."""
        return frozenset(word for clause in self.clauses for word in clause.words)

    def list_clauses(self, *, forbids: bool) -> list[Clause]:
        """Return the clauses that forbid, or the others."""
        return [clause for clause in self.clauses if clause.forbids is forbids]


@lru_cache(KEPT_RULES)
def read_rule(text: str) -> ReadRule:
    """Read a rule by its clauses."""
    shown = re.sub(r"\b(?:instead of|rather than|anstelle von)\b", "statt", text[:READ_CHARS])
    pieces = [[token.rstrip(".:!?’'") for token in _list_tokens(piece)] for piece in _DELIMITER.split(shown)]
    clauses = tuple(clause for piece in pieces for clause in _split_piece(piece) if clause.words)
    tokens = [token for piece in pieces for token in piece]
    kinds = [ends for kind, ends in word_sets("obedience.kinds").items() if kind in map(str.casefold, tokens)]
    paths = tuple(dict.fromkeys(token for token in tokens if _PATH.fullmatch(token)))
    return ReadRule(text, clauses, paths, frozenset(chain(*kinds)), _find_order(pieces, clauses))


def is_decidable(text: str) -> bool:
    """Return whether a rule names something by which acts are recognized."""
    rule = read_rule(text)
    is_named = rule.paths or rule.order or any(map(_is_literal, rule.words)) or rule.words & _words("remarks")
    return bool(is_named) or any(_list_terms(clause) for clause in rule.list_clauses(forbids=True))


def judge_act(text: str, act: Act, before: Sequence[Act] = ()) -> bool | None:
    """Return whether an act kept a rule (True) or broke it (False); None if the rule does not concern it."""
    rule = read_rule(text)
    found = [*_judge_order(rule, act, before[-MOST_BEFORE:]), *_judge_files(rule, act), *_judge_words(rule, act)]
    found += _judge_language(rule, act)
    if rule.order is None:
        found += [verdict for call in act.calls for verdict in _judge_call(rule, act, call)]
    return None if not found else False not in found


def _list_tokens(piece: str) -> list[str]:
    """Return the words of a piece; a code span of one word keeps its marks."""
    return [word for token in _TOKEN.findall(piece) for word in (token.strip("`").split() if " " in token else [token])]


def _split_piece(piece: Sequence[str]) -> Iterator[Clause]:
    """Yield the clauses of a piece: a word that forbids starts one, and "only with" forbids what is before it."""
    words: list[str] = []
    forbids = False
    for number, word in enumerate(piece):
        following = piece[number + 1].casefold() if number + 1 < len(piece) else ""
        is_only = word.casefold() in _words("only") and following in (
            "through",
            "via",
            "by",
            "with",
            "mit",
            "über",
            "durch",
        )
        if (
            word.casefold() in _words("forbids")
            or word.casefold() in _words("instead") - {"of", "than", "von"}
            or is_only
        ):
            yield Clause(tuple(words), forbids or is_only, is_only)
            words, forbids = [word] if word.casefold() in _words("nothing") else [], not is_only
        elif forbids and word.casefold() in words_of("conjunctions"):
            yield Clause(tuple(words), forbids)
            words = []
        else:
            words.append(word)
    yield Clause(tuple(words), forbids)


def _is_literal(word: str) -> bool:
    """Return whether a word is a program, an option, a variable or code."""
    is_program = any(word.casefold() in programs for programs in (*_programs(), word_sets("obedience.acts")))
    return is_program or bool(FLAG.fullmatch(word) or _ASSIGNMENT.fullmatch(word) or re.search(r"\(|_|\w\.\w", word))


@lru_cache(1)
def _programs() -> tuple[frozenset[str], ...]:
    lexicon = load_lexicon("command_lines")
    return frozenset(lexicon.words("manifold")), word_sets("obedience")["changes_file"]


def _list_content(words: Sequence[str]) -> list[str]:
    """Return the words with a meaning."""
    return [word for word in words if word.casefold() not in _words("fillers") and re.search(r"\w", word)]


# Order


def _find_order(pieces: Sequence[Sequence[str]], clauses: Sequence[Clause]) -> Order | None:
    for number, piece in enumerate(pieces):
        folded = [word.casefold() for word in piece]
        for name in ("before", "after"):
            place = next((at for at, word in enumerate(folded) if word in _words(name)), None)
            if place is None:
                continue
            first, rest = list(piece[:place]), list(piece[place + 1 :])
            if not _list_content(first):
                split = next(
                    (at for at, word in enumerate(rest) if at and word.casefold() in ("run", "do", "make")), None
                )
                following = pieces[number + 1] if number + 1 < len(pieces) else ()
                first, rest = (list(following), rest) if split is None else (rest[split:], rest[:split])
            act, needed = _list_content(rest), _group(first)
            if act and needed:
                return Order(tuple(act), needed, name == "after")
    for clause in clauses:
        without = next((at for at, word in enumerate(clause.words) if word.casefold() in ("without", "ohne")), None)
        if clause.forbids and without and any(map(_is_literal, clause.words[:without])):
            act, needed = _list_content(clause.words[:without]), _group(clause.words[without + 1 :])
            if act and needed and not any(FLAG.fullmatch(word) for group in needed for word in group):
                return Order(tuple(act), needed, is_after=False)
    return None


def _group(words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the meaningful words of each part between conjunctions."""
    groups: list[list[str]] = [[]]
    for word in words:
        if word.casefold() in words_of("conjunctions"):
            groups.append([])
        groups[-1] += _list_content([word])
    return tuple(tuple(group) for group in groups if group)


def _judge_order(rule: ReadRule, act: Act, before: Sequence[Act]) -> Iterator[bool]:
    order = rule.order
    if order is None:
        return
    if order.is_after:
        edits = [number for number, other in enumerate(before) if _edits_named(order.act, other)]
        since = before[edits[-1] + 1 :] if edits else ()
        is_done = _are_done(order, [call for other in since for call in other.calls])
        if edits and not is_done:
            if _are_done(order, act.calls):
                yield True
            elif any(_does(("commit",), call) for call in act.calls):
                yield False
        return
    if act.is_edit and {word.casefold() for word in order.act} & _words("edits") and "read" in rule.words:
        yield any(other.path == act.path for other in before)
        return
    programs = _programs()[0].intersection(chain(*order.needed)) if not _acts_of(order.act) else frozenset()
    for number, call in enumerate(act.calls):
        if _does(order.act, call) and (not programs or call.words[0] in programs) and not rehearses(call):
            checks = "commit" in order.act
            edits = [at for at, other in enumerate(before) if checks and other.is_edit]
            valid = before[edits[-1] + 1 :] if edits else before
            done = (*(one for other in valid for one in other.calls), *act.calls[:number])
            yield _are_done(order, done)


def _are_done(order: Order, calls: Sequence[Invocation]) -> bool:
    return all(any(_does(group, call) for call in calls) for group in order.needed)


def _acts_of(words: Sequence[str]) -> list[list[str]]:
    acts = word_sets("obedience.acts")
    lexicon = load_lexicon("obedience").table("acts")
    return [list(lexicon.words(word.casefold())) for word in words if word.casefold() in acts]


def _does(words: Sequence[str], call: Invocation) -> bool:
    """Return whether a command does what some words say: it contains all of them, or the command that they mean."""
    said = [part for word in call.words for part in (word.casefold(), *re.split(r"\W+", word.casefold())) if part]
    for act in _acts_of(words):
        if call.words[0] == act[0] and act[1] in said:
            return True
    return not _acts_of(words) and all(any(_is_form(part, word) for part in said) for word in words)


def _is_form(said: str, word: str) -> bool:
    """Return whether a word is another form of the same word."""
    stem = re.sub(r"(?:ing|en|es|s|e)$", "", word.casefold()) or word.casefold()
    return said == word.casefold() or (len(stem) > 3 and said.startswith(stem) and len(said) <= len(word) + 3)


def _edits_named(words: Sequence[str], act: Act) -> bool:
    parts = [part.casefold() for part in re.split(r"[/\\.]", act.path)]
    names = [name for name in words if not name.casefold().startswith(("chang", "edit", "touch"))]
    return act.is_edit and bool(names) and all(any(_is_form(part, name) for part in parts) for name in names)


# Files


def _judge_files(rule: ReadRule, act: Act) -> Iterator[bool]:
    negative = rule.list_clauses(forbids=True)
    folded = {word.casefold() for word in rule.words}
    if any(word.casefold() in _words("nothing") for clause in negative for word in clause.words[:1]):
        literals = [word for word in rule.words if _HOST.fullmatch(word)]
        named = (word for call in act.calls for word in (*call.words, *call.files))
        yield from [False for word in named if any(literal in re.split(r"[@=:\s]", word) for literal in literals)]
    changed = act.changed_files
    if not changed:
        return
    yield from _judge_place(rule, act)
    patterns = list(rule.paths if negative and folded & _words("edits") else ())
    for clause in rule.clauses:
        state = next((at for at, word in enumerate(clause.words) if word.casefold() in _words("generated")), 0)
        # After it are the files that it is generated from.
        sources = [word for word in clause.words[state:] if state and word in rule.paths]
        patterns = [path for path in patterns if path not in sources]
        patterns += [word for word in clause.words[:state] if word in rule.paths]
    forbidden = (clause for clause in negative if not rule.paths and _words("edits").intersection(clause.words))
    names = [word for clause in forbidden for word in _list_terms(clause)]
    for path in changed:
        parts = PurePath(path).parts[:-1]
        if any(_is_below(path, pattern) for pattern in patterns) or any(name in parts for name in names):
            # A rule about existing files asks for a new one.
            yield act.tool == "Write" and "new" in folded


def _judge_place(rule: ReadRule, act: Act) -> Iterator[bool]:
    """Yield whether a file is edited to which a rule limits something, or another one gets it."""
    for clause in rule.list_clauses(forbids=False):
        folded = [word.casefold() for word in clause.words]
        place = next((at for at, word in enumerate(folded) if word in _words("only")), None)
        paths = [word for word in clause.words[place or 0 :] if word in rule.paths]
        if place is None or not paths or not act.is_edit:
            continue
        terms = [
            word for word in _list_content(clause.words[:place]) if word.casefold() not in ("steht", "live", "lives")
        ]
        if any(_is_below(act.path, path) for path in paths):
            yield True
        elif len(terms) == 1 and any(
            _contains(line.casefold(), terms[0].casefold()) for line in act.list_added_lines(with_comments=False)
        ):
            yield False


def _is_below(path: str, pattern: str) -> bool:
    """Return whether a path is that of a pattern, or below its folder."""
    full, name = f"/{path.lstrip('/')}", pattern.strip("`").removeprefix("./").lstrip("/")
    if "*" in name:
        return fnmatch(full, f"*/{name}")
    return f"/{name}" in full if name.endswith("/") else full.endswith(f"/{name}") or f"/{name}/" in full


# Commands


def _judge_call(rule: ReadRule, act: Act, call: Invocation) -> Iterator[bool]:
    if rehearses(call) or "--help" in call.words or call.words[1:] == ("--version",):
        return
    negative = [(clause, named) for clause in rule.list_clauses(forbids=True) if (named := _name(clause, call))]
    verdict = judge(rule.text, act.line)
    for clause in rule.list_clauses(forbids=True):
        yield from _judge_commit(rule, clause, call)
    for clause in rule.list_clauses(forbids=False):
        named = _name(clause, call)
        if named is None or any(len(other.words) > len(named.words) for _, other in negative):
            continue
        settings = [word for word in clause.words if _ASSIGNMENT.fullmatch(word)]
        if named.flags or settings:
            yield all(has_option(call, flag) for flag in named.flags) and all(
                word in call.settings for word in settings
            )
            return
        if _replaces(rule, call):
            yield True
            return
    for clause in rule.list_clauses(forbids=True):
        content = [word for word in _list_content(clause.words) if not list_environments(word)]
        if clause.has_only_way and content and _does(content, call) and not _is_elsewhere(clause, act):
            yield False
    for clause, named in negative:
        has_flags = all(has_option(call, flag) for flag in named.flags)
        if not has_flags:
            yield from [True] * (len(named.words) > 1)
        elif verdict is not Verdict.PERMITTED and not _is_elsewhere(clause, act):
            yield False
    is_named = PurePath(call.words[0]).name in rule.words or not any(map(_SHORT_FLAG.fullmatch, rule.words))
    if not negative and is_named and verdict is Verdict.FORBIDDEN:
        yield False


def _is_elsewhere(clause: Clause, act: Act) -> bool:
    """Return whether a clause is about another environment than a command."""
    meant, reached = list_environments(" ".join(clause.words)), list_environments(act.line)
    return bool(meant and reached) and meant.isdisjoint(reached)


@dataclass(frozen=True, slots=True)
class _Named:
    """The words of a clause that a command has, and the options that it names."""

    words: tuple[str, ...]
    flags: tuple[str, ...]


def _name(clause: Clause, call: Invocation) -> _Named | None:
    """Return what a clause names of a command; None if it names another one."""
    folded = [word.casefold() for word in clause.words]
    program = PurePath(call.words[0].casefold()).name
    for place, word in enumerate(folded):
        if PurePath(word.strip("`")).name != program:
            continue
        words, flags = [program], []
        for other in clause.words[place + 1 :]:
            if FLAG.fullmatch(other):
                flags.append(other)
            elif other.casefold() in words_of("stops") or other.casefold() in _words("fillers") | _words("only"):
                break
            elif other.casefold() not in words_of("fillers") and not other.isdigit():
                words.append(other.casefold())
        flags += [other for other in clause.words[place + 1 :] if FLAG.fullmatch(other) and other not in flags]
        arguments = [argument.casefold() for argument in call.words[1:]]
        if all(other in arguments for other in words[1:]) and (len(words) > 1 or program not in ORDINARY):
            return _Named(tuple(words), tuple(flags))
    return None


def _replaces(rule: ReadRule, call: Invocation) -> bool:
    """Return whether a command does what a rule forbids of another program: installing, if it forbids to install."""
    forbidden = {word.casefold() for clause in rule.list_clauses(forbids=True) for word in clause.words}
    installs = _words("installs")
    return not forbidden & installs or not installs.isdisjoint(call.words[1:3])


def _judge_commit(rule: ReadRule, clause: Clause, call: Invocation) -> Iterator[bool]:
    if call.words[:2] == ("git", "commit") and any(word.casefold().startswith("emoji") for word in clause.words):
        yield not any(unicodedata.category(sign) == "So" for word in call.words for sign in word)
    files = [word for word in clause.words if word in rule.paths]
    if "commit" in map(str.casefold, clause.words) and files and call.words[0] == "git" and len(call.words) > 1:
        if call.words[1] in ("add", "commit"):
            yield from [False for word in call.words[2:] if any(_is_below(word, file) for file in files)]
        if call.words[1] == "commit":
            yield True


# Words in code


def _list_terms(clause: Clause) -> list[str]:
    """Return the words of a clause that may occur in code."""
    words = clause.words
    end = next((at for at, word in enumerate(words) if at and word.casefold() in _words("limits")), None)
    terms = [word.strip("`").removesuffix("()") for word in _list_content(words[:end])]
    terms = [term for term in terms if not (_PATH.fullmatch(term) or term.casefold() in _words("edits"))]
    return [term for term in terms if not term[0].isalnum()] or terms


def _list_places(clause: Clause) -> list[str]:
    """Return the folders in which a clause is valid."""
    folders = [word for word in clause.words if "/" in word and _PATH.fullmatch(word)]
    pairs = dict(zip(clause.words[1:], clause.words, strict=False))
    return [path for path in folders if len(clause.words) == 1 or pairs.get(path, "").casefold() in _words("places")]


def _judge_words(rule: ReadRule, act: Act) -> Iterator[bool]:
    if not act.is_edit or (rule.suffixes and act.suffix not in rule.suffixes):
        return
    folders = [path for clause in rule.clauses for path in _list_places(clause)]
    # "apps/admin is on React 17: no useId in there".
    folders += [path for path in rule.paths if "there" in rule.words]
    if (act.suffix in _words("prose_files") and act.suffix not in rule.suffixes) or (
        folders and not any(_is_below(act.path, path) for path in folders)
    ):
        return
    kept = [word for clause in rule.list_clauses(forbids=False) for word in _list_content(clause.words)]
    for clause in rule.list_clauses(forbids=True):
        terms = _list_terms(clause)
        objects = {word for word in clause.words if word in rule.paths}.difference(_list_places(clause))
        if not terms or objects or any(map(_is_command_word, clause.words)):
            continue
        if len(terms) > 2 or (len(terms) == 1 and len(terms[0]) < 3):
            continue
        is_marker = all(term.isupper() for term in terms)
        lines = act.list_added_lines(with_comments=is_marker)
        broken = [line for line in lines if all(_contains(line, term) for term in terms)]
        # "TODO(ABC-1)" allows "TODO" in this form.
        if CONDITION.search(" ".join(clause.words)):
            broken = [line for line in broken if f"{terms[0]}(" not in line] if f"{terms[0]}(" in rule.text else []
        if broken:
            yield False
        elif (
            all(_contains(act.removed, term) for term in terms)
            or _has_alternative(lines, kept)
            or (is_marker and any(f"{terms[0]}(" in line for line in lines))
        ):
            yield True


def _judge_language(rule: ReadRule, act: Act) -> Iterator[bool]:
    """Yield whether the added comments are in the language that a rule asks for."""
    clauses = [{word.casefold() for word in clause.words} for clause in rule.list_clauses(forbids=False)]
    asked = [
        language
        for words in clauses
        if words & _words("remarks")
        for language, names in word_sets("obedience.languages").items()
        if words & names
    ]
    words = re.findall(r"[^\W\d_]+", act.read_comments()) if asked else []
    if sum(map(is_function_word, map(str.lower, words))) >= LEAST_FUNCTION_WORDS:
        # A short comment shows whether it is English, but not which other language it is.
        yield (find_language(" ".join(words)) is None) == (asked[0] == "english")


def _is_command_word(word: str) -> bool:
    return word.casefold() in _programs()[0] or FLAG.fullmatch(word) is not None


def _has_alternative(lines: Sequence[str], kept: Sequence[str]) -> bool:
    words = {word for line in lines for word in re.findall(r"\w{3,}", line)}
    return any(
        term == word or (len(word) > 2 and term.startswith(word) and len(term) > 4) for term in kept for word in words
    )


def _contains(text: str, term: str) -> bool:
    """Return whether a text contains a term as a word, also in the singular."""
    forms = {term, term.removesuffix("s")} if len(term) > 4 else {term}
    begin = r"(?<!\w)" if term[:1].isalnum() else ""
    return any(form in text and re.search(rf"{begin}{re.escape(form)}(?!\w)", text) for form in forms)
