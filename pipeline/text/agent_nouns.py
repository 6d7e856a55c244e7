"""Nouns for tools that are named after what they do: a formatter formats, ein Formatierer formatiert."""

import re

from pipeline.text.messages import list_own_words

# A word with this many letters more than the root is another word: "run" and "rundown".
LONGEST_ENDING = 5
_AGENT = re.compile(r"(?P<root>\w{3,}?)(?:ierer|er|ers|or|ors|ador|adora|adores|eur|eurs|euse)")
_WORD = re.compile(r"[^\W\d_]+")


def list_activity_roots(question: str) -> list[str]:
    """Return the roots of the activities whose tools a question names: "format" for "which formatter do we use"."""
    matches = (_AGENT.fullmatch(word) for word in list_own_words(question))
    return [_undouble(match["root"]) for match in matches if match]


def names_activity(text: str, roots: list[str]) -> bool:
    """Return whether a text contains a word with one of some roots."""
    words = [word.casefold() for word in _WORD.findall(text)] if roots else []
    return any(word.startswith(root) and len(word) <= len(root) + LONGEST_ENDING for word in words for root in roots)


def _undouble(root: str) -> str:
    return root[:-1] if root[-1] == root[-2] and len(root) > len("run") else root
