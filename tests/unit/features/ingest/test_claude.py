"""What is read of claude.ai's export: conversations as they went on last, and what Claude remembers."""

import zipfile

import pytest

from pipeline.features.ingest.conversation_exports import read_claude
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Kind
from tests.fakes.exports import EXPORTS, again, claude_conversation, items, load, read, reasons_by_key, write

DOCUMENT = "0198dddd-0000-7000-8000-000000000001"
FIRST, SECOND, THIRD = (f"0198aaaa-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


def _message(name, sender, text, **more):
    return {"uuid": name, "sender": sender, "text": text, "content": [{"type": "text", "text": text}], **more}


def _contents(path):
    return [draft.content for item in items(read(read_claude, path)).values() for draft in item.drafts]


def test_claude_exchanges_summaries_and_attachments_are_memories():
    item = items(read(read_claude, EXPORTS / "claude.json"))[FIRST]
    answered, summary, given, made = item.drafts
    assert answered.kind is Kind.QA
    assert answered.content == (
        "Q: Why does the nightly order import take forty minutes?\n\nAttached: explain.txt, grafana.png\n\n"
        "A: An index on `orders.customer` will do: the import looks every order up by its customer."
    )
    assert answered.occurred_at == "2026-03-29T01:46:02.962Z"
    assert answered.session_id == f"claude:{FIRST}"
    assert answered.metadata == {"title": "Order import is slow"}
    assert summary.kind is Kind.EPISODE
    assert summary.content.startswith("Order import is slow\n\n**Conversation overview**")
    assert summary.details == {"started_at": "2026-03-29T01:46:01.569Z", "ended_at": "2026-03-30T01:15:08.132Z"}
    assert given.content == "explain.txt\n\nSeq Scan on orders  (rows=4100000 loops=1)"
    assert made.content == "Migration\n\nCREATE INDEX orders_customer ON orders (customer);"
    assert {given.kind, made.kind} == {Kind.DOCUMENT}
    assert {draft.tags for draft in item.drafts} == {("claude",)}


def test_neither_thoughts_nor_tools_nor_answers_asked_again_are_read():
    whole = " ".join(_contents(EXPORTS / "claude.json"))
    for hidden in ("sequential scan", "asked again", "web_search", "not supported", "CONCURRENTLY"):
        assert hidden not in whole


def test_a_message_of_an_older_export_has_only_its_text():
    item = items(read(read_claude, EXPORTS / "claude.json"))[SECOND]
    assert [draft.content for draft in item.drafts] == [
        "Q: How many boxes fit on a pallet?\n\nA: I'll count.\n\nForty-eight of the small ones."
    ]


def test_claude_conversation_without_text_is_skipped():
    assert reasons_by_key(read(read_claude, EXPORTS / "claude.json")) == {THIRD: "no text"}


def test_claude_items_read_before_are_unchanged():
    again(read_claude, EXPORTS / "claude.json")
    again(read_claude, EXPORTS / "claude_memories.json")


def test_claude_memories_are_read():
    found = items(read(read_claude, EXPORTS / "claude_memories.json"))
    assert list(found) == [
        "memory",
        "memory of project 0198bbbb-0000-7000-8000-000000000001",
        "memory file /preferences.md",
    ]
    memory, project, file = (item.drafts[0] for item in found.values())
    assert memory.content.startswith("What Claude remembers\n\n**Work context**")
    assert project.content.endswith("The warehouse project runs on Postgres 16.")
    assert (file.details, file.occurred_at) == ({"title": "/preferences.md"}, "2026-01-02T03:04:05.000Z")


def test_a_file_of_one_account_is_read_like_the_list(tmp_path):
    listed = items(read(read_claude, EXPORTS / "claude_memories.json"))
    alone = items(read(read_claude, write(tmp_path / "m.json", load("claude_memories.json")[0])))
    assert {key: item.drafts for key, item in alone.items()} == {key: item.drafts for key, item in listed.items()}


def test_a_folder_of_archives_is_one_export(tmp_path):
    """Since 2026 an export comes as a .zip for each kind of data."""
    with zipfile.ZipFile(tmp_path / "conversations-000.zip", "w") as archive:
        archive.write(EXPORTS / "claude.json", "conversations.json")
    with zipfile.ZipFile(tmp_path / "memories-000.zip", "w") as archive:
        archive.writestr("memories/c1a9a5f8.json", write(tmp_path / "m", load("claude_memories.json")[0]).read_text())
    with zipfile.ZipFile(tmp_path / "projects-000.zip", "w") as archive:
        archive.writestr("projects/0198bbbb.json", write(tmp_path / "m", load("claude_projects.json")[0]).read_text())
        archive.writestr("design_chats/0198eeee.json", "{}")
    (tmp_path / "m").unlink()
    readings = read(read_claude, tmp_path)
    assert len(items(readings)) == 8
    assert "pallets.md" in items(readings)[f"document {DOCUMENT}"].drafts[0].content
    assert reasons_by_key(readings)["projects-000.zip/design_chats/0198eeee.json"] == "not used by this import"


def test_the_leaf_that_is_named_counts_before_the_latest(tmp_path):
    messages = [
        _message("q", "human", "Which?", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
        _message("a", "assistant", "Chosen.", parent_message_uuid="q", created_at="2026-01-01T00:00:01Z"),
        _message("b", "assistant", "Later.", parent_message_uuid="q", created_at="2026-01-01T00:00:02Z"),
    ]
    told = {"uuid": "c", "name": "n", "chat_messages": messages}
    assert _contents(write(tmp_path / "c.json", [told])) == ["Q: Which?\n\nA: Later."]
    told["current_leaf_message_uuid"] = "a"
    assert _contents(write(tmp_path / "c.json", [told])) == ["Q: Which?\n\nA: Chosen."]


def test_parents_that_run_in_a_circle_end(tmp_path):
    messages = [
        _message("a", "human", "Round?", parent_message_uuid="b"),
        _message("b", "assistant", "And round.", parent_message_uuid="a"),
    ]
    told = {"uuid": "c", "chat_messages": messages, "current_leaf_message_uuid": "b"}
    assert _contents(write(tmp_path / "c.json", [told])) == ["Q: Round?\n\nA: And round."]


@pytest.mark.parametrize("name", ["chatgpt.json", "mem0.json", "pmb.json"])
def test_file_that_is_no_claude_export_is_rejected(name):
    with pytest.raises(InvalidField, match=r"data export of claude.ai \(conversations.json"):
        read(read_claude, EXPORTS / name)


def test_a_conversation_without_an_id_is_left_out(tmp_path):
    readings = read(read_claude, write(tmp_path / "c.json", [claude_conversation(1) | {"uuid": ""}]))
    assert reasons_by_key(readings) == {"c.json #1": "a conversation without an id"}


def test_claude_project_is_read_with_instructions_and_documents():
    found = items(read(read_claude, EXPORTS / "claude_projects.json"))
    project = "0198cccc-0000-7000-8000-000000000001"
    assert list(found) == [f"project {project}", f"instructions of {project}", f"document {DOCUMENT}"]
    drafts = [draft for item in found.values() for draft in item.drafts]
    assert [draft.content for draft in drafts] == [
        "Warehouse\n\nEverything about the warehouse of Feldkorb.",
        "Instructions of Warehouse\n\nAnswer in German, and name the table.",
        "Warehouse › pallets.md\n\n# Pallets\n\nForty-eight small boxes fit on one.",
    ]
    assert drafts[2].occurred_at == "2026-02-03T05:00:00.000Z"
    assert {draft.kind for draft in drafts} == {Kind.DOCUMENT}


def test_a_project_without_an_id_is_left_out(tmp_path):
    path = write(tmp_path / "projects.json", [{"name": "x", "docs": []}])
    assert list(reasons_by_key(read(read_claude, path)).values()) == ["a project without an id"]
