"""The scores of all memories for a text, which searches of one message with different filters share."""

from collections.abc import Hashable
from typing import Any

from pipeline.kernel.records.recall import Channel

# The channels' scores before a filter selects from them.
ChannelScores = dict[Channel, Any]


class QueryScores:
    """Keep the scores of one message's searches as long as the message is answered.

    Scores belong to a text and a state of the store: after a write, the next search computes its own.
    """

    def __init__(self) -> None:
        self._scores: dict[tuple[str, Hashable], ChannelScores] = {}

    def find(self, text: str, state: Hashable) -> ChannelScores:
        """Return the known scores for a text in a state; the channels of a search add theirs."""
        return self._scores.setdefault((text, state), {})

    def find_last(self, text: str) -> ChannelScores:
        """Return the scores that a search of a text computed last; none if it read a stored answer."""
        return next((scores for (known, _), scores in reversed(self._scores.items()) if known == text), {})
