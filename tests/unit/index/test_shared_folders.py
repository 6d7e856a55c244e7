"""Folders on object storage are fetched whole or not at all, and leave nothing beside their place."""

import pytest

from pipeline.index.storage import fetch_folder, send_folder
from pipeline.kernel.store.objects import ObjectStorage

MANIFEST = "a-manifest.json"


@pytest.fixture
def objects(tmp_path):
    (tmp_path / "bucket").mkdir()
    return ObjectStorage.open(f"dir:{tmp_path / 'bucket'}")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "here" / "index"


@pytest.fixture
def sent(tmp_path, objects):
    """A folder that was sent under `index/`; returns what it holds."""
    folder = tmp_path / "built"
    folder.mkdir()
    files = {MANIFEST: "whole", "rows": "one two"}
    for name, text in files.items():
        (folder / name).write_text(text)
    send_folder(objects, "index/", folder, MANIFEST)
    return files


def test_a_copy_is_yielded_under_its_name_and_stays_where_it_is_moved_to(objects, place, sent):
    with fetch_folder(objects, "index/", place, MANIFEST) as copy:
        assert copy.name == place.name
        copy.rename(place)
    assert {file.name: file.read_text() for file in place.iterdir()} == sent
    assert list(place.parent.iterdir()) == [place]


def test_fetched_folder_is_deleted_if_not_moved(objects, place, sent):
    with fetch_folder(objects, "index/", place, MANIFEST) as copy:
        assert {file.name for file in copy.iterdir()} == set(sent)
    assert list(place.parent.iterdir()) == []


def test_a_folder_without_its_manifest_is_not_fetched(objects, place, sent):
    objects.delete([f"index/{MANIFEST}"])
    with fetch_folder(objects, "index/", place, MANIFEST) as copy:
        assert copy is None
    assert not place.parent.exists()


def test_folder_deleted_during_the_fetch_is_not_returned(objects, place, sent, monkeypatch):
    listed = ObjectStorage.list
    monkeypatch.setattr(ObjectStorage, "list", lambda self, prefix: {**listed(self, prefix), "index/gone": 1})
    with fetch_folder(objects, "index/", place, MANIFEST) as copy:
        assert copy is None
    assert list(place.parent.iterdir()) == []


def test_the_manifest_is_sent_last(tmp_path, objects, sent, monkeypatch):
    keys, put = [], ObjectStorage.put
    monkeypatch.setattr(ObjectStorage, "put", lambda self, key, file: keys.append(key) or put(self, key, file))
    send_folder(objects, "again/", tmp_path / "built", MANIFEST)
    assert keys == ["again/rows", f"again/{MANIFEST}"]
