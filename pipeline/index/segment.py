"""The lexical segment on disk: immutable postings, named by the store, replaced as a whole."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from ulid import ULID

from pipeline.errors import IndexUnavailable
from pipeline.index.postings import Postings, invert

FORMAT = 2
MANIFEST = "manifest.json"
TERMS = "terms.txt"
ARRAYS = ("starts", "seqs", "counts", "rows", "lengths")


def build_segment(folder: Path, documents: Iterable[tuple[int, Sequence[str]]]) -> str:
    """Write a new segment of (row number, terms) documents, in row order; return its name."""
    postings = invert(documents)
    name = f"segment-{ULID()}".lower()
    target = folder / name
    target.mkdir(mode=0o700, parents=True)
    # No term holds white space, so a line each needs no quoting.
    (target / TERMS).write_text("\n".join(postings.terms), encoding="utf-8")
    for array in ARRAYS:
        np.save(target / f"{array}.npy", getattr(postings, array))
    sizes = {file.name: file.stat().st_size for file in target.iterdir()}
    (target / MANIFEST).write_text(json.dumps({"format": FORMAT, "sizes": sizes}), encoding="ascii")
    return name


def load_segment(folder: Path, name: str) -> Postings:
    """Load a segment; raise IndexUnavailable when a file is missing, was cut, or is of another format."""
    target = folder / name
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="ascii"))
        _check(target, manifest["format"], manifest["sizes"])
        lines = (target / TERMS).read_text(encoding="utf-8")
        terms = {term: number for number, term in enumerate(lines.split("\n"))} if lines else {}
        # Read, not memory-mapped: a mapped file that someone cuts short ends the process with SIGBUS.
        return Postings(terms, *(np.load(target / f"{array}.npy", allow_pickle=False) for array in ARRAYS))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexUnavailable(f"lexical segment {name}: {error}", part=name) from error


def remove_segments(folder: Path, keep: str) -> None:
    """Delete every other segment; a process that has loaded a deleted one keeps it until it reloads."""
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != keep:
            shutil.rmtree(entry)


def _check(target: Path, written_format: int, sizes: Mapping[str, int]) -> None:
    if written_format != FORMAT:
        raise ValueError(f"format {written_format}, not {FORMAT}")
    for name, size in sizes.items():
        if (target / name).stat().st_size != size:
            raise ValueError(f"{name} was cut or overwritten")
