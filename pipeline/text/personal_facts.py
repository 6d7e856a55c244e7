"""Facts about the user: which attributes there are, how sentences state them, and how questions ask for them.

The attributes and the expressions of four languages are in `lexicon/personal_facts.toml`. The tools of which a project
uses one at a time are stated in the same way.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from pipeline.kernel.records import USER_SUBJECT
from pipeline.text.lexicon import load_lexicon
from pipeline.text.names import SEPARATOR, canonical_name

USER: Final = USER_SUBJECT
PROJECT: Final = "project"
# A question about the user is short; a longer text is a task.
LONGEST_QUESTION: Final = 400

_LEXICON: Final = load_lexicon("personal_facts")
_ATTRIBUTES: Final = _LEXICON.table("attributes")
_TOOLS: Final = {USER: _ATTRIBUTES, PROJECT: _LEXICON.table("project")}
_FIRST_PERSON: Final = re.compile(_LEXICON.entries["first_person"]["words"])
_CLAUSE_START: Final = re.compile(r"(?:^|[,;:–—.!?]\s+|\s-\s+)")
_NOW: Final = re.compile(rf"\b(?:{_LEXICON.entries['now']}|{_LEXICON.entries['here']})\b", re.IGNORECASE)
_SPACE: Final = "[ _-]?"
# What a tool is used as: "Helix as my editor".
_NAMED_AFTER: Final = (
    r"(?: (?:as|als|como|comme) (?:(?:my|the|our|mein\w*|unser\w*|mi|nuestro|mon|notre) )?(?P<named_after>\w[\w-]*))?"
)
# How a question names an attribute.
_ASKING: Final = (
    r"\b(?:what|which|who|tell me|remind me|do you (?:know|remember)|was|wie|welche\w*|weißt du|cu[áa]l|qu[ée]|"
    r"sabes|quel\w*|sais[- ]tu|tu sais)\b"
)
_MINE: Final = (
    r"(?:my|mein\w{0,2}|mi|mon|ma) (?:(?:favou?rite|preferred|main|default|liebst\w+|bevorzugt\w+|current) )?"
)
_I_USE: Final = r" (?:[\w'-]+ ){0,3}?(?:i|ich|uso|utilizo|prefiero|tengo|je|j'\w+)\b"


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a sentence states about the user or the project.

    `replaces` is whether it ends another value for sure: its attribute has one value at a time, or it states a change.
    A hint may mean something else and only questions a known value: "I'm in Metz now".
    """

    subject: str
    attribute: str
    value: str
    replaces: bool
    is_hint: bool = False


def find_stated_fact(sentence: str) -> StatedFact | None:
    """Return the first fact that a sentence states; None if it states none, or one that is valid only sometimes."""
    text = sentence.replace("’", "'")
    is_change = _expression("change").search(text) is not None
    without_times = " ".join(_compile_times().sub(" ", text).split()).replace(" ,", ",")
    for form in dict.fromkeys((text, without_times)):
        if stated := _read_clauses(form, is_change=is_change):
            return stated
    return None


def _read_clauses(text: str, *, is_change: bool) -> StatedFact | None:
    for start in _CLAUSE_START.finditer(text):
        lead = _expression("lead").match(text, start.end())
        at = start.end() if lead is None else lead.end()
        for stated, end in (*_read_attributes(text, at), *_read_tools(text, at, is_change=is_change)):
            is_restricted = _expression("restricted").search(text, end) is not None
            # What a sentence adds about a project would be lost.
            if not is_restricted and (stated.subject == USER or not _NOW.sub("", text[end:]).strip(" .!")):
                return stated
    return None


def list_asked_attributes(question: str) -> frozenset[str]:
    """Return the attributes of the user that a question asks for."""
    if len(question) > LONGEST_QUESTION:
        return frozenset()
    text = question.casefold().replace("’", "'").replace("ss", "ß")
    if not _FIRST_PERSON.search(text):
        return frozenset()
    asks, names, phrases = _compile_questions()
    asking = asks.search(text)
    # A name is asked for only after the first word that asks.
    asked = {name for name, pattern in names.items() if asking and pattern.search(text, asking.start())}
    return frozenset(asked.union(name for name, pattern in phrases.items() if pattern.search(text)))


def is_about_user(text: str) -> bool:
    """Return whether a text contains the first person singular."""
    return _FIRST_PERSON.search(text.casefold().replace("’", "'")) is not None


def skip_lead(sentence: str) -> int:
    """Return the position after the words that only introduce a statement, such as "fyi"."""
    match = _expression("lead").match(sentence)
    return 0 if match is None else match.end()


@lru_cache(maxsize=4096)
def attribute_of_user(name: str) -> str:
    """Return the attribute of the user that a canonical name means, or the name itself."""
    return next((attribute for attribute, pattern in _compile_names().items() if pattern.fullmatch(name)), name)


def _read_attributes(text: str, at: int) -> Iterator[tuple[StatedFact, int]]:
    not_names, adverbs = _LEXICON.words("not_names"), _LEXICON.words("adverbs")
    for attribute, is_sure, pattern in _compile_attributes():
        match = pattern.match(text, at)
        if match is None:
            continue
        words = match["value"].strip(" .").split()
        while words and words[-1].casefold() in adverbs:
            words.pop()
        # "At night" names no employer, "Home Depot" does.
        is_name = len(words) > 1 and words[0][0].isupper()
        if not words or (words[0].casefold() in not_names and not is_name):
            continue
        value = " ".join(words)
        # "I moved to Helix" names no city.
        if _find_tool(USER, value) is None:
            yield StatedFact(USER, attribute, value, replaces=is_sure, is_hint=not is_sure), match.end()


def _read_tools(text: str, at: int, *, is_change: bool) -> Iterator[tuple[StatedFact, int]]:
    for subject, pattern in _compile_tools():
        match = pattern.match(text, at)
        if match is None:
            continue
        value, named = match["value"], match.groupdict().get("named") or match["named_after"]
        attribute = _find_tool(subject, value)
        if named is not None and (attribute is not None or value[0].isupper()):
            attribute = _find_attribute(subject, named)
        if attribute is not None:
            yield StatedFact(subject, attribute, value, is_change), match.end()


def _find_tool(subject: str, value: str) -> str | None:
    return _index_tools(subject).get(canonical_name(value))


def _find_attribute(subject: str, name: str) -> str | None:
    spelled = canonical_name(name)
    return next((attribute for attribute, pattern in _compile_names(subject).items() if pattern.match(spelled)), None)


@cache
def _index_tools(subject: str) -> Mapping[str, str]:
    """Return the attribute of each tool."""
    table = _TOOLS[subject]
    return {
        canonical_name(tool): attribute
        for attribute, lists in table.entries.items()
        if "tools" in lists
        for tool in table.table(attribute).words("tools")
    }


@cache
def _compile_names(subject: str = USER) -> Mapping[str, "re.Pattern[str]"]:
    """Return an expression for the canonical names of each attribute."""
    return {attribute: _compile(f"(?:{_names_of(subject, attribute)})$") for attribute in _TOOLS[subject].entries}


@cache
def _compile_questions() -> "tuple[re.Pattern[str], Mapping[str, re.Pattern[str]], Mapping[str, re.Pattern[str]]]":
    """Return expressions for the words that ask, and by attribute for its names after them, and for phrases."""
    names, phrases = {}, {}
    for attribute, lists in _ATTRIBUTES.entries.items():
        named = _names_of(USER, attribute)
        asked = rf"{_ASKING}.{{0,40}}\b{_MINE}(?:{named})\b|{_ASKING} (?:{named})\b{_I_USE}"
        names[attribute] = _compile_question(asked)
        if asks := lists.get("asks", ()):
            phrases[attribute] = _compile_question("|".join(f"\\b(?:{pattern})(?!\\w)" for pattern in asks))
    return _compile_question(_ASKING), names, phrases


def _compile_question(pattern: str) -> "re.Pattern[str]":
    return _compile(pattern.replace("{now}", _LEXICON.entries["now"]).replace("ss", "ß"))


# Expressions are compiled at their first use: most processes never read a statement.
@cache
def _expression(name: str) -> "re.Pattern[str]":
    return _compile(_LEXICON.entries[name])


@cache
def _compile_times() -> "re.Pattern[str]":
    times = _LEXICON.table("times").entries
    return _compile("|".join(rf"(?<!\w)(?:{_fill(time, times)})(?!\w)" for time in times["says"]))


@cache
def _compile_attributes() -> "tuple[tuple[str, bool, re.Pattern[str]], ...]":
    """Return the expressions of statements, each with its attribute and whether it states the attribute for sure."""
    values = _value_expressions()
    return tuple(
        (attribute, is_sure, _compile(_fill(pattern, values)))
        for attribute, lists in _ATTRIBUTES.entries.items()
        for name, is_sure in (("says", True), ("hints", False))
        for pattern in lists.get(name, ())
    )


@cache
def _compile_tools() -> "tuple[tuple[str, re.Pattern[str]], ...]":
    """Return the expressions of statements about tools, each with its subject."""
    values = _value_expressions()
    return tuple(
        (subject, _compile(_fill(f"(?:{pattern}){_NAMED_AFTER}{{end}}", values)))
        for subject in _TOOLS
        for pattern in _LEXICON.entries["frames"][subject]
    )


def _value_expressions() -> dict[str, str]:
    capital = r"(?-i:[A-ZÀ-ÞŁŚŻŠČŽ])[\w'.&-]*"
    link = r"(?:am|an der|ob der|de|del|la|le|les|sur|of|the|upon|im|bei)"
    determiner = r"(?:the|an?|my|our|your|this|that|der|die|das|dem|den|eine?[rm]?|meine?[rm]?|el|la|los|una?|une|mi)"
    places = rf"{capital}(?:[ -](?:{link}[ -])?{capital}){{0,3}}|(?!{determiner}\b)\w[\w'-]*(?: \w+)?"
    end = _LEXICON.entries["end"]
    return {
        "end": end,
        "now": _LEXICON.entries["now"],
        "town": rf"(?P<value>{places})",
        "place": rf"(?P<value>{places}){end}",
        "person": rf"(?P<value>{capital}(?: {capital}){{0,2}}|\w[\w'-]*){end}",
        "phrase": rf"(?P<value>[^\s,;.!:()][^,;.!:()]{{1,48}}?){end}",
        "language": rf"(?:el |le |l')?(?P<value>{'|'.join(_LEXICON.words('languages'))}){end}",
        "address": rf"(?P<value>[\w.+-]+@[\w.-]+\w){end}",
        "other": r"[\w.+#-]+(?: [\w.+#-]+){0,2}?",
        "tool": r"(?P<value>[\w.+#-]*[\w+#](?: [\w.+#-]*[\w+#]){0,2}?)",
        "class": r"(?P<named>\w[\w-]*(?: \w+){0,2}?)",
    }


def _names_of(subject: str, attribute: str) -> str:
    names = (attribute, *_TOOLS[subject].table(attribute).words("names"))
    return "|".join(sorted((name.replace(SEPARATOR, _SPACE) for name in names), key=len, reverse=True))


def _fill(pattern: str, expressions: Mapping[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda match: expressions[match[1]], pattern)


def _compile(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern, re.IGNORECASE)
