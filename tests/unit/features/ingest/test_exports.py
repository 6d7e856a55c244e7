"""Exports as they lie on a disk: files, archives and folders, whole and damaged."""

import json
import struct
import zipfile

import pytest

from pipeline.features.ingest.conversation_exports import read_chatgpt, read_claude
from pipeline.features.ingest.memory_exports import read_mem0
from pipeline.kernel.errors import InvalidField
from tests.fakes.exports import EXPORTS, chatgpt_conversation, items, read, reasons_by_key, write


def _zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members:
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def test_an_archive_is_read_like_the_file_in_it(tmp_path):
    path = _zip(
        tmp_path / "export.zip",
        [("chat.html", "<html>"), ("user.json", {}), ("conversations.json", (EXPORTS / "chatgpt.json").read_text())],
    )
    readings = read(read_chatgpt, path)
    assert items(readings) == items(read(read_chatgpt, EXPORTS / "chatgpt.json"))
    assert {key for key, reason in reasons_by_key(readings).items() if reason == "not used by this import"} == {
        "chat.html",
        "user.json",
    }


def test_an_export_may_be_split_into_numbered_files(tmp_path):
    numbered = [(f"conversations-{number:03d}.json", [chatgpt_conversation(number)]) for number in range(3)]
    assert len(items(read(read_chatgpt, _zip(tmp_path / "e.zip", numbered)))) == 3
    folder = tmp_path / "unpacked"
    folder.mkdir()
    for name, value in numbered:
        write(folder / name, value)
    write(folder / "conversations.json.index", [])
    readings = read(read_chatgpt, folder)
    assert len(items(readings)) == 3
    assert reasons_by_key(readings) == {"conversations.json.index": "not used by this import"}


def test_progress_counts_the_unpacked_bytes(tmp_path):
    told = []
    path = _zip(tmp_path / "e.zip", [(f"conversations-{n}.json", [chatgpt_conversation(n)] * 40) for n in range(2)])
    with zipfile.ZipFile(path) as archive:
        total = sum(member.file_size for member in archive.infolist())
    list(read_chatgpt(path, {}, lambda done, whole: told.append((done, whole))))
    assert told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len({done for done, _ in told}) > 4


@pytest.mark.parametrize(
    "name",
    [
        "../../conversations.json",
        "/etc/conversations.json",
        "..\\..\\conversations.json",
        "C:\\conversations.json",
        "a/" * 60 + "conversations.json",
    ],
)
def test_archive_member_with_an_unsafe_path_writes_no_file(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = _zip(inside / "e.zip", [(name, [chatgpt_conversation(1)])])
    assert items(read(read_chatgpt, path)).keys() == {"talk-1"}
    assert [one.name for one in tmp_path.rglob("*")] == ["inside", "e.zip"]


@pytest.mark.parametrize("name", ["xconversations.json", "conversations.json.bak", "conversations.txt", "x"])
def test_only_members_of_that_very_name_are_read(tmp_path, name):
    with pytest.raises(InvalidField, match="contains no data export of ChatGPT"):
        read(read_chatgpt, _zip(tmp_path / "e.zip", [(name, [chatgpt_conversation(1)])]))


def test_archive_member_names_are_sanitized(tmp_path):
    path = _zip(tmp_path / "e.zip", [("a\x1b[2J\u202eb\n.txt", "x"), ("conversations.json", [chatgpt_conversation(1)])])
    assert reasons_by_key(read(read_chatgpt, path)).keys() == {"ab .txt"}


def test_items_before_a_damaged_archive_part_are_kept(tmp_path):
    path = _zip(tmp_path / "e.zip", [("conversations.json", [chatgpt_conversation(n) for n in range(400)])])
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 64] = b"\xff" * 64
    path.write_bytes(raw)
    readings = read(read_chatgpt, path)
    assert 0 < len(items(readings)) < 400
    assert reasons_by_key(readings)["conversations.json"] == "its remainder could not be read: it cannot be unpacked"


def test_encrypted_archive_member_is_reported(tmp_path):
    path = _zip(tmp_path / "e.zip", [("conversations.json", [chatgpt_conversation(1)])])
    raw = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.index(mark) + offset
        raw[at : at + 2] = struct.pack("<H", 1)
    path.write_bytes(raw)
    with pytest.raises(InvalidField, match="is encrypted or damaged"):
        read(read_chatgpt, path)


def test_an_archive_that_takes_longer_than_any_export_is_refused_by_name(tmp_path, monkeypatch):
    clock = iter(range(0, 10**6, 4))
    monkeypatch.setattr("pipeline.features.ingest.exports.time.thread_time", lambda: next(clock))
    path = _zip(
        tmp_path / "e.zip",
        [
            (f"conversations-{n}.json", json.dumps([chatgpt_conversation(n * 9 + i) for i in range(9)]).encode())
            for n in range(2)
        ],
    )
    with pytest.raises(InvalidField, match=r"e\.zip takes more than 20 s to read"):
        read(read_chatgpt, path)


def test_an_archive_that_unpacks_to_far_more_is_read_as_a_stream(tmp_path):
    """A megabyte of spaces costs a kilobyte: what is between values is never kept."""
    path = _zip(tmp_path / "e.zip", [("conversations.json", "[" + " " * (64 << 20) + "]")])
    assert path.stat().st_size < 1 << 20
    assert read(read_chatgpt, path) == []


def test_a_file_that_says_it_is_larger_than_it_is_ends_where_it_ends(tmp_path):
    path = _zip(tmp_path / "e.zip", [("conversations.json", [chatgpt_conversation(1)])])
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\x01\x02") + 24
    raw[at : at + 4] = struct.pack("<I", 1 << 30)
    path.write_bytes(raw)
    told = []
    readings = list(read_chatgpt(path, {}, lambda done, whole: told.append((done, whole))))
    assert items(readings).keys() == {"talk-1"}
    assert all(done <= whole for done, whole in told)


def test_a_broken_archive_in_a_folder_spoils_nothing_else(tmp_path):
    (tmp_path / "conversations-001.zip").write_bytes(b"PK\x03\x04 and no more")
    _zip(tmp_path / "conversations-000.zip", [("conversations.json", [chatgpt_conversation(1)])])
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere")
    readings = read(read_chatgpt, tmp_path)
    assert items(readings).keys() == {"talk-1"}
    assert reasons_by_key(readings) == {
        "conversations-001.zip": "is not a readable .zip",
        "link.json": "not a regular file",
    }


def test_one_broken_part_spoils_nothing_else(tmp_path):
    write(tmp_path / "conversations-000.json", {"something": "else"})
    write(tmp_path / "conversations-001.json", [chatgpt_conversation(1)])
    (tmp_path / "conversations-002.json").write_text('[{"mapping": ')
    readings = read(read_chatgpt, tmp_path)
    assert items(readings).keys() == {"talk-1"}
    assert reasons_by_key(readings) == {
        "conversations-000.json something": "of an unknown kind",
        "conversations-002.json": "its remainder could not be read: it ends before its JSON does",
    }


@pytest.mark.parametrize("reader", [read_chatgpt, read_claude, read_mem0])
def test_a_path_to_nothing_is_refused(tmp_path, reader):
    with pytest.raises(InvalidField, match="is not a file or folder"):
        read(reader, tmp_path / "nowhere")
    with pytest.raises(InvalidField, match="contains no "):
        read(reader, tmp_path)


def test_a_conversation_that_is_too_large_is_left_out_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.features.ingest.exports.MAX_VALUE_BYTES", 1 << 20)
    giant = chatgpt_conversation(1, 1, "x" * (1 << 20))
    path = write(tmp_path / "conversations.json", [chatgpt_conversation(0), giant, chatgpt_conversation(2)])
    readings = read(read_chatgpt, path)
    assert items(readings).keys() == {"talk-0", "talk-2"}
    assert reasons_by_key(readings) == {"conversations.json #2": "larger than 1 MiB"}


def test_an_archive_that_unpacks_to_far_more_than_an_export_is_refused(tmp_path):
    value = b"[" + b" " * 2**25 + b"]"
    path = _zip(tmp_path / "e.zip", [(f"conversations-{number}.json", value) for number in range(4)])
    with pytest.raises(InvalidField, match="unpacks to more than 100 times its size"):
        read(read_chatgpt, path)


def test_an_archive_whose_files_overlap_is_refused(tmp_path):
    path = _zip(tmp_path / "e.zip", [("conversations.json", [chatgpt_conversation(1)])])
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    directory, end = data[start:-22], data[-22:]
    files = 300
    end = end[:8] + struct.pack("<HHI", files, files, len(directory) * files) + end[16:]
    path.write_bytes(data[:start] + directory * files + end)
    with pytest.raises(InvalidField, match="overlap"):
        read(read_chatgpt, path)


def test_a_file_of_very_many_unknown_entries_is_given_up(tmp_path):
    path = _zip(tmp_path / "e.zip", [("conversations.json", b"[" + b"{}," * 200_000 + b"{}]")])
    with pytest.raises(InvalidField):
        read(read_chatgpt, path)
