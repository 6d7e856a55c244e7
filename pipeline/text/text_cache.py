"""Cache the results of functions of a text, without keeping the texts."""

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def cache_by_text(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Cache up to a number of results by the hash of the text, so that long texts take no memory.

    If the cache is full, its older half is dropped. Thread-safe: two threads may compute the same result.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        results: dict[tuple[int, int], tuple[T]] = {}

        @wraps(compute)
        def find(text: str) -> T:
            # Python's hash is keyed, has 64 bits and is five times as fast as a digest: of the few thousand texts of a
            # cache, two are mistaken for each other once in 10^11 processes.
            key = hash(text), len(text)
            if known := results.get(key):
                return known[0]
            if len(results) >= most:
                for old in list(islice(results.copy(), most // 2)):
                    results.pop(old, None)
            result = compute(text)
            results[key] = (result,)
            return result

        return find

    return decorate
