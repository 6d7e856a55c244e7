import os
import stat

import pytest

from pipeline.kernel import anchors
from pipeline.kernel.anchors import MAX_FILE_BYTES, hash_of, is_stale
from pipeline.kernel.records import Anchor

NO_HASH = "0" * 64
TEXT = "one\ntwo\nthree\nfour\n"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    return file


def make_anchor(file, *lines):
    anchor = Anchor(str(file), *lines)
    return Anchor(str(file), *(lines or (None, None))[:2], hash_of(anchor))


def let_settle(file, monkeypatch):
    """Let a file be old enough for its hash to be kept."""
    monkeypatch.setattr(anchors, "CLOCK_TICK_NS", -1)


def test_unchanged_file_is_not_stale(file):
    assert is_stale(make_anchor(file)) is False
    assert is_stale(make_anchor(file, 2, 3)) is False


@pytest.mark.parametrize("lines", [(), (2, 3), (2, 2), (1, 4)])
def test_a_change_is_stale(file, lines):
    anchor = make_anchor(file, *lines)
    file.write_text(TEXT.replace("two", "2"))
    assert is_stale(anchor) is True


def test_edit_of_the_same_length_and_time_is_stale(file):
    anchor = make_anchor(file)
    for text in ("owt", "wto", "tow"):
        file.write_text(TEXT.replace("two", text))
        assert is_stale(anchor) is True
    file.write_text(TEXT)
    assert is_stale(anchor) is False


def test_a_change_that_restores_the_time_of_writing_is_stale(file, monkeypatch):
    let_settle(file, monkeypatch)
    anchor = make_anchor(file)
    before = file.stat()
    while True:
        file.write_text(TEXT.replace("two", "owt"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        if file.stat().st_ctime_ns != before.st_ctime_ns:
            break
    assert is_stale(anchor) is True


def test_a_file_that_is_known_is_read_once(file, monkeypatch):
    let_settle(file, monkeypatch)
    anchor = make_anchor(file)
    before = anchors._hash.cache_info().hits
    assert is_stale(anchor) is False
    assert anchors._hash.cache_info().hits == before + 1


def test_a_change_of_other_lines_is_not_stale(file):
    anchor = make_anchor(file, 2, 3)
    file.write_text(TEXT.replace("four", "4").replace("one", "1") + "five\n")
    assert is_stale(anchor) is False


def test_lines_that_moved_are_stale(file):
    anchor = make_anchor(file, 2, 3)
    file.write_text("zero\n" + TEXT)
    assert is_stale(anchor) is True


def test_a_deleted_file_is_stale(file):
    anchor = make_anchor(file)
    file.unlink()
    assert is_stale(anchor) is True


def test_a_file_whose_folder_became_a_file_is_stale(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "code.py").write_text(TEXT)
    anchor = make_anchor(folder / "code.py")
    (folder / "code.py").unlink()
    folder.rmdir()
    folder.write_text("")
    assert is_stale(anchor) is True


def test_a_file_that_lost_the_lines_is_stale(file):
    anchor = make_anchor(file, 3, 4)
    file.write_text("one\ntwo\nthree\n")
    assert is_stale(anchor) is True


def test_lines_that_never_were_have_no_hash(file):
    assert hash_of(Anchor(str(file), 4, 5)) is None
    assert hash_of(Anchor(str(file), 5)) is None


def test_a_single_line_is_a_range_of_one(file):
    assert hash_of(Anchor(str(file), 2)) == hash_of(Anchor(str(file), 2, 2))


def test_an_empty_file_is_a_text(tmp_path):
    (tmp_path / "__init__.py").touch()
    assert is_stale(make_anchor(tmp_path / "__init__.py")) is False


@pytest.mark.parametrize("path", ["code.py", "./code.py", "~/code.py", ""])
def test_a_relative_path_is_never_looked_at(path, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert hash_of(Anchor(path)) is None
    assert is_stale(Anchor(path, content_hash=NO_HASH)) is None


def test_anchor_without_a_hash_has_unknown_staleness(file):
    assert is_stale(Anchor(str(file))) is None


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_anchor_of_a_special_file_is_stale_without_blocking(file, make):
    anchor = make_anchor(file)
    file.unlink()
    make(file)
    assert hash_of(Anchor(str(file))) is None
    assert is_stale(anchor) is True


def test_a_file_beyond_the_limit_is_not_read(file):
    anchor = make_anchor(file)
    os.truncate(file, MAX_FILE_BYTES + 1)
    assert hash_of(Anchor(str(file))) is None
    assert is_stale(anchor) is None
    os.truncate(file, MAX_FILE_BYTES)
    assert is_stale(anchor) is True


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/self/mem", "/nowhere\x00", "/" + "x" * 999]
)
def test_a_strange_path_is_harmless(path):
    anchor = Anchor(path, content_hash=NO_HASH)
    assert is_stale(anchor) in (True, None)


def test_a_file_that_may_not_be_read_is_unknown(file, monkeypatch):
    anchor = make_anchor(file)

    def denied(*args):
        raise PermissionError

    # Nothing is forbidden to who runs everything, so the permission bits cannot be relied on here.
    monkeypatch.setattr(anchors.os, "open", denied)
    file.chmod(stat.S_IWUSR)
    assert hash_of(Anchor(str(file))) is None
    assert is_stale(anchor) is None


def test_a_link_is_followed(file, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(file)
    anchor = make_anchor(link)
    assert anchor.content_hash == hash_of(Anchor(str(file)))
    file.write_text("other\n")
    assert is_stale(anchor) is True


def test_dangling_link_is_stale_and_a_circular_link_unknown(tmp_path):
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert is_stale(Anchor(str(tmp_path / "nowhere"), content_hash=NO_HASH)) is True
    assert is_stale(Anchor(str(tmp_path / "circle"), content_hash=NO_HASH)) is None
