"""Cache the results of functions of a text, without keeping the texts."""

import hashlib
from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

DIGEST_BYTES = 16


def cache_by_text(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Cache up to a number of results by a digest of the text, so that long texts take no memory.

    If the cache is full, its older half is dropped. Thread-safe: two threads may compute the same result.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        results: dict[bytes, tuple[T]] = {}

        @wraps(compute)
        def find(text: str) -> T:
            # A lone surrogate has no UTF-8 form.
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
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
