"""The embedding table of a compiled encoder: one row per token, read from its file on demand.

The table is most of a small encoder's weights, and a text needs only a few rows. Read and not mapped: the pages
belong to the system's cache and to no process, and a truncated file causes an error instead of killing the process.
"""

import os
import weakref
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from config.operating_system import read_bytes_at
from pipeline.kernel.errors import EncoderUnavailable

TABLE_FILE: Final = "tokens.npy"
TOKENS_INPUT: Final = "input_ids"
# The graph's input instead of the rows.
TABLE_INPUT: Final = "token_rows"


class Table(Protocol):
    """An embedding table."""

    def rows(self, tokens: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of tokens; shape (*tokens.shape, width)."""


class TokenTable:
    """The rows of a file; thread-safe, the file stays open."""

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
            [read_bytes_at(self._descriptor, size, self._begin + token * size) for token in tokens.ravel().tolist()]
        )
        if len(read) != tokens.size * size:
            raise EncoderUnavailable(f"{self._path} was truncated")
        return np.frombuffer(read, self._type).reshape(*tokens.shape, self._width)
