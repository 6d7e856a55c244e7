"""Read rules that forbid a command: the command, its options, places and exceptions, and whether a call breaks them.

A rule is prose in one of four languages, so it is read with a call at hand: the text that follows the program's name in
the rule is compared with the call's arguments.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import pairwise
from pathlib import PurePath

from pipeline.context.advice import MANIFOLD, ORDINARY, SHORTEST_PROGRAM, read_message
from pipeline.context.environments import list_branches, list_environments, list_reached
from pipeline.text.command_lines import Invocation, list_arguments, list_flags, list_invocations, name_flag
from pipeline.text.lexicon import load_lexicon

# Maximum length of a rule that is read.
READ_CHARS = 2000
INTRODUCTION_WORDS = 5
CLAUSE = re.compile(
    r"[;!?。；！？]|[.,:](?=\s|$)|\s[–—-]\s|\b(?:but|instead|rather|sondern|stattdessen|sino|mais|mas|але|но)\b",
    re.IGNORECASE,
)
# Closed classes, in the languages that the gate knows: how a lesson forbids, sets a condition, and speaks of editing.
FORBIDS = re.compile(
    r"\b(?:never|not|don['’]?t|do not|avoid|stop|nie|niemals|nicht|kein\w*|vermeide\w*|nunca|no|evita\w*|jam[aá]s|"
    r"jamais|pas|évite\w*|não|evite|не|никогда|ніколи|уникай\w*|избегай\w*)\b|不要|别|勿|ない|するな",
    re.IGNORECASE,
)
CONDITION = re.compile(
    r"\b(?:without|unless|before|until|except|ohne|bevor|außer|bis|sin|antes|salvo|excepto|sans|avant|sauf|sem|без|до|"
    r"пока|es sei denn|a menos que|à moins)\b|之前|前に",
    re.IGNORECASE,
)
EDITS = re.compile(
    r"\b(?:edit|touch|change|modify|write|rewrite|delete|overwrite|commit|ändere?|ändern|anfassen|bearbeite|bearbeiten|"
    r"edites|edita\w*|modifi\w+|toques?|touche\w*|altere|edite|редактируй\w*|меняй\w*|змінюй\w*|редагуй\w*)\b"
    r"|修改|编辑|編集|変更",
    re.IGNORECASE,
)
# Conditions that name what is excepted: a place or an option.
_EXCEPTION = re.compile(
    r"unless|except|außer|salvo|excepto|sauf|es sei denn|a menos que|à moins|only|nur|sol[oa]\w*|sólo|seulement|"
    r"uniquement",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"\b(?:only|nur|s[oó]lo|solamente|seulement|uniquement)\b(?=.*\s(?:with|on|in|against|mit|auf|in|gegen|con|en|"
    r"contra|avec|sur|contre)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ONLY_WORD = re.compile(r"only|nur|s[oó]lo|solamente|seulement|uniquement", re.IGNORECASE)
_WITH = re.compile(r"\b(?:with|on|in|against|mit|auf|gegen|con|en|contra|avec|sur|contre)\b", re.IGNORECASE)
_TOKEN = re.compile(r"`[^`\n]{1,200}`|[^\s`\"“”„«»()\[\]{}<>,]+|,")
_LIST_ITEM = re.compile(r",\s+((?:[^\s,]+\s+){0,2}[^\s,]+)(?=\s*,|\s+(?:or|nor|oder|noch|o|ou|u|and|und|y|et|ni)\s)")
_FLAG = re.compile(r"-{1,2}[A-Za-z][\w-]*(?:=\S+)?")


# Closed classes, in the languages of capture: absolute prohibitions, and those with a condition.
_PROHIBITS = re.compile(
    r"\b(?:never|under no circumstances|nie|niemals|auf keinen fall|keinesfalls|nunca|jam[aá]s|jamais|en aucun cas)\b"
    r"|\b(?:do not|don['’]?t|must not|mustn['’]t|may not|nicht|kein\w*|no|ne|pas)\b.{1,120}?"
    r"\b(?:without|unless|before|until|ohne|bevor|außer|sin|salvo|antes de|sans|sauf|avant)\b",
    re.IGNORECASE | re.DOTALL,
)
# A verb of running, and the command after it.
_RUNS = re.compile(
    r"\b(?:run|running|execute|executing|invoke|call|launch|lances?|lancer|lancez|ex[eé]cut\w+|ejecut\w+|corr[ae]\w*|"
    r"starte?)\s+[`\w./-]{3,}\s+[`\w./-]{3,}"
    r"|[`\w./-]{3,}\s+[`\w./-]{3,}\s+(?:ausf[uü]hren|laufen lassen|starten|aufrufen)\b",
    re.IGNORECASE,
)


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


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a rule; words of a code span are literal."""

    text: str
    is_code: bool = False
    ends_code: bool = False


def judge(text: str, line: str, branch: str | None = None) -> Verdict | None:
    """Return what a rule says about a command line, None if it forbids no command of the line.

    `branch` is the branch that is checked out. The strictest answer about any command of the line counts.
    """
    clauses = _list_clauses(text[:READ_CHARS])
    found = [
        verdict
        for invocation in (list_invocations(line) if clauses else ())
        for clause, introduction in clauses
        for prohibition in _parse(clause, introduction, invocation)
        if (verdict := _compare(prohibition, invocation, branch)) is not None
    ]
    return max(found, default=None)


def forbids_command(text: str) -> bool:
    """Return whether a text forbids something, and names a file or a command by which a tool call is recognized."""
    return any(_PROHIBITS.search(clause) and _names_call(clause) for clause, _ in _list_clauses(text[:READ_CHARS]))


def mentions_command(text: str, message: str) -> bool:
    """Return whether a message mentions a command or a file that a text forbids: a rare word, or two words of it."""
    said = {PurePath(token.text.casefold()).name for token in _tokenize(message)}
    return any(
        len(shared) > 1 or bool(shared - MANIFOLD - ORDINARY - _words("subcommands"))
        for clause, _ in _list_clauses(text[:READ_CHARS])
        if (shared := said & set(_list_command_words(clause)))
    )


def _list_command_words(clause: str) -> Iterator[str]:
    """Yield the words of a command or a file in a clause."""
    follows_verb = False
    for token in _tokenize(clause):
        word = token.text.casefold()
        is_prose = not token.is_code and any(word in _words(name) for name in ("stops", "runs", "fillers"))
        is_named = token.is_code or follows_verb or "." in word or "-" in word[1:]
        if not is_prose and is_named and len(word) >= SHORTEST_PROGRAM:
            yield PurePath(word).name
        follows_verb = word in _words("runs") or (follows_verb and not is_prose)


def _names_call(clause: str) -> bool:
    return (
        bool(read_message(clause).words)
        or _RUNS.search(clause) is not None
        or _spell_out(clause) != clause
        or any(_FLAG.fullmatch(token.text) for token in _tokenize(clause))
    )


def _list_clauses(text: str) -> list[tuple[str, str]]:
    """Return the clauses that forbid something, each with the words that introduce it."""
    listed = _LIST_ITEM.sub(_join_item, text)
    parts = [part.strip() for part in CLAUSE.split(listed) if part.strip()]
    clauses: list[tuple[str, str]] = []
    before = ""
    for part in parts:
        condition = CONDITION.match(part)
        if condition is not None and clauses and before:
            clauses[-1] = (f"{clauses[-1][0]} {part}", clauses[-1][1])
            continue
        if FORBIDS.search(part) is not None or _ONLY.search(part) is not None:
            is_short = len(before.split()) <= INTRODUCTION_WORDS
            clauses.append((part, before if is_short else ""))
        before = part
    return clauses


def _join_item(match: re.Match[str]) -> str:
    words = {word.casefold() for word in match[1].split()}
    return match[0] if words & _words("runs") else f" or {match[1]}"


def _parse(clause: str, introduction: str, invocation: Invocation) -> Iterator[Prohibition]:
    """Yield the prohibitions of a clause about the program of a call."""
    tokens = _tokenize(_spell_out(clause))
    program = invocation.words[0]
    places = [number for number, token in enumerate(tokens) if _is_same(token.text, program)]
    for at in places:
        if _is_in_condition(tokens, at):
            continue
        subcommands = _read_subcommands(tokens, at)
        if subcommands[0] or _may_be_alone(tokens, at, clause):
            yield _make(tokens, at, subcommands, introduction, invocation)
    if not places and not _names_program(tokens):
        flags = [token.text for token in tokens if _FLAG.fullmatch(token.text)]
        if flags and not CONDITION.search(clause) and set(map(_name, flags)) & list_flags(invocation):
            yield _make(tokens, -1, ((),), introduction, invocation)


def _make(
    tokens: Sequence[_Token], at: int, subcommands: tuple[tuple[str, ...], ...], introduction: str, call: Invocation
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
    required = tuple(word for word in inside if _FLAG.fullmatch(word))
    excepted_environments = list_environments("\n".join(word for word in excepted if word not in required))
    return Prohibition(
        call.words[0],
        subcommands,
        tuple(word for word in outside if _FLAG.fullmatch(word)),
        required,
        list_environments("\n".join([introduction, *(word for word in outside if not word.startswith("-"))])),
        excepted_environments,
        frozenset(word.casefold() for word in outside if word.casefold() in _words("branches")),
        bool(inside) and not (required or excepted_environments),
    )


def _find_conditions(tokens: Sequence[_Token], at: int) -> list[tuple[int, int, bool]]:
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


def _is_in_condition(tokens: Sequence[_Token], at: int) -> bool:
    """Return whether a command is what a condition asks for: "never push without running make check"."""
    before = [token.text.casefold() for token in tokens[:at]]
    start = next((number for number, text in enumerate(before) if CONDITION.fullmatch(text)), None)
    if start is None:
        return False
    # "Never without --monitor run cargo espflash": only the option is the condition.
    options = [word for word in before[start + 1 :] if word not in _words("runs")]
    return not options or not all(_FLAG.fullmatch(word) for word in options)


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


def _read_subcommands(tokens: Sequence[_Token], at: int) -> tuple[tuple[str, ...], ...]:
    """Return the words after a program that belong to its command, one tuple for each alternative."""
    alternatives: list[list[str]] = [[]]
    is_code = tokens[at].is_code
    for token in tokens[at + 1 :] if not tokens[at].ends_code else ():
        word = token.text.casefold()
        if not is_code and (word in _words("stops") or FORBIDS.fullmatch(word)):
            break
        if not is_code and word in _words("conjunctions"):
            if word == "," or not alternatives[0]:
                break
            alternatives.append([])
        elif word not in _words("fillers") and not word.startswith("-"):
            alternatives[-1].append(word)
        if token.ends_code and is_code:
            break
    first = alternatives[0]
    return tuple(tuple(first if not other else [*first[: -len(other)], *other]) for other in alternatives)


def _may_be_alone(tokens: Sequence[_Token], at: int, clause: str) -> bool:
    """Return whether a program without subcommand is meant: not if its name may be a word, a purpose or a file."""
    program = tokens[at].text.casefold()
    if tokens[at].is_code and not EDITS.search(clause):
        return True
    before = tokens[at - 1].text.casefold() if at else ""
    after = next((token.text.casefold() for token in tokens[at + 1 :]), "")
    if after in _words("purposes") or ("." in program and EDITS.search(clause)):
        return False
    is_ambiguous = program in ORDINARY or program in MANIFOLD
    return not is_ambiguous or before in _words("runs") or before in _words("conjunctions")


def _names_program(tokens: Sequence[_Token]) -> bool:
    return any(token.is_code or token.text.casefold() in MANIFOLD for token in tokens if not token.text.startswith("-"))


def _tokenize(clause: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(clause):
        if not match[0].startswith("`"):
            tokens.append(_Token(match[0].rstrip(".:!?…'’") or match[0]))
            continue
        words = match[0].strip("`").split()
        tokens += [_Token(word, is_code=True, ends_code=word is words[-1]) for word in words]
    return tokens


def _spell_out(clause: str) -> str:
    """Write the command for a verb that means it: "never push to main"."""
    for pattern, command in _load_spoken():
        clause = pattern.sub(lambda match, command=command: _replace_verb(match, command), clause)
    return clause


def _replace_verb(match: re.Match[str], command: str) -> str:
    before = match.string[: match.start()].split()
    after = [word.strip(".,:").casefold() for word in match.string[match.end() :].split()]
    after = [word for word in after if word not in _words("fillers")][:1]
    is_command = bool(before) and (before[-1].strip("`").casefold() in MANIFOLD or before[-1].startswith("-"))
    has_object = bool(after) and not (after[0] in _words("stops") or _FLAG.fullmatch(after[0]) or after[0] in _BRANCH)
    return match[0] if is_command or has_object else command


_BRANCH = frozenset({"main", "master", "trunk", "develop"})


@cache
def _load_spoken() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = load_lexicon("prohibitions").table("spoken")
    verbs = {command: "|".join(table.words(command)).replace("_", " ") for command in table.entries}
    return tuple(
        (re.compile(rf"(?<![\w`./-])(?:{found})(?![\w`/-])", re.IGNORECASE), command)
        for command, found in verbs.items()
    )


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(load_lexicon("prohibitions").words(name))


def _name(flag: str) -> str:
    return flag.partition("=")[0]


def _is_same(word: str, other: str) -> bool:
    """Return whether two words are the same without case, folder and plural."""
    one, two = (PurePath(text.casefold()).name or text.casefold() for text in (word, other))
    return one == two or (one.rstrip("s") == two.rstrip("s") and len(one) > 3)
