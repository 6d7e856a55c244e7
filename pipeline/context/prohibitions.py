"""Rules in a person's words that forbid a command or a change of a file, and may therefore guard tool calls."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from pipeline.context.advice import MANIFOLD, ORDINARY, SHORTEST_PROGRAM, read_message
from pipeline.context.rule_clauses import (
    CONDITION,
    FLAG,
    FORBIDS,
    READ_CHARS,
    list_acts,
    list_clauses,
    spell_out,
    tokenize,
    words_of,
)
from pipeline.kinds import render_text
from pipeline.records import CAPTURED_TAG, Kind, Memory, Source
from pipeline.text.activities import asks_information
from pipeline.text.messages import is_function_word
from pipeline.text.tokens import search_tokens

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
