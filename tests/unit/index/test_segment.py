import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import IndexUnavailable
from pipeline.index.segment import FORMAT, MANIFEST, build_segment, load_segment, remove_segments
from pipeline.text.tokens import memory_tokens
from tests.fakes.house import scratch_folder

DAY = "2026-03-04T12:00:00.000Z"


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_a_segment_reads_back_what_was_written(folder):
    segment = load_segment(folder, build_segment(folder, [(3, ["a", "b", "a"]), (8, ["b"]), (9, [])]))
    assert segment.rows.tolist() == [3, 8, 9]
    assert segment.lengths.tolist() == [3, 1, 0]
    found = {term: [column.tolist() for column in segment.of(term)] for term in ("a", "b", "c")}
    assert found == {"a": [[3], [2]], "b": [[3, 8], [1, 1]], "c": [[], []]}


@settings(max_examples=60)
@given(st.lists(st.text(max_size=40), max_size=4))
def test_the_terms_of_any_text_are_kept(contents):
    rows = [(seq, memory_tokens(content, DAY)) for seq, content in enumerate(contents, start=1)]
    with scratch_folder() as folder:
        segment = load_segment(folder, build_segment(folder, rows))
    assert set(segment.terms) == {term for _, terms in rows for term in terms}
    for seq, terms in rows:
        assert all(seq in segment.of(term)[0] for term in terms)


@pytest.mark.parametrize("documents", [[], [(1, [])]])
def test_a_segment_of_nothing_is_a_segment(folder, documents):
    segment = load_segment(folder, build_segment(folder, documents))
    assert segment.rows.tolist() == [seq for seq, _ in documents]
    assert len(segment.of("a")[0]) == len(segment.terms) == 0


def test_two_segments_never_share_a_name(folder):
    assert len({build_segment(folder, [(1, ["a"])]) for _ in range(20)}) == 20


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
    import numpy as np

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
