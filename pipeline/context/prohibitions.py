"""Rules in a person's words that forbid a command or a change of a file, and may therefore guard tool calls."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from pipeline.context.advice import MANIFOLD, ORDINARY, SHORTEST_PROGRAM, read_message
from pipeline.context.rule_clauses import FLAG, READ_CHARS, list_acts, list_clauses, spell_out, tokenize, words_of
from pipeline.kinds import render_text
from pipeline.records import CAPTURED_TAG, Kind, Memory, Source

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
