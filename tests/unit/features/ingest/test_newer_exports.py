"""Exports change without notice: what can be read is read, the rest is named, and nothing read is an error."""

import json
import zipfile

import pytest

from pipeline.features.ingest.conversation_exports import read_chatgpt, read_claude
from pipeline.features.ingest.fields import Skipped
from pipeline.features.ingest.memory_exports import read_mem0
from pipeline.kernel.errors import InvalidField
from tests.fakes.exports import items, read, write


def chatgpt(messages, **fields):
    mapping, parent = {}, None
    for number, message in enumerate(messages):
        mapping[str(number)] = {"id": str(number), "parent": parent, "message": message}
        parent = str(number)
    return {"id": "c1", "title": "Vans", "mapping": mapping, "current_node": parent} | fields


def said(role, content, **fields):
    return {"author": {"role": role}, "content": content, "create_time": 1_718_000_000} | fields


TEXT = {"content_type": "text", "parts": ["Which port?"]}


@pytest.mark.parametrize(
    "question",
    [
        said("user", TEXT),
        said("user", "Which port?"),
        said("user", ["Which port?"]),
        said("user", {"parts": ["Which port?"]}),
        said("user", {"content_type": "text", "parts": "Which port?"}),
        said("user", {"content_type": "a_type_of_tomorrow", "parts": [{"text": "Which port?"}, {"image": 1}, None]}),
        {"role": "user", "content": "Which port?"},
        {"author": "user", "content": TEXT, "create_time": "2024-06-10T06:13:20Z"},
        said("user", TEXT, create_time=1_718_000_000_000),
        said("user", TEXT, create_time="1718000000.25"),
        said("user", TEXT, metadata=None, recipient=None),
    ],
)
def test_chatgpt_messages_are_read_in_any_shape(tmp_path, question):
    path = write(tmp_path / "conversations.json", [chatgpt([None, {}, question, said("assistant", "Port 1.")])])
    [item] = items(read(read_chatgpt, path)).values()
    [draft] = item.drafts
    assert draft.content == "Q: Which port?\n\nA: Port 1."
    assert draft.occurred_at is None or draft.occurred_at.startswith("2024-06-10T06:13:20")


def test_flat_message_list_is_read_like_a_message_tree(tmp_path):
    conversation = {"id": "c1", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
    [item] = items(read(read_chatgpt, write(tmp_path / "conversations.json", [conversation]))).values()
    assert item.drafts[0].content == "Q: Hi\n\nA: Ho"


@pytest.mark.parametrize(
    "names",
    [
        ["conversations.json"],
        ["My export/conversations-000.json", "My export/conversations-001.json", "My export/users.json"],
        ["a/b/conversations_1.json", "a/b/conversations_2.json", "a/b/message_feedback.json"],
        ["Conversations (1).json"],
    ],
)
def test_other_archive_layouts_are_read(tmp_path, names):
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in names:
            told = [chatgpt([said("user", TEXT)], id=name)] if "onversations" in name else [{"id": "u"}]
            file.writestr(name, json.dumps(told))
    assert items(read(read_chatgpt, archive)).keys() == {name for name in names if "onversations" in name}


@pytest.mark.parametrize(
    "message",
    [
        {"sender": "human", "text": "Which port?"},
        {"sender": "user", "content": "Which port?"},
        {"role": "user", "content": [{"type": "text", "text": "Which port?"}, {"type": "of_tomorrow", "x": 1}, None]},
        {"sender": "human", "content": {"type": "text", "text": "Which port?"}},
        {"sender": "human", "content": [{"text": "Which port?"}], "created_at": 1_718_000_000_000},
    ],
)
@pytest.mark.parametrize("field", ["chat_messages", "messages"])
def test_claude_messages_are_read_in_any_shape(tmp_path, field, message):
    conversation = {"uuid": "c1", "name": "Vans", field: [None, message, {"sender": "system", "text": "no"}]}
    [item] = items(read(read_claude, write(tmp_path / "conversations.json", [conversation]))).values()
    assert [draft.content for draft in item.drafts] == ["Q: Which port?"]


@pytest.mark.parametrize("bad", [{"title": "Lost"}, {"title": "Lost", "mapping": 3}, {"name": "Lost", "mapping": None}])
def test_unreadable_conversation_is_named_and_others_are_read(tmp_path, bad):
    readings = read(read_chatgpt, write(tmp_path / "conversations.json", [bad, chatgpt([said("user", TEXT)])]))
    assert items(readings).keys() == {"c1"}
    assert Skipped("conversations.json #1 “Lost”", "of an unknown kind") in readings


def test_unexpected_conversation_costs_only_itself(tmp_path, monkeypatch):
    def fail(*_):
        raise TypeError("unhashable type")

    monkeypatch.setattr("pipeline.features.ingest.conversation_exports._extras", fail)
    path = write(tmp_path / "conversations.json", [chatgpt([said("user", TEXT)])])
    with pytest.raises(InvalidField, match="has no readable content"):
        read(read_chatgpt, path)


@pytest.mark.parametrize("reader", [read_chatgpt, read_claude, read_mem0])
@pytest.mark.parametrize("value", [[1, 2], [{"a": 1}], {"a": [1]}, [[]]])
def test_nothing_read_of_a_file_with_contents_is_an_error(tmp_path, reader, value):
    with pytest.raises(InvalidField) as raised:
        read(reader, write(tmp_path / "conversations.json", value))
    assert "export of" in raised.value.errors[0].msg
