"""The embedding table of a compiled encoder: one row a token, read from its file when the token occurs.

It is most of a small encoder's weights, and a text looks up a few of its rows. Read and not mapped: the pages belong to
the system's cache and to no process, and a file that is cut short is an error and not the end of the process.
"""

import os
import weakref
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from config.operating_system import read_at
from pipeline.errors import EncoderUnavailable

TABLE_FILE: Final = "tokens.npy"
TOKENS_INPUT: Final = "input_ids"
# What the graph takes in place of the rows that it would have looked up.
TABLE_INPUT: Final = "token_rows"


class TokenTable:
    """The rows of one file; safe to call from several threads at once, the file stays open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            (_, self._width), _, self._type = np.lib.format.read_array_header_1_0(file)
            self._begin = file.tell()
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def rows(self, tokens: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of tokens; shape (*tokens.shape, width)."""
        size = self._type.itemsize * self._width
        read = b"".join(
            [read_at(self._descriptor, size, self._begin + token * size) for token in tokens.ravel().tolist()]
        )
        if len(read) != tokens.size * size:
            raise EncoderUnavailable(f"{self._path} was cut short")
        return np.frombuffer(read, self._type).reshape(*tokens.shape, self._width)
