"""Results of a search over the session archive."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A past session that is about a query, and the turn in it that says most about the query.

    `at`, `turn_seq`, `role` (`user` or `assistant`) and `quote` belong to the turn. `relevance` is the probability
    that the session is about the query, 0 to 1; `is_relevant` means that it is high enough to be shown unasked.
    """

    session_id: str
    agent: str | None
    title: str | None
    at: str
    turn_seq: int
    role: str
    quote: str
    score: float
    relevance: float
    is_relevant: bool
