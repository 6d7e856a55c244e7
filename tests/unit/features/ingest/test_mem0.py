"""What is read of mem0: the answers of get_all() in all their versions, and OpenMemory's backup."""

import zipfile

import pytest

from pipeline.features.ingest.memory_exports import read_mem0
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Kind
from tests.fakes.exports import EXPORTS, again, items, load, read, reasons_by_key, write


def test_a_memory_is_read_with_whose_it_was():
    readings = read(read_mem0, EXPORTS / "mem0.json")
    (item,) = items(readings).values()
    (draft,) = item.drafts
    assert (draft.content, draft.kind, draft.scope) == ("Ada prefers morning meetings", Kind.FACT, None)
    assert draft.occurred_at == "2026-01-05T18:15:30.123Z"
    assert draft.tags == ("mem0", "user-preferences", "work")
    assert draft.session_id == "mem0:standup-7"
    assert draft.metadata == {
        "type": "preference",
        "source_app": "feldkorb",
        "user_id": "ada",
        "run_id": "standup-7",
    }


def test_mem0_entries_that_are_no_memories_are_skipped():
    assert reasons_by_key(read(read_mem0, EXPORTS / "mem0.json")) == {
        "mem0.json next": "this is one page of several; import the others too",
        "3c90c3cc-0d44-4b50-8888-8dd25736052b": "no text",
        "mem0.json relations #1": "a relation between entities",
    }


def test_older_versions_gave_a_plain_list(tmp_path):
    rows = load("mem0.json")["results"]
    listed = items(read(read_mem0, write(tmp_path / "m.json", rows)))
    assert listed == items(read(read_mem0, EXPORTS / "mem0.json"))
    texts = read(read_mem0, write(tmp_path / "m.json", ["Ada likes leeks", {"text": "Ben likes chard"}]))
    assert [item.drafts[0].content for item in items(texts).values()] == ["Ada likes leeks", "Ben likes chard"]


def test_openmemory_backup_is_read_without_deleted_memories(tmp_path):
    path = tmp_path / "memories_export_ada.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(EXPORTS / "openmemory.json", "memories.json")
        archive.writestr("memories.jsonl.gz", b"\x1f\x8b")
    readings = read(read_mem0, path)
    (item,) = items(readings).values()
    assert item.drafts[0].content == "Feldkorb packs on Tuesdays and Fridays"
    assert item.drafts[0].metadata == {"mcp_client": "cursor", "user_id": "u-1", "app_id": "app-1"}
    assert reasons_by_key(readings) == {
        "memories.jsonl.gz": "not used by this import",
        "0a1b0000-0000-4000-8000-000000000002": "deleted",
    }


def test_mem0_items_read_before_are_unchanged(tmp_path):
    again(read_mem0, EXPORTS / "mem0.json")
    again(read_mem0, EXPORTS / "openmemory.json")
    again(read_mem0, write(tmp_path / "m.json", ["Ada likes leeks"]))


def test_how_well_it_matched_is_no_change(tmp_path):
    row = {"id": "1", "memory": "Ada likes leeks", "score": 0.2}
    path = write(tmp_path / "m.json", [row])
    known = {key: item.digest for key, item in items(read(read_mem0, path)).items()}
    assert items(read(read_mem0, write(path, [row | {"score": 0.9}]), known)) == {}
    assert items(read(read_mem0, write(path, [row | {"memory": "Ada likes beets"}]), known)).keys() == {"1"}


def test_oversized_metadata_names_its_omitted_fields(tmp_path):
    row = {"id": "1", "memory": "Ada likes leeks", "metadata": {"raw": "x" * 20_000, "type": "taste"}}
    (item,) = items(read(read_mem0, write(tmp_path / "m.json", [row]))).values()
    assert item.drafts[0].metadata == {"type": "taste", "left_out": ["raw"]}


@pytest.mark.parametrize("name", ["chatgpt.json", "claude.json", "pmb.json"])
def test_file_that_is_no_mem0_export_is_rejected(name):
    with pytest.raises(InvalidField, match="export of mem0"):
        read(read_mem0, EXPORTS / name)
