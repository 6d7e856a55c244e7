"""Arrays indexed by row number: what every index and the ranking exchange."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Seqs = NDArray[np.int64]
Floats = NDArray[np.float32]


def values_at(values: NDArray[Any], seqs: Seqs) -> NDArray[Any]:
    """Return the values of given row numbers, 0 past the end."""
    if not len(values):
        return np.zeros(len(seqs), values.dtype)
    return np.where(seqs < len(values), values[np.minimum(seqs, len(values) - 1)], 0)


def mask_scores(scores: Floats, allowed: NDArray[np.bool_] | None) -> Floats:
    """Return the scores with 0 for every row number that is not allowed."""
    if allowed is None:
        return scores
    known = scores[: len(allowed)]
    kept = np.zeros_like(scores)
    np.copyto(kept[: len(known)], known, where=allowed[: len(known)])
    return kept


def best_places(scores: Floats, limit: int) -> Seqs:
    """Return the places of the largest scores above zero, largest first; ties go to the lower place."""
    places = np.flatnonzero(scores > 0)
    if len(places) > limit:
        found = scores[places]
        # Ties come along, so that age and not memory layout decides which of them stay.
        places = places[found >= np.partition(found, -limit)[-limit]]
    return places[np.lexsort((places, -scores[places]))][:limit]
