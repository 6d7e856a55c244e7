"""Find capitalized names in languages that write nouns in lower case, such as Spanish and French."""

import re
from collections.abc import Iterator

from pipeline.text.languages import find_language, is_function_word

# English has a tagger; in German every noun has a capital.
_WITHOUT_RULE = frozenset({None, "english", "german"})
_CAPITALIZED = r"[A-ZÀ-ÖØ-ÞŁŠŽČ][\w'’]*[a-zß-öø-ÿšžčłńę](?:-[A-ZÀ-ÖØ-Þ][\w'’]*[^\W\d_])*"
_NAME = re.compile(
    rf"(?<![\w@/.#$&+_-]){_CAPITALIZED}(?: (?:(?:de|del|da|di|du|van) )?{_CAPITALIZED}){{0,2}}(?![\w@/(_-])"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n][ \t\"«¿¡*>-]*)$")


def find_capitalized_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name; at the start of a sentence only names of two words."""
    language = find_language(text)
    if language in _WITHOUT_RULE:
        return
    for match in _NAME.finditer(text):
        start, words = match.start(), match[0].split(" ")
        if is_function_word(words[0].lower()) or len(words[0]) < 3:
            start += len(words.pop(0)) + 1
        elif len(words) == 1 and _SENTENCE_START.search(text[max(0, start - 8) : start]):
            continue
        if words and start < match.end():
            yield start, match.end()
