"""The keys by which an act finds the statements that may concern it: names of files, words of code and of commands."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pipeline.features.acts.act import ProposedAct
from pipeline.features.acts.judgement import Statement, find_stem, list_commands_of
from pipeline.features.acts.rules import READ_CHARS, Rule, expression, read_rule
from pipeline.features.lessons.prohibitions import FORBIDS, list_acts, list_clauses, spell_out, words_of
from pipeline.text.lexicon import load_lexicon

# The key of statements that every act is compared with.
ANY_ACT = "any"


def list_statement_keys(statement: Statement) -> frozenset[str]:
    """Return the keys under which an act may find a statement."""
    text = statement.text[:READ_CHARS]
    rule = read_rule(text)
    keys = set(_list_edit_keys(rule))
    if expression("only_so").search(text) or expression("production").search(text):
        keys.add(ANY_ACT)
    if statement.is_lesson or FORBIDS.search(text) is not None or rule.bans:
        keys.update(f"w:{word}" for word in _list_command_words(text))
    return frozenset(keys)


def _list_edit_keys(rule: Rule) -> Iterator[str]:
    for ban in rule.bans:
        yield from (f"p:{ban.word.casefold()}", f"p:{ban.word.casefold().rstrip('s')}") if ban.word else (ANY_ACT,)
    if rule.comments is not None or any("*" in place.path for place in rule.scope):
        yield ANY_ACT
    if rule.forbids_edit or rule.removed_noun is not None or rule.required:
        yield from (f"d:{place.name}" if place.is_folder else f"f:{place.name}" for place in rule.scope)
        yield from (f"x:{ending}" for ending in rule.endings)
        yield f"p:{rule.noun.rstrip('s')}"


def _list_command_words(text: str) -> Iterator[str]:
    yield from _list_words(text)
    for clause, _ in list_clauses(text):
        yield from _list_words(spell_out(clause))
        for act in list_acts(clause):
            yield from (command[0] for command in act.commands)
            yield from words_of("clients") if act.statements is not None else ()
    for word in re.findall(r"[^\W\d_]+", text.casefold()):
        if word in load_lexicon("acts").entries["acts"]:
            yield from (command.split()[0] for command in list_commands_of(word))


def _list_words(text: str) -> Iterator[str]:
    for word in re.findall(r"[\w][\w.+-]*", text.casefold()):
        if len(word) > 1 and word not in words_of("stops"):
            yield word.rstrip(".-")
            yield find_stem(word.rstrip(".-"))


def list_act_keys(act: ProposedAct) -> Iterator[str]:
    """Yield the keys of what an act names."""
    yield ANY_ACT
    for file in act.files:
        path = PurePosixPath(file.lower())
        yield f"f:{path.name}"
        yield from (f"d:{part}" for part in path.parts[:-1])
        yield f"x:{path.suffix.lstrip('.')}"
        yield from (f"p:{word.rstrip('s')}" for part in path.parts for word in re.findall(r"[^\W\d_]+", part))
    for word in act.words:
        yield f"p:{word.casefold()}"
        yield f"p:{word.casefold().rstrip('s')}"
    for call in act.doing:
        for word in {piece.casefold() for part in call.words for piece in re.findall(r"\w[\w.+-]*|\w+", part)}:
            yield f"w:{word}"
            yield f"p:{word}"
    yield from (f"p:{word}" for word in re.findall(r"\w+", act.line.casefold()))
