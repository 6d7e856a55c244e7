"""Default encoders are built once in the user's cache, and every data directory takes them from it."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from pipeline.index import compile as compilation, encoder_cache
from pipeline.index.compile import compile_encoder, take_cached
from pipeline.index.compiled_files import write_manifest
from pipeline.index.encoder import (
    ENGLISH,
    FORMAT,
    INT8,
    MODEL_FILE,
    MULTILINGUAL,
    TOKENIZER_FILE,
    Manifest,
    is_compiled,
)
from pipeline.index.encoder_cache import find_cached, has_cached, open_cache
from pipeline.kernel.errors import EncoderUnavailable


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def built(monkeypatch):
    """Build encoders of a few bytes; return the names of those that were built."""
    names = []

    def build(model, directory):
        names.append(model)
        for name in (MODEL_FILE, TOKENIZER_FILE):
            (directory / name).write_bytes(name.encode())
        write_manifest(Manifest(model, 3, 8, 0, "", "", INT8, FORMAT, {}), directory)

    monkeypatch.setattr(compilation, "build_packaged", build)
    return names


@contextlib.contextmanager
def without_rights():
    """Be a user who may read only what is open to all, if the tests run as root."""
    if os.geteuid():
        yield
        return
    unprivileged = 65534
    os.setresuid(unprivileged, unprivileged, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_data_directories_share_one_build(cache, built, tmp_path):
    directories = [compile_encoder(ENGLISH, tmp_path / name) for name in ("first", "second")]
    assert built == [ENGLISH]
    assert all(is_compiled(ENGLISH, directory.parent) for directory in directories)
    assert {(directory / MODEL_FILE).stat().st_ino for directory in directories} == {
        (find_cached(ENGLISH) / MODEL_FILE).stat().st_ino
    }


def test_another_file_system_gets_copies(cache, built, tmp_path, monkeypatch):
    monkeypatch.setattr(encoder_cache.os, "link", lambda *_: (_ for _ in ()).throw(OSError("another device")))
    directory = compile_encoder(ENGLISH, tmp_path / "models")
    assert is_compiled(ENGLISH, directory.parent)
    assert (directory / MODEL_FILE).stat().st_ino != (find_cached(ENGLISH) / MODEL_FILE).stat().st_ino


def test_files_that_others_can_read_are_copied(cache, built, tmp_path):
    """An installation's encoders are readable by everyone; a data directory's files are not."""
    compile_encoder(ENGLISH, tmp_path / "first")
    cached = find_cached(ENGLISH) / MODEL_FILE
    cached.chmod(0o644)
    copy = compile_encoder(ENGLISH, tmp_path / "second") / MODEL_FILE
    assert (copy.stat().st_mode & 0o777, copy.stat().st_ino == cached.stat().st_ino) == (0o600, False)


def test_a_damaged_entry_is_built_again(cache, built, tmp_path):
    compile_encoder(ENGLISH, tmp_path / "first")
    (find_cached(ENGLISH) / MODEL_FILE).write_bytes(b"damaged")
    assert find_cached(ENGLISH) is None
    assert is_compiled(ENGLISH, compile_encoder(ENGLISH, tmp_path / "second").parent)
    assert built == [ENGLISH, ENGLISH]


def test_a_folder_that_others_can_change_is_not_used(cache, built, tmp_path):
    compile_encoder(ENGLISH, tmp_path / "first")
    find_cached(ENGLISH).parent.chmod(0o770)
    assert (find_cached(ENGLISH), open_cache(ENGLISH)) == (None, None)
    assert is_compiled(ENGLISH, compile_encoder(ENGLISH, tmp_path / "second").parent)
    assert built == [ENGLISH, ENGLISH]


def test_without_a_cache_the_data_directory_has_its_own(monkeypatch, built, tmp_path):
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert is_compiled(ENGLISH, compile_encoder(ENGLISH, tmp_path / "models").parent)
    assert find_cached(ENGLISH) is None


def test_a_cache_that_cannot_be_written_is_left_alone(cache, built, tmp_path):
    cache.write_bytes(b"a file")
    assert is_compiled(ENGLISH, compile_encoder(ENGLISH, tmp_path / "models").parent)


def test_changed_weights_or_sentences_have_another_entry(cache, monkeypatch, tmp_path):
    before = open_cache(MULTILINGUAL)
    (tmp_path / "sentences").write_text("{}")
    monkeypatch.setattr(encoder_cache, "SENTENCES", tmp_path / "sentences")
    assert len({before, open_cache(MULTILINGUAL), open_cache(ENGLISH)}) == 3


def test_an_installation_can_bring_the_encoders(cache, built, monkeypatch, tmp_path):
    """Without torch and without the packages of weights, they come with the environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "prefix" / "share"))
    compile_encoder(MULTILINGUAL, tmp_path / "models")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert not has_cached(MULTILINGUAL)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    assert has_cached(MULTILINGUAL)
    assert take_cached(MULTILINGUAL, tmp_path / "others")
    assert is_compiled(MULTILINGUAL, tmp_path / "others")


def test_a_cache_that_this_user_may_not_read_counts_as_none(cache, built, tmp_path):
    """As that of an installation by root, for the user of a service."""
    compile_encoder(ENGLISH, tmp_path / "models")
    assert has_cached(ENGLISH)
    cache.chmod(0)
    with without_rights():
        assert not has_cached(ENGLISH)
        assert find_cached(ENGLISH) is None
    cache.chmod(0o700)


def test_other_models_are_not_cached(cache, tmp_path):
    assert not take_cached("another/model", tmp_path)
    assert (has_cached("another/model"), list(Path(tmp_path).iterdir())) == (False, [])


def test_missing_encoder_package_is_named_in_the_error(cache, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncoderUnavailable, match="pip install sentence-transformers"):
        compile_encoder("another/model", tmp_path / "models")
