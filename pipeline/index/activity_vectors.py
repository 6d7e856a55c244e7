"""Compare texts by the activities of software work that they are about, such as testing, releasing or storing data.

"Ship it then" and "`pnpm ship prod`, but never on Fridays" share few words and little meaning, but one activity. A text
is compared with short descriptions of activities, and two texts by these comparisons: explicit semantic analysis
(Gabrilovich and Markovitch, IJCAI 2007) with activities as concepts. `activities.txt` has one description per line
below the name of its activity.
"""

from collections.abc import Hashable
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import cast

import numpy as np

from pipeline.index.encoder import MULTILINGUAL, Encoder, Vectors, baseline
from pipeline.index.row_arrays import Floats

# A closeness to a description below this says nothing: most texts about software are that close to each other. The
# multilingual encoder puts texts of one subject less close to each other.
UNRELATED, UNRELATED_MULTILINGUAL = 0.15, 0.05
SMALLEST = 1e-6
ENCODERS = 4


@cache
def list_descriptions() -> tuple[tuple[str, ...], ...]:
    """Return the descriptions of each activity."""
    lines = files(__package__).joinpath("activities.txt").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(group) for is_name, group in groupby(lines, lambda line: line.startswith("# ")) if not is_name)


class ActivityVectors:
    """The vectors of the descriptions of activities by one encoder."""

    def __init__(self, encoder: Encoder) -> None:
        described = list_descriptions()
        self._vectors = encoder.encode_documents([text for texts in described for text in texts])
        self._starts = np.cumsum([0, *(len(texts) for texts in described[:-1])])
        self._baseline = baseline(encoder.background)
        self._unrelated = UNRELATED_MULTILINGUAL if encoder.name == MULTILINGUAL else UNRELATED

    def compare(self, vector: Vectors, others: Vectors) -> Floats:
        """Return how similar the activities of one text are to those of others, 0 to 1; shape (len(others),)."""
        profile, profiles = self._profile(vector[None])[0], self._profile(others)
        lengths = np.linalg.norm(profiles, axis=1) * np.linalg.norm(profile)
        return cast(Floats, (profiles @ profile / np.maximum(lengths, SMALLEST)).astype(np.float32))

    def _profile(self, vectors: Vectors) -> Vectors:
        """Return how close texts are to each activity; shape (len(vectors), activities)."""
        closeness = (vectors @ self._vectors.T - self._baseline) / (1 - self._baseline)
        return cast(Vectors, np.maximum(np.maximum.reduceat(closeness, self._starts, axis=1) - self._unrelated, 0))


def load_activities(encoder: Encoder) -> ActivityVectors:
    """Return the descriptions' vectors by an encoder; the first call encodes them."""
    return _load(cast("Hashable", encoder))


@lru_cache(ENCODERS)
def _load(encoder: Hashable) -> ActivityVectors:
    return ActivityVectors(cast("Encoder", encoder))
