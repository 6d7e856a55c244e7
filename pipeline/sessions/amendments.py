"""Find the conclusions that a later decision about the same subject replaces."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

from pipeline.sessions import phrases
from pipeline.store.conclusions import Conclusion
from pipeline.text.tokens import identifiers, search_tokens

# Minimum share of the shorter statement's words in both, each word weighted by its rareness: if the later one says that
# it replaces another, and if it does not, but both name the same code.
REPLACED_SHARE, RESTATED_SHARE = 0.3, 0.5
LEAST_SHARED = 4
# A decision replaces the statements that are nearly as similar to it as the most similar one.
NEAR_BEST = 0.75
# Minimum share of the words of an earlier session's other conclusions that are replaced with its main one.
BESIDE_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Subject:
    """The main conclusion of a session: its words, its names of code, and whether it replaces an earlier decision.

    `context` has its words and those of the session's topic.
    """

    conclusion: Conclusion
    words: frozenset[str]
    context: frozenset[str]
    names: frozenset[str]
    replaces: bool

    @classmethod
    def of(cls, main: Conclusion) -> "Subject":
        """Return the subject of a main conclusion."""
        words, names = frozenset(search_tokens(main.content)), frozenset(identifiers(main.content))
        return cls(main, words, words | {*main.topic}, names, phrases.replaces(main.content))


class Subjects:
    """The subjects of all sessions, and how rare their words are."""

    def __init__(self, mains: Sequence[Conclusion]) -> None:
        self._subjects = {main.session_id: Subject.of(main) for main in mains}
        self._counts = Counter(word for subject in self._subjects.values() for word in subject.words)

    def put(self, main: Conclusion) -> Subject:
        """Add or replace the subject of a session."""
        subject = Subject.of(main)
        if main.session_id not in self._subjects:
            self._counts.update(subject.words)
        self._subjects[main.session_id] = subject
        return subject

    def find_earlier(self, later: Subject) -> list[Subject]:
        """Return the subjects that a later one replaces."""
        similarities = {
            earlier.conclusion.seq: (self._compare(earlier, later), earlier)
            for earlier in self._subjects.values()
            if earlier.conclusion.at < later.conclusion.at
        }
        best = max((share for share, _ in similarities.values()), default=0.0)
        return [earlier for share, earlier in similarities.values() if share and share >= NEAR_BEST * best]

    def find_later(self, earlier: Subject) -> list[Subject]:
        """Return the subjects that replace an earlier one."""
        return [
            later
            for later in self._subjects.values()
            if earlier.conclusion.at < later.conclusion.at
            and self._compare(earlier, later)
            and earlier in self.find_earlier(later)
        ]

    def _compare(self, earlier: Subject, later: Subject) -> float:
        """Return how similar two statements are, 0 if the later one does not replace the other."""
        least = REPLACED_SHARE if later.replaces else RESTATED_SHARE if earlier.names & later.names else None
        if least is None or len(earlier.context & later.words) < LEAST_SHARED:
            return 0.0
        own, size = self._weigh(earlier.words), self._weigh(later.words)
        share = self._weigh(earlier.words & later.words) / min(own, size)
        if later.replaces:
            share = max(share, self._weigh(earlier.context & later.words) / size)
        return share if share >= least else 0.0

    def _weigh(self, words: AbstractSet[str]) -> float:
        size = len(self._subjects)
        return sum(math.log(1 + (size + 1) / (self._counts[word] + 0.5)) for word in words)


def list_replaced(earlier: Sequence[Conclusion], later: Sequence[Conclusion]) -> Iterator[tuple[int, int]]:
    """Yield the conclusions of an earlier session that a later one about the same subject replaces, with its main."""
    words = {word for conclusion in later for word in search_tokens(conclusion.content)}
    for number, conclusion in enumerate(earlier):
        own = set(search_tokens(conclusion.content))
        if number == 0 or len(own & words) >= BESIDE_SHARE * len(own):
            yield conclusion.seq, later[0].seq


def follow_chain(pairs: Sequence[tuple[int, int]], at: Mapping[int, str]) -> dict[int, int]:
    """Return for each replaced conclusion the next later one: the chain leads to the current decision."""
    following: dict[int, int] = {}
    for seq, later in pairs:
        following[seq] = min(later, following.get(seq, later), key=lambda number: at[number])
    return following
