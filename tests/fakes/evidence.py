"""Evidence for a pool of memories in which nothing speaks for anyone, but for what a test says."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.index.row_arrays import Floats, Seqs
from pipeline.recall.evidence import Evidence, Flags

_TYPES = {Floats: np.float32, Seqs: np.int64, Flags: np.bool_}


def evidence(seqs: Sequence[int], **said: Any) -> Evidence:
    """Return evidence for memories by row number, each in a session of its own."""
    count = len(seqs)
    defaults = {"seqs": seqs, "sessions": np.arange(1, count + 1), "importance": np.full(count, 0.5)}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Evidence):
        value = said.pop(field.name, defaults.get(field.name))
        if field.type is float:
            values[field.name] = 0.0 if value is None else value
        else:
            kind = _TYPES[field.type]  # type: ignore[index]
            values[field.name] = np.zeros(count, kind) if value is None else np.array(value, kind)
    assert said == {}
    return Evidence(**values)


def in_session(seqs: Sequence[int]) -> dict[str, Any]:
    """Return the fields of memories that stand in one session, in the order given."""
    return {
        "seqs": list(seqs),
        "sessions": [1] * len(seqs),
        "before": [0, *seqs][:-1],
        "after": [*seqs, 0][1:],
    }
