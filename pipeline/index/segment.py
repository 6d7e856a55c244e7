"""The lexical segment on disk: bm25s's index of every memory, named by the store and replaced completely.

bm25s stores a matrix of final scores, idf(t) · tf / (tf + norm(m)), with a column per word (decision 0005);
`postings` counts the words. Fields are not words and do not count for the length, so they are separate lists. Files
are read, not memory-mapped: a truncated mapped file kills the process with SIGBUS. In an encrypted data directory,
words and fields are encrypted (decision 0038).
"""

import importlib
import json
import logging
import math
import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ulid import ULID

from config.import_stubs import BM25S_EXTRAS, hide_packages
from config.operating_system import make_folder, sync_to_disk, sync_tree
from pipeline.index.postings import CountedWords, WordCounter
from pipeline.index.row_arrays import NO_ROWS, Floats, Seqs
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.store.atomic_files import writing
from pipeline.kernel.store.encryption import erase
from pipeline.kernel.store.key import StoreKey, find_key
from pipeline.text.tokens import is_field

FORMAT = 3
# Names ascend with the build time.
NAME_PREFIX = "segment-"
MANIFEST = "manifest.json"
ROWS = "rows.npy"
LENGTHS = "lengths.npy"
COUNTS = "words.counts.npy"
FIELDS = "fields.json"
VOCABULARY = "words.vocabulary.json"
# The last two are in one file if they are encrypted.
SEALED = "names.sealed"
WORDS = {
    "data_name": "words.scores.npy",
    "indices_name": "words.places.npy",
    "indptr_name": "words.starts.npy",
    "vocab_name": VOCABULARY,
    "params_name": "words.parameters.json",
}

# Short, conversational texts: term frequency saturates early and length means little.
K1 = 0.9
B = 0.4

# A query needs the weight of each word several times; few frequencies occur often.
MOST_IDFS = 8192

NO_COUNTS = np.empty(0, np.float32)

Posting = tuple[Seqs, Floats]
Document = tuple[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Segment:
    """bm25s's index of many memories.

    `counts` are the frequencies of words in memories, in the order of the final scores; `rows` are the memories' row
    numbers in ascending order, `lengths` count their words, `fields` list the memories with each field.
    """

    words: Any
    counts: NDArray[np.uint16]
    fields: Mapping[str, Seqs]
    rows: Seqs
    lengths: NDArray[np.int32]

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return each memory's score for distinct terms, by the statistics of this segment alone."""
        known = self.words.get_tokens_ids(terms)
        scores: Floats = self.words.get_scores_from_ids(known) if known else np.zeros(len(self.rows), np.float32)
        return scores[: len(self.rows)]

    def posting(self, term: str) -> Posting:
        """Return the row numbers of the memories with a word, and the word's counts."""
        number = self.words.vocab_dict.get(term)
        if number is None:
            return NO_ROWS, NO_COUNTS
        starts = self.words.scores["indptr"]
        column = slice(starts[number], starts[number + 1])
        return self.rows[self.words.scores["indices"][column]], self.counts[column].astype(np.float32)

    def holders(self, field: str) -> Seqs:
        """Return the row numbers of the memories that have a field."""
        return self.fields.get(field, NO_ROWS)

    @property
    def counted(self) -> CountedWords:
        """Return the counts of words, from which a later segment can be built."""
        scores = self.words.scores
        return CountedWords(scores["indices"], self.counts, scores["indptr"], self.lengths, self.words.vocab_dict)


@lru_cache(MOST_IDFS)
def idf(count: int, frequency: int) -> np.float32:
    """Return the inverse document frequency of a term, as Lucene and bm25s compute and round it."""
    return np.float32(math.log(1 + (count - frequency + 0.5) / (frequency + 0.5)))


def length_norms(lengths: NDArray[Any], average: float) -> NDArray[np.float64]:
    """Return the length terms of BM25's denominator."""
    return K1 * ((1 - B) + B * lengths / (average or 1.0))


def index_documents(documents: Iterable[Document]) -> Segment:
    """Index (row number, terms) documents, in row order."""
    rows: list[int] = []
    counter = WordCounter()
    fields: dict[str, list[int]] = {}
    for row, terms in documents:
        rows.append(row)
        counter.add_terms(term for term in terms if not is_field(term))
        for field in set(filter(is_field, terms)):
            fields.setdefault(field, []).append(row)
    holders = {field: np.array(rows, np.int64) for field, rows in fields.items()}
    return index_counted(np.array(rows, np.int64), counter.finish(), holders)


def index_counted(rows: Seqs, counted: CountedWords, fields: Mapping[str, Seqs]) -> Segment:
    """Score counted texts as bm25s does; each text has a row number."""
    frequencies = np.diff(counted.starts)
    known, numbers = np.unique(frequencies, return_inverse=True)
    weights = np.array([idf(len(rows), int(frequency)) for frequency in known], np.float32)[numbers]
    norms = length_norms(counted.lengths, float(counted.lengths.mean()) if len(rows) else 0.0)
    counts = counted.counts.astype(np.float64)
    scores = np.repeat(weights, frequencies) * (counts / (counts + norms[counted.texts]))
    words = _library().BM25(k1=K1, b=B, method="lucene")
    # An empty corpus has one empty text: bm25s supports no other.
    words.scores = {
        "data": scores.astype(np.float32),
        "indices": counted.texts,
        "indptr": counted.starts,
        "num_docs": max(len(rows), 1),
    }
    words.nonoccurrence_array = None
    words.vocab_dict = counted.vocabulary
    words.unique_token_ids_set = set(counted.vocabulary.values())
    return Segment(words, counted.counts, fields, rows, counted.lengths)


def build_segment(folder: Path, documents: Iterable[Document]) -> str:
    """Write a new segment of (row number, terms) documents, in row order; return its name."""
    return write_segment(folder, index_documents(documents))


def write_segment(folder: Path, segment: Segment) -> str:
    """Write a new segment; return its name."""
    name = f"{NAME_PREFIX}{ULID()}".lower()
    target = folder / name
    make_folder(target)
    vocabulary, segment.words.vocab_dict = segment.words.vocab_dict, {}
    # Without its words: bm25s would write them unencrypted.
    segment.words.save(target, **WORDS)
    (target / VOCABULARY).unlink()
    _write_names(target, find_key(folder), vocabulary, segment.fields)
    np.save(target / COUNTS, segment.counts)
    np.save(target / ROWS, segment.rows)
    np.save(target / LENGTHS, segment.lengths)
    # Before the store names it: its words are then deleted from the tail.
    sync_tree(target)
    _write_manifest(target)
    return name


def load_segment(folder: Path, name: str) -> Segment:
    """Load a segment; raise IndexUnavailable if a file is missing, truncated or of another format.

    Raises KeyUnavailable if it is encrypted and the key cannot be read.
    """
    target = folder / name
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="ascii"))
        _check(target, manifest["format"], manifest["sizes"])
        words = _library().BM25.load(target, load_vocab=False, **WORDS)
        vocabulary, fields = _read_names(target, manifest["sizes"])
        words.vocab_dict, words.unique_token_ids_set = vocabulary, set(vocabulary.values())
        holders = {field: np.array(rows, np.int64) for field, rows in fields.items()}
        counts, rows, lengths = (np.load(target / file, allow_pickle=False) for file in (COUNTS, ROWS, LENGTHS))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexUnavailable(f"lexical segment {name}: {error}", part=name) from error
    return Segment(words, counts, holders, rows, lengths)


def convert_segment(folder: Path, name: str, key: StoreKey | None) -> bool:
    """Encrypt words and fields of a segment, or without a key decrypt them; return whether that was necessary.

    Its manifest says which form is valid, so a segment can be loaded after an interrupted conversion. A broken
    segment is deleted: a worker builds another.
    """
    target = folder / name
    unused = [target / file for file in ((VOCABULARY, FIELDS) if key is not None else (SEALED,))]
    try:
        segment = load_segment(folder, name)
    except IndexUnavailable:
        for file in [*target.iterdir()]:
            erase(file)
        target.rmdir()
        return True
    is_changed = (target / SEALED).exists() is (key is None) or any(file.exists() for file in unused)
    if is_changed:
        _write_names(target, key, segment.words.vocab_dict, segment.fields)
        _write_manifest(target, without=unused)
        for file in unused:
            erase(file)
    return is_changed


def list_segments(folder: Path) -> list[str]:
    """List the segments of a folder, including incomplete ones."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name.startswith(NAME_PREFIX))


def find_plain_names(folder: Path) -> list[Path]:
    """List the files in a folder's segments that contain words unencrypted."""
    files = [folder / name / file for name in list_segments(folder) for file in (VOCABULARY, FIELDS)]
    return [file for file in files if file.exists()]


def remove_segments(folder: Path, keep: str) -> None:
    """Delete all other segments; a process that has loaded one of them can use it until it reloads."""
    for name in list_segments(folder):
        if name != keep:
            shutil.rmtree(folder / name)
    # They contain purged words.
    sync_to_disk(folder)


def _write_names(
    target: Path, key: StoreKey | None, vocabulary: Mapping[str, int], holders: Mapping[str, Seqs]
) -> None:
    fields = {field: rows.tolist() for field, rows in holders.items()}
    if key is None:
        contents = {VOCABULARY: _encode(vocabulary), FIELDS: _encode(fields)}
    else:
        from pipeline.kernel.store.content_encryption import seal

        contents = {SEALED: seal(key, target.name, _encode([vocabulary, fields]))}
    for name, content in contents.items():
        with writing(target / name) as file:
            file.write(content)


def _encode(names: object) -> bytes:
    return json.dumps(names, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _read_names(target: Path, sizes: Mapping[str, int]) -> tuple[dict[str, int], dict[str, list[int]]]:
    if SEALED not in sizes:
        return json.loads((target / VOCABULARY).read_bytes()), json.loads((target / FIELDS).read_bytes())
    key = find_key(target.parent)
    if key is None:
        raise ValueError("encrypted with another key than the data directory's")
    from pipeline.kernel.store.content_encryption import unseal

    vocabulary, fields = json.loads(unseal(key, target.name, (target / SEALED).read_bytes()))
    return vocabulary, fields


def _write_manifest(target: Path, without: Sequence[Path] = ()) -> None:
    files = [file for file in target.iterdir() if file.name != MANIFEST and file not in without]
    sizes = {file.name: file.stat().st_size for file in files}
    with writing(target / MANIFEST) as file:
        file.write(json.dumps({"format": FORMAT, "sizes": sizes}).encode("ascii"))


def _check(target: Path, written_format: int, sizes: Mapping[str, int]) -> None:
    if written_format != FORMAT:
        raise ValueError(f"format {written_format}, not {FORMAT}")
    for name, size in sizes.items():
        if (target / name).stat().st_size != size:
            raise ValueError(f"{name} was truncated or overwritten")


@cache
def _library() -> Any:
    with hide_packages(BM25S_EXTRAS):
        library = importlib.import_module("bm25s")
    # bm25s sets its logger to DEBUG, ignoring the application's level.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return library


class TailPostings:
    """Postings of the tail, which grow with every write; protected by the owner's lock."""

    def __init__(self) -> None:
        self.last_change = 0
        self.lengths: dict[int, int] = {}
        self._columns: dict[str, tuple[array[int], array[int]]] = {}

    def put(self, seq: int, terms: Sequence[str]) -> None:
        """Add a memory, replacing the postings of its old text."""
        if seq in self.lengths:
            self._forget(seq)
        self.lengths[seq] = sum(not is_field(term) for term in terms)
        for term, count in Counter(terms).items():
            column = self._columns.get(term)
            if column is None:
                column = self._columns[term] = array("q"), array("I")
            column[0].append(seq)
            column[1].append(count)

    def drop(self, seq: int) -> None:
        """Remove a memory."""
        del self.lengths[seq]
        self._forget(seq)

    def _forget(self, seq: int) -> None:
        # Edits of recent memories are rare, so there is no index from a memory to its terms.
        for seqs, counts in self._columns.values():
            if seq in seqs:
                index = seqs.index(seq)
                del seqs[index], counts[index]

    def posting(self, term: str) -> Posting:
        """Return the row numbers of the memories with a term, and the term's counts."""
        seqs, counts = self._columns.get(term, ((), ()))
        return np.array(seqs, np.int64), np.array(counts, np.float32)

    def list_words(self) -> list[tuple[str, Seqs]]:
        """Return each word that is not a field, and the row numbers of the memories with it."""
        columns = ((term, seqs) for term, (seqs, _) in self._columns.items() if seqs and not is_field(term))
        return [(term, np.array(seqs, np.int64)) for term, seqs in columns]
