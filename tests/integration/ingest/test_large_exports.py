"""However large an export is, reading it takes no more memory than its largest conversation."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fakes.exports import chatgpt_conversation, claude_conversation, write_many

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
SIZE = 48 * MIB
# What Python and the modules take, and what may be under way: measured 30 MiB in all, 41 for an archive.
MOST_MIB = 96

MEASURE = """
import json, resource, sys
from pathlib import Path
from pipeline.kernel.errors import InvalidField
from pipeline.features.ingest.conversation_exports import read_chatgpt
from pipeline.features.ingest.conversation_exports import read_claude
from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.jsonl import read_jsonl
from pipeline.features.ingest.markdown import read_markdown

reader = {one.__name__: one for one in (read_chatgpt, read_claude, read_jsonl, read_markdown)}[sys.argv[1]]
counts = {"items": 0, "drafts": 0, "reasons": []}
try:
    for reading in reader(Path(sys.argv[2]), {}, lambda done, total: None):
        if isinstance(reading, Item):
            counts["items"] += 1
            counts["drafts"] += len(reading.drafts)
        else:
            counts["reasons"].append(reading.reason)
except InvalidField as error:
    counts["refused"] = str(error)
status = Path("/proc/self/status")
# Where there is one, for the other figure begins with what the process had that started this one.
kib = (
    int(status.read_text().split("VmHWM:")[1].split()[0])
    if status.exists()
    else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
)
counts["peak_mib"] = kib / 1024
print(json.dumps(counts))
"""


def measure_reading(reader, path):
    """Return what a process of its own reads, and the most memory that it took."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, reader, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("reader", "conversation"), [("read_chatgpt", chatgpt_conversation), ("read_claude", claude_conversation)]
)
def test_a_large_export_is_read_as_a_stream(tmp_path, reader, conversation):
    path = tmp_path / "conversations.json"
    count = write_many(path, conversation, SIZE // 2)
    found = measure_reading(reader, path)
    assert (found["items"], found["drafts"], found["reasons"]) == (count, 4 * count, [])
    assert found["peak_mib"] < MOST_MIB


def test_an_archive_is_not_unpacked_into_memory(tmp_path):
    count = write_many(tmp_path / "conversations.json", chatgpt_conversation, SIZE // 2)
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(tmp_path / "conversations.json", "conversations.json")
    found = measure_reading("read_chatgpt", tmp_path / "export.zip")
    assert found["items"] == count
    assert found["peak_mib"] < MOST_MIB


def test_an_archive_bomb_does_not_fill_the_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("conversations.json", "w", force_zip64=True) as member:
            member.write(b'[{"title": "')
            for _ in range(256):
                member.write(b"x" * MIB)
            member.write(b'"}]')
        archive.writestr("nested.zip", b"PK\x03\x04" + b"\0" * MIB)
        archive.writestr("memories.json", b"[" * MIB)
    assert (tmp_path / "export.zip").stat().st_size < MIB
    found = measure_reading("read_chatgpt", tmp_path / "export.zip")
    assert found["items"] == 0
    assert "more than 100 times its size" in found["refused"]
    assert found["peak_mib"] < MOST_MIB


def test_a_giant_conversation_is_passed_over(tmp_path):
    path = tmp_path / "conversations.json"
    count = write_many(path, chatgpt_conversation, SIZE + 8 * MIB, giant=SIZE)
    found = measure_reading("read_chatgpt", path)
    assert (found["items"], found["reasons"]) == (count, ["larger than 32 MiB"])
    assert found["peak_mib"] < MOST_MIB


def test_a_line_without_an_end_is_passed_over(tmp_path):
    path = tmp_path / "memories.jsonl"
    with path.open("wb") as file:
        file.write(b'{"content": "before"}\n{"content": "')
        for _ in range(SIZE // MIB):
            file.write(b"x" * MIB)
        file.write(b'"}\n{"content": "after"}\n')
    found = measure_reading("read_jsonl", path)
    assert (found["items"], found["reasons"]) == (2, ["longer than 8 MiB"])
    assert found["peak_mib"] < MOST_MIB
