import json

import numpy as np
import pytest

from pipeline.errors import IndexUnavailable
from pipeline.index.lexical import MANIFEST, SEQS, LexicalIndex, build_segment, load_segment
from pipeline.store import meta
from tests.fakes.house import scratch_database


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_a_segment_reads_back_what_was_written(folder):
    name = build_segment(folder, [(3, ["a", "b", "a"]), (8, ["b"]), (9, [])])
    segment = load_segment(folder, name)
    assert segment.seqs.tolist() == [3, 8, 9]
    assert segment.tokens == 4
    assert segment.lengths.tolist() == [3, 1, 0]
    assert [segment.document_frequency(token) for token in ("a", "b", "c")] == [1, 2, 0]


@pytest.mark.parametrize("documents", [[], [(1, [])]])
def test_a_segment_of_nothing_is_a_segment(folder, documents):
    segment = load_segment(folder, build_segment(folder, documents))
    assert (segment.seqs.tolist(), segment.tokens, segment.document_frequency("a")) == ([r for r, _ in documents], 0, 0)


def test_two_segments_never_share_a_name(folder):
    assert len({build_segment(folder, [(1, ["a"])]) for _ in range(20)}) == 20


def damaged_segments(folder):
    """Yield (what was done, a segment's name) for every file that is lost or cut."""
    whole = build_segment(folder, [(1, ["a", "b"]), (2, ["b"])])
    for file in sorted(entry.name for entry in (folder / whole).iterdir()):
        for damage in ("lost", "cut", "emptied"):
            name = build_segment(folder, [(1, ["a", "b"]), (2, ["b"])])
            target = folder / name / file
            if damage == "lost":
                target.unlink()
            else:
                content = target.read_bytes()
                target.write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
            yield f"{file} {damage}", name


def test_a_segment_with_a_file_lost_or_cut_is_unavailable(folder):
    for what, name in damaged_segments(folder):
        with pytest.raises(IndexUnavailable):
            pytest.fail(f"{what}: {load_segment(folder, name)}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        json.dumps({"tokens": 1, "sizes": {"gone.npy": 3}}),
        "[]",
        "null",
    ],
)
def test_a_manifest_that_says_nothing_useful_makes_the_segment_unavailable(folder, text):
    name = build_segment(folder, [(1, ["a"])])
    (folder / name / MANIFEST).write_text(text)
    with pytest.raises(IndexUnavailable):
        load_segment(folder, name)


def test_a_segment_that_was_never_there_is_unavailable(folder):
    with pytest.raises(IndexUnavailable):
        load_segment(folder, "segment-of-dreams")


def test_the_row_numbers_are_plain_numpy(folder):
    name = build_segment(folder, [(1, ["a"])])
    assert np.load(folder / name / SEQS).dtype == np.int64


class Contended(LexicalIndex):
    """Another thread, still on an older snapshot, puts its segment back right after ours was set."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        older = self.__dict__.get("older")
        if name == "_segment" and older is not None:
            super().__setattr__("_segment", older)


def test_a_search_uses_the_segment_of_its_own_snapshot(folder):
    older, newer = (build_segment(folder, [(1, ["a"])]) for _ in range(2))
    index = Contended(folder)
    index.older = load_segment(folder, older)
    with scratch_database() as database:
        with database.write() as db:
            meta.put(db, meta.SEGMENT, newer)
        with database.read() as db:
            assert index.segment(db).name == newer
