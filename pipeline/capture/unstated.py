"""Recognize sentences that state nothing: hypotheses, wishes, roles, texts to write, people of examples, sarcasm.

The expressions of seven languages are in `lexicon/unstated.toml`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from pipeline.text.lexicon import load_lexicon


@dataclass(frozen=True, slots=True)
class _Expressions:
    unstated: "re.Pattern[str]"
    role: "re.Pattern[str]"
    of_role: "re.Pattern[str]"
    task: "re.Pattern[str]"
    of_example: "re.Pattern[str]"


def keep_statements(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of a message that may state something."""
    known = _compile_expressions()
    of_earlier: re.Pattern[str] | None = None
    for sentence in sentences:
        text = sentence.replace("’", "'")
        if known.role.match(text):
            of_earlier = known.of_role
        elif known.task.match(text):
            of_earlier = known.of_example
        elif of_earlier is not None and of_earlier.match(text):
            continue
        elif not known.unstated.match(text):
            of_earlier = None
            yield sentence


@cache
def _compile_expressions() -> _Expressions:
    lexicon = load_lexicon("unstated")
    start = rf"[\W_]{{0,5}}(?:{lexicon.entries['leads']}[,:]?\s+){{0,3}}"

    def compile_list(*names: str) -> "re.Pattern[str]":
        expressions = "|".join(lexicon.alternatives(name) for name in names).replace("{gap}", r"[^.!?\n]{0,90}?")
        return re.compile(rf"{start}(?:{expressions})", re.IGNORECASE)

    return _Expressions(
        unstated=compile_list("imagined", "sarcastic"),
        role=compile_list("roles"),
        of_role=re.compile(lexicon.entries["of_role"], re.IGNORECASE),
        task=compile_list("tasks"),
        of_example=re.compile(lexicon.entries["of_example"], re.IGNORECASE),
    )
