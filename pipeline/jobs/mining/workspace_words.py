"""The words of a workspace's memories: which memories contain a phrase, and how a token is written."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipeline.text.tokens import list_compounds, search_tokens


class WorkspaceWords:
    """The words of memories, by row number."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self._tokens: dict[int, list[str]] = {}
        self._holders: defaultdict[str, set[int]] = defaultdict(set)
        self._spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, seq: int, text: str) -> None:
        """Add a memory."""
        self.texts[seq] = text
        tokens = self._tokens[seq] = search_tokens(text)
        for token in tokens:
            self._holders[token].add(seq)
        for compound in list_compounds(text):
            own = search_tokens(compound)
            if len(own) == 1:
                self._spellings[own[0]][compound] += 1

    def holders(self, token: str) -> set[int]:
        """Return the memories with a token."""
        return self._holders.get(token, set())

    def tokens_of(self, seq: int) -> Sequence[str]:
        """Return the tokens of a memory in order."""
        return self._tokens[seq]

    def spellings(self) -> dict[str, str]:
        """Return the tokens that are one word, and their most frequent spelling."""
        return {token: spellings.most_common(1)[0][0] for token, spellings in self._spellings.items()}

    def find_phrase(self, tokens: Sequence[str]) -> set[int]:
        """Return the memories with some tokens in this order."""
        if not tokens:
            return set()
        holders = set.intersection(*(self.holders(token) for token in tokens))
        return holders if len(tokens) == 1 else {seq for seq in holders if self._contains(seq, list(tokens))}

    def find_literal(self, name: str) -> set[int]:
        """Return the memories with a name as it is written; words of the same stem are other words."""
        folded = name.casefold()
        return {seq for seq in self.find_phrase(search_tokens(name)) if folded in self.texts[seq].casefold()}

    def is_used(self, seq: int, name: Sequence[str]) -> bool:
        """Return whether a memory other than the given one contains a name."""
        return bool(self.find_phrase(search_tokens(" ".join(name))) - {seq})

    def _contains(self, seq: int, tokens: list[str]) -> bool:
        own = self._tokens[seq]
        starts = (at for at, token in enumerate(own) if token == tokens[0])
        return any(own[at : at + len(tokens)] == tokens for at in starts)
