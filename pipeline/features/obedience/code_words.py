"""Decide whether an edit kept or broke a rule about the words of code."""

import re
from collections.abc import Iterator, Sequence

from pipeline.features.lessons.prohibitions import CONDITION, FLAG
from pipeline.features.obedience.acts import Change
from pipeline.features.obedience.rules import (
    Clause,
    ReadRule,
    find_concept,
    is_below,
    is_path,
    list_content,
    load_programs,
    words_in,
)

MOST_TERMS = 2
SHORTEST_TERM, SHORTEST_PLURAL = 3, 5
_WORD = re.compile(r"\w{3,}")
_QUALIFIED = re.compile(r"[a-z]\w*(?:\.[a-z]\w*)+\.[A-Z]\w*")
# "TODO(ABC-1)": the form in which a word is allowed.
_FORM = "{}("


def judge_words(rule: ReadRule, change: Change) -> Iterator[bool]:
    """Yield whether an edit adds a word that a rule forbids, or replaces it, or adds what the rule asks for."""
    is_prose = change.suffix in words_in("prose_files") and change.suffix not in rule.suffixes
    if rule.suffixes and change.suffix not in rule.suffixes:
        return
    asked = [word for clause in rule.asking for word in list_content(clause.words)]
    for clause in rule.forbidding:
        terms, places, object_words = clause.terms, clause.places, clause.object
        names_files = any(is_path(word) and word not in places for word in object_words)
        excepted = [word for other in rule.asking for word in other.words if "/" in word and word not in rule.places]
        is_elsewhere = rule.excepts(change.path) or any(is_below(change.path, path) for path in excepted)
        is_command = any(word.casefold() in load_programs() or FLAG.fullmatch(word) for word in clause.words)
        concept = find_concept(object_words)
        if concept is not None and not (is_command or is_elsewhere):
            if any(concept.search(line) for line in change.list_added_lines(with_comments=False)):
                yield False
            elif concept.search(change.removed):
                yield True
            continue
        # Words in quotation marks and addresses are also meant in prose.
        quoted = (f"{mark}{term}{mark}" for mark in "\"'" for term in terms[:1])
        is_meant = not is_prose or any(text in rule.text for text in quoted) or any("/" in term for term in terms)
        if terms and is_meant and not (names_files or is_command or is_elsewhere) and _are_telling(terms):
            yield from _judge_terms(rule, clause, terms, asked, change)


def _are_telling(terms: Sequence[str]) -> bool:
    return len(terms) <= MOST_TERMS and (len(terms) > 1 or len(terms[0]) >= SHORTEST_TERM)


def _judge_terms(
    rule: ReadRule, clause: Clause, terms: Sequence[str], asked: Sequence[str], change: Change
) -> Iterator[bool]:
    # Markers such as TODO are found in comments.
    is_marker = all(term.isupper() for term in terms)
    form = _FORM.format(terms[0])
    lines = change.list_added_lines(with_comments=is_marker)
    if change.suffix in words_in("prose_files"):
        lines, terms = [line.casefold() for line in lines], [term.casefold() for term in terms]
    broken = [line for line in lines if all(contains(line, term) for term in terms)]
    if CONDITION.search(" ".join(clause.words)):
        broken = [line for line in broken if form not in line] if form in rule.text else []
    if broken:
        yield False
    elif (
        all(contains(change.removed, term) for term in terms)
        or _has_alternative(lines, asked)
        or (is_marker and any(form in line for line in lines))
    ):
        yield True


def _has_alternative(lines: Sequence[str], asked: Sequence[str]) -> bool:
    """Return whether lines have a word that a rule asks for, or the start of a longer one: `log` for a logger."""
    words = {word for line in lines for word in _WORD.findall(line)}
    called = [term.removesuffix("()") for term in asked if term.endswith("()")]
    if any(re.search(rf"(?<!\w){re.escape(name)}\(", line) for name in called for line in lines):
        return True
    return any(
        term == word or (len(term) >= SHORTEST_PLURAL and term.startswith(word)) for term in asked for word in words
    )


def contains(text: str, term: str) -> bool:
    """Return whether a text contains a term as words; a tag also after a colon and a space."""
    if term.startswith(":"):
        return re.search(rf":\s*[\"']?{re.escape(term[1:])}(?!\w)", text) is not None
    begin, end = (r"(?<!\w)" if term[:1].isalnum() else ""), (r"(?!\w)" if term[-1:].isalnum() else "")
    words = r"\s+".join(map(re.escape, term.split()))
    if _QUALIFIED.fullmatch(term):
        # "android.util.Log" is written as Log.d().
        words, end = rf"(?:{words}\b|{term.rpartition('.')[2]}\.)", ""
    return re.search(f"{begin}{words}{end}", text) is not None
