"""The rare terms of a question, by which similar questions are recognized."""

from collections.abc import Mapping

from pipeline.index.encoder import rarity
from pipeline.text.tokens import search_tokens

# A term in most background messages, such as "how", says nothing about the subject.
MIN_RARITY = 0.3


def weigh_rare_terms(question: str) -> Mapping[str, float]:
    """Return the rare terms of a question with their rarity, 0 to 1, the rarest first."""
    rarities = {token: rarity(token) for token in dict.fromkeys(search_tokens(question))}
    rare = [(token, weight) for token, weight in rarities.items() if weight >= MIN_RARITY]
    return dict(sorted(rare, key=lambda item: -item[1]))
