"""Decide whether an act breaks what a statement asks, or needs it: by what the statement names, never by likeness."""

import re
from collections.abc import Callable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from pipeline.features.acts.act import ProposedAct
from pipeline.features.acts.places import KEPT, is_in, list_places
from pipeline.features.acts.rules import Ban, Rule, expression, read_rule
from pipeline.features.lessons.advice import MANIFOLD, ORDINARY, Touched, read_touched, text_names
from pipeline.features.lessons.command_rules import ONLY_WORD, Verdict, judge, list_environments
from pipeline.features.lessons.prohibitions import FORBIDS, words_of
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Kind, Memory
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.command_lines import Invocation, has_option, list_arguments, list_invocations
from pipeline.text.languages import is_foreign, may_be_foreign
from pipeline.text.lexicon import load_lexicon, word_set
from pipeline.text.sentences import split_sentences
from pipeline.text.similarity.choices import NAMES, read_choices

# Words of a command that a lesson about a problem must share with it.
LEAST_SHARED = 2
PRODUCTION = "production"
NOBODY = re.compile(r"\b(?:nobody|no one|niemand|keiner|nadie|personne)\b", re.IGNORECASE)
EACH = ("each", "every", "any", "jedem", "jeden", "jeder", "jedes", "chaque", "cada")
SHORTEST_TELLING = 4


class Evidence(IntEnum):
    """Why a statement concerns an act, the weakest first."""

    COMMAND = 1
    REQUIRED = 2
    CODE = 3
    FILE = 4
    FORBIDDEN = 5


# The act does what a rule forbids, or leaves out what it requires.
BREAKS = frozenset({Evidence.REQUIRED, Evidence.CODE, Evidence.FILE, Evidence.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known around an act: the branch that is checked out, and what the session did since its last edit."""

    find_branch: Callable[[], str | None]
    did: Sequence[Action] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory as it is compared with acts."""

    text: str
    is_lesson: bool

    @classmethod
    def of(cls, memory: Memory) -> "Statement":
        """Return the statement of a memory."""
        return cls(render_text(memory), memory.kind is Kind.LESSON)


def find_evidence(statement: Statement, act: ProposedAct, around: Circumstances) -> Evidence | None:
    """Return the strongest evidence that a statement concerns an act."""
    found = [_judge_command(statement, act, around)] if act.line else []
    if act.files:
        found.append(_judge_edit(statement, act))
    return max((one for one in found if one is not None), default=None)


def _judge_edit(statement: Statement, act: ProposedAct) -> Evidence | None:
    rule = read_rule(statement.text)
    for file in act.files:
        if not rule.applies_to(file.lower()):
            continue
        if _breaks_place(rule, act, file.lower()):
            return Evidence.FILE
        if any(_writes_banned(ban, act, file.lower()) for ban in rule.bans) or _comments_otherwise(rule.comments, act):
            return Evidence.CODE
        if rule.required and _leaves_out(rule, act):
            return Evidence.REQUIRED
    return None


def _writes_banned(ban: Ban, act: ProposedAct, file: str) -> bool:
    if ban.endings and file.rpartition(".")[2] not in ban.endings:
        return False
    if act.is_new and ban.path_words and all(word in file for word in ban.path_words):
        return True
    if ban.word and ban.word.casefold().rstrip("s") not in act.lowered:
        return False
    return act.introduces(ban.code) and not (ban.unless and ban.unless in act.added.casefold())


_COMMENT = re.compile(r"(?://|/\*+|^\s*\*|#|--)\s*([^\n*]{6,200})", re.MULTILINE)


def _comments_otherwise(language: str | None, act: ProposedAct) -> bool:
    """Return whether an act adds a comment in another language than the one that is asked for."""
    known = set(_COMMENT.findall(act.removed))
    for comment in _COMMENT.findall(act.added) if language is not None else ():
        words = set(re.findall(r"[a-z]+", comment.casefold()))
        if comment in known or len(words) < SHORTEST_TELLING:
            continue
        is_english = not may_be_foreign(comment) and len(words & word_set("acts.words", "english")) >= LEAST_SHARED
        is_other = is_foreign(comment) or (
            may_be_foreign(comment) and words.isdisjoint(word_set("acts.words", "english"))
        )
        if (is_other and language == "e") or (is_english and language == "d"):
            return True
    return False


def _breaks_place(rule: Rule, act: ProposedAct, file: str) -> bool:
    """Return whether an act changes or removes what must stay."""
    if not rule.scope or not rule.is_in_scope(file):
        return False
    if rule.removed_noun is not None:
        return act.removes_files or (bool(rule.removed_noun) and _loses_name(rule.removed_noun, act))
    return rule.forbids_edit and not (rule.allows_new and act.is_new)


def _loses_name(noun: str, act: ProposedAct) -> bool:
    """Return whether a line with a noun loses its name."""
    lines = [line for line in act.removed.splitlines() if noun in line.casefold()]
    names = {name for line in lines for name in re.findall(r"[\w-]{3,}", line) if noun not in name.casefold()}
    return any(name not in act.added for name in names)


def _leaves_out(rule: Rule, act: ProposedAct) -> bool:
    """Return whether an act adds a thing without what each such thing must have."""
    if any(token.rstrip("()") in act.added for token in rule.required):
        return False
    noun = re.compile(rf"\b{re.escape(rule.noun.rstrip('s'))}", re.IGNORECASE)
    if rule.noun and noun.search(act.added):
        return act.introduces(noun)
    return act.is_new and bool(rule.endings or rule.scope)


def _judge_command(statement: Statement, act: ProposedAct, around: Circumstances) -> Evidence | None:
    text, calls = statement.text, act.doing
    if not calls or act.is_scratch:
        return None
    so = _is_done_otherwise(text, act)
    if so is not None:
        return Evidence.FORBIDDEN if so else None
    verdict = judge(text, act.line, around.find_branch() if "git" in act.line else None)
    if verdict is Verdict.PERMITTED:
        return None
    if (
        verdict is not None
        or _changes_production(text, act)
        or _chooses_otherwise(text, act.invocations)
        or _runs_banned(text, act)
    ):
        return None if _is_done(text, act, around) else Evidence.FORBIDDEN
    if _is_due(text, act):
        return None if _is_done(text, act, around) else Evidence.REQUIRED
    return _judge_lesson(text, act) if statement.is_lesson and not _is_elsewhere(text, act.line) else None


def _judge_lesson(text: str, act: ProposedAct) -> Evidence | None:
    """Return the evidence that a lesson about a command is needed: an option is missing, or it names this use."""
    told = _read_told(text)
    uses = [call for call in act.doing if not _only_asks(call)]
    for call in uses:
        words = {word.casefold().strip("-") for part in call.words for word in re.findall(r"[\w-]{2,}", part)}
        options = [option for option in told.options if option[1:2] == "-" or option[:1] != "-" or _spells(text, call)]
        if options and text_names(text, Touched((), (_plain(call),))):
            symbols = [symbol for symbol in told.symbols if symbol in act.line]
            is_missing = not any(has_option(call, option) or option in act.line for option in options)
            files = [place for place in told.places if "." in place.rpartition("/")[2]]
            is_meant = (symbols or not told.symbols) and (not files or any(file in act.line for file in files))
            if is_missing and is_meant and told.named <= words:
                return Evidence.REQUIRED
        if told.is_problem and not told.comes_before and _shares_use(told, call, words):
            others = [other for other in uses if other is not call]
            if not any(len(told.words & _list_stems(other)) >= LEAST_SHARED for other in others):
                return Evidence.COMMAND
    return None


def _spells(text: str, call: Invocation) -> bool:
    """Return whether a text spells a program with its subcommand."""
    verb = _find_verb(call)
    return bool(verb) and f"{call.words[0]} {verb}" in text.casefold()


def _shares_use(told: "_Told", call: Invocation, words: AbstractSet[str]) -> bool:
    """Return whether a lesson names a use of a command: its program or its subcommand, and a telling word."""
    if call.words[0] not in told.words and find_stem(_find_verb(call)) not in told.words:
        return False
    shared = {word for word in words if find_stem(word) in told.words}
    common = MANIFOLD | ORDINARY | words_of("subcommands") | {call.words[0]}
    return len(shared) >= LEAST_SHARED + bool(told.options) and any(
        len(word) >= SHORTEST_TELLING and word not in common and not any(word in place for place in told.places)
        for word in shared
    )


def _list_stems(call: Invocation) -> frozenset[str]:
    return frozenset(find_stem(word.casefold()) for part in call.words for word in re.findall(r"[\w-]{3,}", part))


def _find_verb(call: Invocation) -> str:
    arguments = [word for word, may_be_value in list_arguments(call) if not may_be_value]
    return arguments[0].casefold() if arguments else ""


def _plain(call: Invocation) -> tuple[str, ...]:
    return tuple(word.casefold() for word in call.words if not word.startswith("-"))[:3]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a lesson about a command names: its options, its symbols, all its words, and whether something failed."""

    options: tuple[str, ...]
    symbols: tuple[str, ...]
    named: frozenset[str]
    words: frozenset[str]
    places: tuple[str, ...]
    is_problem: bool
    comes_before: bool


@lru_cache(KEPT)
def _read_told(text: str) -> _Told:
    asked = " ".join(sentence for sentence in split_sentences(text) if FORBIDS.search(sentence) is None)
    options = re.findall(r"(?<![\w-])(-{1,2}[a-z][\w-]+|[A-Z][A-Z_]+=)", asked)
    options += re.findall(r"\b([A-Z]+_[A-Z_]+)\b(?= (?:set|gesetzt|definid))", text)
    symbols = re.findall(r"(?<![\w./-])[a-z]+(?:_[a-z0-9]+){2,}", text)
    named = re.findall(r"(?<![\w./-])[a-z]+-[a-z]+(?:-[a-z]+)*(?![\w./-])", text.replace("--", "  "))
    words = frozenset(find_stem(word) for word in re.findall(r"[\w-]{2,}", text.casefold().replace("--", " ")))
    return _Told(
        tuple(dict.fromkeys(options)),
        tuple(symbols),
        frozenset(named),
        words,
        tuple(place.path for place in list_places(text)),
        expression("problems").search(text) is not None,
        _find_due(text) is not None,
    )


def find_stem(word: str) -> str:
    """Return a word of a command without the endings of plural and progressive."""
    word = word.strip("-").rstrip("s")
    return word[:-3] if word.endswith("ing") and len(word) > 6 else word


def _is_elsewhere(text: str, line: str) -> bool:
    """Return whether a text is about an environment, and a command names only others."""
    named, said = list_environments(line), list_environments(text)
    return bool(named and said) and named.isdisjoint(said)


def _chooses_otherwise(text: str, calls: Sequence[Invocation]) -> bool:
    """Return whether a text chooses another tool than a command uses: pnpm instead of npm."""
    for call in calls:
        # `docker-compose` is not `docker compose`.
        rejects = rf"(?:not|nicht|no|kein|never|nie|statt|instead of)\s+`?{re.escape(call.words[0])}(?![\w-])"
        if "-" in call.words[0] and re.search(rejects, text, re.IGNORECASE):
            return True
    programs = {re.sub(r"[\d.]+$", "", call.words[0]) for call in calls if not _only_asks(call)}
    rejected = {name for sentence in _split_choices(text) for name in sentence}
    return not programs.isdisjoint(rejected)


@lru_cache(KEPT)
def _split_choices(text: str) -> tuple[frozenset[str], ...]:
    found = [choice.rejected for sentence in split_sentences(text) for choice in read_choices(sentence).values()]
    for group in NAMES.values():
        rejected = re.finditer(group.pattern, text, re.IGNORECASE)
        found += [frozenset({match["name"].casefold()}) for match in rejected if match["rejected"]]
    return tuple(found)


def _only_asks(call: Invocation) -> bool:
    return _find_verb(call) in word_set("acts.words", "asking")


def _runs_banned(text: str, act: ProposedAct) -> bool:
    """Return whether a command names what a prohibition names: a host, a device, a file that must not be committed."""
    rule = read_rule(text)
    if rule.forbids_commit and any(call.words[:2] in (("git", "add"), ("git", "commit")) for call in act.doing):
        words = [word.lower() for call in act.doing if call.words[0] == "git" for word in call.words[2:]]
        return is_in(rule.scope, "") or any(is_in(rule.scope, word) for word in words)
    if rule.scope and not any(rule.applies_to(file.lower()) for file in act.files):
        return False
    scratch = tuple(word_set("acts.words", "scratch"))
    is_scratch = any(word.startswith(scratch) for call in act.doing for word in call.words)
    return any(ban.in_commands and ban.code.search(act.raw) and not (ban.is_option and is_scratch) for ban in rule.bans)


def _changes_production(text: str, act: ProposedAct) -> bool:
    """Return whether a command changes production, which a statement lets nobody do by hand."""
    parts = [part for part in re.split(r"[.;,!?]\s+", text) if expression("production").search(part)]
    if not any(FORBIDS.search(part) or ONLY_WORD.search(part) or NOBODY.search(part) for part in parts):
        return False
    changing = word_set("acts.words", "changing")
    return any(
        call.words[0] not in ("gh", "git", "echo")
        and _list_verbs(call) & changing
        and PRODUCTION in list_environments("\n".join((*call.words, *call.settings, *call.folders)))
        for call in act.doing
    )


def _list_verbs(call: Invocation) -> frozenset[str]:
    verbs = [word.casefold() for word, may_be_value in list_arguments(call) if not may_be_value][:2]
    return frozenset() if _only_asks(call) else frozenset(verbs)


def _is_due(text: str, act: ProposedAct) -> bool:
    """Return whether a statement requires something before the act: "run make lint before you commit"."""
    due = _find_due(text)
    if due is None:
        return False
    commands, verbs = due
    told = _read_told(text).words
    return any(
        any(call.words[: len(command)] == command for command in commands)
        or (find_stem(_find_verb(call)) in verbs and len(_list_stems(call) & told) >= LEAST_SHARED)
        for call in act.doing
    )


@lru_cache(KEPT)
def _find_due(text: str) -> tuple[tuple[tuple[str, ...], ...], frozenset[str]] | None:
    """Return the commands, and the verbs of commands, before which a statement requires something."""
    if expression("asks").search(text):
        return None
    befores = word_set("acts.words", "before")
    known = load_lexicon("acts").table("acts")
    for match in re.finditer(r"[^\W\d_]+", text):
        if match[0].casefold() in befores:
            words = [word.casefold() for word in re.findall(r"[\w-]+", text[match.end() :])[:3]]
            words = [word for word in words if word not in words_of("stops") and word not in EACH]
            commands = [command for word in words if word in known.entries for command in list_commands_of(word)]
            verbs = frozenset(map(find_stem, words[:1])) if not commands else frozenset[str]()
            return tuple(tuple(command.split()) for command in commands), verbs
    return None


def list_commands_of(word: str) -> list[str]:
    """Return the commands of an act that a rule names in prose, such as a release."""
    found = load_lexicon("acts").entries["acts"][word]
    return [found] if isinstance(found, str) else list(found)


def _is_done_otherwise(text: str, act: ProposedAct) -> bool | None:
    """Return whether a command does otherwise what a statement lets be done in one way; None for other commands."""
    match = expression("only_so").search(text)
    if match is None:
        return None
    what, how = (match["what"], match["how"]) if match["what"] else (match["done"], match["so"])
    verbs = {find_stem(word) for word in re.findall(r"[^\W\d_]{4,}", what.casefold())}
    verbs |= {word[:-2] for word in verbs if word.endswith("en")}
    is_meant = text_names(what, read_touched(ActionType.COMMAND, act.line)) or any(
        verb in call.words[0] and verb != call.words[0]
        for verb in verbs
        for call in act.doing
        if len(verb) > SHORTEST_TELLING
    )
    if how.split()[0].casefold() in act.raw.casefold() and len(how) > SHORTEST_TELLING:
        return False
    if not is_meant or _is_elsewhere(what, act.line):
        return None
    return True


def _is_done(text: str, act: ProposedAct, around: Circumstances) -> bool:
    """Return whether the session, or the same line, did what a text requires before the act."""
    edits = [number for number, action in enumerate(around.did) if action.type is ActionType.EDIT]
    # Checks before a commit are needed again after an edit.
    commits = any(call.words[:2] in (("git", "commit"), ("git", "push")) for call in act.doing)
    first = max(edits, default=-1) + 1 if commits else 0
    done = [action.target for action in around.did[first:] if action.ok and action.type is not ActionType.EDIT]
    earlier = [call for line in done for call in list_invocations(line)] + list(act.invocations[:-1])
    told = _read_told(text).words
    return any(
        _names_code(text, Touched((), (_plain(call),)))
        or len(_list_stems(call) & told - {call.words[0]}) >= LEAST_SHARED
        for call in earlier
        if not call.is_wrapper
    )


def _names_code(text: str, touched: Touched) -> bool:
    # The last word of the act itself is no requirement.
    return any(
        command[0] not in ("git", "gh", "cd") and text_names(text, Touched((), (command,)))
        for command in touched.commands
        if command
    )
