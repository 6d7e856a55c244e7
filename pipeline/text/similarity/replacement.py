"""Detect statements that give different values for one slot: "names start with x_", "… with y_".

Announcements ("Decision:", "from now on", "in this project") are ignored. The rest must be literally the same, except
for one value at its end; and the statement must be of a kind with a single value at a time.
"""

from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.comparable_text import comparable_text, normalize_pair
from pipeline.text.similarity.normalizer import VALUES, WordClass

MAX_VALUE = 3
# With fewer common words, the subject is unclear.
MIN_FRAME = 3
# Longer statements are about several things.
LONGEST = 300


def gives_another_value(first: str, second: str) -> bool:
    """Return whether two texts give different values for a thing that has one value at a time."""
    if max(len(first), len(second)) > LONGEST:
        return False
    first_text, second_text = normalize_pair(*(comparable_text(text).bare for text in sorted((first, second))))
    if (
        first_text.asks
        or second_text.asks
        or first_text.tense != second_text.tense
        or first_text.persons != second_text.persons
    ):
        return False
    words, others = first_text.words, second_text.words
    start = 0
    while start < min(len(words), len(others)) and words[start].text == others[start].text:
        start += 1
    after = 0
    while after < min(len(words), len(others)) - start and words[-1 - after].text == others[-1 - after].text:
        after += 1
    value, another = words[start : len(words) - after], others[start : len(others) - after]
    rest = words[len(words) - after :]
    return (
        start > 0
        and len(words) - len(value) >= MIN_FRAME
        and all(
            1 <= len(value_words) <= MAX_VALUE and any(w.sort in VALUES for w in value_words)
            for value_words in (value, another)
        )
        and not any(word.text in v.PLACES_OF_WORK for word in (*value, *another))
        # The word after the value belongs to it, except for its object: "CamelCase for class names".
        and (not rest or rest[0].link in ("for", "as"))
        and any(word.text in v.ONE_VALUED for word in words[:start])
        and not any(word.text in v.CONDITIONS or word.sort is WordClass.NEGATION for word in (*words, *others))
    )


def gives_value(text: str) -> bool:
    """Return whether a text may give a value for a thing that has one value at a time."""
    words = normalize_pair(comparable_text(text).bare, "")[0].words if len(text) <= LONGEST else ()
    return any(word.text in v.ONE_VALUED for word in words) and any(word.sort in VALUES for word in words)
