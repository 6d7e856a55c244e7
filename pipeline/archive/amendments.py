"""Find the conclusions that a later decision about the same subject replaces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.archive import phrases
from pipeline.store.conclusions import Conclusion, ConclusionKind
from pipeline.text.tokens import identifiers, search_tokens

# Minimum share of the words of the shorter statement in both: of one that says that it replaces another, and of one
# that does not, but names the same code.
REPLACED_SHARE, RESTATED_SHARE = 0.3, 0.5
LEAST_SHARED = 3
# Minimum share of an earlier session's best conclusion that its other conclusions need to be replaced with it.
BESIDE_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class _Session:
    """The conclusions of a session that decide something, with their words."""

    conclusions: Sequence[Conclusion]

    @property
    def at(self) -> str:
        return max(conclusion.at for conclusion in self.conclusions)

    @property
    def replaces(self) -> bool:
        return any(phrases.replaces(conclusion.content) for conclusion in self.conclusions)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(word for conclusion in self.conclusions for word in search_tokens(conclusion.content))

    @property
    def main(self) -> Conclusion:
        return self.conclusions[0]


def find_replaced(one: Sequence[Conclusion], other: Sequence[Conclusion]) -> Iterator[tuple[int, int]]:
    """Yield the conclusions of the earlier of two sessions that the later one replaces: pairs of row numbers."""
    sessions = [
        _Session([conclusion for conclusion in conclusions if conclusion.kind is not ConclusionKind.OPEN])
        for conclusions in (one, other)
    ]
    if not all(session.conclusions for session in sessions):
        return
    earlier, later = sorted(sessions, key=lambda session: session.at)
    if earlier.at == later.at or not _is_same_subject(earlier, later):
        return
    words = later.words
    for conclusion in earlier.conclusions:
        own = frozenset(search_tokens(conclusion.content))
        if conclusion is earlier.main or len(own & words) >= BESIDE_SHARE * len(own):
            yield conclusion.seq, later.main.seq


def _is_same_subject(earlier: _Session, later: _Session) -> bool:
    before, after = (frozenset(search_tokens(session.main.content)) for session in (earlier, later))
    common = len(before & after)
    share = common / max(1, min(len(before), len(after)))
    names = set(identifiers(earlier.main.content)) & set(identifiers(later.main.content))
    if later.replaces:
        topic = len(set(earlier.main.topic) & later.words)
        named = bool(names) or bool(set(_names(earlier)) & set(_names(later)))
        return common >= LEAST_SHARED and (share >= REPLACED_SHARE or (named and common + topic >= 2 * LEAST_SHARED))
    return bool(names) and common >= 2 * LEAST_SHARED and share >= RESTATED_SHARE


def _names(session: _Session) -> list[str]:
    return identifiers(" ".join([*session.main.topic, *(conclusion.content for conclusion in session.conclusions)]))
