"""A reranker that prefers texts with a word, and may take its time."""

from collections.abc import Callable, Iterator, Sequence


class WordReranker:
    """Scores 1 for a text with the word, 0 for any other; notes the texts, and calls `on_text` before each."""

    def __init__(self, word: str, on_text: Callable[[], object] = lambda: None) -> None:
        self._word, self._on_text = word, on_text
        self.read: list[str] = []

    def score(self, _query: str, texts: Sequence[str]) -> Iterator[float]:
        for text in texts:
            self._on_text()
            self.read.append(text)
            yield float(self._word in text)
