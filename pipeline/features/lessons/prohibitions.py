"""Rules in a person's words that forbid a command or a change of a file, and may therefore guard tool calls.

A rule is read by its clauses: what they forbid, under which conditions, and their words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import PurePath

from pipeline.features.lessons.advice import MANIFOLD, ORDINARY, SHORTEST_PROGRAM, read_message
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import CAPTURED_TAG, Kind, Memory, Source
from pipeline.text.lexicon import load_lexicon, word_set
from pipeline.text.messages import is_function_word
from pipeline.text.sentences import asks_information
from pipeline.text.tokens import search_tokens

# Maximum length of a rule that is read.
READ_CHARS = 2000
INTRODUCTION_WORDS = 5
# Number of clauses that are kept as they were read: a call is compared with each critical lesson.
KEPT = 1024
CLAUSE = re.compile(
    r"[;!?。；！？]|[.,:](?=\s|$)|\s[–—-]\s|\b(?:but|instead|rather|sondern|stattdessen|sino|mais|mas|але|но)\b",
    re.IGNORECASE,
)
# Closed classes, in the languages that the gate knows: how a lesson forbids, sets a condition, and speaks of editing.
FORBIDS = re.compile(
    r"(?<![\w-])(?:never|not|don['’]?t|do not|avoid|stop(?=\s+\w+ing\b)|nie|niemals|nicht|kein\w*|vermeide\w*|"
    r"forbidden|prohibited|verboten|untersagt|prohibid[oa]|interdite?|nunca|no|evita\w*|jam[aá]s|jamais|pas|évite\w*|não|evite|не|никогда|ніколи|уникай\w*|избегай\w*)(?![\w-])|不要|别|勿|ない|するな",
    re.IGNORECASE,
)
CONDITION = re.compile(
    r"\b(?:without|unless|before|until|except|ohne|bevor|außer|bis|sin|antes|salvo|excepto|sans|avant|sauf|sem|без|до|"
    r"пока|es sei denn|a menos que|à moins|if not|wenn nicht|si no|si ce n['’]est)\b|之前|前に",
    re.IGNORECASE,
)
EDITS = re.compile(
    r"\b(?:edit|touch|change|modify|write|rewrite|delete|overwrite|commit|ändere?|ändern|anfassen|bearbeite|bearbeiten|"
    r"edites|edita\w*|modifi\w+|toques?|touche\w*|altere|edite|редактируй\w*|меняй\w*|змінюй\w*|редагуй\w*)\b"
    r"|修改|编辑|編集|変更",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"\b(?:only|nur|s[oó]lo|solamente|seulement|uniquement)\b(?=.*\s(?:with|on|in|against|mit|auf|in|gegen|con|en|"
    r"contra|avec|sur|contre)\b)",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"`[^`\n]{1,200}`|[^\s`\"“”„«»()\[\]{}<>,]+|,")
_LIST_ITEM = re.compile(r",\s+((?:[^\s,]+\s+){0,2}[^\s,]+)(?=\s*,|\s+(?:or|nor|oder|noch|o|ou|u|and|und|y|et|ni)\s)")
FLAG = re.compile(r"-{1,2}[A-Za-z][\w-]*(?:=\S+)?")

# The closed classes of the languages of rules.
words_of = partial(word_set, "prohibitions")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a rule; words of a code span are literal."""

    text: str
    is_code: bool = False
    ends_code: bool = False


@lru_cache(KEPT)
def list_clauses(text: str) -> tuple[tuple[str, str], ...]:
    """Return the clauses that forbid something, each with the words that introduce it."""
    parts = [part.strip() for part in CLAUSE.split(join_items(text)) if part.strip()]
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
    return tuple(clauses)


def join_items(text: str) -> str:
    """Return a text with the items of its lists joined by "or"."""
    return _LIST_ITEM.sub(_join_item, text)


def _join_item(match: re.Match[str]) -> str:
    words = {word.casefold() for word in match[1].split()}
    return match[0] if words & words_of("runs") else f" or {match[1]}"


@lru_cache(KEPT)
def tokenize(clause: str) -> tuple[Token, ...]:
    """Return the words of a clause, without final punctuation, and its commas."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(clause):
        if not match[0].startswith("`"):
            tokens.append(Token(match[0].rstrip(".:!?…'’") or match[0]))
            continue
        words = match[0].strip("`").split()
        tokens += [Token(word, is_code=True, ends_code=number == len(words)) for number, word in enumerate(words, 1)]
    return tuple(tokens)


@lru_cache(KEPT)
def spell_out(clause: str) -> str:
    """Write the command for a verb that means it: "never push to main"."""
    for pattern, command in _load_spoken():
        clause = pattern.sub(partial(_replace_verb, command), clause)
    return clause


def _replace_verb(command: str, match: re.Match[str]) -> str:
    before = match.string[: match.start()].split()
    after = [word.strip(".,:").casefold() for word in match.string[match.end() :].split()]
    after = [word for word in after if word not in words_of("fillers")][:1]
    is_command = bool(before) and (before[-1].strip("`").casefold() in MANIFOLD or before[-1].startswith("-"))
    has_object = bool(after) and not (after[0] in words_of("stops") or FLAG.fullmatch(after[0]) or is_branch(after[0]))
    return match[0] if is_command or has_object else command


@cache
def _load_spoken() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = load_lexicon("prohibitions").table("spoken")
    verbs = {command: "|".join(table.words(command)).replace("_", " ") for command in table.entries}
    return tuple(
        (re.compile(rf"(?<![\w`./-])(?:{found})(?![\w`/-])", re.IGNORECASE), command)
        for command, found in verbs.items()
    )


@dataclass(frozen=True, slots=True)
class Act:
    """An act that a clause may name in prose: the commands that perform it, and the statements for a database."""

    commands: tuple[tuple[str, ...], ...]
    statements: re.Pattern[str] | None


@lru_cache(KEPT)
def list_acts(clause: str) -> tuple[Act, ...]:
    """Return the acts that a clause names."""
    return tuple(act for verbs, objects, act in _load_acts() if verbs.search(clause) and objects.search(clause))


@cache
def _load_acts() -> tuple[tuple[re.Pattern[str], re.Pattern[str], Act], ...]:
    table = load_lexicon("prohibitions").table("acts")
    acts = []
    for name in table.entries:
        entry = table.table(name)
        verbs, objects = (
            re.compile(rf"(?<![\w-])(?:{entry.alternatives(part).replace('_', ' ')})(?![\w-])", re.IGNORECASE)
            for part in ("verbs", "objects")
        )
        statements = re.compile(entry.entries["statements"], re.IGNORECASE) if "statements" in entry.entries else None
        acts.append((verbs, objects, Act(tuple(tuple(line.split()) for line in entry.words("commands")), statements)))
    return tuple(acts)


def is_branch(word: str) -> bool:
    """Return whether a lower-case word is the usual name of a branch."""
    return word in words_of("branches") or word.startswith(("release/", "hotfix/"))


# The tag of a rule that its person wants to be reminded of, but not to block calls with.
REMINDER_TAG = "reminder-only"
# Closed classes, in the languages of capture: absolute prohibitions, and those with a condition.
_PROHIBITS = re.compile(
    r"\b(?:never|(?:do not|don['’]?t) ever|under no circumstances|nie|niemals|auf keinen fall|keinesfalls|nunca|"
    r"jam[aá]s|jamais|en aucun cas)\b"
    r"|\b(?:do not|don['’]?t|must not|mustn['’]t|may not|nicht|kein\w*|no|ne|pas)\b.{1,120}?"
    r"\b(?:without|unless|before|until|ohne|bevor|außer|sin|salvo|antes de|sans|sauf|avant)\b",
    re.IGNORECASE | re.DOTALL,
)
# The choice that a convention rejects.
_REJECTED = re.compile(
    r"\b(?:instead of|rather than|in place of|(?:an)?statt|anstelle von|en (?:vez|lugar) de|au lieu d[eu']|"
    r"plutôt que)\s+([\w.+-]+)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|night|morning|evening|"
    r"(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|wochenende|nachts|abends|lunes|viernes|fin de semana|"
    r"lundi|vendredi|week-end)\b",
    re.IGNORECASE,
)
# Tokens that change nothing in what is forbidden.
_EMPHASIS = frozenset(search_tokens("directly straight ever direkt jemals directamente directement"))
# A message asks for an act if it has this share of its words.
BREAKING_SHARE = 0.75
# A verb of running, and the command after it.
_RUNS = re.compile(
    r"\b(?:run|running|execute|executing|invoke|call|launch|lances?|lancer|lancez|ex[eé]cut\w+|ejecut\w+|corr[ae]\w*|"
    r"starte?)\s+[`\w./-]{3,}\s+[`\w./-]{3,}"
    r"|[`\w./-]{3,}\s+[`\w./-]{3,}\s+(?:ausf[uü]hren|laufen lassen|starten|aufrufen)\b",
    re.IGNORECASE,
)


def forbids_command(text: str) -> bool:
    """Return whether a text forbids something, and names a file or a command by which a tool call is recognized."""
    return any(_PROHIBITS.search(clause) and _names_call(clause) for clause, _ in list_clauses(text[:READ_CHARS]))


def mentions_command(text: str, message: str) -> bool:
    """Return whether a message mentions a command or a file that a text forbids: a rare word, or two words of it."""
    said = {PurePath(token.text.casefold()).name for token in tokenize(message)}
    return any(
        len(shared) > 1 or bool(shared - MANIFOLD - ORDINARY - words_of("subcommands"))
        for clause, _ in list_clauses(text[:READ_CHARS])
        if (shared := said & set(_list_commandwords_of(clause)))
    )


def is_about_to_break(text: str, message: str) -> bool:
    """Return whether a message asks for what a text forbids: a command or a file, or most words of the act."""
    if asks_information(message) or FORBIDS.search(message) is not None:
        return False
    said = _list_act_words(message)
    acts = [match[1] for match in _REJECTED.finditer(text[:READ_CHARS])]
    acts += [
        clause[forbids.end() :]
        for clause, _ in list_clauses(text[:READ_CHARS])
        if (forbids := FORBIDS.search(clause)) and CONDITION.search(clause) is None
    ]
    return any(_asks_for(act, said) for act in acts)


def _asks_for(act: str, said: frozenset[str]) -> bool:
    words = _list_act_words(act)
    # "Not on a Friday": another day is fine.
    least = 1.0 if _DAY.search(act) is not None else BREAKING_SHARE
    return bool(words) and len(words & said) >= least * len(words)


def _list_act_words(text: str) -> frozenset[str]:
    return frozenset(word for word in search_tokens(text) if not (is_function_word(word) or word in _EMPHASIS))


def _list_commandwords_of(clause: str) -> Iterator[str]:
    """Yield the words of a command or a file in a clause."""
    follows_verb = False
    for token in tokenize(clause):
        word = token.text.casefold()
        is_prose = not token.is_code and any(word in words_of(name) for name in ("stops", "runs", "fillers"))
        is_named = token.is_code or follows_verb or "." in word or "-" in word[1:]
        if not is_prose and is_named and len(word) >= SHORTEST_PROGRAM:
            yield PurePath(word).name
        follows_verb = word in words_of("runs") or (follows_verb and not is_prose)


def _names_call(clause: str) -> bool:
    return (
        bool(read_message(clause).words)
        or _RUNS.search(clause) is not None
        or spell_out(clause) != clause
        or bool(list_acts(clause))
        or any(FLAG.fullmatch(token.text) for token in tokenize(clause))
    )


def may_guard(memory: Memory) -> bool:
    """Return whether a memory is a rule in a person's words that could block calls and does not yet."""
    said = memory.source is Source.USER or (memory.source is Source.AMBIENT and CAPTURED_TAG in memory.tags)
    return (
        said
        and memory.kind is Kind.LESSON
        and not memory.instructs
        and memory.details.get("severity") != "critical"
        and REMINDER_TAG not in memory.tags
        and forbids_command(render_text(memory))
    )
