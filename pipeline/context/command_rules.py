"""Read rules that forbid a command: the command, its options, places and exceptions, and whether a call breaks them.

A rule is prose in one of four languages, so it is read with a call at hand: the text that follows the program's name in
the rule is compared with the call's arguments.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from pipeline.context.advice import MANIFOLD, ORDINARY
from pipeline.context.environments import list_branches, list_environments, list_reached
from pipeline.context.rule_clauses import (
    CONDITION,
    EDITS,
    FLAG,
    FORBIDS,
    READ_CHARS,
    Token,
    is_branch,
    list_clauses,
    spell_out,
    tokenize,
    words_of,
)
from pipeline.text.command_lines import Invocation, list_arguments, list_flags, list_invocations, name_flag

# Conditions that name what is excepted: a place or an option.
_EXCEPTION = re.compile(
    r"unless|except|außer|salvo|excepto|sauf|es sei denn|a menos que|à moins|if not|wenn nicht|si no|only|nur|"
    r"sol[oa]\w*|sólo|seulement|uniquement",
    re.IGNORECASE,
)
_ONLY_WORD = re.compile(r"only|nur|s[oó]lo|solamente|seulement|uniquement", re.IGNORECASE)
_WITH = re.compile(r"\b(?:with|on|in|against|mit|auf|gegen|con|en|contra|avec|sur|contre)\b", re.IGNORECASE)


class Verdict(IntEnum):
    """What a rule says about a call."""

    PERMITTED = 1
    # The rule has a condition, or a place, that the call does not show.
    DOUBTFUL = 2
    FORBIDDEN = 3


@dataclass(frozen=True, slots=True)
class Prohibition:
    """A clause that forbids a command: its subcommands, options, places and exceptions."""

    program: str
    # Each of them names the forbidden command.
    subcommands: tuple[tuple[str, ...], ...]
    # Each of them makes the command forbidden; without any, the command is.
    flags: tuple[str, ...]
    # Each of them makes the command permitted.
    required_flags: tuple[str, ...]
    environments: frozenset[str]
    excepted_environments: frozenset[str]
    branches: frozenset[str]
    is_conditional: bool


def judge(text: str, line: str, branch: str | None = None) -> Verdict | None:
    """Return what a rule says about a command line, None if it forbids no command of the line.

    `branch` is the branch that is checked out. The strictest answer about any command of the line counts.
    """
    clauses = list_clauses(text[:READ_CHARS])
    found = [
        verdict
        for invocation in (list_invocations(line) if clauses else ())
        for clause, introduction in clauses
        for prohibition in _parse(clause, introduction, invocation)
        if (verdict := _compare(prohibition, invocation, branch)) is not None
    ]
    return max(found, default=None)


def _parse(clause: str, introduction: str, invocation: Invocation) -> Iterator[Prohibition]:
    """Yield the prohibitions of a clause about the program of a call."""
    tokens = tokenize(spell_out(clause))
    program = invocation.words[0]
    places = [number for number, token in enumerate(tokens) if _is_same(token.text, program)]
    for at in places:
        if _is_in_condition(tokens, at):
            continue
        subcommands = _read_subcommands(tokens, at)
        if subcommands[0] or _may_be_alone(tokens, at, clause):
            yield _make(tokens, at, subcommands, introduction, invocation)
    if not places and not _names_program(tokens):
        flags = [token.text for token in tokens if FLAG.fullmatch(token.text)]
        if flags and not CONDITION.search(clause) and set(map(_name, flags)) & list_flags(invocation):
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
        call.words[0],
        subcommands,
        tuple(word for word in outside if FLAG.fullmatch(word)),
        required,
        list_environments("\n".join([introduction, *(word for word in outside if not word.startswith("-"))])),
        excepted_environments,
        frozenset(filter(is_branch, map(str.casefold, outside))),
        bool(inside) and not (required or excepted_environments),
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
    flags = list_flags(call)
    forbidden = [name_flag(call.words, _name(flag)) for flag in prohibition.flags]
    if words is None or (forbidden and not any(names & flags for names in forbidden)):
        return None
    if any(name_flag(call.words, _name(flag)) & flags for flag in prohibition.required_flags):
        return Verdict.PERMITTED
    is_certain = True
    reached, hinted = list_reached(call, words)
    if prohibition.excepted_environments & reached:
        return Verdict.PERMITTED
    if prohibition.environments and not prohibition.environments & (reached | hinted):
        if reached:
            return Verdict.PERMITTED
        is_certain = False
    if prohibition.branches and call.words[0] == "git":
        branches = list_branches(call, branch)
        if branches is not None and not branches & prohibition.branches:
            return Verdict.PERMITTED
        is_certain = is_certain and branches is not None
    elif prohibition.excepted_environments and not prohibition.environments:
        is_certain = is_certain and bool(reached)
    return Verdict.FORBIDDEN if is_certain and not prohibition.is_conditional else Verdict.DOUBTFUL


def _find_subcommand(prohibition: Prohibition, call: Invocation) -> tuple[str, ...] | None:
    """Return the subcommand of a prohibition that a call has."""
    arguments = list_arguments(call)
    for subcommand in prohibition.subcommands:
        left = list(subcommand)
        for word, may_be_value in arguments:
            if left and _is_same(word, left[0]):
                left.pop(0)
            elif len(left) == len(subcommand) and not may_be_value:
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
    if after in words_of("purposes") or ("." in program and EDITS.search(clause)):
        return False
    is_ambiguous = program in ORDINARY or program in MANIFOLD
    return not is_ambiguous or before in words_of("runs") or before in words_of("conjunctions")


def _names_program(tokens: Sequence[Token]) -> bool:
    return any(token.is_code or token.text.casefold() in MANIFOLD for token in tokens if not token.text.startswith("-"))


def _name(flag: str) -> str:
    return flag.partition("=")[0]


def _is_same(word: str, other: str) -> bool:
    """Return whether two words are the same without case, folder and plural."""
    one, two = (text.casefold().rstrip("/").rsplit("/", 1)[-1] for text in (word, other))
    return one == two or (one.rstrip("s") == two.rstrip("s") and len(one) > 3)
