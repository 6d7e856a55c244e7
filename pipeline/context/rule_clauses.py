"""Read the clauses of a rule in a person's words: what they forbid, under which conditions, and their words."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from pipeline.context.advice import MANIFOLD
from pipeline.text.lexicon import load_lexicon, word_set

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
    r"nunca|no|evita\w*|jam[aá]s|jamais|pas|évite\w*|não|evite|не|никогда|ніколи|уникай\w*|избегай\w*)(?![\w-])|不要|别|勿|ない|するな",
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
    return tuple(clauses)


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
