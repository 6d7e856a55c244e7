"""Read rules that forbid a command: the command, its options, places and exceptions, and whether a call breaks them.

A rule is prose in one of four languages, so it is read with a call at hand: the text that follows the program's name in
the rule is compared with the call's arguments.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, lru_cache
from itertools import groupby, pairwise

from pipeline.features.lessons.advice import MANIFOLD, ORDINARY
from pipeline.features.lessons.prohibitions import (
    CONDITION,
    EDITS,
    FLAG,
    FORBIDS,
    KEPT,
    READ_CHARS,
    Act,
    Token,
    is_branch,
    list_acts,
    list_clauses,
    spell_out,
    tokenize,
    words_of,
)
from pipeline.text.command_lines import HEAD, Invocation, has_option, list_arguments, list_invocations, rehearses
from pipeline.text.lexicon import load_lexicon

# Conditions that name what is excepted: a place or an option.
_EXCEPTION = re.compile(
    r"unless|except|außer|salvo|excepto|sauf|es sei denn|a menos que|à moins|if not|wenn nicht|si no|only|nur|"
    r"sol[oa]\w*|sólo|seulement|uniquement",
    re.IGNORECASE,
)
# Number of lines that are kept as they were read: each critical lesson is compared with the same line.
MOST_LINES = 8
_ONLY_WORD = re.compile(r"\b(?:only|nur|s[oó]lo|solamente|seulement|uniquement)\b", re.IGNORECASE)
_WITH = re.compile(r"\b(?:with|on|in|against|mit|auf|gegen|con|en|contra|avec|sur|contre)\b", re.IGNORECASE)
# Closed classes; the first alternative that matches counts, so that "pre-prod" is not production.
_NAMES = (
    ("staging", r"pre-?prod\w*|stag(?:e|ing)|stg|uat"),
    ("production", r"prod|production|prd|live|produktion\w*|produktiv\w*|producci[oó]n"),
    ("test", r"tests?|testing|qa|ci"),
    (
        "development",
        r"dev|devel|development|local(?:ly|ement|mente)?|lokal\w*|localhost|sandbox|entwicklung|desarrollo|d[eé]veloppement",
    ),
)
_ENVIRONMENT = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _NAMES)})(?![^\W_])", re.IGNORECASE
)
_FILE = re.compile(r"/|\w\.[a-z]\w{0,5}$")
_OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9]*_\w*[A-Za-z0-9]")
# Characters of variables and patterns whose values are not known.
_UNKNOWN = frozenset("$*?@")


class Verdict(IntEnum):
    """What a rule says about a call."""

    PERMITTED = 1
    # The rule has a condition, or a place, that the call does not show.
    DOUBTFUL = 2
    FORBIDDEN = 3


@dataclass(frozen=True, slots=True)
class Prohibition:
    """A clause that forbids a command: its subcommands, options, places and exceptions."""

    # Each of them names the forbidden command.
    subcommands: tuple[tuple[str, ...], ...]
    # All options of one of these groups make the command forbidden; without any, the command is.
    flags: tuple[tuple[str, ...], ...]
    # Each of them makes the command permitted.
    required_flags: tuple[str, ...]
    environments: frozenset[str]
    excepted_environments: frozenset[str]
    branches: frozenset[str]
    # Names such as those of tables.
    objects: frozenset[str]
    is_conditional: bool


def judge(text: str, line: str, branch: str | None = None) -> Verdict | None:
    """Return what a rule says about a command line, None if it forbids no command of the line.

    `branch` is the branch that is checked out. The strictest answer about any command of the line counts.
    """
    clauses = list_clauses(text[:READ_CHARS])
    found = [
        verdict
        for invocation in (_list_calls(line) if clauses else ())
        for clause, introduction in clauses
        for prohibition in _parse(clause, introduction, invocation)
        if (verdict := _compare(prohibition, invocation, branch)) is not None
    ]
    return max(found, default=None)


def _parse(clause: str, introduction: str, invocation: Invocation) -> Iterator[Prohibition]:
    """Yield the prohibitions of a clause about the program of a call."""
    tokens = tokenize(_canonicalize_clause(spell_out(clause)))
    program = invocation.words[0]
    if any(_performs(invocation, act) for act in list_acts(clause)):
        yield _make(tokens, -1, ((),), introduction, invocation)
    places = [number for number, token in enumerate(tokens) if _is_same(token.text, program)]
    for at in places:
        if _is_in_condition(tokens, at):
            continue
        subcommands = _read_subcommands(tokens, at)
        if subcommands[0] or _may_be_alone(tokens, at, clause):
            yield _make(tokens, at, subcommands, introduction, invocation)
    if not places and not any(
        token.is_code or token.text.casefold() in MANIFOLD for token in tokens if not token.text.startswith("-")
    ):
        flags = [token.text for token in tokens if FLAG.fullmatch(token.text)]
        if flags and not CONDITION.search(clause) and any(has_option(invocation, flag) for flag in flags):
            yield _make(tokens, -1, ((),), introduction, invocation)


def _make(
    tokens: Sequence[Token], at: int, subcommands: tuple[tuple[str, ...], ...], introduction: str, call: Invocation
) -> Prohibition:
    conditions = _find_conditions(tokens, at)
    inside = [token.text for start, end, _ in conditions for token in tokens[start:end]]
    excepted = [token.text for start, end, excepts in conditions if excepts for token in tokens[start:end]]
    covered = {number for start, end, _ in conditions for number in range(start, end)}
    named = {word for words in subcommands for word in words} | {call.words[0]}
    outside = [
        token.text
        for number, token in enumerate(tokens)
        if number not in covered and token.text.casefold() not in named
    ]
    required = tuple(word for word in inside if FLAG.fullmatch(word))
    excepted_environments = list_environments("\n".join(word for word in excepted if word not in required))
    return Prohibition(
        subcommands,
        _group_flags(tokens, covered),
        required,
        list_environments("\n".join([introduction, *(word for word in outside if not word.startswith("-"))])),
        excepted_environments,
        frozenset(filter(is_branch, map(str.casefold, outside))),
        frozenset(filter(_OBJECT.fullmatch, outside)),
        bool(inside) and not (required or excepted_environments),
    )


def _group_flags(tokens: Sequence[Token], without: AbstractSet[int]) -> tuple[tuple[str, ...], ...]:
    """Return the options of a clause; adjacent options belong together, as in `-f -d -x`."""
    flags = [
        token.text if FLAG.fullmatch(token.text) and number not in without else None
        for number, token in enumerate(tokens)
    ]
    return tuple(tuple(filter(None, group)) for is_flag, group in groupby(flags, key=bool) if is_flag)


def _performs(call: Invocation, act: Act) -> bool:
    """Return whether a command performs an act."""
    if any(_runs_command(call, command) for command in act.commands):
        return True
    return (
        act.statements is not None
        and call.words[0] in words_of("clients")
        and any(act.statements.search(text) for text in (*call.words[1:], call.script))
    )


def _runs_command(call: Invocation, command: Sequence[str]) -> bool:
    arguments = iter(word for word, _ in list_arguments(call))
    words = [word for word in command[1:] if not word.startswith("-")]
    return (
        _is_same(call.words[0], command[0])
        and all(any(_is_same(argument, word) for argument in arguments) for word in words)
        and all(has_option(call, word) for word in command[1:] if word.startswith("-"))
    )


@lru_cache(MOST_LINES)
def _list_calls(line: str) -> tuple[Invocation, ...]:
    return tuple(map(_canonicalize, list_invocations(line)))


def _canonicalize(call: Invocation) -> Invocation:
    """Return a command in its usual form: `docker compose` for `docker-compose`."""
    for form, others in _load_same_commands():
        for other in others:
            if call.words[0] == other[0] and all(word in call.words for word in other):
                words = [word for word in call.words[1:] if word not in other]
                return replace(call, words=(*form, *words))
    return call


@lru_cache(KEPT)
def _canonicalize_clause(clause: str) -> str:
    for form, others in _load_same_commands():
        for other in others:
            if " ".join(other) in clause:
                pattern = rf"(?<![\w/.-]){re.escape(' '.join(other))}(?![\w-])"
                clause = re.sub(pattern, " ".join(form), clause)
    return clause


@cache
def _load_same_commands() -> tuple[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]], ...]:
    table = load_lexicon("command_lines").table("same_commands")
    return tuple(
        (tuple(form.split()), tuple(tuple(other.split()) for other in table.words(form))) for form in table.entries
    )


def _find_conditions(tokens: Sequence[Token], at: int) -> list[tuple[int, int, bool]]:
    """Return the passages of a clause that set a condition, and whether each excepts something.

    After the command, a condition extends to the end of the clause, and before it, to the command.
    """
    texts = [token.text for token in tokens]
    starts = [number for number, text in enumerate(texts) if CONDITION.fullmatch(text) or _ONLY_WORD.fullmatch(text)]
    starts += [number for number, pair in enumerate(pairwise(texts)) if _EXCEPTION.fullmatch(" ".join(pair))]
    conditions = []
    for word in starts:
        start = word
        if _ONLY_WORD.fullmatch(texts[word]):
            # "Only with --check": what follows the preposition is permitted.
            after = [number for number in range(max(word, at + 1), len(texts)) if _WITH.fullmatch(texts[number])]
            if not after:
                continue
            start = after[0]
        excepts = start != word or _EXCEPTION.match(" ".join(texts[start : start + 3])) is not None
        conditions.append((start + 1, at if start < at else len(tokens), excepts))
    return conditions


def list_environments(text: str) -> frozenset[str]:
    """Return the environments that a text names."""
    return frozenset(match.lastgroup for match in _ENVIRONMENT.finditer(text) if match.lastgroup)


def _list_reached(invocation: Invocation, without: Iterable[str] = ()) -> tuple[frozenset[str], frozenset[str]]:
    """Return the environments that a command surely names, and those of its files and folders, which may be others.

    Words of the command that are the subcommand itself name no environment.
    """
    left = list(invocation.words[1:])
    for word in without:
        if word in left:
            left.remove(word)
    surely = [word for word in left if word.startswith("-") or _FILE.search(word) is None]
    values = [word for before, word in pairwise(left) if before.startswith("-")]
    sure = list_environments("\n".join([*invocation.settings, *surely, *values]))
    return sure, list_environments("\n".join([*left, *invocation.folders])) - sure


def _list_branches(invocation: Invocation, branch: str | None) -> frozenset[str] | None:
    """Return the branches that a command of git changes, None if they are unknown."""
    arguments = [word for word, _ in list_arguments(invocation)]
    if invocation.words[0] != "git" or {"--all", "--mirror"} & set(invocation.words):
        return None
    refs = arguments[{"push": 2, "branch": 1}.get(arguments[0], len(arguments)) :] if arguments else []
    # A branch that the same line checks out, or that of the folder.
    chosen = (word.removeprefix(f"{HEAD}=") for word in reversed(invocation.settings) if word.startswith(f"{HEAD}="))
    checked_out = next(chosen, branch)
    named = [ref.lstrip("+").rsplit(":", 1)[-1].removeprefix("refs/heads/") for ref in refs] or [HEAD]
    found = [checked_out if name == HEAD else None if set(name) & _UNKNOWN else name for name in named]
    return None if None in found else frozenset(name.casefold() for name in found if name)


def _is_in_condition(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a command is what a condition asks for: "never push without running make check"."""
    before = [token.text.casefold() for token in tokens[:at]]
    start = next((number for number, text in enumerate(before) if CONDITION.fullmatch(text)), None)
    if start is None:
        return False
    # "Never without --monitor run cargo espflash": only the option is the condition.
    options = [word for word in before[start + 1 :] if word not in words_of("runs")]
    return not options or not all(FLAG.fullmatch(word) for word in options)


def _compare(prohibition: Prohibition, call: Invocation, branch: str | None) -> Verdict | None:
    """Return what a prohibition says about a call of its program, None if the call is another command."""
    words = _find_subcommand(prohibition, call)
    forbidden = prohibition.flags
    if words is None or (forbidden and not any(all(has_option(call, flag) for flag in group) for group in forbidden)):
        return None
    # "No --full-refresh on fct_readings" permits it for other tables that a command names.
    named = _list_objects(call) if prohibition.objects else set()
    is_other = bool(named) and named.isdisjoint(prohibition.objects)
    if is_other or any(has_option(call, flag) for flag in prohibition.required_flags) or rehearses(call):
        return Verdict.PERMITTED
    is_certain = bool(named) or not prohibition.objects
    reached, hinted = _list_reached(call, words)
    if prohibition.excepted_environments & reached:
        return Verdict.PERMITTED
    if prohibition.environments and not prohibition.environments & (reached | hinted):
        if reached:
            return Verdict.PERMITTED
        is_certain = False
    if prohibition.branches and call.words[0] == "git":
        branches = _list_branches(call, branch)
        if branches is not None and not any({name, name.partition("/")[0]} & prohibition.branches for name in branches):
            return Verdict.PERMITTED
        is_certain = is_certain and branches is not None
    elif prohibition.excepted_environments and not prohibition.environments:
        is_certain = is_certain and bool(reached)
    return Verdict.FORBIDDEN if is_certain and not prohibition.is_conditional else Verdict.DOUBTFUL


def _list_objects(call: Invocation) -> set[str]:
    return {part for word in call.words[1:] for part in re.findall(r"\w+", word) if _OBJECT.fullmatch(part)}


def _find_subcommand(prohibition: Prohibition, call: Invocation) -> tuple[str, ...] | None:
    """Return the subcommand of a prohibition that a call has."""
    arguments = list_arguments(call)
    for subcommand in prohibition.subcommands:
        left = list(subcommand)
        for word, may_be_value in arguments:
            if left and _is_same(word, left[0]):
                left.pop(0)
            elif len(left) == len(subcommand) and not (may_be_value or (left and "/" in left[0])):
                # Another subcommand is another command.
                break
        if not left:
            return subcommand
    return None


def _read_subcommands(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], ...]:
    """Return the words after a program that belong to its command, one tuple for each alternative."""
    alternatives: list[list[str]] = [[]]
    is_code = tokens[at].is_code
    for token in tokens[at + 1 :] if not tokens[at].ends_code else ():
        word = token.text.casefold()
        if not is_code and (word in words_of("stops") or FORBIDS.fullmatch(word)):
            break
        if not is_code and word in words_of("conjunctions"):
            if word == "," or not alternatives[0]:
                break
            alternatives.append([])
        elif word not in words_of("fillers") and not word.startswith("-"):
            alternatives[-1].append(word)
        if token.ends_code and is_code:
            break
    first = alternatives[0]
    return tuple(tuple(first if not other else [*first[: -len(other)], *other]) for other in alternatives)


def _may_be_alone(tokens: Sequence[Token], at: int, clause: str) -> bool:
    """Return whether a program without subcommand is meant: not if its name may be a word, a purpose or a file."""
    program = tokens[at].text.casefold()
    if tokens[at].is_code and not EDITS.search(clause):
        return True
    before = tokens[at - 1].text.casefold() if at else ""
    after = next((token.text.casefold() for token in tokens[at + 1 :]), "")
    if before in words_of("around") or after in words_of("purposes") or ("." in program and EDITS.search(clause)):
        return False
    is_ambiguous = program in ORDINARY or program in MANIFOLD
    return not is_ambiguous or before in words_of("runs") or before in words_of("conjunctions")


def _is_same(word: str, other: str) -> bool:
    """Return whether two words are the same without case, folder and plural."""
    one, two = (text.casefold().removesuffix("*").rstrip("/").rsplit("/", 1)[-1] for text in (word, other))
    return one == two or (one.rstrip("s") == two.rstrip("s") and len(one) > 3)
