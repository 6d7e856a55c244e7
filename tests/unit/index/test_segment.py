import contextlib
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from config.paths import STORE_KEY
from pipeline.index import segment
from pipeline.index.segment import (
    FORMAT,
    MANIFEST,
    build_segment,
    convert_segment,
    index_documents,
    list_segments,
    load_segment,
    remove_segments,
)
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.store.key import make_key, write_key_record
from pipeline.text.tokens import ASKS, is_field, memory_tokens, metadata_term
from tests.fakes.in_process import scratch_folder
from tests.fakes.properties import examples

DAY = "2026-03-04T12:00:00.000Z"


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_written_segment_reads_back_its_terms_and_fields(folder):
    asks = ["b", ASKS, metadata_term("ada")]
    segment = load_segment(folder, build_segment(folder, [(3, ["a", "b", "a"]), (8, asks), (9, [])]))
    assert segment.rows.tolist() == [3, 8, 9]
    assert segment.lengths.tolist() == [3, 1, 0], "fields are no words"
    found = {term: [column.tolist() for column in segment.posting(term)] for term in ("a", "b", "c", ASKS)}
    assert found == {"a": [[3], [2]], "b": [[3, 8], [1, 1]], "c": [[], []], ASKS: [[], []]}
    fields = (ASKS, metadata_term("ben"))
    assert [segment.holders(field).tolist() for field in fields] == [[8], []]


TERMS = ["port", "zebra", "порт", "東京", ASKS, metadata_term("ada")]
corpora = st.lists(st.lists(st.sampled_from(TERMS), max_size=12), max_size=10).map(
    lambda texts: [(3 * place + 2, terms) for place, terms in enumerate(texts)]
)


@given(corpora)
def test_segment_postings_contain_every_memory_and_count(corpus):
    segment = index_documents(corpus)
    for term in [*TERMS, "unknown"]:
        expected = [(seq, Counter(terms)[term]) for seq, terms in corpus if term in terms]
        if is_field(term):
            assert segment.holders(term).tolist() == [seq for seq, _ in expected]
        else:
            seqs, counts = segment.posting(term)
            assert list(zip(seqs.tolist(), counts.tolist(), strict=True)) == expected
    assert segment.rows.tolist() == [seq for seq, _ in corpus]
    assert segment.lengths.tolist() == [sum(not is_field(t) for t in terms) for _, terms in corpus]


def test_term_counts_are_recovered_from_stored_scores():
    counts = [1, 2, 3, 50, 999, 2000]
    corpus = [(n, ["zebra"] * n + ["port"] * 7) for n in counts] + [(row, ["mail"]) for row in range(3000, 9000)]
    segment = index_documents(corpus)
    assert segment.posting("zebra")[1].tolist() == counts
    assert segment.posting("port")[1].tolist() == [7] * len(counts)
    assert set(segment.posting("mail")[1].tolist()) == {1}


@examples(60)
@given(st.lists(st.text(max_size=40), max_size=4))
def test_the_terms_of_any_text_are_kept(contents):
    rows = [(seq, memory_tokens(content, DAY)) for seq, content in enumerate(contents, start=1)]
    with scratch_folder() as folder:
        segment = load_segment(folder, build_segment(folder, rows))
    for seq, terms in rows:
        assert all(seq in (segment.holders(t) if is_field(t) else segment.posting(t)[0]) for t in terms)


@pytest.mark.parametrize("documents", [[], [(1, [])]])
def test_a_segment_of_nothing_is_a_segment(folder, documents):
    segment = load_segment(folder, build_segment(folder, documents))
    assert segment.rows.tolist() == [seq for seq, _ in documents]
    assert len(segment.posting("a")[0]) == len(segment.holders(ASKS)) == 0
    assert segment.scores(["a"]).tolist() == [0] * len(documents)


def test_two_segments_never_share_a_name(folder):
    assert len({build_segment(folder, [(1, ["a"])]) for _ in range(20)}) == 20


NAMES = [(1, ["zebra", "quokka", metadata_term("ada")]), (2, ["quokka"])]


@pytest.fixture
def store_key(tmp_path):
    """The key of an encrypted data directory, which is the folder of the segments."""
    made = make_key(tmp_path.parent / f"{tmp_path.name}.key")
    write_key_record(tmp_path / STORE_KEY, made)
    return made


@pytest.fixture
def segments(tmp_path):
    (tmp_path / "lexical").mkdir()
    return tmp_path / "lexical"


def names_in(segments):
    """List the files, of whatever name, that contain a word or a field."""
    files = [file for file in segments.rglob("*") if file.is_file()]
    return [file.name for file in files if any(name in file.read_bytes() for name in (b"zebra", b"quokka", b"ada"))]


def check_whole(segment):
    assert segment.posting("quokka")[0].tolist() == [1, 2]
    assert segment.holders(metadata_term("ada")).tolist() == [1]
    assert segment.scores(["zebra"]).tolist()[0] > 0


def test_a_segment_of_an_encrypted_data_directory_has_no_word_in_any_file(segments, store_key):
    name = build_segment(segments, NAMES)
    assert names_in(segments) == []
    check_whole(load_segment(segments, name))
    assert not convert_segment(segments, name, store_key)


def test_a_sealed_segment_is_unavailable_with_another_key_or_name(segments, store_key):
    name = build_segment(segments, NAMES)
    (segments / name).rename(segments / "segment-renamed")
    with pytest.raises(IndexUnavailable):
        load_segment(segments, "segment-renamed")
    (segments / "segment-renamed").rename(segments / name)
    write_key_record(segments.parent / STORE_KEY, make_key(store_key.file.with_suffix(".other")))
    with pytest.raises(IndexUnavailable):
        load_segment(segments, name)
    (segments.parent / STORE_KEY).unlink()
    with pytest.raises(IndexUnavailable):
        load_segment(segments, name)


@pytest.mark.parametrize("way", ["seal", "open"])
@pytest.mark.parametrize("steps", range(4))
def test_interrupted_conversion_leaves_a_complete_segment(segments, tmp_path, monkeypatch, way, steps):
    key = make_key(tmp_path.parent / f"{tmp_path.name}.key")
    if way == "open":
        write_key_record(tmp_path / STORE_KEY, key)
    name = build_segment(segments, NAMES)
    write_key_record(tmp_path / STORE_KEY, key)
    left = iter(range(steps))

    def interrupt(real):
        def run(*arguments):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(*arguments)

        return run

    to = key if way == "seal" else None
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(segment, "writing", interrupt(segment.writing))
        patched.setattr(segment, "erase", interrupt(segment.erase))
        convert_segment(segments, name, to)
    check_whole(load_segment(segments, name))
    convert_segment(segments, name, to)
    check_whole(load_segment(segments, name))
    assert not convert_segment(segments, name, to)
    assert bool(names_in(segments)) is (way == "open")


def test_a_broken_segment_is_erased_instead_of_converted(segments, store_key):
    name = build_segment(segments, NAMES)
    (segments / name / MANIFEST).unlink()
    assert convert_segment(segments, name, store_key)
    assert list_segments(segments) == []


def damaged_segments(folder):
    """Yield (what was done, a segment's name) for every file that is lost, cut or longer than it was."""
    documents = [(1, ["a", "b"]), (2, ["b"])]
    whole = build_segment(folder, documents)
    for file in sorted(entry.name for entry in (folder / whole).iterdir()):
        for damage in ("lost", "cut", "emptied", "appended"):
            name = build_segment(folder, documents)
            target = folder / name / file
            content = target.read_bytes()
            target.write_bytes({"cut": content[: len(content) // 2], "appended": content + b"x"}.get(damage, b""))
            if damage == "lost":
                target.unlink()
            yield f"{file} {damage}", name


def test_a_segment_with_a_file_lost_cut_or_lengthened_is_unavailable(folder):
    for what, name in damaged_segments(folder):
        with pytest.raises(IndexUnavailable) as raised:
            pytest.fail(f"{what}: {load_segment(folder, name)}")
        assert raised.value.part == name


def test_an_array_of_objects_is_not_unpickled(folder):
    name = build_segment(folder, [(1, ["a"])])
    rows, manifest = folder / name / "rows.npy", folder / name / MANIFEST
    np.save(rows, np.array([{"a": 1}], object), allow_pickle=True)
    sizes = json.loads(manifest.read_text())["sizes"] | {"rows.npy": rows.stat().st_size}
    manifest.write_text(json.dumps({"format": FORMAT, "sizes": sizes}))
    with pytest.raises(IndexUnavailable):
        load_segment(folder, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "{}é",
        json.dumps({"format": FORMAT}),
        json.dumps({"format": FORMAT, "sizes": {"gone.npy": 3}}),
        json.dumps({"format": FORMAT, "sizes": 3}),
        json.dumps({"format": FORMAT - 1, "sizes": {}}),
        json.dumps({"tokens": 1, "sizes": {}}),
    ],
)
def test_a_manifest_that_says_nothing_useful_makes_the_segment_unavailable(folder, text):
    name = build_segment(folder, [(1, ["a"])])
    (folder / name / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(IndexUnavailable):
        load_segment(folder, name)


def test_a_segment_that_was_never_there_is_unavailable(folder):
    with pytest.raises(IndexUnavailable):
        load_segment(folder, "segment-of-dreams")


def test_only_the_kept_segment_stays(folder):
    names = [build_segment(folder, [(1, ["zebra"])]) for _ in range(3)]
    (folder / "build.lock").touch()
    remove_segments(folder, keep=names[1])
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(["build.lock", names[1]])
