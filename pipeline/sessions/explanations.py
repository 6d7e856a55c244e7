"""Find the sentence in which an agent explained how it solved an error."""

import re
from sqlite3 import Connection

from pipeline.kernel.store import action_history
from pipeline.sessions.remedies import Remedy
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens

# Messages after a success that are read.
ANSWERS = 3
MAX_SENTENCE_CHARS = 240
LEAST_SHARED = 2
_REASON = re.compile(
    r"(?i)\b(?:because|cause[ds]?|due to|fix(?:ed|es)?|solved|the (?:problem|issue|reason|error) (?:was|is)|so that"
    r"|weil|behoben|parce que|porque)\b"
)


def find_explanation(db: Connection, remedy: Remedy) -> str | None:
    """Return the agent's sentence after a success that is about the error or its remedy and says why."""
    if not remedy.steps:
        return None
    about = {remedy.failure.error_signature or "", *(step.target for step in remedy.steps)}
    words = {word for text in about for word in search_tokens(text)}
    best: tuple[int, str] | None = None
    for answer in action_history.list_answers(db, remedy.failure.session_id, remedy.at, ANSWERS):
        for sentence in split_sentences(answer):
            if len(sentence) > MAX_SENTENCE_CHARS or _REASON.search(sentence) is None:
                continue
            shared = len(words & set(search_tokens(sentence)))
            if shared >= LEAST_SHARED and (best is None or shared > best[0]):
                best = shared, sentence
    return None if best is None else best[1]
