"""Decide whether a memory concerns an act, by what it names: a command, a file or code."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import PurePosixPath

from pipeline.features.acts.act import ProposedAct
from pipeline.features.acts.mentions import KEPT, Mentions, matches_file, read_mentions
from pipeline.features.lessons.advice import Touched, read_message, read_touched, text_names
from pipeline.features.lessons.command_rules import Verdict, judge, list_environments
from pipeline.features.lessons.prohibitions import CLAUSE, CONDITION, FLAG, FORBIDS, forbids_command, spell_out
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Kind, Memory
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.command_lines import Invocation, has_option
from pipeline.text.lexicon import word_set
from pipeline.text.sentences import count_rule_words, split_sentences
from pipeline.text.similarity.choices import read_choices


class Evidence(IntEnum):
    """Why a memory concerns an act, the weakest first."""

    SYMBOL = 1
    FILE = 2
    COMMAND = 3
    REQUIRED = 4
    PATTERN = 5
    FORBIDDEN = 6


# The act does what a rule forbids, or leaves out what it requires.
BREAKS = frozenset({Evidence.REQUIRED, Evidence.PATTERN, Evidence.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known around an act: the branch that is checked out, and what the session did since its last edit."""

    find_branch: Callable[[], str | None]
    did: Sequence[Action] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory as it is compared with acts: its text, the file of its anchor, and whether it says what to do."""

    text: str
    anchor: str | None
    is_directive: bool

    @classmethod
    def of(cls, memory: Memory) -> "Statement":
        """Return the statement of a memory: a lesson, a decision, or a fact with the words of a rule says what to do."""
        is_directive = memory.kind in (Kind.LESSON, Kind.DECISION) or _states_rule(memory.content)
        return cls(render_text(memory), memory.anchor.path if memory.anchor else None, is_directive)


def find_evidence(statement: Statement, act: ProposedAct, around: Circumstances) -> Evidence | None:
    """Return the strongest evidence that a statement concerns an act."""
    if act.line and (found := _judge_command(statement.text, act, around)) is not None:
        return found
    return _judge_edit(statement, act) if act.files and statement.is_directive else None


@lru_cache(KEPT)
def _states_rule(text: str) -> bool:
    plain = re.sub(r"\d", " ", text)
    words = set(re.findall(r"[\w-]+", plain.casefold()))
    return (
        FORBIDS.search(plain) is not None
        or count_rule_words(plain) > 0
        or not words.isdisjoint(word_set("acts.words", "generated"))
    )


def _judge_edit(statement: Statement, act: ProposedAct) -> Evidence | None:
    mentions = read_mentions(statement.text)
    names_file = any(matches_file(mentions, file) for file in act.files)
    if statement.anchor is not None:
        names_file = names_file or any(_is_same_file(statement.anchor, file) for file in act.files)
    if act.added and any(_applies_to(mentions, file) for file in act.files):
        for pattern in mentions.patterns:
            if act.introduces(pattern.expression):
                return Evidence.PATTERN
    if names_file:
        return Evidence.FILE
    return None if mentions.symbols.isdisjoint(act.words) else Evidence.SYMBOL


def _applies_to(mentions: Mentions, file: str) -> bool:
    """Return whether a text that may name places is about a file."""
    suffix = PurePosixPath(file.lower()).suffix.lstrip(".")
    if mentions.endings and suffix not in mentions.endings:
        return False
    return not (mentions.files or mentions.folders or mentions.globs) or matches_file(mentions, file)


def _is_same_file(one: str, other: str) -> bool:
    first, second = f"/{one.lstrip('./')}", f"/{other.lstrip('./')}"
    return first.endswith(second) or second.endswith(first)


def _judge_command(text: str, act: ProposedAct, around: Circumstances) -> Evidence | None:
    verdict = judge(text, act.line, around.find_branch() if "git" in act.line else None)
    if verdict is Verdict.PERMITTED:
        return None
    if verdict is not None:
        return None if _is_satisfied(text, act, around) else Evidence.FORBIDDEN
    if _chooses_otherwise(text, act.invocations):
        return Evidence.FORBIDDEN
    for clause in split_sentences(text):
        if _is_due(clause, act):
            return None if _is_satisfied(text, act, around) else Evidence.REQUIRED
    if forbids_command(text) or not text_names(text, act.touched) or _is_elsewhere(text, act.line):
        return None
    flags = [word for word in re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*(?:=\S+)?", text) if FLAG.fullmatch(word)]
    if flags and all(any(has_option(invocation, flag) for invocation in act.invocations) for flag in flags):
        return None
    return Evidence.REQUIRED if flags else Evidence.COMMAND


def _is_elsewhere(text: str, line: str) -> bool:
    """Return whether a text is about an environment, and a command names only others."""
    named, said = list_environments(line), list_environments(text)
    return bool(named and said) and named.isdisjoint(said)


def _chooses_otherwise(text: str, invocations: Sequence[Invocation]) -> bool:
    """Return whether a text chooses another tool than a command runs: pnpm instead of npm."""
    programs = {re.sub(r"[\d.]+$", "", invocation.words[0]) for invocation in invocations}
    for sentence in split_sentences(text):
        for choice in read_choices(sentence).values():
            if not programs.isdisjoint(choice.rejected):
                return True
    return False


def _is_due(clause: str, act: ProposedAct) -> bool:
    """Return whether a sentence requires something before the act: "run make lint before you commit"."""
    words = word_set("acts.words", "before")
    match = next((m for m in re.finditer(r"[^\W\d_]+", clause) if m[0].casefold() in words), None)
    return match is not None and text_names(spell_out(_cut_clause(clause[match.end() :])), act.touched)


def _cut_clause(text: str) -> str:
    return CLAUSE.split(text, maxsplit=1)[0]


def _is_satisfied(text: str, act: ProposedAct, around: Circumstances) -> bool:
    """Return whether the session, or the same line, did what a text requires before the act."""
    required = read_message(CONDITION.split(text)[0]) if FORBIDS.search(text) is None else read_message(text)
    done = [
        read_touched(action.type, action.target)
        for action in around.did
        if action.ok and action.type is not ActionType.EDIT
    ]
    if len(act.touched.commands) > 1:
        done.append(Touched((), act.touched.commands[:-1]))
    asks_tests = re.search(r"\btests?\b", text, re.IGNORECASE) is not None
    if asks_tests and any(action.ok and action.type is ActionType.TEST for action in around.did):
        return True
    return bool(required.commands) and any(text_names(text, touched) for touched in done)
