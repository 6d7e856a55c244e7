"""Recognize by their words the texts that say that something is no longer as it was, in four languages."""

import re
from functools import cache

from pipeline.text.lexicon import load_lexicon


def says_that_changed(text: str) -> bool:
    """Return whether a text says that something is no longer as it was."""
    return _changed().search(text.lower()) is not None


@cache
def _changed() -> "re.Pattern[str]":
    # "Providers can be replaced": what may or will happen has not. Lower case: ignoring case takes twice as long.
    return re.compile(rf"\b(?<!\bbe )(?<!\bêtre )(?<!\bser )(?:{load_lexicon('changes').alternatives('changed')})")
