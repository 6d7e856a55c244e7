"""Garbage collection during tests: it takes a quarter of their CPU time if it visits all modules again and again."""

import gc

# New objects until a collection, and collections until one that also visits older objects.
THRESHOLDS = (20_000, 20, 20)


def spare_collected_tests() -> None:
    """Exclude everything that exists after the collection of tests, and collect the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
