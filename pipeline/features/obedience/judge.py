"""Decide whether an act kept or broke a rule that names a command, a file, an option or a word."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from pipeline.features.lessons.advice import ORDINARY
from pipeline.features.lessons.command_rules import Verdict, judge, list_environments
from pipeline.features.lessons.prohibitions import FLAG, words_of
from pipeline.features.obedience.acts import MOST_CALLS, Act
from pipeline.features.obedience.code_words import judge_words
from pipeline.features.obedience.rules import (
    ASSIGNMENT,
    KEPT_RULES,
    Clause,
    Order,
    ReadRule,
    find_act,
    is_below,
    is_file,
    is_form,
    is_path,
    list_content,
    load_programs,
    read_rule,
    words_in,
)
from pipeline.text.command_lines import Invocation, has_option, rehearses

# Maximum number of earlier acts that are compared.
MOST_BEFORE = 200
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+|[\w]+(?:-\w+)+|/\S+")
_HOST_END = re.compile(r"[@=:\s/]+")
_ARROW = re.compile(r"[-=]>\s|→")
_SHORT_FLAG = re.compile(r"-[A-Za-z]")


def judge_act(text: str, act: Act, before: Sequence[Act] = ()) -> bool | None:
    """Return whether an act kept a rule (True) or broke it (False); None if the rule does not concern it."""
    rule = read_rule(text)
    found = [*_judge_order(rule, act, before[-MOST_BEFORE:]), *_judge_files(rule, act)]
    places = rule.places
    for change in act.changes:
        if not places or any(is_below(change.path, place) for place in places):
            found += judge_words(rule, change)
    is_elsewhere = bool(rule.paths and words_in("nothing") & rule.words) and not any(
        path.strip("/") in act.line for path in rule.paths
    )
    if rule.order is None and act.made_calls and not is_elsewhere:
        guarded = judge(rule.text, act.line) if rule.forbidding and len(act.calls) <= MOST_CALLS else None
        found += chain(*(_judge_call(rule, act, call, guarded) for call in act.made_calls))
    return None if not found else False not in found


# Order


def _judge_order(rule: ReadRule, act: Act, before: Sequence[Act]) -> Iterator[bool]:
    order = rule.order
    if order is None:
        return
    if order.is_after:
        yield from _judge_following(order, act, before)
    elif act.is_edit:
        if words_in("edits").intersection(order.act) and "read" in rule.words:
            yield any(other.path == act.path for other in before)
    else:
        yield from _judge_preceding(order, act, before)


def _judge_following(order: Order, act: Act, before: Sequence[Act]) -> Iterator[bool]:
    edits = [number for number, other in enumerate(before) if _edits_named(order.act, other)]
    since = [call for other in before[edits[-1] + 1 :] for call in other.calls] if edits else []
    if edits and not _are_done(order, since):
        if _are_done(order, act.calls):
            yield True
        elif any(_does(("commit",), call) for call in act.calls):
            yield False


def _judge_preceding(order: Order, act: Act, before: Sequence[Act]) -> Iterator[bool]:
    is_meant = any(map(find_act, order.act))
    programs = frozenset() if is_meant else load_programs().intersection(chain(*order.needed))
    # What was checked before the last edit says nothing about a commit.
    checks = ("git", "commit") in map(find_act, order.act)
    edits = [number for number, other in enumerate(before) if checks and other.is_edit]
    valid = [call for other in before[edits[-1] + 1 if edits else 0 :] for call in other.calls]
    for number, call in enumerate(act.calls):
        if _does(order.act, call) and (not programs or call.words[0] in programs) and not rehearses(call):
            yield _are_done(order, [*valid, *act.calls[:number]])


def _are_done(order: Order, calls: Sequence[Invocation]) -> bool:
    return all(any(_does(group, call) for call in calls) for group in order.needed)


def _does(words: Sequence[str], call: Invocation) -> bool:
    """Return whether a command does what some words say: it contains all of them, or the command that they mean."""
    said = [part for word in call.words for part in (word.casefold(), *re.split(r"\W+", word.casefold())) if part]
    acts = [act for word in words if (act := find_act(word)) is not None]
    if acts and not load_programs().intersection(words):
        return any(call.words[0] == act[0] and act[1] in said for act in acts)
    return all(any(is_form(part, word.removeprefix("./")) for part in said) for word in words)


def _edits_named(words: Sequence[str], act: Act) -> bool:
    parts = [part.casefold() for part in re.split(r"[/\\.]", act.path)]
    names = [word.lstrip("*.") for word in words if not word.casefold().startswith(("chang", "edit", "touch", "änder"))]
    return act.is_edit and bool(names) and all(any(is_form(part, name) for part in parts) for name in names)


# Files


@dataclass(frozen=True, slots=True)
class _NamedFiles:
    """The files and hosts of a rule: what must not be edited, removed or touched at all."""

    unchanged: tuple[str, ...]
    kept: tuple[str, ...]
    private: tuple[str, ...]
    hosts: frozenset[str]
    folders: frozenset[str]


@lru_cache(KEPT_RULES)
def _list_named_files(rule: ReadRule) -> _NamedFiles:
    """Return the files and hosts that a rule forbids."""
    forbidding, nothing = rule.forbidding, bool(words_in("nothing") & rule.words)
    # "Don't edit memory.x": the end of a file need not be a known one.
    files = [file for clause in forbidding for file in _list_files(clause)]
    files = files or next(filter(None, map(_list_files, rule.asking)), [])
    hosts = frozenset(word for clause in rule.clauses for word in clause.words if _HOST.fullmatch(word))
    bare = [clause for clause in forbidding if not rule.paths and words_in("edits").intersection(clause.folded)]
    return _NamedFiles(
        tuple(_list_unchanged(rule, files if forbidding and rule.words & words_in("edits") else [])),
        tuple(files) if any(words_in("removals").intersection(clause.folded) for clause in forbidding) else (),
        rule.paths if nothing and "there" in rule.words else (),
        hosts if nothing else frozenset(host for host in hosts if forbidding and host.count(".") > 1),
        frozenset(term for clause in bare for term in clause.terms),
    )


def _judge_files(rule: ReadRule, act: Act) -> Iterator[bool]:
    named = _list_named_files(rule)
    if named.private:
        words = [act.path, *(word for call in act.calls for word in call.words[1:])]
        yield from (False for word in words if word and any(is_below(f"{word}/", path) for path in named.private))
    if named.hosts:
        words = [word for call in act.calls for word in (*call.words, *call.files)]
        yield from (False for word in words if not named.hosts.isdisjoint(_HOST_END.split(word)))
    for path in act.changed_files if named.unchanged or named.folders else ():
        is_named = any(is_below(path, pattern) for pattern in named.unchanged)
        if is_named or not named.folders.isdisjoint(path.split("/")[:-1]):
            # A rule about existing files, or what they contain, asks for a new one.
            adds = bool(act.changes) and all(change.only_adds for change in act.changes)
            yield adds and not words_in("existing").isdisjoint(rule.words)
    if named.kept:
        yield from (False for file in act.removed_files if any(is_below(file, path) for path in named.kept))


def _list_unchanged(rule: ReadRule, files: Sequence[str]) -> list[str]:
    """Return the files that must not be edited: some files, and those in a state such as generated."""
    patterns, before = list(files), Clause(())
    for clause in rule.forbidding:
        if words_in("writes").intersection(clause.folded):
            patterns += [word for word in clause.words if is_path(word)]
    for clause in rule.clauses:
        state = next((at for at, word in enumerate(clause.folded) if word in words_in("generated")), None)
        if state is not None:
            # "internal/gen is output, hands off". After the state are the files that it is generated from.
            patterns += _list_files(clause if state else before)
            sources = [word for word in clause.words[state:] if is_path(word)] if state else []
            patterns = [path for path in patterns if path not in sources]
        before = clause
    return patterns


def _list_files(clause: Clause) -> list[str]:
    """Return the files of a clause without those after "only", which are edited instead."""
    end = next((at for at, word in enumerate(clause.folded) if word in words_in("only")), None)
    return [word for word in clause.words[:end] if is_path(word) or is_file(word)]


# Commands


@dataclass(frozen=True, slots=True)
class _Named:
    """The words of a clause that a command has, and the options that it names, each with its value or without one."""

    clause: Clause
    words: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]


def _judge_call(rule: ReadRule, act: Act, call: Invocation, guarded: Verdict | None) -> Iterator[bool]:
    forbidden = list(filter(None, (_name(clause, call) for clause in rule.forbidding)))
    yield from _judge_commit(rule, call)
    asked = list(_judge_asked(rule, call, forbidden))
    yield from asked or _judge_forbidden(rule, act, call, forbidden, guarded)


def _judge_asked(rule: ReadRule, call: Invocation, forbidden: Sequence[_Named]) -> Iterator[bool]:
    # "If pytest dies, use --reuse-db" and "pytest dies -> --reuse-db" ask for nothing else.
    is_conditional = _ARROW.search(rule.text) or any(
        word in words_in("conditions") for clause in rule.clauses[:1] for word in clause.folded[:1]
    )
    for clause in rule.asking if not is_conditional else ():
        named = _name(clause, call)
        if named is None or any(len(other.words) > len(named.words) for other in forbidden):
            continue
        settings = [word for word in clause.words if ASSIGNMENT.fullmatch(word)]
        if named.flags or settings:
            has_all = _has_options(named, call) and set(settings) <= set(call.settings)
            # "Run dbt with --target dev" does not mean `dbt deps`.
            if has_all or len(named.words) > 1 or words_in("neutral").isdisjoint(call.words[1:2]):
                yield has_all
            return
        if rule.forbidding and _replaces(rule, call):
            yield True
            return


def _judge_forbidden(
    rule: ReadRule, act: Act, call: Invocation, forbidden: Sequence[_Named], guarded: Verdict | None
) -> Iterator[bool]:
    for clause in rule.forbidding:
        content = [word for word in list_content(clause.words) if not list_environments(word)]
        if clause.has_only_way and content and _does(content, call) and not _is_elsewhere(clause, act):
            yield False
    for named in forbidden:
        if not _has_options(named, call):
            yield from [True] * (len(named.words) > 1)
        elif guarded in (None, Verdict.FORBIDDEN) and not _is_elsewhere(named.clause, act):
            yield False
    if not words_in("installs").isdisjoint(call.words[1:3]):
        packages = {re.split(r"[=<>~@\[]", word)[0] for word in call.words[2:]}
        terms = (clause.terms for clause in rule.forbidding)
        yield from (False for each in terms if len(each) == 1 and each[0] in packages)
    # A short option means something else for another program.
    is_named = call.words[0].rpartition("/")[2] in rule.words or not any(map(_SHORT_FLAG.fullmatch, rule.words))
    if not forbidden and is_named and guarded is Verdict.FORBIDDEN:
        yield False


def _is_elsewhere(clause: Clause, act: Act) -> bool:
    """Return whether a clause is about another environment than a command."""
    meant, reached = list_environments(" ".join(clause.words)), list_environments(act.line)
    return bool(meant and reached) and meant.isdisjoint(reached)


def _has_options(named: _Named, call: Invocation) -> bool:
    """Return whether a command has the options that a clause names, with their values."""
    given = {word.rpartition("=")[2] for word in call.words[1:]}
    return all(value in given if value else has_option(call, flag) for flag, value in named.flags)


def _list_flags(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the options among some words, each with the value after it: a last word that is none of prose."""
    following = [*words[1:], ""]
    flags = [(word, value) for word, value in zip(words, following, strict=True) if FLAG.fullmatch(word)]
    last = next(iter(list_content(words[-1:])), None)
    return tuple((flag, value if flag.startswith("--") and value == last else "") for flag, value in flags)


def _name(clause: Clause, call: Invocation) -> _Named | None:
    """Return what a clause names of a command; None if it names another one."""
    program = call.words[0].casefold().rpartition("/")[2]
    places = [at for at, word in enumerate(clause.folded) if word.strip("`").rpartition("/")[2] == program]
    flags = _list_flags(clause.words[places[0] if places else 0 :])
    if not places and flags and not load_programs().intersection(clause.folded):
        # "Commits only with -s".
        acts = [act for word in clause.words if (act := find_act(word)) and act[0] == program and act[1] in call.words]
        return _Named(clause, acts[0], flags) if acts else None
    arguments = [argument.casefold() for argument in call.words[1:]]
    for place in places:
        words = [program, *_list_subcommands(clause.folded[place + 1 :])]
        # "No dumps in git" forbids no command.
        is_alone = len(words) == 1 and (program in ORDINARY or (clause.forbids and list_content(clause.words[:place])))
        if all(word in arguments for word in words[1:]) and not is_alone:
            return _Named(clause, tuple(words), flags)
    return None


def _list_subcommands(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word in words_of("stops") or word in words_in("fillers") | words_in("only"):
            return
        if not (FLAG.fullmatch(word) or word in words_of("fillers") or word.isdigit()):
            yield word


def _replaces(rule: ReadRule, call: Invocation) -> bool:
    """Return whether a command does what a rule forbids of another program: installing, if it forbids to install."""
    forbidden = set(chain(*(clause.folded for clause in rule.forbidding)))
    installs = words_in("installs")
    return not forbidden & installs or not installs.isdisjoint(call.words[1:3])


def _judge_commit(rule: ReadRule, call: Invocation) -> Iterator[bool]:
    """Yield whether a command commits a file that must not be committed, or a message with emojis."""
    if call.words[0] != "git" or len(call.words) < 2 or call.words[1] not in ("add", "commit"):
        return
    for clause in rule.forbidding:
        is_commit = call.words[1] == "commit"
        files = [word for word in clause.words if is_path(word)]
        if is_commit and any(word.startswith("emoji") for word in clause.folded):
            yield not any(unicodedata.category(sign) == "So" for word in call.words for sign in word)
        if files and any(find_act(word) in (("git", "commit"), ("git", "push")) for word in clause.words):
            yield from (False for word in call.words[2:] if any(is_below(word, file) for file in files))
            yield from [True] * is_commit
