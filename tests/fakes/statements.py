"""A classifier that takes for lasting what begins with a word that says what it is: "rule: never push".

`labels` gives the labels of other sentences.
"""

from collections.abc import Sequence

from pipeline.sessions.statements import Label, Statement


class MarkedStatements:
    """Tell statements by their first word."""

    def __init__(self, *_workspace_and_text: str) -> None:
        """Ignore whose text is read: this class can replace a function that returns a classifier."""
        self.labels: dict[str, str] = {}

    def classify(self, sentences: Sequence[str]) -> list[Statement]:
        """Return what each sentence is, in their order."""
        return [self._classify(sentence) for sentence in sentences]

    def _classify(self, sentence: str) -> Statement:
        word = sentence.partition(":")[0].lower()
        if sentence in self.labels:
            return Statement(sentence, 0.95, Label(self.labels[sentence]), 0.95)
        if word in set(Label):
            return Statement(sentence, 0.95, Label(word), 0.95)
        return Statement(sentence, 0.1, Label.FACT, 0.1)
