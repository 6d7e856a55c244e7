"""Recognize by its words what a statement does: it decides, changes, corrects, reports a failure, or states nothing.

The lists are in `lexicon/statements.toml`, one table for each reader, in the languages of capture.
"""

import re
from functools import cache

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import QUESTION_MARKS

_PLACEHOLDER = re.compile(r"\{([a-z]\w*)\}")
# A consent may name nothing: a longer message says more than that.
LONGEST_CONSENT = 40
# A path is searched from the start of a word only: a search from each of its letters would be quadratic.
_PATH_OR_CODE = re.compile(r"`[^`]*+`|(?<![^\s`])[^\s/_`]*+[/_]\S*")


@cache
def expression(table: str, name: str) -> "re.Pattern[str]":
    """Return the expression of a list, in the form in which its table searches for it."""
    lists = load_lexicon("statements").table(table)

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda place: fill(lists.alternatives(name if place[1] == "words" else place[1])), text)

    return re.compile(fill(lists.entries.get("forms", {}).get(name, lists.entries["form"])), re.IGNORECASE)


def says(table: str, name: str, text: str) -> bool:
    """Return whether a text contains an expression of a list."""
    return expression(table, name).search(text) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return sentence.rstrip("\"'”»)* ").endswith(QUESTION_MARKS)


def count_rule_words(text: str) -> int:
    """Count the different words of rules, and numbers, in a text without names of code."""
    plain = _PATH_OR_CODE.sub(" ", text)
    return len({word.lower() for word in expression("decision", "rules").findall(plain)})


def consents(message: str) -> bool:
    """Return whether a message does nothing but accept."""
    return len(message) <= LONGEST_CONSENT and says("decision", "consents", message.strip())


def corrects(sentence: str) -> bool:
    """Return whether a sentence corrects, forbids, or repeats an earlier instruction."""
    text = _plain(sentence)
    if says("correction", "opening", text) or says("correction", "instead", text):
        return True
    return _may_say("reproach", text) and says("correction", "reproach", text)


def fails(text: str) -> bool:
    """Return whether a text reports a failure."""
    plain = _plain(text)
    return _may_say("failure", plain) and says("correction", "failure", plain)


def fixes(text: str) -> bool:
    """Return whether a text states the end or the cause of a failure."""
    plain = _plain(text)
    return says("correction", "fix", plain) and not says("correction", "negated_fix", plain)


def _may_say(name: str, text: str) -> bool:
    lowered = text.lower()
    return any(head in lowered for head in load_lexicon("statements").table("correction").words(f"{name}_heads"))


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lstrip(" -*>\"'\u201c\u201e«(")
